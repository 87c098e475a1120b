"""New entries: checked and redacted before their transaction, and looked up by their keys in it."""

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from decklog.core.errors import Invalid
from decklog.db.base import Database
from decklog.db.where import enum_of
from decklog.journal.entry import Confidence, EntryKind, ReasoningPhase
from decklog.journal.rows import COLUMNS
from decklog.records.values import Values

# The columns of an entry, position, number and hash still empty.
EntryRow = tuple[Any, ...]
# Stream, subtype, group and key: only one entry has the same ones.
Identity = tuple[str, str, str, str]

EMPTY: dict[str, Any] = {**dict.fromkeys(COLUMNS), "kind": "interaction"}
_ENUMERATIONS = (("kind", EntryKind), ("phase", ReasoningPhase), ("confidence", Confidence))


def prepare_entry(values: Values, given: dict[str, Any]) -> EntryRow:
    """Check and redact an entry, and return its columns; needs no transaction, and works in another process too."""
    columns = {**EMPTY, **given}
    for name, enumeration in _ENUMERATIONS:
        if columns[name] is not None and not isinstance(columns[name], enumeration):
            enum_of(enumeration, columns[name], name)
    if columns["kind"] == "change":
        raise Invalid("entries of kind change are written by the stores alone; use event for your own")
    payload = columns["payload"]
    if payload is None and columns["body"] is None:
        raise Invalid("an entry needs a body or a payload")
    if payload is not None and not isinstance(payload, (dict, list, tuple)):
        raise Invalid("a payload is a JSON object or list; put plain text in the body", field="payload")
    columns["redacted"] = int(values.bind_into(columns, given))
    return tuple(columns.values())


# A few sizes of query, filled up with nulls: otherwise each number of keys would be planned and cached.
_SIZES = (1, 16, 128)
_STREAM, _SUBTYPE, _GROUP, _KEY = map(COLUMNS.index, ("stream", "subtype", "group_id", "key"))


def find_keys(db: Database, batch: Sequence[Sequence[Any]]) -> Callable[[], tuple[dict[int, int], dict[int, int]]] | None:
    """Look up the keys of a batch together with the next statement; None where it has no keys.

    The result returns the entries that came before: in the batch, place by earlier place; in the journal, place by position.
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
    find = _find_positions(db, [*first])

    def answer() -> tuple[dict[int, int], dict[int, int]]:
        found = {first[identity]: position for identity, position in find().items()}
        return repeated, found | {place: found[earlier] for place, earlier in repeated.items() if earlier in found}

    return answer


def positions_of(db: Database, identities: Iterable[Identity]) -> dict[Identity, int]:
    """Find the positions of the entries with some keys, each by its stream, subtype, group and key."""
    return _find_positions(db, [*identities])()


def _find_positions(db: Database, identities: list[Identity]) -> Callable[[], dict[Identity, int]]:
    answers = []
    for start in range(0, len(identities), _SIZES[-1]):
        some = identities[start : start + _SIZES[-1]]
        names, query = _KEY_QUERIES[next(size for size in _SIZES if size >= len(some))]
        bound = dict(zip_longest(names, [value for place, one in enumerate(some) for value in (place, *one)]))
        answers.append((some, db.queue_rows(query, bound)))
    return lambda: {some[place]: position for some, rows in answers for place, position in rows()}


def _key_query(size: int) -> tuple[list[str], str]:
    """Write the query for a number of keys; rows are named by their place."""
    parts = ("place", "stream", "subtype", "group_id", "key")
    rows = [[f"{part}_{number}" for part in parts] for number in range(size)]
    # A subquery for each key: a join may be planned to read all of a journal that is small yet.
    query = f"""
        with asked (place, in_stream, of_subtype, of_group, with_key) as
          (values {", ".join(f"({', '.join(':' + name for name in row)})" for row in rows)})
        select place, pos
          from (
            select place, (
              select pos
                from entries
               where stream = in_stream
                 and coalesce(subtype, '') = of_subtype
                 and coalesce(group_id, '') = of_group
                 and key = with_key
            ) as pos
              from asked
          ) found
         where pos is not null
        """
    return [name for row in rows for name in row], query


_KEY_QUERIES = {size: _key_query(size) for size in _SIZES}
