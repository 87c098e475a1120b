"""New entries: checks and redaction before the transaction, and the lookup of keys inside it."""

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from decklog.core.errors import Invalid
from decklog.db.base import Database
from decklog.db.where import parse_enum
from decklog.journal.entry import Confidence, EntryKind, ReasoningPhase
from decklog.journal.rows import COLUMNS
from decklog.records.values import Values

# The columns of an entry; position, number and hash are still empty.
EntryRow = tuple[Any, ...]
# Stream, subtype, group and key, which identify an entry.
Identity = tuple[str, str, str, str]

EMPTY: dict[str, Any] = {**dict.fromkeys(COLUMNS), "kind": "interaction"}
_ENUMERATIONS = (("kind", EntryKind), ("phase", ReasoningPhase), ("confidence", Confidence))


def prepare_entry(values: Values, given: dict[str, Any]) -> EntryRow:
    """Check and redact an entry, and return its columns. Needs no transaction."""
    columns = {**EMPTY, **given}
    for name, enumeration in _ENUMERATIONS:
        if columns[name] is not None and not isinstance(columns[name], enumeration):
            parse_enum(enumeration, columns[name], name)
    if columns["kind"] == "change":
        raise Invalid("only stores write entries of kind change; use event for your own")
    payload = columns["payload"]
    if payload is None and columns["body"] is None:
        raise Invalid("an entry needs a body or a payload")
    if payload is not None and not isinstance(payload, (dict, list, tuple)):
        raise Invalid("a payload is a JSON object or list; put plain text in the body", field="payload")
    columns["redacted"] = int(values.bind_into(columns, given))
    return tuple(columns.values())


# Query sizes, padded with nulls: otherwise a query for each number of keys would be planned and cached.
_SIZES = (1, 16, 128)
_STREAM, _SUBTYPE, _GROUP, _KEY = map(COLUMNS.index, ("stream", "subtype", "group_id", "key"))


def find_keys(db: Database, batch: Sequence[Sequence[Any]]) -> Callable[[], tuple[dict[int, int], dict[int, int]]] | None:
    """Queue a lookup of the keys of a batch for the next statement; return None if it has no keys.

    Call the result for two mappings by place: the earlier place with the same key, and the position in the journal.
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
    find = _queue_positions(db, [*first])

    def answer() -> tuple[dict[int, int], dict[int, int]]:
        found = {first[identity]: position for identity, position in find().items()}
        return repeated, found | {place: found[earlier] for place, earlier in repeated.items() if earlier in found}

    return answer


def find_positions(db: Database, identities: Iterable[Identity]) -> dict[Identity, int]:
    """Find the positions of entries by stream, subtype, group and key."""
    return _queue_positions(db, [*identities])()


def _queue_positions(db: Database, identities: list[Identity]) -> Callable[[], dict[Identity, int]]:
    answers = []
    for start in range(0, len(identities), _SIZES[-1]):
        chunk = identities[start : start + _SIZES[-1]]
        names, query = _KEY_QUERIES[next(size for size in _SIZES if size >= len(chunk))]
        bound = dict(zip_longest(names, [value for place, one in enumerate(chunk) for value in (place, *one)]))
        answers.append((chunk, db.queue_rows(query, bound)))
    return lambda: {chunk[place]: position for chunk, rows in answers for place, position in rows()}


def _build_key_query(size: int) -> tuple[list[str], str]:
    """Build the query for a number of keys; it returns places with positions."""
    parts = ("place", "stream", "subtype", "group_id", "key")
    rows = [[f"{part}_{number}" for part in parts] for number in range(size)]
    # Use a subquery for each key: the planner may read a whole small journal for a join.
    query = f"""
        with wanted (place, in_stream, of_subtype, of_group, with_key) as
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
              from wanted
          ) found
         where pos is not null
        """
    return [name for row in rows for name in row], query


_KEY_QUERIES = {size: _build_key_query(size) for size in _SIZES}
