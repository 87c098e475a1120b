"""Which of many entries the journal knows already, by their keys: asked in one go, where a question each costs a round trip."""

from itertools import chain, zip_longest

from decklog.stores.journal.rows import COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from decklog.db.base import Database

    Identity = tuple[str, str, str, str]

# Two sizes of question, filled up with nulls: a text for every number of keys would be planned and kept for every number. The
# larger is still short enough to be kept.
_FEW, _MANY = 16, 128
_STREAM, _SUBTYPE, _GROUP, _KEY = map(COLUMNS.index, ("stream", "subtype", "group_id", "key"))


def find(db: "Database", batch: "Sequence[Sequence[Any]]") -> "tuple[dict[int, int], dict[int, int]]":
    """Find the keys of a batch that came before: in the batch, place by earlier place; in the journal, place by position.

    Whoever asks holds the streams' locks, so that nobody adds such a key meanwhile.
    """
    asked = {
        place: (columns[_STREAM], columns[_SUBTYPE] or "", columns[_GROUP] or "", columns[_KEY])
        for place, columns in enumerate(batch)
        if columns[_KEY] is not None
    }
    first: dict[Identity, int] = {}
    for place, identity in asked.items():
        first.setdefault(identity, place)
    repeated = {place: first[asked[place]] for place in asked if first[asked[place]] != place} if len(first) < len(asked) else {}
    return repeated, _positions(db, asked)


def _positions(db: "Database", asked: "dict[int, Identity]") -> "dict[int, int]":
    found: dict[int, int] = {}
    questions = [(place, *identity) for place, identity in asked.items()]
    for start in range(0, len(questions), _MANY):
        part = questions[start : start + _MANY]
        names, question = _QUESTIONS[_FEW if len(part) <= _FEW else _MANY]
        _, rows = db.rows(question, dict(zip_longest(names, chain.from_iterable(part))))
        found.update({place: position for place, position in rows if position is not None})
    return found


def _question(size: int) -> tuple[list[str], str]:
    """Ask for keys one by one inside the statement: a join may be planned to read all of a journal that is small yet."""
    parts = ("place", "stream", "subtype", "group_id", "key")
    names = [f"{part}_{number}" for number in range(size) for part in parts]
    rows = ", ".join("(" + ", ".join(f":{part}_{number}" for part in parts) + ")" for number in range(size))
    question = f"""
        with asked (place, in_stream, of_subtype, of_group, with_key) as (values {rows})
        select place,
               (
               select pos from entries
                where stream = in_stream
                  and coalesce(subtype, '') = of_subtype
                  and coalesce(group_id, '') = of_group
                  and key = with_key
               )
          from asked
        """
    return names, question


_QUESTIONS = {size: _question(size) for size in (_FEW, _MANY)}
