"""What a fork of a run is made of: its records as they were, each under a new id, pointing at the copies."""

from decklog.records import Record
from decklog.stores.runs.run import Run
from decklog.values import from_json, to_json

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
    copied = list(_fitted([(kind, kind.upcast(image)) for kind, image in found if kind.copied_by_fork]))
    names = {(Run.table, run_id): new_id}
    for record_class, image in copied:
        if record_class is not Run and record_class.identity == ("id",):
            names[record_class.table, image["id"]] = ids.new(_prefix(record_class, image["id"]))
    for record_class, image in copied:
        yield record_class, record_class.forked(_renamed(record_class, image, names), db)


def _fitted(found: "list[tuple[type[Record], Image]]") -> "Iterator[tuple[type[Record], Image]]":
    """Leave out, or put right, what tells of something that comes only after the last entry of the fork."""
    told: dict[str, list[Image]] = {}
    for record_class, image in found:
        told.setdefault(record_class.table, []).append(image)
    for record_class in dict.fromkeys(record_class for record_class, _ in found):
        for image in record_class.fitted(told[record_class.table], told):
            yield record_class, image


def _renamed(record_class: type[Record], image: "Image", names: "dict[tuple[str, str], str]") -> "Image":
    """Give an image with an id of its own whose references lead to the copies; what was not copied is named as it was."""
    places = {"id": record_class.table, "run_id": Run.table, **dict(record_class.references)}
    changed: Image = {}
    for name, table in places.items():
        if (value := image.get(name)) is None:
            continue
        if record_class.holds_json(name):
            changed[name] = to_json([names.get((table, item), item) for item in from_json(value)])
        else:
            changed[name] = names.get((table, value), value)
    return {**image, **changed}


def _prefix(record_class: type[Record], record_id: str) -> str:
    """Give the beginning of a copy's id: that of an id of ours, or the kind of record where a caller chose the id."""
    head, mark, rest = record_id.partition("_")
    return head if mark and len(rest) == _ID_LENGTH and head.isalpha() else record_class.noun().rpartition(" ")[2]
