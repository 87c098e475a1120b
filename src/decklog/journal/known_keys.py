"""Which of many entries the journal knows already, by their keys: asked in one go, where a question each costs a round trip."""

from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from decklog.journal.rows import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from decklog.db.base import Database

Identity = tuple[str, str, str, str]
# Two sizes of question, filled up with nulls: a text for every number of keys would be planned and kept for every number. The
# larger is still short enough to be kept.
_FEW, _MANY = 16, 128
# So many of one stream, subtype and group are asked for together: each is then one parameter, and not five.
_ALIKE = 4
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
    # Of those that are the same, the last to be put in is the first.
    first = {identity: place for place, identity in reversed(asked.items())}
    repeated = {}
    if len(first) < len(asked):
        repeated = {place: first[identity] for place, identity in asked.items() if first[identity] != place}
    known = positions(db, first)
    return repeated, {place: known[identity] for place, identity in asked.items() if identity in known} if known else {}


def positions(db: "Database", identities: "Iterable[Identity]") -> "dict[Identity, int]":
    """Find the positions of the entries with some keys, each by its stream, subtype, group and key."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for stream, subtype, group_id, key in identities:
        alike.setdefault((stream, subtype, group_id), []).append(key)
    found: dict[Identity, int] = {}
    single: list[Identity] = []
    for (stream, subtype, group_id), keys in alike.items():
        if len(keys) < _ALIKE:
            single += [(stream, subtype, group_id, key) for key in keys]
            continue
        for start in range(0, len(keys), _MANY):
            part = keys[start : start + _MANY]
            names, question = _OF_ONE_KIND[_FEW if len(part) <= _FEW else _MANY]
            bound = {**dict(zip_longest(names, part)), "stream": stream, "subtype": subtype, "group_id": group_id}
            found.update({(stream, subtype, group_id, key): position for key, position in db.rows(question, bound)[1]})
    for start in range(0, len(single), _MANY):
        some = single[start : start + _MANY]
        names, question = _OF_ANY_KIND[_FEW if len(some) <= _FEW else _MANY]
        bound = dict(zip_longest(names, chain.from_iterable([(place, *one) for place, one in enumerate(some)])))
        found.update({some[place]: position for place, position in db.rows(question, bound)[1]})
    return found


_LOOK_UP = """
               select pos from entries
                where stream = {stream}
                  and coalesce(subtype, '') = {subtype}
                  and coalesce(group_id, '') = {group_id}
                  and key = with_key
"""


def _of_one_kind(size: int) -> tuple[list[str], str]:
    """Ask for keys of one stream, subtype and group."""
    names = [f"key_{number}" for number in range(size)]
    look_up = _LOOK_UP.format(stream=":stream", subtype=":subtype", group_id=":group_id")
    return names, _question("with_key", [f"(:{name})" for name in names], "with_key", look_up)


def _of_any_kind(size: int) -> tuple[list[str], str]:
    """Ask for keys each with its own stream, subtype and group; what comes back is named by its place."""
    parts = ("place", "stream", "subtype", "group_id", "key")
    names = [f"{part}_{number}" for number in range(size) for part in parts]
    rows = ["(" + ", ".join(f":{part}_{number}" for part in parts) + ")" for number in range(size)]
    look_up = _LOOK_UP.format(stream="in_stream", subtype="of_subtype", group_id="of_group")
    return names, _question("place, in_stream, of_subtype, of_group, with_key", rows, "place", look_up)


def _question(asked: str, rows: "list[str]", named_by: str, look_up: str) -> str:
    """Ask for keys one by one inside the statement: a join may be planned to read all of a journal that is small yet."""
    return f"""
        with asked ({asked}) as (values {", ".join(rows)})
        select {named_by}, pos
          from (select {named_by}, ({look_up}) as pos from asked) found
         where pos is not null
        """


_OF_ONE_KIND = {size: _of_one_kind(size) for size in (_FEW, _MANY)}
_OF_ANY_KIND = {size: _of_any_kind(size) for size in (_FEW, _MANY)}
