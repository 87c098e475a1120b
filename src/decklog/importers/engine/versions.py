"""Who moved on since a row was imported: its source, the log, or both."""

from functools import cached_property

from decklog.importers.engine.pages import every
from decklog.stores.journal.rows import COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from decklog.app import Decklog
    from decklog.records import Record
    from decklog.stores.journal.entry import Entry

# What stands with every change that an import makes.
NOTE = "imported"


class Versions:
    """A record that is here, beside what a row of the source says of it."""

    def __init__(self, log: "Decklog", present: "Record", fields: "dict[str, Any]") -> None:
        self._log = log
        self._present = present
        self._fields = fields

    def is_same(self) -> bool:
        """Say whether the record is what the row says."""
        here = {name: getattr(self._present, name) for name in self._fields}
        # Most are, as they stand; to find out what a secret became takes ten times as long.
        return here == self._fields or self._log.db.values.bind(here)[0] == self._given

    @cached_property
    def _given(self) -> "dict[str, Any]":
        """What the row says as columns hold it: redacted, and JSON in one spelling."""
        return self._log.db.values.bind(self._fields)[0]

    def story(self) -> "tuple[bool, bool]":
        """Say whether an import brought just this before, and whether nobody but imports changed the record since."""
        table, record_id = self._present.table, self._present.id_of(self._present.values())
        entries: list[Entry] = list(every(lambda **page: self._log.journal.history(table, record_id, **page)))
        brought = [entry.payload for entry in entries if entry.body == NOTE]
        return any(self._tells(image) for image in brought), entries[-1].body == NOTE

    def _tells(self, image: object) -> bool:
        return isinstance(image, dict) and all(image.get(name) == value for name, value in self._given.items())


def same_entry(log: "Decklog", entry: "Entry", given: "dict[str, Any]", prepared: "tuple[Any, ...] | None") -> bool:
    """Say whether an entry is what a row of the source says now, as it is given or as columns hold it."""
    if prepared is None:
        said = log.db.values.bind({name: value for name, value in given.items() if _says(name, value)})[0]
    else:
        # Behind the columns is the seal.
        columns = zip(COLUMNS, prepared, strict=False)
        said = {name: value for name, value in columns if _says(name, value) and name != "redacted"}
    return said == log.db.values.bind({name: getattr(entry, name) for name in said})[0]


def _says(name: str, value: object) -> bool:
    return name not in ("key", "stream") and value not in (None, "")
