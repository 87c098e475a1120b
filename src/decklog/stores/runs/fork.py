"""Builds the records of a fork from those of its parent, by the rule of each type of record."""

from collections.abc import Iterator
from typing import Any

from decklog.core.ids import Ids
from decklog.db.base import Database
from decklog.records.fork_rules import Fork
from decklog.records.record import Record
from decklog.stores.runs.run import Run

Image = dict[str, Any]

_ID_LENGTH = 26


def copies(found: list[tuple[type[Record], Image]], fork: Fork, ids: Ids, db: Database) -> Iterator[tuple[type[Record], Image]]:
    """Yield the records of a fork; a record comes after those that it refers to."""
    whole = [(kind, kind.upcast(image)) for kind, image in found if kind.fork_rule().is_copied]
    copied = [(kind, image) for kind, image in _fitted(whole) if kind.fork_rule().takes(image, fork)]
    fork.entries = len(copied)
    for record_class, image in copied:
        if record_class is not Run and record_class.identity == ("id",):
            fork.ids[record_class.table, image["id"]] = ids.new(_prefix(record_class, image["id"]))
    for record_class, image in copied:
        own = _named(record_class, image, fork)
        copy = record_class.fork_rule().copy({**image, **own}, fork, record_class.holds_json)
        yield record_class, record_class.forked(copy, db)


def _fitted(found: list[tuple[type[Record], Image]]) -> Iterator[tuple[type[Record], Image]]:
    """Drop or correct records that refer to something after the last entry of the fork."""
    by_table: dict[str, list[Image]] = {}
    for record_class, image in found:
        by_table.setdefault(record_class.table, []).append(image)
    for record_class in dict.fromkeys(record_class for record_class, _ in found):
        for image in record_class.fitted(by_table[record_class.table], by_table):
            yield record_class, image


def _named(record_class: type[Record], image: Image, fork: Fork) -> Image:
    """Return the copy's id, if it has one, and its run."""
    own = {"run_id": fork.run_id} if "run_id" in image else {}
    if record_class.identity == ("id",):
        own["id"] = fork.ids[record_class.table, image["id"]]
    return own


def _prefix(record_class: type[Record], record_id: str) -> str:
    """Return the prefix of a copy's id: that of the original, or the record's noun if a caller chose the id."""
    head, mark, rest = record_id.partition("_")
    return head if mark and len(rest) == _ID_LENGTH and head.isalpha() else record_class.noun().rpartition(" ")[2]
