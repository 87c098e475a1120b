"""Task counts of a run by state: stored up to a mark, and read from the entries after it.

Updating a row of counts with every claim would cost a page write each. A reader adds the few entries after the mark; if there
are many, the mark is moved.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from decklog.db.base import Database, Row
from decklog.db.where import placed, size_for
from decklog.journal.rows import HEAD, STREAM_SIZE, find_stream_number
from decklog.records.values import from_json

Span = tuple[int, int]

TABLE = "run_tallies"
STATES = ("pending", "running", "waiting", "blocked", "paused", "done", "abandoned")
FIELDS = (*STATES, "failures")
# The number of entries that an overview reads per run, and of all runs together; above it marks are moved first.
MOST_BEHIND = 200
MOST_IN_ALL = 1000
# SQLite allows 500 queries in one compound, and the statement has others.
_MOST_SPANS = 128
# A mark that is further behind is made by counting the tasks.
_MOST_READ = 20_000

# The state of each task before and after the entries between two positions. The expression on the table name prevents
# the use of an index, so both engines read the entries between the positions only. The bounds of `p.pos` are those of the
# stream: only its partition is read.
_MOVED = """
select e.stream, e.payload,
       (select p.payload
          from entries p
         where p.record_table = 'tasks' and p.record_id = e.record_id and p.seq < e.seq
           and p.pos > e.pos - e.seq and p.pos < e.pos
         order by p.seq desc
         limit 1)
  from entries e
 where e.pos > :{start} and e.pos <= :{end} and e.record_table || '' = 'tasks'
"""
_COUNTED = (
    "select run_id, state, count(*), cast(sum(failures) as bigint) from tasks where run_id in ({ids}) group by run_id, state"
)


def behind(lags: Mapping[str, int]) -> list[str]:
    """Return the runs whose marks are too far behind to read the entries after them; fewer are read if many are behind."""
    most = MOST_BEHIND if sum(lags.values()) <= MOST_IN_ALL else min(MOST_BEHIND, MOST_IN_ALL // len(lags))
    return [run_id for run_id, lag in lags.items() if lag > most]


def add_later(db: Database, counts: dict[str, dict[str, int]], spans: Sequence[Span]) -> None:
    """Add the task changes in some spans of entries to the counts of their runs."""
    for start in range(0, len(spans), _MOST_SPANS):
        for run_id, after, before in _moved(db, spans[start : start + _MOST_SPANS]):
            _move(counts[run_id], after, before)


def _moved(db: Database, spans: Sequence[Span]) -> list[Row]:
    """Load the task changes in some spans. The number of queries is rounded up, so that few statements are prepared."""
    most = size_for(len(spans))
    filled = [*spans, *([(0, 0)] * (most - len(spans)))]
    bound = {f"{name}{place}": pos for place, span in enumerate(filled) for name, pos in zip("ab", span, strict=True)}
    parts = [f"select * from ({_MOVED.format(start=f'a{place}', end=f'b{place}')}) p{place}" for place in range(most)]
    return db.rows(" union all ".join(parts), bound)[1]


def counted(db: Database, ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Count the tasks directly, for readers that can't move a mark that is far behind."""
    marks, bound = placed(ids)
    found = {run_id: dict.fromkeys(FIELDS, 0) for run_id in ids}
    for run_id, state, count, failures in db.rows(_COUNTED.format(ids=marks), bound)[1]:
        found[run_id][state] = count
        found[run_id]["failures"] += failures or 0
    return found


def _move(tally: dict[str, int], after: str, before: str | None) -> None:
    for payload, sign in ((before, -1), (after, 1)):
        image = from_json(payload) if payload is not None else None
        if image is not None and not image.get("removed"):
            tally[image["state"]] += sign
            tally["failures"] += sign * image.get("failures", 0)


def catch_up(db: Database, run_id: str) -> None:
    """Move the mark of a run to its last entry, or count its tasks if the mark is far behind. Call it in a transaction."""
    # The lock prevents new entries, so the counts match one entry.
    number = db.lock_stream(run_id)
    if number is None:
        return
    start = number * STREAM_SIZE
    head = db.one(HEAD, {"start": start, "end": start + STREAM_SIZE})
    mark = db.one(f"select seq, {', '.join(FIELDS)} from {TABLE} where run_id = :run_id", {"run_id": run_id})
    assert head is not None
    newest = head[0] % STREAM_SIZE
    if mark is None or newest - mark[0] > _MOST_READ:
        tally = counted(db, [run_id])[run_id]
    else:
        tally = dict(zip(FIELDS, mark[1:], strict=True))
        add_later(db, {run_id: tally}, [(start + mark[0], start + newest)])
    row = {"run_id": run_id, "seq": newest, "hash": hash_at(db, run_id, newest), **tally}
    db.put(TABLE, ("run_id", "seq", "hash", *FIELDS), ("run_id",), [row])


def hash_at(db: Database, stream: str, seq: int) -> str | None:
    """Return the hash of an entry; None when there is no such entry."""
    row = db.one("select hash from entries where pos = :pos", {"pos": (find_stream_number(db, stream) or 0) * STREAM_SIZE + seq})
    return None if row is None else str(row[0])


def derive(db: Database) -> None:
    """Rebuild all counts."""
    db.count(f"delete from {TABLE}", {})
    for (run_id,) in db.rows("select id from runs order by id", {})[1]:
        catch_up(db, run_id)


def audit(db: Database) -> Iterator[dict[str, Any]]:
    """Yield a problem for each row that differs from the tasks at its mark."""
    for run_id, seq, hash, *counts in list(db.each_as_is(f"select run_id, seq, hash, {', '.join(FIELDS)} from {TABLE}", {})):
        where = {"table": TABLE, "record_id": str(run_id)}
        if type(seq) is not int or hash_at(db, str(run_id), seq) != hash:
            yield {"what": f"{TABLE} {run_id} is made up to an entry that is not in the journal", **where, "column": "seq, hash"}
            continue
        tally, true = dict(zip(FIELDS, counts, strict=True)), counted(db, [run_id])[run_id]
        start = (find_stream_number(db, run_id) or 0) * STREAM_SIZE
        for _, after, before in _moved(db, [(start + seq, start + STREAM_SIZE - 1)]):
            _move(true, before or "null", after)
        if wrong := [name for name in FIELDS if type(tally[name]) is not int or tally[name] != true[name]]:
            what = f"{TABLE} {run_id} counts something else than its tasks"
            yield {"what": what, **where, "column": ", ".join(wrong)}
