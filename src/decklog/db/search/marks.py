"""How far the text index has come in each stream.

Entries are indexed in small steps, after they were written: in their own transaction it would double the cost of a bulk append.
Writers start a step in the background as they go, `serve` while it runs, and a search that found many entries without an index.
No search waits for a step.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from decklog.core.errors import DiskFull
from decklog.db.base import STREAM_SIZE, Database
from decklog.db.text_search import Span

# The most entries that one step indexes: writers wait for it a few milliseconds.
MOST_IN_A_STEP = 500
# A writer starts a step with every 256th entry of a stream and with every 4th new stream.
ENTRIES_BETWEEN_STEPS, STREAMS_BETWEEN_STEPS = 256, 4
_STREAMS_IN_A_STEP = 64
# More than writers leave behind: a search that finds as many starts a step.
MOST_UNINDEXED = 1_000

# Those of runs that are not over, those of no run, and those that were never indexed.
_GOING_ON = """
s.no in (
  select n.no from runs r join streams n on n.name = r.id
   where r.status = 'active' or r.status = 'planning' or r.status = 'paused'
  union
  select n.no from streams n where n.name >= '@' and n.name < 'A'
  union
  select n.no from streams n where n.no > coalesce((select max(stream_no) from entry_text_marks), 0)
)
"""


_LOOKED_UP = f"""
select no, mark, (select max(pos) from entries where pos > mark and pos < (no + 1) * {STREAM_SIZE})
  from (
    select s.no, coalesce(m.pos, s.no * {STREAM_SIZE}) as mark
      from streams s
      left join entry_text_marks m on m.stream_no = s.no
     where {{wanted}}
  ) marked
 where exists (select 1 from entries where pos > mark and pos < (no + 1) * {STREAM_SIZE})
 order by no desc
"""
# The same where the row of each stream has its head: no partition is looked at.
_KEPT = f"""
select s.no, coalesce(m.pos, s.no * {STREAM_SIZE}), s.head_pos
  from stream_heads s
  left join entry_text_marks m on m.stream_no = s.no
 where {{wanted}}
   and s.head_pos > coalesce(m.pos, s.no * {STREAM_SIZE})
 order by s.no desc
"""
_ALL, _ONE, _THOSE_GOING_ON = "s.no >= :first", "s.no = :no", f"s.no >= :first and {_GOING_ON}"
_NEAR = f"s.no <= :no and s.no > :no - {_STREAMS_IN_A_STEP}"


def not_indexed(database: Database, stream_no: int | None, *, going_on: bool = False, first: int = 0) -> list[Span]:
    """List the streams from number `first` on with entries after their mark, newest stream first."""
    if stream_no is not None:
        return _spans(database, _ONE, {"no": stream_no})
    return _spans(database, _THOSE_GOING_ON if going_on else _ALL, {"first": first})


def _spans(database: Database, wanted: str, bound: dict[str, int]) -> list[Span]:
    return database.rows((_KEPT if database.keeps_heads else _LOOKED_UP).format(wanted=wanted), bound)[1]


def entries_in(spans: list[Span]) -> int:
    """Count the entries between marks and newest positions."""
    return sum(newest - mark for _, mark, newest in spans)


def newest_in(spans: list[Span], most: int) -> tuple[list[Span], list[Span]]:
    """Split spans into those of the newest `most` entries and the rest."""
    newest: list[Span] = []
    rest: list[Span] = []
    for number, mark, last in spans:
        start = max(mark, last - most)
        most -= last - start
        if start < last:
            newest.append((number, start, last))
        if mark < start:
            rest.append((number, mark, start))
    return newest, rest


def index_some(database: Database, *, going_on: bool = False) -> int:
    """Index a step of all streams or of those going on, for `serve`; return how many entries are left."""
    spans = database.read(lambda: not_indexed(database, None, going_on=going_on))
    left = entries_in(spans)
    if left:
        # On a full disk a search reads what is not indexed.
        with suppress(DiskFull):
            left -= database.write(lambda: _index_all(database, next(_chunks(spans, MOST_IN_A_STEP))))
    return left


def index_later(database: Database, spans: list[Span]) -> None:
    """Index a step of these spans in the background, unless the log is only read."""
    if not database.read_only:
        database.submit_upkeep(partial(_index_all, database, next(_chunks(spans, MOST_IN_A_STEP))))


def index_everything(database: Database) -> Iterator[int]:
    """Index every entry in steps that writers hardly notice; yield how many each has indexed."""
    # A step in the background may move a mark meanwhile; what is left of that stream is looked up again.
    while spans := database.read(lambda: not_indexed(database, None)):
        for chunk in _chunks(spans, MOST_IN_A_STEP):
            yield database.write(partial(_index_all, database, chunk))


def index_near(database: Database, stream_no: int) -> int:
    """Index entries of a stream and of those that began shortly before it, for the background. In a transaction."""
    spans = _spans(database, _NEAR, {"no": stream_no})
    return _index_all(database, next(_chunks(spans, MOST_IN_A_STEP), []))


def _chunks(spans: list[Span], most: int) -> Iterator[list[Span]]:
    """Cut spans into lists of at most `most` entries."""
    chunk: list[Span] = []
    size = 0
    for number, mark, newest in spans:
        start = mark
        while start < newest:
            end = min(newest, start + most - size)
            chunk.append((number, start, end))
            size += end - start
            start = end
            if size == most:
                yield chunk
                chunk, size = [], 0
    if chunk:
        yield chunk


def _index_all(database: Database, chunk: list[Span]) -> int:
    return sum(_index(database, *span) for span in chunk)


def _index(database: Database, number: int, mark: int, end: int) -> int:
    """Index a stream's entries from its mark up to a position, unless another process has moved the mark meanwhile."""
    bound = {"number": number, "start": number * STREAM_SIZE, "end": end}
    database.count("insert into entry_text_marks (stream_no, pos) values (:number, :start) on conflict do nothing", bound)
    row = database.one("select pos from entry_text_marks where stream_no = :number for update", bound)
    if row is None or row[0] != mark:
        return 0
    database.index_entries(mark, end)
    database.count("update entry_text_marks set pos = :end where stream_no = :number", bound)
    return end - mark
