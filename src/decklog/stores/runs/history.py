"""A run as of any entry: each part in a few statements, independent of the length of the run."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from decklog.core import fork_safety as forks
from decklog.core.errors import Invalid, NotFound
from decklog.db.base import Database, Row
from decklog.db.where import parse_moment, parse_position, placed
from decklog.journal.rows import STREAM_SIZE
from decklog.journal.time_index import Times
from decklog.records.record import Page, Record
from decklog.records.values import from_json
from decklog.stores.of_run import run_not_found
from decklog.stores.results.runs import ActivityMark, ActivityStep, RunActivity, RunAttempt, RunLanes
from decklog.stores.runs import timeline
from decklog.stores.runs.timeline import ATTEMPT, EVERY, FIELDS, MARK, MOMENTS, RunStory

_IMAGE = """
select p.payload from entries p
 where p.record_table = :record_table and p.record_id = f.record_id and p.stream = :run_id and p.seq <= :at
 order by p.seq desc
 limit 1
"""

MOST_STEPS, MOST_MARKS = 300, 200
_MARKS = ("failure", "question", "checkpoint", "pivot")
# Number of runs whose entries after the last mark are cached.
_MAX_CACHED_RUNS = 16
_POSITIONS = f"""
select s.name, s.no, h.pos, h.hash, {", ".join(f"m.{name}" for name in MARK)}
  from stream_heads s
  join entries h on h.pos = s.head_pos
  left join {timeline.MARKS} m
    on m.run_id = s.name and m.seq = (select max(seq) from {timeline.MARKS} where run_id = s.name)
 where s.name in ({{runs}})
"""
_FIRST_ENTRIES = f"""
select f.seq, ({_IMAGE})
  from {timeline.FIRSTS} f
 where f.run_id = :run_id and f.record_table = :record_table and f.seq > :after and f.seq <= :until
 order by f.seq {{order}}
 limit :most
"""
_MOMENTS_OF = """
    select * from (
      select m.seq, m.what, m.record_id, e.at
        from {moments} m
        join entries e on e.pos = cast(:start as bigint) + m.seq
       where m.run_id = :run_id and m.what = '{what}' and m.seq >= :first and m.seq <= :until
       order by m.seq desc
       limit :most
    ) {what}
"""
# Entries at regular steps, and the newest moments of each kind.
_EVEN = """
select e.seq, null as what, null as record_id, e.at
  from steps s
  join entries e on e.pos = cast(:start as bigint) + cast(:first as bigint) + s.n * cast(:span as bigint) / cast(:parts as bigint)
"""
_STEPS = "with recursive steps (n) as (select 0 union all select n + 1 from steps where n < :last)"
_STRIP = _STEPS + " union all ".join([_EVEN, *(_MOMENTS_OF.format(moments=MOMENTS, what=what) for what in _MARKS)])
# Of very many moments, the first of each kind in each part. `cross join` makes SQLite look each up once; otherwise it scans
# all moments for every part.
_PARTS = MOST_MARKS // len(_MARKS)
_FIRST_OF_PART = f"""
    select m.seq, m.what, m.record_id, e.at
      from part p
     cross join {MOMENTS} m
     cross join entries e
     where m.run_id = :run_id and m.what = '{{what}}' and e.pos = cast(:start as bigint) + m.seq and m.seq = (
       select min(i.seq)
         from {MOMENTS} i
        where i.run_id = :run_id and i.what = '{{what}}' and i.seq <= :until
          and i.seq >= cast(:first as bigint) + p.n * (cast(:span as bigint) + 1) / cast(:sections as bigint)
          and i.seq < cast(:first as bigint) + (p.n + 1) * (cast(:span as bigint) + 1) / cast(:sections as bigint)
     )
"""
_PART = ", part (n) as (select 0 union all select n + 1 from part where n < :sections - 1)"
_SPREAD = _STEPS + _PART + " union all ".join([_EVEN, *(_FIRST_OF_PART.format(what=what) for what in _MARKS)])
_ATTEMPTS = f"""
select {", ".join(f"a.{name}" for name in ATTEMPT)}, e.payload
  from {timeline.ATTEMPTS} a
  join entries e on e.pos = cast(:start as bigint) + case when a.ended_seq <= :until then a.ended_seq else a.started_seq end
 where a.run_id = :run_id
"""
# Attempts that began in a range or were running at its start, each with its state after the last entry.
_LANES = f"""
select * from (
  {_ATTEMPTS} and a.started_seq >= :first and a.started_seq <= :until order by a.started_seq desc limit :most
) begun
union all
{_ATTEMPTS} and a.started_seq < :first and (a.started_seq > :mark or a.started_seq in ({{open}}))
   and (a.ended_seq is null or a.ended_seq >= :first)
"""
# The spending at marks with this distance; `cross join` for the same reason.
_SPENDING = f"""
with recursive steps (n) as (select 1 union all select n + 1 from steps where n < :last)
select m.seq, m.cost_microdollars
  from steps s
 cross join {timeline.MARKS} m
 where m.run_id = :run_id and m.seq = s.n * cast(:step as bigint)
"""


class TimelineOutdated(Exception):
    """The timeline of a run is outdated. The caller writes the missing marks and reads again."""


@dataclass(frozen=True)
class StreamPosition:
    """A run's stream: its first position, its last entry, and the last mark, if any."""

    run_id: str
    number: int
    head: int
    hash: str
    mark: dict[str, Any] | None

    @property
    def start(self) -> int:
        return self.number * STREAM_SIZE

    @property
    def marked(self) -> int:
        """The entry up to which the tables are complete."""
        return self.mark["seq"] if self.mark is not None else 0


def _build_position(row: Row) -> StreamPosition:
    run_id, number, head, hash, *mark = row
    return StreamPosition(run_id, number, head % STREAM_SIZE, hash, None if mark[0] is None else timeline.parse_mark(tuple(mark)))


class RunHistory:
    """Loads runs as of their entries, inside the caller's read."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._remembered: OrderedDict[str, tuple[str, RunStory]] = OrderedDict()
        self._lock = forks.create_lock()

    # Positions

    def place(self, run_id: str) -> StreamPosition:
        return self.places([run_id])[run_id]

    def places(self, run_ids: list[str]) -> dict[str, StreamPosition]:
        """Find several runs with one query."""
        marks, ids = placed(run_ids)
        found = {row[0]: _build_position(row) for row in self._db.rows(_POSITIONS.format(runs=marks), ids)[1]}
        for run_id in run_ids:
            if run_id not in found or run_id.startswith("@"):
                raise run_not_found(self._db, run_id, "List them: decklog runs find")
        return found

    def entry_for(self, place: StreamPosition, at: str | None, *, is_end: bool = True) -> int:
        """Return the entry number of a moment. For the start of a range it is the first entry at or after a time."""
        if at is None:
            return place.head if is_end else 1
        moment = parse_moment(at, place.run_id)
        if isinstance(moment, datetime):
            times = Times(self._db)
            found = times.last_until(place.number, moment) if is_end else times.first_from(place.number, moment)
            moment = min(found - place.start, place.head)
        if not 1 <= moment <= place.head:
            raise NotFound(
                f"run {place.run_id} has entries 1 to {place.head}; there is none for {at}",
                run_id=place.run_id,
                entries=place.head,
            )
        return moment

    def span(self, place: StreamPosition, since: str | None, until: str | None) -> tuple[int, int]:
        """Return the first and the last entry of a range, given by entries or times."""
        first, last = self.entry_for(place, since, is_end=False), self.entry_for(place, until)
        if first > last:
            message = f"in run {place.run_id} entry {first} comes after entry {last}; a span begins before it ends"
            raise Invalid(message, field="since")
        return first, last

    def story(self, place: StreamPosition, *, can_mark: bool) -> RunStory:
        """Evaluate the entries after the last mark. Raise `TimelineOutdated` if another mark is due and can be written."""
        with self._lock:
            hash, known = self._remembered.get(place.run_id, ("", None))
        if known is not None and hash == place.hash:
            return known
        if place.head - place.marked >= EVERY and can_mark:
            raise TimelineOutdated
        # Continue from the cached story, unless a newer mark leaves fewer entries to evaluate.
        can_go_on = known is not None and place.marked <= known.since and known.seq < place.head
        story = known.copied() if known is not None and can_go_on else timeline.start_story(place.mark)
        story.add(timeline.load_changes(self._db, place.start, story.seq, place.head), place.head)
        if not self._db.is_in_transaction:
            with self._lock:
                self._remembered[place.run_id] = place.hash, story
                self._remembered.move_to_end(place.run_id)
                while len(self._remembered) > _MAX_CACHED_RUNS:
                    self._remembered.popitem(last=False)
        return story

    # Counts

    def tally(self, place: StreamPosition, story: RunStory, seq: int) -> dict[str, int]:
        """Return the counts as of an entry."""
        if seq == story.seq:
            return story.tally
        if seq == 0:
            return dict.fromkeys(FIELDS, 0)
        begun = timeline.start_story(self._mark(place, story, seq))
        begun.add(timeline.load_changes(self._db, place.start, begun.seq, seq), seq)
        return begun.tally

    def shown(self, tally: Mapping[str, int], seq: int) -> dict[str, int]:
        """Return counts for display: with the number of entries, without internal counts."""
        return {**{name: count for name, count in tally.items() if name != "moments"}, "entries": seq}

    def _mark(self, place: StreamPosition, story: RunStory, seq: int) -> dict[str, Any] | None:
        """Return the last mark at or before an entry, from the tables or the evaluated entries."""
        if seq < story.since:
            return timeline.find_mark(self._db, place.run_id, seq)
        later = [mark for mark in story.marks if mark["seq"] <= seq][-1:]
        if later:
            return {"run_id": place.run_id, **later[0]}
        return place.mark if place.marked == story.since else timeline.find_mark(self._db, place.run_id, story.since)

    # Records

    def records(
        self, place: StreamPosition, story: RunStory, record_class: type[Record], at: str, size: int, after: str | None
    ) -> Page[Any]:
        """Return a page of the records of a kind as of an entry, by creation."""
        span = parse_position(after) or 0, self.entry_for(place, at)
        rows = self._begun(place, story, record_class, span, size + 1, at=span[1])
        images = [(seq, from_json(payload)) for seq, payload in rows[:size]]
        found = (record_class.from_image(image) for _, image in images if not image.get("removed"))
        return Page(found, next=str(images[-1][0]) if len(rows) > size else None)

    def newest(
        self, place: StreamPosition, story: RunStory, classes: list[type[Record]], at: int, size: int, before: int | None
    ) -> dict[str, tuple[list[Any], str | None]]:
        """Return the newest records of some kinds as of an entry, by table, each with the cursor to older ones."""
        last = at if before is None else min(at, before - 1)
        found: dict[str, tuple[list[Any], str | None]] = {}
        for kind in classes:
            rows = self._begun(place, story, kind, (0, last), size + 1, at=at, is_newest_first=True)
            images = [from_json(payload) for _, payload in rows[:size]]
            records = [kind.from_image(image) for image in images if not image.get("removed")]
            found[kind.table] = records, str(rows[size - 1][0]) if len(rows) > size else None
        return found

    def _begun(
        self,
        place: StreamPosition,
        story: RunStory,
        record_class: type[Record],
        span: tuple[int, int],
        most: int,
        *,
        at: int,
        is_newest_first: bool = False,
    ) -> list[Row]:
        """Return the first entries of records in a range of entries, with the snapshots of these records as of an entry."""
        after, until = span
        bound = {"run_id": place.run_id, "record_table": record_class.table, "at": at}
        later = [one for one in story.firsts.get(record_class.table, []) if after < one[0] <= until]
        later = later[::-1][:most] if is_newest_first else later[:most]
        if after >= story.since or (is_newest_first and len(later) == most):
            return self._images(later, bound)
        kept = {"after": after, "until": min(until, story.since), "most": most}
        stored = self._db.rows(_FIRST_ENTRIES.format(order="desc" if is_newest_first else "asc"), {**bound, **kept})[1]
        if is_newest_first:
            return [*self._images(later, bound), *stored][:most]
        return [*stored, *self._images(later[: most - len(stored)], bound)]

    def _images(self, begun: list[tuple[int, str]], bound: dict[str, Any]) -> list[Row]:
        """Load the records that were created after the last mark."""
        if not begun:
            return []
        marks, ids = placed([record_id for _, record_id in begun])
        sql = f"""
            select f.record_id, ({_IMAGE})
              from (select distinct record_id from entries where record_table = :record_table and record_id in ({marks})) f
        """
        images: dict[str, str] = dict(self._db.rows(sql, {**bound, **ids})[1])
        return [(seq, images[record_id]) for seq, record_id in begun]

    def spent(self, place: StreamPosition, story: RunStory, at: int, points: int, whole: int) -> list[tuple[int, int]]:
        """Return the spending at some entries up to one, in microdollars. `whole` is the final value."""
        marks = self._spent_at_marks(place, min(at, story.since), points)
        line = [*marks, *(one for one in story.spent if one[0] <= at)]
        return line if whole == (line[-1][1] if line else 0) else [*line, (at, whole)]

    def _spent_at_marks(self, place: StreamPosition, until: int, points: int) -> list[tuple[int, int]]:
        """Load the spending at some marks up to an entry."""
        kept = until // EVERY
        step = max(1, kept // points) * EVERY
        bound = {"run_id": place.run_id, "step": step, "last": kept * EVERY // step}
        return sorted((seq, cost) for seq, cost in self._db.rows(_SPENDING, bound)[1]) if kept else []

    # The activity strip and the timeline

    def activity(self, place: StreamPosition, story: RunStory, span: tuple[int, int], steps: int) -> RunActivity:
        """Return the times of entries at regular steps, and the important entries."""
        first, until = span
        whole = self._begun_between(place, story, "moments", span) if story.tally["moments"] > MOST_MARKS else 0
        is_many = whole > MOST_MARKS
        rows = self._strip(place, story, span, steps, is_many)
        newer = [one for one in story.moments if first <= one.seq <= until and one.what != "ended"]
        shown = [row for row in rows if row[1] is not None]
        room = max(MOST_MARKS - len(shown), _PARTS)
        newer = [newer[place * len(newer) // room] for place in range(room)] if len(newer) > room else newer
        marks: list[ActivityMark] = [
            {"seq": seq, "what": what, "record_id": record_id, "at": at} for seq, what, record_id, at in (*shown, *newer)
        ]
        marks.sort(key=itemgetter("seq", "what"))
        found: list[ActivityStep] = [{"seq": seq, "at": at} for seq, what, _, at in rows if what is None]
        left_out = whole - len(marks) if is_many else 0
        return {"run_id": place.run_id, "first": first, "last": until, "steps": found, "marks": marks, "left_out": left_out}

    def _strip(self, place: StreamPosition, story: RunStory, span: tuple[int, int], steps: int, is_many: bool) -> list[Row]:
        """Load the entries at regular steps of a range, and the moments up to the last mark, in order."""
        first, until = span
        parts = min(steps, until - first + 1) - 1
        bound = {"run_id": place.run_id, "start": place.start, "first": first, "until": min(until, story.since)}
        even = {"span": until - first, "parts": max(1, parts), "last": parts}
        # A strip with fewer steps has less room for marks.
        most = {"sections": min(_PARTS, max(1, steps // 4))} if is_many else {"most": MOST_MARKS}
        return sorted(self._db.rows(_SPREAD if is_many else _STRIP, {**bound, **even, **most})[1], key=lambda row: row[0])

    def _begun_between(self, place: StreamPosition, story: RunStory, what: str, span: tuple[int, int]) -> int:
        """Count the moments or attempts that began in a range of entries."""
        first, until = span
        return self.tally(place, story, until)[what] - self.tally(place, story, first - 1)[what]

    def lanes(self, place: StreamPosition, story: RunStory, span: tuple[int, int], limit: int) -> RunLanes:
        """Return the attempts that overlap a range of entries, as of its end."""
        first, until = span
        found = self._attempts(place, story, first, until, limit + 1)
        begun = sorted(seq for seq in found if seq >= first)[-limit:]
        earlier = sorted(seq for seq in found if seq < first)
        shown = [*earlier[: max(0, limit - len(begun))], *begun]
        left_out = len(earlier) + len(begun) - len(shown)
        if len([seq for seq in found if seq >= first]) > limit:
            left_out += self._begun_between(place, story, "attempts", span) - len(begun)
        attempts = [_attempt_as_of(found[seq], until) for seq in shown]
        return {"run_id": place.run_id, "first": first, "last": until, "attempts": attempts, "left_out": left_out}

    def _attempts(self, place: StreamPosition, story: RunStory, first: int, until: int, most: int) -> dict[int, dict[str, Any]]:
        """Find attempts by their start entry: those that began in a range, and those running at its start."""
        mark = self._mark(place, story, first - 1) if first > 1 else None
        marks, ids = placed(from_json(mark["under_way"]) if mark is not None else [])
        if not ids["id0"]:
            ids = dict.fromkeys(ids, 0)
        bound = {"run_id": place.run_id, "start": place.start, "first": first, "until": until, "most": most}
        bound["mark"] = mark["seq"] if mark is not None else 0
        rows = self._db.rows(_LANES.format(open=marks), {**bound, **ids})[1] if story.since else []
        found = {row[1]: _build_attempt(row, story) for row in rows}
        found |= {seq: attempt for seq, attempt in story.attempts.items() if story.since < seq <= until}
        return {seq: one for seq, one in found.items() if seq >= first or one["ended_seq"] is None or one["ended_seq"] >= first}


def _build_attempt(row: Row, story: RunStory) -> dict[str, Any]:
    """Build an attempt from its row and its last entry, with the changes after the last mark."""
    *values, payload = row
    attempt, image = dict(zip(ATTEMPT, values, strict=True)), from_json(payload)
    ending = timeline.attempt_result(image) if attempt["ended_seq"] is not None else {"summary": None, "blocker": None}
    attempt |= {**ending, "outcome": attempt["outcome"], "title": image["title"]}
    return {**attempt, **story.later.get((attempt["task_id"], attempt["number"]), {})}


def _attempt_as_of(attempt: dict[str, Any], until: int) -> RunAttempt:
    """Return an attempt as of an entry: one that ended later was running."""
    is_over = attempt["ended_seq"] is not None and attempt["ended_seq"] <= until
    ending = () if is_over else ("ended_seq", "ended_at", "outcome", "summary", "blocker")
    return {name: None if name in ending else attempt[name] for name in RunAttempt.__annotations__}  # type: ignore[return-value]
