"""The history of a run, entry by entry: counts, attempts, moments, and the first entry of each record.

It is stored at regular marks, which only readers write: an append or a claim would pay a page write for each of these tables.
A reader evaluates the entries after the last mark; if there are many, it writes marks first.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, NamedTuple

from decklog.db.base import Database, Row
from decklog.journal.rows import HEAD, STREAM_SIZE, find_stream_number
from decklog.records.values import from_json, to_json

MARKS, ATTEMPTS, MOMENTS, FIRSTS = "run_marks", "run_attempts", "run_moments", "record_firsts"
TABLES = (MARKS, ATTEMPTS, MOMENTS, FIRSTS)
STATES = ("pending", "running", "waiting", "blocked", "paused", "done", "abandoned")
MONEY = ("calls", "tokens", "cost_microdollars", "unpriced_calls")
FIELDS = (*STATES, "failures", "attempts", "failed_attempts", "moments", *MONEY)
MARK = ("run_id", "seq", "hash", *FIELDS, "under_way")
ATTEMPT = ("run_id", "started_seq", "task_id", "number", "worker", "started_at", "ended_seq", "ended_at", "outcome")
# Entries between two marks, which is the most that a read evaluates.
EVERY = 250
# Marks per transaction, so that nobody waits long for it.
_BATCH = 8
_OVER = ("done", "abandoned")
_TOKENS = ("input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens")
_MARKED = {"approvals": "question", "checkpoints": "checkpoint"}

# The entries of a range that change a record or a decision, each with its record before. The bounds of `p.pos` are those of the
# stream: only its partition is read.
_CHANGES = """
select e.seq, e.at, e.record_table, e.record_id,
       case when e.record_table = 'tasks' or e.record_table = 'charges' then e.payload end,
       case when e.record_table is not null then
         (select coalesce(case when e.record_table = 'tasks' then p.payload end, '')
            from entries p
           where p.record_table = e.record_table and p.record_id = e.record_id and p.seq < e.seq
             and p.pos > e.pos - e.seq and p.pos < e.pos
           order by p.seq desc
           limit 1)
       end
  from entries e
 where e.pos > :start and e.pos <= :until
   and (e.record_table || '' is not null or e.phase = 'pivot')
 order by e.pos
"""


class Moment(NamedTuple):
    """An important entry: its number, kind, record and time."""

    seq: int
    what: str
    record_id: str | None
    at: str


class RunStory:
    """The evaluated entries of a run from a mark on. `since` is the entry of the mark, `seq` the last evaluated entry."""

    def __init__(self, since: int = 0, tally: dict[str, int] | None = None) -> None:
        self.since = self.seq = since
        self.tally = dict.fromkeys(FIELDS, 0) if tally is None else dict(tally)
        # By the entry at the start of the attempt.
        self.attempts: dict[int, dict[str, Any]] = {}
        self.under_way: dict[str, dict[str, Any]] = {}
        # The start entries of attempts that were running at the mark, and their later changes, by task and number. Readers do not
        # load these attempts.
        self.earlier: list[int] = []
        self.later: dict[tuple[str, int], dict[str, Any]] = {}
        self.marks: list[dict[str, Any]] = []
        self.moments: list[Moment] = []
        # The total spending after each charge.
        self.spent: list[tuple[int, int]] = []
        self.firsts: dict[str, list[tuple[int, str]]] = {}
        self._at = ""

    def copied(self) -> "RunStory":
        """Return a copy to continue from, while others read this one."""
        new = copy(self)
        vars(new).update({name: copy(value) for name, value in vars(self).items() if isinstance(value, (dict, list))})
        new.firsts = {table: list(found) for table, found in self.firsts.items()}
        return new

    def add(self, rows: Iterable[Row], until: int) -> None:
        """Add the following entries, up to a number."""
        for seq, at, table, record_id, payload, before in rows:
            self._mark_until(seq - 1)
            self._at = at
            self._add(seq, table, record_id, payload, before)
        self._mark_until(until)
        self.seq = until

    def _mark_until(self, seq: int) -> None:
        """Record the state at every mark up to an entry."""
        first = (self.marks[-1]["seq"] if self.marks else self.since // EVERY * EVERY) + EVERY
        for place in range(first, seq + 1, EVERY):
            under_way = sorted([*self.earlier, *(attempt["started_seq"] for attempt in self.under_way.values())])
            self.marks.append({"seq": place, **self.tally, "under_way": to_json(under_way)})

    def _add(self, seq: int, table: str | None, record_id: str, payload: str | None, before: str | None) -> None:
        if table is None:
            self._note(seq, "pivot", None)
            return
        if before is None:
            self.firsts.setdefault(table, []).append((seq, record_id))
            if what := _MARKED.get(table):
                self._note(seq, what, record_id)
        if table == "tasks":
            self._add_task(seq, from_json(payload or "null"), from_json(before) if before else None)
        elif table == "charges" and before is None:
            self._add_charge(seq, from_json(payload or "null"))

    def _note(self, seq: int, what: str, record_id: str | None) -> None:
        self.moments.append(Moment(seq, what, record_id, self._at))
        self.tally["moments"] += what != "ended"

    def _add_charge(self, seq: int, image: dict[str, Any]) -> None:
        cost = image.get("cost_microdollars")
        self.tally["calls"] += 1
        self.tally["tokens"] += sum(image.get(name) or 0 for name in _TOKENS)
        self.tally["cost_microdollars"] += cost or 0
        self.tally["unpriced_calls"] += cost is None
        self.spent.append((seq, self.tally["cost_microdollars"]))

    def _add_task(self, seq: int, image: dict[str, Any], before: dict[str, Any] | None) -> None:
        for version, sign in ((before, -1), (image, 1)):
            if version is not None and not version.get("removed"):
                self.tally[version["state"]] += sign
                self.tally["failures"] += sign * version.get("failures", 0)
        was = before["state"] if before is not None else None
        if image["state"] in _OVER and was not in _OVER:
            self._note(seq, "ended", image["id"])
        if not image.get("attempts") or image.get("leased_at") is None:
            return
        if image["state"] == "running":
            self._begin(seq, image, is_new=before is None or was != "running" or before.get("attempts") != image["attempts"])
        elif was == "running" and image.get("outcome") is not None:
            self._end(seq, image)

    def _begin(self, seq: int, image: dict[str, Any], *, is_new: bool) -> None:
        """Start an attempt, or update it: an extended lease belongs to the same attempt."""
        self.tally["attempts"] += is_new
        changes = {"worker": image["worker"], "started_at": image["leased_at"], "title": image["title"]}
        if is_new:
            nothing = dict.fromkeys(("ended_seq", "ended_at", "outcome", "summary", "blocker"))
            self.under_way[image["id"]] = {"started_seq": seq, "task_id": image["id"], "number": image["attempts"], **nothing}
        self._update_attempt(image, changes)

    def _end(self, seq: int, image: dict[str, Any]) -> None:
        changes = {"ended_seq": seq, "ended_at": image["updated_at"], "title": image["title"], **attempt_result(image)}
        self._update_attempt(image, changes)
        self.under_way.pop(image["id"], None)
        if image["outcome"] in ("failed", "expired"):
            self.tally["failed_attempts"] += 1
            self._note(seq, "failure", image["id"])

    def _update_attempt(self, image: dict[str, Any], changes: dict[str, Any]) -> None:
        """Apply an entry to an attempt. Changes of attempts from before the mark are kept separately."""
        known = self.under_way.get(image["id"])
        if known is None:
            place = image["id"], image["attempts"]
            self.later[place] = {**self.later.get(place, {}), **changes}
        else:
            self.under_way[image["id"]] = self.attempts[known["started_seq"]] = {**known, **changes}


def attempt_result(image: dict[str, Any]) -> dict[str, Any]:
    """Return the result of the attempt that a task's snapshot ended."""
    outcome = image.get("outcome")
    blocker = image.get("blocker") if outcome in ("failed", "blocked") else None
    return {"outcome": outcome, "summary": image.get("summary"), "blocker": blocker}


def load_changes(db: Database, start: int, since: int, until: int) -> list[Row]:
    """Load the relevant entries after one number up to another. `start` is the stream's first position."""
    return db.rows(_CHANGES, {"start": start + since, "until": start + until})[1]


def parse_mark(row: Row) -> dict[str, Any]:
    return dict(zip(MARK, row, strict=True))


def find_mark(db: Database, run_id: str, seq: int) -> dict[str, Any] | None:
    """Return the last mark of a run at or before an entry."""
    sql = f"select {', '.join(MARK)} from {MARKS} where run_id = :run_id and seq <= :seq order by seq desc limit 1"
    row = db.one(sql, {"run_id": run_id, "seq": seq})
    return None if row is None else parse_mark(row)


def start_story(mark: dict[str, Any] | None) -> RunStory:
    """Start a story at a mark."""
    if mark is None:
        return RunStory()
    story = RunStory(mark["seq"], {name: mark[name] for name in FIELDS})
    story.earlier = from_json(mark["under_way"])
    return story


# Storing


def write_marks(db: Database, run_id: str) -> None:
    """Write the marks of a run up to its last entry."""
    while not db.write(lambda: _write_some_marks(db, run_id)):
        pass


def _write_some_marks(db: Database, run_id: str) -> bool:
    """Write one batch of marks, and return whether they are complete."""
    # Another reader may write the same marks, so lock the stream.
    number = db.lock_stream(run_id)
    if number is None:
        return True
    start = number * STREAM_SIZE
    head = db.one(HEAD, {"start": start, "end": start + STREAM_SIZE})
    newest = (head[0] - start) // EVERY * EVERY if head is not None else 0
    story = start_story(find_mark(db, run_id, STREAM_SIZE))
    story.earlier, story.under_way = [], _load_running_attempts(db, run_id)
    until = min(newest, story.seq + _BATCH * EVERY)
    if until > story.seq:
        story.add(load_changes(db, start, story.seq, until), until)
        _store_rows(db, run_id, start, story)
    return until == newest


def _load_running_attempts(db: Database, run_id: str) -> dict[str, dict[str, Any]]:
    """Load the attempts that were running at a run's last mark, by task."""
    sql = f"select {', '.join(ATTEMPT)} from {ATTEMPTS} where run_id = :run_id and ended_seq is null"
    found = [dict(zip(ATTEMPT, row, strict=True)) for row in db.rows(sql, {"run_id": run_id})[1]]
    return {attempt["task_id"]: attempt for attempt in found}


def _store_rows(db: Database, run_id: str, start: int, story: RunStory) -> None:
    for table, rows in _build_rows(db, start, story).items():
        columns = ("run_id", *_COLUMNS[table])
        if table == ATTEMPTS:
            db.put(table, columns, ("run_id", "started_seq"), [dict(zip(columns, (run_id, *row), strict=True)) for row in rows])
        else:
            db.insert(table, columns, [(run_id, *row) for row in rows])


def _hash_at(db: Database, position: int) -> str | None:
    row = db.one("select hash from entries where pos = :pos", {"pos": position})
    return None if row is None else str(row[0])


def derive(db: Database) -> None:
    """Delete all marks: they are rebuilt for each run that is read."""
    for table in TABLES:
        db.count(f"delete from {table}", {})


# Verification


def audit(db: Database) -> Iterator[dict[str, Any]]:
    """Yield a problem for each row that differs from the entries of its run."""
    tables = {table: [row[0] for row in db.each_as_is(f"select distinct run_id from {table}", {})] for table in TABLES}
    for run_id in sorted({one for found in tables.values() for one in found}, key=str):
        if isinstance(run_id, str) and find_stream_number(db, run_id) is not None:
            yield from _audit_run(db, run_id)
        else:
            yield from (_row_problem(table, run_id, (), "is of no run") for table, found in tables.items() if run_id in found)


def _audit_run(db: Database, run_id: str) -> Iterator[dict[str, Any]]:
    last = db.one(f"select max(seq) from {MARKS} where run_id = :run_id", {"run_id": run_id})
    start, until = (find_stream_number(db, run_id) or 0) * STREAM_SIZE, (last[0] if last else None) or 0
    if type(until) is not int or until % EVERY or (_hash_at(db, start + until) is None and until):
        yield _row_problem(MARKS, run_id, until, "is made up to an entry that is not in the journal")
        return
    story = RunStory()
    while story.seq < until:
        part = min(until, story.seq + _BATCH * EVERY)
        story.add(load_changes(db, start, story.seq, part), part)
    for table, rows in _build_rows(db, start, story).items():
        true = {row[: len(_KEYS[table])]: row for row in rows}
        sql = f"select {', '.join(_COLUMNS[table])} from {table} where run_id = :run_id"
        kept = {tuple(row[: len(_KEYS[table])]): tuple(row) for row in db.each_as_is(sql, {"run_id": run_id})}
        for place in sorted(kept.keys() | true.keys(), key=str):
            if kept.get(place) != true.get(place):
                yield _row_problem(table, run_id, place, "does not match the entries of its run")


_KEYS = {MARKS: MARK[1:2], ATTEMPTS: ATTEMPT[1:2], MOMENTS: ("what", "seq"), FIRSTS: ("record_table", "seq")}
_COLUMNS = {
    MARKS: MARK[1:],
    ATTEMPTS: ATTEMPT[1:],
    MOMENTS: ("what", "seq", "record_id"),
    FIRSTS: ("record_table", "seq", "record_id"),
}


def _build_rows(db: Database, start: int, story: RunStory) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of a story by table, without their run."""
    marks = [{**mark, "hash": _hash_at(db, start + mark["seq"])} for mark in story.marks]
    return {
        MARKS: [tuple(mark[name] for name in MARK[1:]) for mark in marks],
        ATTEMPTS: [tuple(attempt[name] for name in ATTEMPT[1:]) for attempt in story.attempts.values()],
        MOMENTS: [(one.what, one.seq, one.record_id) for one in story.moments],
        FIRSTS: [(table, seq, record_id) for table, found in story.firsts.items() for seq, record_id in found],
    }


def _row_problem(table: str, run_id: Any, place: Any, what: str) -> dict[str, Any]:
    named = " ".join(map(str, place)) if isinstance(place, tuple) else str(place)
    return {
        "what": f"{table} {run_id} {named} {what}",
        "table": table,
        "record_id": str(run_id),
        "column": ", ".join(_KEYS[table]),
    }
