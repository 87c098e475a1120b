"""Who moved on since a row was imported: its source, the log, or both."""

from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from decklog.core.clock import to_text
from decklog.importing.pages import every
from decklog.journal import chain
from decklog.journal.preparing import NOTHING
from decklog.journal.rows import COLUMNS
from decklog.records.values import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from decklog.journal.entry import Entry
    from decklog.journal.known_keys import Identity
    from decklog.log import Decklog
    from decklog.records.record import Record

# What stands with every change that an import makes.
NOTE = "imported"
SUBTYPE = COLUMNS.index("subtype")
# The columns by which entries are told apart that have the same key; what follows from the log itself is not among them.
_SAYING = [place for place, name in enumerate(COLUMNS) if name not in ("pos", "stream", "seq", "hash", "key", "redacted")]
_REDACTED, _PLACES = COLUMNS.index("redacted"), {name: place for place, name in enumerate(COLUMNS)}
_DIGESTS = {chain.BODY: chain.BODY_DIGEST, chain.PAYLOAD: chain.PAYLOAD_DIGEST}


class Versions:
    """A record that is here, beside what a row of the source says of it."""

    def __init__(self, log: "Decklog", present: "Record", fields: "dict[str, Any]") -> None:
        self._log = log
        self._present = present
        self._fields = fields

    def is_same(self) -> bool:
        """Return whether the record is what the row says."""
        here = {name: getattr(self._present, name) for name in self._fields}
        # Most are, as they stand; to find out what a secret became takes ten times as long.
        return here == self._fields or self._log.db.values.bind(here)[0] == self._given

    @cached_property
    def _given(self) -> "dict[str, Any]":
        """What the row says as columns hold it: redacted, and JSON in one spelling."""
        return self._log.db.values.bind(self._fields)[0]

    def is_ours(self) -> bool:
        """Return whether an import made the last change."""
        return self._history[-1].body == NOTE

    def moved(self) -> "tuple[list[str], list[str]]":
        """Name the fields that the source changed since an import set them, and those of them that were changed here too."""
        set_by_import: dict[str, Any] = {}
        before: dict[str, Any] | None = None
        for entry in self._history:
            image = entry.payload if isinstance(entry.payload, dict) else {}
            if before is None or entry.body == NOTE:
                set_by_import |= {
                    name: image.get(name) for name in self._given if before is None or image.get(name) != before.get(name)
                }
            before = image
        here = before or {}
        moved = [name for name, value in self._given.items() if value != set_by_import.get(name) and value != here.get(name)]
        return moved, [name for name in moved if here.get(name) != set_by_import.get(name)]

    @cached_property
    def _history(self) -> "list[Entry]":
        table, record_id = self._present.table, self._present.id_of(self._present.values())
        return list(every(lambda **page: self._log.journal.history(table, record_id, **page)))


def says_the_same(said: "Sequence[Any]", present: "tuple[Any, ...]") -> bool:
    """Return whether a row's columns, as they would be written, are those of the entry that is here: so it is with nearly all.

    What the row leaves out counts for nothing, and a text that is kept elsewhere, or was dropped since, by its digest.
    """
    for place in _SAYING:
        value, held = said[place], present[place]
        if value is None or value == held or value == "":
            continue
        digest = _DIGESTS.get(place)
        if digest is None or held is not None or chain.digest(value) != present[digest]:
            return False
    return True


def identity_of(entry: "dict[str, Any]") -> "Identity | None":
    """Give by what the journal knows an entry that is given as the arguments of `append`, unless those are no plain texts."""
    stream, key = entry.get("stream"), entry.get("key")
    subtype, group_id = entry.get("subtype") or "", entry.get("group_id") or ""
    identity = (stream, subtype, group_id, key)
    return identity if all(type(part) is str for part in identity) else None  # type: ignore[return-value]


def is_as_it_was(entry: "dict[str, Any]", present: "tuple[Any, ...]") -> bool:
    """Return whether an entry, as the arguments of `append`, is here word for word, with nothing that was taken out of it.

    Then there is nothing to write, and so nothing to look through.
    """
    if present[_REDACTED]:
        return False
    said = [*NOTHING.values()]
    for name, value in entry.items():
        if isinstance(value, datetime) and value.tzinfo is UTC:
            value = to_text(value)
        elif isinstance(value, (dict, list)):
            value = to_json(value)
        said[_PLACES[name]] = value
    return says_the_same(said, present)


def same_entry(log: "Decklog", entry: "Entry", given: "dict[str, Any]") -> bool:
    """Return whether an entry is what a row of the source says now, as it is given or as columns hold it."""
    said = log.db.values.bind({name: value for name, value in given.items() if _says(name, value)})[0]
    return said == log.db.values.bind({name: getattr(entry, name) for name in said})[0]


def _says(name: str, value: object) -> bool:
    return name not in ("key", "stream") and value not in (None, "")
