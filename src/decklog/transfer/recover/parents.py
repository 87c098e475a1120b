"""What a record refers to: an entry can't be taken in while the records that its own one names are not there."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from decklog.records.values import from_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.db.base import Database
    from decklog.records.record import Record

    Values = dict[str, Any]
    # The table that is referred to, and pairs of a column and the one there that it names.
    Reference = tuple[str, list[tuple[str, str]]]


@dataclass(frozen=True)
class Lost:
    """A record that something refers to and that is not there."""

    table: str
    record_id: str
    values: tuple[object, ...]


class Parents:
    """Looks up what the images of changes refer to, by the foreign keys of a SQLite log."""

    def __init__(self, db: "Database", record_classes: "dict[str, type[Record]]") -> None:
        self._db = db
        self._classes = record_classes
        self._known: dict[str, list[Reference]] = {}

    def image_of(self, values: "Values") -> "Values | None":
        """Read what an entry says that a record became; None when it says nothing of the kind, or that it is gone."""
        record_class = self._classes.get(values["record_table"] or "")
        try:
            image = from_json(values["payload"] or "")
        except ValueError:
            return None
        if record_class is None or not isinstance(image, dict) or image.get("removed"):
            return None
        return record_class.upcast(image)

    def belongs(self, values: "Values", stream: str) -> bool:
        """Return whether the record that an entry tells of is one of its stream."""
        image = self.image_of(values)
        return image is None or self._classes[values["record_table"]].stream_of(image) == stream

    def lost(self, values: "Values") -> "Iterator[Lost]":
        """Yield the records that an entry's own refers to and that are not there."""
        image = self.image_of(values)
        for table, pairs in self._references(values["record_table"]) if image is not None else []:
            named = {there: image.get(here) for here, there in pairs}  # type: ignore[union-attr]
            if None in named.values() or table not in self._classes or self._is_there(table, named):
                continue
            record_class = self._classes[table]
            if set(named) == set(record_class.identity):
                yield Lost(table, record_class.id_of(named), tuple(named[name] for name in record_class.identity))

    def _references(self, table: str) -> "list[Reference]":
        if table not in self._known:
            names, rows = self._db.read(lambda: self._db.rows(f"pragma foreign_key_list({table})", {}))
            found: dict[int, Reference] = {}
            for row in rows:
                key = dict(zip(names, row, strict=True))
                found.setdefault(key["id"], (key["table"], []))[1].append((key["from"], key["to"]))
            self._known[table] = list(found.values())
        return self._known[table]

    def _is_there(self, table: str, named: "Values") -> bool:
        condition = " and ".join(f"{name} = :{name}" for name in named)
        return self._db.read(lambda: self._db.one(f"select 1 from {table} where {condition}", named)) is not None
