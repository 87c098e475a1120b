"""Spending by day, run, model and agent: stored up to a mark in each stream, and read from the charges after it.

Updating a row per day with every charge would cost a page write each. The rows are built from charges on demand.
`spend_open` has the streams with charges after their mark, so that no query checks all streams.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from operator import add
from typing import Any, Literal

from decklog.db.base import Database, Row
from decklog.db.where import placed
from decklog.journal.rows import HEAD, STREAM_SIZE
from decklog.stores.overview.task_counts import Span, between, hash_at, in_parts

Charged = tuple[str, int, int, int]

TABLE, TOTALS, MARKS, OPEN = "spend_days", "spend_totals", "spend_marks", "spend_open"
KEY = ("run_id", "day", "model", "agent")
_OF_DAY = KEY[1:]
FIGURES = (
    *("calls", "input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens"),
    *("cost_microdollars", "unpriced_calls"),
)
# The figures in a list of runs. Tokens are left out, because they would take half of the time.
SPENT = ("calls", "cost_microdollars", "unpriced_calls")
# Up to these numbers entries are read directly; above them the marks are moved first.
MOST_BEHIND, MOST_STREAMS = 1000, 512
_KEYS = "coalesce(c.run_id, ''), substr(c.occurred_at, 1, 10), c.model, coalesce(c.agent, '')"
_SUMS = """count(*), cast(sum(c.input_tokens) as bigint), cast(sum(c.cache_read_tokens) as bigint),
       cast(sum(c.cache_create_tokens) as bigint), cast(sum(c.output_tokens) as bigint),
       cast(coalesce(sum(c.cost_microdollars), 0) as bigint), count(*) - count(c.cost_microdollars)"""
# The charges between two positions. The expression on the table name prevents the use of an index, so both engines read
# the entries between the positions, and from them the charges.
_CHARGED = f"""
select {_KEYS}, {_SUMS}
  from entries e
 cross join charges c
 where e.pos > :{{start}} and e.pos <= :{{end}}
   and e.record_table || '' = 'charges' and e.subtype || '' = 'added'
   and c.id = e.record_id
 group by 1, 2, 3, 4
"""
_STREAMS = f"""
select s.name, s.no, s.head_seq as newest, coalesce(m.seq, 0) as mark
  from {{some}}
  left join {MARKS} m on m.stream = s.name
"""
BEHIND = _STREAMS.format(some=f"{OPEN} o join stream_heads s on s.name = o.stream")
_ALL = _STREAMS.format(some="stream_heads s")


class SpendKey(StrEnum):
    """What the days of spending are split by."""

    NONE = "none"
    MODEL = "model"
    AGENT = "agent"
    RUN = "run"

    @property
    def column(self) -> str | None:
        return {"none": None, "run": "run_id"}.get(self.value, self.value)


SpendKeyLike = SpendKey | Literal["none", "model", "agent", "run"]


def _adding(table: str, key: Sequence[str]) -> str:
    """Build the statement that adds figures to the row of a key."""
    return f"""
    insert into {table} ({", ".join((*key, *FIGURES))})
    values ({", ".join(":" + name for name in (*key, *FIGURES))})
    on conflict ({", ".join(key)}) do update set
      {", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in FIGURES)}
    """


def behind(db: Database) -> list[Charged]:
    """List the streams with charges after their mark: name, number, newest entry and mark."""
    return moved(db.rows(BEHIND, {})[1])


def moved(streams: Iterable[Row]) -> list[Charged]:
    """Return the streams whose mark is behind their newest entry."""
    return sorted(row for row in map(tuple, streams) if row[2] is not None and row[2] > row[3])


def is_far(streams: Sequence[Charged]) -> bool:
    """Return whether there are too many entries after the marks to read them directly."""
    return len(streams) > MOST_STREAMS or sum(newest - mark for _, _, newest, mark in streams) > MOST_BEHIND


def catch_up(db: Database) -> None:
    """Move the marks of all streams with later charges to their last entries."""
    for stream, *_ in db.read(lambda: behind(db)):
        db.write(lambda stream=stream: _advance(db, stream))  # type: ignore[misc]


def _advance(db: Database, stream: str) -> None:
    """Add a stream's charges up to its last entry, unless another process did."""
    # The lock prevents new charges until this is written; later ones open the stream again.
    number = db.lock_stream(stream)
    head = None if number is None else db.one(HEAD, {"start": number * STREAM_SIZE, "end": (number + 1) * STREAM_SIZE})
    if number is None or head is None:
        return
    db.count(f"delete from {OPEN} where stream = :stream", {"stream": stream})
    end = head[0] % STREAM_SIZE
    first = {"stream": stream, "seq": 1, "hash": ""}
    db.count(f"insert into {MARKS} (stream, seq, hash) values (:stream, :seq, :hash) on conflict do nothing", first)
    row = db.one(f"select seq, hash from {MARKS} where stream = :stream for update", {"stream": stream})
    assert row is not None
    # A new mark is before the first entry.
    start = row[0] if row[1] else 0
    if start >= end:
        return
    place = number * STREAM_SIZE
    _, rows = db.rows(*between(_CHARGED, [(place + start, place + end)]))
    if rows:
        found = [dict(zip((*KEY, *FIGURES), row, strict=True)) for row in rows]
        db.many(_adding(TABLE, KEY), found)
        db.many(_adding(TOTALS, _OF_DAY), [{name: row[name] for name in (*_OF_DAY, *FIGURES)} for row in found])
    made = {"stream": stream, "seq": end, "hash": hash_at(db, stream, end)}
    db.count(f"update {MARKS} set seq = :seq, hash = :hash where stream = :stream", made)


def by(
    db: Database, names: Sequence[str], since: str, until: str, streams: Sequence[Charged], *, dearest: int | None = None
) -> list[dict[str, Any]]:
    """Sum up the days of a span by some columns of the key. `streams` are those with entries after their mark.

    The result is in the order of the key, or has only the `dearest` most expensive rows first.
    """
    bound: dict[str, Any] = {"since": since, "until": until}
    condition = "day >= :since and day <= :until"
    if is_far(streams):
        # If marks can't be moved: all charges of these days.
        rows = f"select {_KEYS}, {_SUMS} from charges c where c.occurred_at >= :since group by 1, 2, 3, 4"
        found = _summed(db.rows(_added(names, rows, condition), bound)[1], len(names))
    else:
        spans = [(number * STREAM_SIZE + mark, number * STREAM_SIZE + newest) for _, number, newest, mark in streams]
        run, table = ("run_id", TABLE) if "run_id" in names else ("''", TOTALS)
        kept = f"select {', '.join((run, *_OF_DAY, *FIGURES))} from {table} where day >= :since and day <= :until"
        found = _kept_and_later(db, names, kept, condition, bound, spans)
    added = [dict(zip((*names, *FIGURES), (*key, *found[key]), strict=True)) for key in sorted(found)]
    if dearest is None:
        return added
    return sorted(added, key=dearest_first)[:dearest]


def dearest_first(one: dict[str, Any]) -> tuple[int, int]:
    """Return the sort key by cost, then by calls, descending."""
    return -one["cost_microdollars"], -one["calls"]


def of_runs(db: Database, ids: Sequence[str], spans: Sequence[Span]) -> dict[str, dict[str, int]]:
    """Return the spending and calls of some runs. `spans` are the entries after their marks."""
    marks, bound = placed(ids)
    kept = f"select {', '.join((*KEY, *FIGURES))} from {TABLE} where run_id in ({marks})"
    found = _kept_and_later(db, ("run_id",), kept, "1 = 1", bound, spans, SPENT)
    return {run_id: dict(zip(SPENT, figures, strict=True)) for (run_id,), figures in found.items()}


def of_run(db: Database, run_id: str, streams: Sequence[Charged]) -> list[dict[str, Any]]:
    """Return a run's spending by model and agent, the most expensive first. `streams` are those with entries after their mark."""
    kept = f"select {', '.join((*KEY, *FIGURES))} from {TABLE} where run_id = :run_id"
    spans = [(no * STREAM_SIZE + mark, no * STREAM_SIZE + newest) for name, no, newest, mark in streams if name == run_id]
    found = _kept_and_later(db, ("model", "agent"), kept, "1 = 1", {"run_id": run_id}, spans)
    added = [dict(zip(("model", "agent", *FIGURES), (*key, *figures), strict=True)) for key, figures in found.items()]
    return sorted(added, key=lambda one: (-one["cost_microdollars"], one["model"], one["agent"]))


def _kept_and_later(
    db: Database,
    names: Sequence[str],
    kept: str,
    condition: str,
    bound: dict[str, Any],
    spans: Sequence[Span],
    figures: Sequence[str] = FIGURES,
) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """Sum up stored rows and the charges of some spans, in batches of a size that a statement can hold."""
    rows: list[Row] = []
    used = bound if ":" in condition else {}
    for number, part in enumerate(in_parts(spans)):
        later, places = between(_CHARGED, part)
        text, given = (later, used) if number else (f"{kept} union all {later}", bound)
        rows += db.rows(_added(names, text, condition, figures), {**given, **places})[1]
    return _summed(rows, len(names))


def _summed(rows: Iterable[Row], width: int) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """Sum up the figures of rows with the same key columns."""
    found: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for row in rows:
        key, figures = tuple(row[:width]), tuple(row[width:])
        found[key] = tuple(map(add, found[key], figures)) if key in found else figures
    return found


def _added(names: Sequence[str], rows: str, condition: str, figures: Sequence[str] = FIGURES) -> str:
    sums = ", ".join(f"cast(sum({name}) as bigint) as {name}" for name in figures)
    places = ", ".join(str(place) for place in range(1, len(names) + 1))
    return (
        f"with parts ({', '.join((*KEY, *FIGURES))}) as ({rows}) "
        f"select {', '.join(names)}, {sums} from parts where {condition} group by {places} order by {places}"
    )


def reopen(db: Database, stream: str) -> None:
    """Delete the sums of a stream, so that they are rebuilt after a corrected charge. The stream must be locked."""
    run = {"run_id": "" if stream == "@ledger" else stream}
    key = " and ".join(f"{name} = :{name}" for name in _OF_DAY)
    less = ", ".join(f"{name} = {name} - :{name}" for name in FIGURES)
    names = (*_OF_DAY, *FIGURES)
    kept = db.rows(f"select {', '.join(names)} from {TABLE} where run_id = :run_id order by {', '.join(_OF_DAY)}", run)[1]
    for row in kept:
        db.count(f"update {TOTALS} set {less} where {key}", dict(zip(names, row, strict=True)))
    db.count(f"delete from {TOTALS} where calls = 0", {})
    db.count(f"delete from {TABLE} where run_id = :run_id", run)
    db.count(f"delete from {MARKS} where stream = :stream", {"stream": stream})
    db.count(f"insert into {OPEN} (stream) values (:stream) on conflict do nothing", {"stream": stream})


def derive(db: Database) -> None:
    """Rebuild all days."""
    for table in (TABLE, TOTALS, MARKS, OPEN):
        db.count(f"delete from {table}", {})
    for (stream,) in db.rows("select distinct coalesce(run_id, '@ledger') as stream from charges order by stream", {})[1]:
        _advance(db, stream)


def audit(db: Database) -> Iterator[dict[str, Any]]:
    """Yield a problem for each wrong sum of a day, each invalid mark and each stream that is wrongly not open."""
    is_strange = False
    for stream, seq, hash in list(db.each_as_is(f"select stream, seq, hash from {MARKS}", {})):
        if type(seq) is not int or hash_at(db, str(stream), seq) != hash:
            is_strange = True
            what = f"{MARKS} {stream} is at an entry that is not in the journal"
            yield {"what": what, "table": MARKS, "record_id": str(stream), "column": "stream, seq, hash"}
    if is_strange:
        return
    true = _sums(db.rows(f"select {_KEYS}, {_SUMS} from charges c group by 1, 2, 3, 4", {})[1])
    are_open = {stream for (stream,) in db.each_as_is(f"select stream from {OPEN}", {})}
    for stream, number, newest, mark in moved(db.rows(_ALL, {})[1]):
        span = (number * STREAM_SIZE + mark, number * STREAM_SIZE + newest)
        later = _sums(db.rows(*between(_CHARGED, [span]))[1])
        if later and stream not in are_open:
            what = f"{OPEN} does not name {stream}, which has charges after its mark"
            yield {"what": what, "table": OPEN, "record_id": stream, "column": "stream"}
        for place, part in later.items():
            whole = true.get(place, _NOTHING)
            true[place] = tuple(one - other for one, other in zip(whole, part, strict=True))
    kept = _sums(db.each_as_is(f"select {', '.join((*KEY, *FIGURES))} from {TABLE}", {}))
    for place in sorted(kept.keys() | true.keys(), key=str):
        found, expected = kept.get(place, _NOTHING), true.get(place, _NOTHING)
        if found != expected or (place in kept and not expected[0]):
            columns = [name for name, one, other in zip(FIGURES, found, expected, strict=True) if one != other] or list(KEY)
            what = f"{TABLE} {' '.join(map(str, place))} is not the sum of its charges"
            yield {"what": what, "table": TABLE, "record_id": str(list(place)), "column": ", ".join(columns)}
    yield from _audit_totals(db)


def _audit_totals(db: Database) -> Iterator[dict[str, Any]]:
    """Yield a problem for each total that differs from the sum of its runs."""
    names = ", ".join(_OF_DAY)
    sums = ", ".join(f"cast(sum({name}) as bigint)" for name in FIGURES)
    true = {tuple(row) for row in db.rows(f"select {names}, {sums} from {TABLE} group by {names}", {})[1]}
    kept = {tuple(row) for row in db.each_as_is(f"select {names}, {', '.join(FIGURES)} from {TOTALS}", {})}
    for row in sorted(true ^ kept, key=str):
        what = f"{TOTALS} {' '.join(map(str, row[: len(_OF_DAY)]))} is not the sum of the days of each run"
        yield {"what": what, "table": TOTALS, "record_id": str(list(row[: len(_OF_DAY)])), "column": ", ".join(FIGURES)}


_NOTHING: tuple[Any, ...] = (0,) * len(FIGURES)


def _sums(rows: Iterable[Row]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {tuple(row[: len(KEY)]): tuple(row[len(KEY) :]) for row in rows}
