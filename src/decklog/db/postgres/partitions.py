"""Partitions of the entries: one table for each range of stream numbers."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from decklog.db.base import STREAM_SIZE, Database
from decklog.db.schema import Objects

if TYPE_CHECKING:
    from decklog.db.postgres.transactions import PostgresTransactions

STEP = "0002_partitions"
# Streams that may start while the entries are checked.
_NUMBERS_LEFT = 1_000_000
_TABLES = {"entries": "pos", "entry_text": "entry_pos"}
_CHECK = r"""
select substring(conname from '[0-9]+$')::bigint, convalidated from pg_constraint
 where conrelid = to_regclass(:table) and conname like :table || '\_before\_%'
"""


def prepare(database: "PostgresTransactions") -> None:
    """Check that all entries of a log are in its first range, while others write; what is done once is not done again.

    The migration then attaches the tables as they are, without reading them.
    """
    with database.held(patience_seconds=None):
        newest = database.one("select max(no) from streams", {})
        if newest is None or newest[0] is None:
            return
        checked = database.one(_CHECK, {"table": "entries"})
        boundary = newest[0] + _NUMBERS_LEFT if checked is None else checked[0]
        for table, column in _TABLES.items():
            if database.one(_CHECK, {"table": table}) is None:
                check = f"constraint {table}_before_{boundary} check ({column} < {boundary * STREAM_SIZE})"
                database.count(f"alter table {table} add {check} not valid", {})
    for table in _TABLES:
        with database.held(patience_seconds=None):
            found = database.one(_CHECK, {"table": table})
            if found is not None and not found[1]:
                database.count(f"alter table {table} validate constraint {table}_before_{found[0]}", {})


_ARCHIVED = """
select s.name, r.archive
  from entry_ranges r
  join streams s on s.no >= r.first_no and s.no < r.end_no
 where r.archive is not null
"""


def archived(database: Database) -> dict[str, str]:
    """Return the streams whose entries are in an archive, with the names of the files."""
    return dict(database.rows(_ARCHIVED, {})[1])


# Comparing the tables of the ranges with the one that a new log begins with

_LEAF = re.compile(r"(entries|entry_text)_[1-9]\d*")
# Every range has its tables, which are attached with its bounds; no other table is attached.
_WRONG_RANGES = f"""
with parents as (
  select unnest(array['entries', 'entry_text']) as name
), attached as (
  select p.name, c.relname, pg_get_expr(c.relpartbound, c.oid) as bound
    from parents p join pg_inherits i on i.inhparent = to_regclass(p.name) join pg_class c on c.oid = i.inhrelid
), ranges as (
  select first_no, concat(name, '_', first_no) as relname,
         format('FOR VALUES FROM (%s) TO (%L)',
                case first_no when 0 then 'MINVALUE' else quote_literal((first_no * {STREAM_SIZE})::text) end,
                (end_no * {STREAM_SIZE})::text) as bound
    from entry_ranges cross join parents where archive is null
)
select coalesce(r.relname, a.relname), r.first_no
  from ranges r full join attached a on a.relname = r.relname
 where a.bound is distinct from r.bound
 order by 1
"""


def leaves(objects: Objects) -> dict[str, list[str]]:
    """Name the partitions of all ranges but the first, which has an older history, by the tables that they are of."""
    found: dict[str, list[str]] = {table: [] for table in _TABLES}
    for name in sorted({table for _, table, _ in objects}):
        if (match := _LEAF.fullmatch(name)) is not None:
            found[match[1]].append(name)
    return found


def split(objects: Objects, leaf: str) -> tuple[Objects, Objects]:
    """Take the objects of one table out of all."""
    return (
        {key: text for key, text in objects.items() if key[1] != leaf},
        {key: text for key, text in objects.items() if key[1] == leaf},
    )


def renamed(objects: Objects, leaf: str, other: str) -> Objects:
    """Give the objects of one table the names that they would have with another."""
    return {
        (kind, other, name.replace(leaf, other)): re.sub(rf"\b{leaf}\b|\b{leaf}(?=_)", other, text)
        for (kind, _, name), text in objects.items()
    }


def wrong_ranges(database: Database) -> Iterator[dict[str, Any]]:
    """Name the ranges whose table is not attached as they say, each as the fields of a problem."""
    for name, first in database.rows(_WRONG_RANGES, {})[1]:
        where = {"table": "entry_ranges", "record_id": None if first is None else str(first), "column": "end_no"}
        yield {"what": f"the partition {name} is not as the ranges say", **where}
