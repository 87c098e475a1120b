"""Looks up many keys of entries in one query."""

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from decklog.db.base import Database
from decklog.journal.rows import COLUMNS

Identity = tuple[str, str, str, str]
# A few sizes of query, filled up with nulls: a text for every number of keys would be planned and kept for every number.
_SIZES = (1, 16, 128)
_KEYED = "stream = {} and coalesce(subtype, '') = {} and coalesce(group_id, '') = {} and key = {}"
_STREAM, _SUBTYPE, _GROUP, _KEY = map(COLUMNS.index, ("stream", "subtype", "group_id", "key"))


def ask(db: Database, batch: Sequence[Sequence[Any]]) -> Callable[[], tuple[dict[int, int], dict[int, int]]] | None:
    """Look up the keys of a batch together with the next statement; None where it has no keys.

    What comes back returns the entries that came before: in the batch, place by earlier place; in the journal, place by position.
    """
    first: dict[Identity, int] = {}
    repeated: dict[int, int] = {}
    for place, row in enumerate(batch):
        if row[_KEY] is not None:
            earlier = first.setdefault((row[_STREAM], row[_SUBTYPE] or "", row[_GROUP] or "", row[_KEY]), place)
            if earlier != place:
                repeated[place] = earlier
    if not first:
        return None
    look_up = _ask_positions(db, [*first])

    def answer() -> tuple[dict[int, int], dict[int, int]]:
        found = {first[identity]: position for identity, position in look_up().items()}
        return repeated, found | {place: found[earlier] for place, earlier in repeated.items() if earlier in found}

    return answer


def positions(db: Database, identities: Iterable[Identity]) -> dict[Identity, int]:
    """Find the positions of the entries with some keys, each by its stream, subtype, group and key."""
    return _ask_positions(db, [*identities])()


def _ask_positions(db: Database, identities: list[Identity]) -> Callable[[], dict[Identity, int]]:
    answers = []
    for start in range(0, len(identities), _SIZES[-1]):
        some = identities[start : start + _SIZES[-1]]
        names, question = _QUESTIONS[next(size for size in _SIZES if size >= len(some))]
        bound = dict(zip_longest(names, [value for place, one in enumerate(some) for value in (place, *one)]))
        answers.append((some, db.rows_ahead(question, bound)))
    return lambda: {some[place]: position for some, rows in answers for place, position in rows()}


def _question(size: int) -> tuple[list[str], str]:
    """Write the query for a number of keys; rows are named by their place.

    Each key is looked up by its own subquery: a join may be planned to read all of a journal that is small yet.
    """
    parts = ("place", "stream", "subtype", "group_id", "key")
    names = [f"{part}_{number}" for number in range(size) for part in parts]
    if size == 1:
        return (
            names,
            f"select cast(:place_0 as integer), pos from entries where {_KEYED.format(*(f':{name}' for name in names[1:]))}",
        )
    rows = ["(" + ", ".join(f":{part}_{number}" for part in parts) + ")" for number in range(size)]
    look_up = _KEYED.format("in_stream", "of_subtype", "of_group", "with_key")
    return (
        names,
        f"""
        with asked (place, in_stream, of_subtype, of_group, with_key) as (values {", ".join(rows)})
        select place, pos
          from (select place, (select pos from entries where {look_up}) as pos from asked) found
         where pos is not null
        """,
    )


_QUESTIONS = {size: _question(size) for size in _SIZES}
