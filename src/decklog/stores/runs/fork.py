"""What a fork of a run is made of: its records as they were, each under a new id, pointing at the copies."""

from decklog.records import Record, from_json, to_json
from decklog.stores.runs.run import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.db.base import Database
    from decklog.ids import Ids

    Image = dict[str, Any]

_ID_LENGTH = 26


def copies(
    found: "list[tuple[type[Record], Image]]", run_id: str, new_id: str, ids: "Ids", db: "Database"
) -> "Iterator[tuple[type[Record], Image]]":
    """Give the records that a fork has, those that others refer to first."""
    copied = [(record_class, image) for record_class, image in found if record_class.copied_by_fork]
    names = _Renaming(ids, run_id, new_id, copied)
    for record_class, image in copied:
        yield record_class, record_class.forked(names.apply(record_class, image), db)


class _Renaming:
    """Gives every copied record an id of its own, and points references at the copies."""

    def __init__(self, ids: "Ids", run_id: str, new_id: str, images: "list[tuple[type[Record], Image]]") -> None:
        self._names = {run_id: new_id}
        for record_class, image in images:
            if record_class is not Run and record_class.identity == ("id",):
                self._names[str(image["id"])] = ids.new(_prefix(record_class, str(image["id"])))

    def apply(self, record_class: type[Record], image: "dict[str, Any]") -> "dict[str, Any]":
        columns = {name: image.get(name) for name in record_class.columns()}
        renamed = {name: self._value(name, value) for name, value in columns.items()}
        if record_class is Run:
            renamed["key"] = None
        if "reservation_id" in renamed:
            # The parent's money is not the fork's to settle.
            renamed["reservation_id"] = None
        return renamed

    def _value(self, name: str, value: "Any") -> "Any":
        if not isinstance(value, str):
            return value
        if value in self._names and (name.endswith("id") or name in ("depends_on", "superseded_by", "key")):
            return self._names[value]
        if value.startswith("[") and any(old in value for old in self._names):
            return to_json(self._inside(from_json(value)))
        return value

    def _inside(self, value: "Any") -> "Any":
        if isinstance(value, list):
            return [self._inside(item) for item in value]
        return self._names.get(value, value) if isinstance(value, str) else value


def _prefix(record_class: type[Record], record_id: str) -> str:
    """Give the beginning of a copy's id: that of an id of ours, or the kind of record where a caller chose the id."""
    head, mark, rest = record_id.partition("_")
    return head if mark and len(rest) == _ID_LENGTH and head.isalpha() else record_class.noun().rpartition(" ")[2]
