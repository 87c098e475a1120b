"""Runs: one goal pursued in one repository, and the agents that work on it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol, TypeVar

from decklog.core.clock import to_text
from decklog.core.errors import Busy, Conflict, Denied, Invalid, ReadOnly
from decklog.db.where import Where, page_size, parse_enum
from decklog.records.fork_rules import Fork
from decklog.records.operations import reads, reads_in_steps, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store, StoreParts
from decklog.stores.checks import check_filled, check_integer
from decklog.stores.of_run import given_fields, parse_cleared
from decklog.stores.results.runs import RecordDifference, RunActivity, RunLanes
from decklog.stores.runs import timeline
from decklog.stores.runs.history import MOST_STEPS, RunHistory, StreamPosition, TimelineOutdated
from decklog.stores.runs.run import ENDED, Agent, Run, RunMode, RunModeLike, RunStatus, RunStatusLike, check_run_id, unfinished
from decklog.stores.runs.snapshot import (
    AttemptReader,
    MomentComparison,
    RunSnapshot,
    RunSnapshots,
    compare_moments,
    compare_snapshots,
    copy_all,
    parse_moment_name,
)
from decklog.stores.runs.timeline import RunStory

T = TypeVar("T")


class CriteriaReader(Protocol):
    """Open required criteria, which prevent the end of a run."""

    def open_required(self, run_id: str) -> Sequence[Any]: ...


class Runs(Store):
    """Starts and finishes runs and records who worked in them."""

    records = (Run, Agent)
    derived = ("run_marks", "run_attempts", "run_moments", "record_firsts")

    def __init__(self, parts: StoreParts, *, criteria: Callable[[], CriteriaReader], tasks: Callable[[], AttemptReader]) -> None:
        super().__init__(parts)
        self._criteria = criteria
        self._tasks = tasks
        self._history: RunHistory | None = None

    @writes
    def start(
        self,
        goal: str,
        *,
        run_id: str | None = None,
        key: str | None = None,
        status: RunStatusLike = RunStatus.ACTIVE,
        mode: RunModeLike | None = None,
        repo: str | None = None,
        branch: str | None = None,
        worktree: str | None = None,
        metadata: dict[str, object] | None = None,
        parent_run_id: str | None = None,
        started_at: datetime | None = None,
    ) -> Run:
        """Start a run. A known id or key returns that run unchanged.

        `parent_run_id` is the run that it is a part of.
        """
        check_filled("goal", goal)
        if status in ENDED:
            raise Invalid(f"a run can't start as {status}; start it and then finish it", field="status")
        if run_id is not None:
            check_run_id(run_id)
        if parent_run_id is not None:
            self._fetch(Run, parent_run_id)
        now = self._now()
        return self._find_or_add(
            lambda: self._seek_known(Run, run_id, key=key),
            lambda: self._add(
                Run,
                new_stream=True,
                note=goal,
                id=run_id or self._ids.new("run"),
                goal=goal,
                status=parse_enum(RunStatus, status, "status"),
                mode=mode and parse_enum(RunMode, mode, "mode"),
                repo=repo,
                branch=branch,
                worktree=worktree,
                metadata=metadata or {},
                parent_run_id=parent_run_id,
                key=key,
                started_at=started_at or now,
                updated_at=now,
            ),
        )

    @reads
    def get(self, run_id: str) -> Run:
        """Get a run."""
        return self._fetch(Run, run_id)

    @reads
    def find(
        self,
        *,
        status: RunStatusLike | None = None,
        parent_run_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Run]:
        """List runs, newest first."""
        where = Where(Run, status=status, parent_run_id=parent_run_id)
        where.between("started_at", since, until)
        return self._page(Run, where, order=("started_at", "id"), limit=limit, after=after, descending=not oldest_first)

    @writes
    def update(
        self,
        run_id: str,
        *,
        status: RunStatusLike | None = None,
        goal: str | None = None,
        summary: str | None = None,
        repo: str | None = None,
        branch: str | None = None,
        worktree: str | None = None,
        current_task_id: str | None = None,
        metadata: dict[str, object] | None = None,
        clear: list[str] | None = None,
    ) -> Run:
        """Change what is given of a run and keep the rest; `clear` names fields to empty."""
        if status is not None and parse_enum(RunStatus, status, "status") in ENDED:
            raise Invalid(f"update can't set {status}; use finish, which also checks and stamps the end", field="status")
        if goal is not None:
            check_filled("goal", goal)
        changes = given_fields(locals(), "run_id", "clear")
        changes |= parse_cleared(clear, _CLEARABLE, changes)
        if status is not None:
            changes["ended_at"] = None
        return self._set(run_id, changes)

    def _set(self, run_id: str, changes: dict[str, Any], note: str | None = None) -> Run:
        if not changes:
            raise Invalid("no changes given", field="run_id")
        return self._update(Run, run_id, changes, note=note)

    @writes
    def finish(
        self,
        run_id: str,
        *,
        status: RunStatusLike = RunStatus.COMPLETED,
        summary: str | None = None,
        force: bool = False,
        reason: str | None = None,
        ended_at: datetime | None = None,
    ) -> Run:
        """End a run as completed, failed or cancelled; one that ended so already is returned unchanged.

        It can't be completed while a required criterion is open or stale, unless forced with a reason. Unfinished tasks of a
        completed run are counted in `warnings`. `ended_at` is the end time, for imports.
        """
        if parse_enum(RunStatus, status, "status") not in ENDED:
            raise Invalid(f"a run ends as {', '.join(ENDED)}, not as {status}", field="status")
        if force and not (reason or "").strip():
            raise Invalid("to force the end of a run, give a reason", field="reason")
        run = self._fetch_for_update(Run, run_id)
        if ended_at is not None and ended_at < run.started_at:
            raise Invalid(f"run {run_id} began at {to_text(run.started_at)}; it can't have ended before", field="ended_at")
        is_same = summary is None or self._stored("summary", summary) == run.summary
        if run.status == status and is_same and ended_at in (None, run.ended_at):
            return run.mark_already().warned(unfinished(self._db, run))
        if run.status in ENDED and run.status != status:
            raise Conflict(
                f"run {run_id} ended as {run.status}; it can't end as {status} as well",
                hint=f"Take it up again first: decklog runs update {run_id} --status active",
                run_id=run_id,
                status=run.status.value,
            )
        if status == RunStatus.COMPLETED and not force:
            self._check_criteria(run_id)
        changes = given_fields({"status": status, "ended_at": ended_at or self._now(), "summary": summary})
        note = ", ".join(part for part in (str(status), summary, f"forced: {reason}" if force else None) if part)
        ended = self._set(run_id, changes, note=note)
        return ended.warned(unfinished(self._db, ended))

    def _check_criteria(self, run_id: str) -> None:
        still_open = self._criteria().open_required(run_id)
        if still_open:
            names = "; ".join(criterion.criterion for criterion in still_open[:5])
            raise Conflict(
                f"run {run_id} has {len(still_open)} required criteria that are open or stale: {names}",
                hint="Meet them, or finish with force and a reason.",
                criteria=[criterion.criterion for criterion in still_open],
            )

    @writes
    def count_cycle(self, run_id: str) -> Run:
        """Count one more cycle of a run's loop."""
        return self._update(Run, run_id, {}, adding={"cycles": 1})

    @writes
    def count_replan(self, run_id: str) -> Run:
        """Count one more replan of a run."""
        return self._update(Run, run_id, {}, adding={"replans": 1})

    @writes
    def record_agent(
        self,
        run_id: str,
        role: str,
        *,
        session: str | None = None,
        turns: int | None = None,
        rotations: int | None = None,
        last_prompt_path: str | None = None,
        last_response_path: str | None = None,
    ) -> Agent:
        """Record an agent's session and counts; what is not given stays as it was."""
        self._fetch(Run, run_id)
        check_filled("role", role)
        given = {"session": session, "turns": turns, "rotations": rotations}
        given |= {"last_prompt_path": last_prompt_path, "last_response_path": last_response_path}
        fields = {"turns": 0, "rotations": 0, **given_fields(given)}
        keep = [name for name, value in given.items() if value is None]
        return self._upsert(Agent, {"run_id": run_id, "role": role, **fields, "updated_at": self._now()}, keep=keep)

    @writes
    def count_turn(self, run_id: str, role: str) -> Agent:
        """Count one more turn of an agent."""
        return self._update(Agent, (run_id, role), {}, adding={"turns": 1})

    @writes
    def rotate_agent(self, run_id: str, role: str, session: str) -> Agent:
        """Assign a new session to an agent and count the rotation; its turns restart at 0."""
        return self._update(Agent, (run_id, role), {"session": session, "turns": 0}, adding={"rotations": 1})

    @reads
    def agents(self, run_id: str) -> list[Agent]:
        """List the agents that were registered in a run."""
        self._fetch(Run, run_id)
        return self._select_by(Agent, order="role", run_id=run_id)

    # Earlier states of a run

    @reads
    def snapshot(self, run_id: str, *, at: str | None = None) -> RunSnapshot:
        """Return all records of a run, now or as of an entry or a time."""
        return self._past().take(run_id, at)

    @reads_in_steps
    def totals(self, run_id: str, *, at: str | None = None) -> dict[str, int]:
        """Count a run's tasks by state, its attempts, its entries, its calls to models and what they cost, now or as of an entry.

        `failures` are those that the tasks still have; `failed_attempts` all attempts that failed or whose lease ran out.
        """

        def look(history: RunHistory, place: StreamPosition, story: RunStory) -> dict[str, int]:
            seq = history.entry_for(place, at)
            return history.shown(history.tally(place, story, seq), seq)

        return self.with_history(run_id, look)

    @reads_in_steps
    def records_at(self, run_id: str, table: str, at: str, *, limit: int = 50, after: str | None = None) -> Page[Any]:
        """List a run's records of one kind as they were at an entry or a time, in the order in which they came to be.

        A page may have fewer rows than asked for, where records are gone; `next` is set if there are more.
        """
        classes, size = self._journal.record_classes(), page_size(limit)
        if table not in classes or classes[table].home is not None:
            known = sorted(name for name, record in classes.items() if record.home is None)
            raise Invalid(f"a run has no records {table!r}; it has {', '.join(known)}", field="table")
        return self.with_history(run_id, lambda history, *place: history.records(*place, classes[table], at, size, after))

    @reads_in_steps
    def activity(self, run_id: str, *, since: str | None = None, until: str | None = None, buckets: int = 300) -> RunActivity:
        """Return the times of a run's entries in even steps, with failures, questions, checkpoints and pivots marked.

        A span begins and ends at an entry or a time. Of more than 200 marks, the first of each kind in each part are given;
        `left_out` counts the others.
        """
        check_integer("buckets", buckets, low=1, high=MOST_STEPS)

        def look(history: RunHistory, place: StreamPosition, story: RunStory) -> RunActivity:
            return history.activity(place, story, history.span(place, since, until), buckets)

        return self.with_history(run_id, look)

    @reads_in_steps
    def lanes(self, run_id: str, *, since: str | None = None, until: str | None = None, limit: int = 200) -> RunLanes:
        """List the attempts at a run's tasks that overlap a range of entries or time, as of its end.

        If there are more than the limit, the newest are listed; `left_out` counts the others.
        """
        size = page_size(limit)

        def look(history: RunHistory, place: StreamPosition, story: RunStory) -> RunLanes:
            return history.lanes(place, story, history.span(place, since, until), size)

        return self.with_history(run_id, look)

    def with_history(self, run_id: str, look: Callable[[RunHistory, StreamPosition, RunStory], T]) -> T:
        """Read a run with its evaluated history, at one moment. Missing marks are written first if possible."""

        def job(history: RunHistory, can_mark: bool) -> T:
            place = history.place(run_id)
            return look(history, place, history.story(place, can_mark=can_mark))

        return self._with_marks((run_id,), job)

    def with_comparison(self, moments: tuple[str, str], look: Callable[[RunHistory, MomentComparison], T]) -> T:
        """Read two moments of runs at once, each given as RUN, RUN:ENTRY or RUN@TIME."""

        def job(history: RunHistory, can_mark: bool) -> T:
            return look(history, compare_moments(history, self._past(), moments, can_mark=can_mark))

        return self._with_marks([parse_moment_name(text)[0] for text in moments], job)

    def _with_marks(self, run_ids: Sequence[str], job: Callable[[RunHistory, bool], T]) -> T:
        """Read at one moment. Missing marks of runs are written first if possible."""
        history = self._history = self._history or RunHistory(self._db)
        # In an outer read transaction, new marks would not be visible.
        can_mark = not (self._db.read_only or self._db.is_reading)
        try:
            return self._db.read(lambda: job(history, can_mark), same_plans=True)
        except TimelineOutdated:
            with suppress(Denied, ReadOnly, Busy):
                for run_id in run_ids:
                    timeline.write_marks(self._db, run_id)
        return self._db.read(lambda: job(history, False), same_plans=True)

    def audit(self, _record_classes: Mapping[str, type[Record]]) -> Iterator[dict[str, Any]]:
        return timeline.audit(self._db)

    def derive(self) -> None:
        self._history = None
        self._db.write(lambda: timeline.derive(self._db))

    @reads
    def diff(self, before: str, after: str) -> list[RecordDifference]:
        """List what differs between two moments, each given as RUN, RUN:ENTRY or RUN@TIME.

        For two runs, such as two forks, it compares their status, their spending and their records, matched by name.
        """
        past = self._past()
        return compare_snapshots(*(past.take(*parse_moment_name(text), recent=False) for text in (before, after)))

    def _past(self) -> RunSnapshots:
        return RunSnapshots(self._db, self._journal.record_classes(), self._tasks)

    @writes
    def fork(
        self,
        run_id: str,
        *,
        at: str | None = None,
        new_run_id: str | None = None,
        goal: str | None = None,
        branch: str | None = None,
        worktree: str | None = None,
    ) -> Run:
        """Start a new run from a run as it was at an entry or a time; the git branch and worktree are yours to make.

        Records are copied under new ids. Money, open questions, unused grants and processes stay with the run.
        """
        past = self._past()
        start, until = past.span(run_id, at)
        new_id = self._ids.new("run") if new_run_id is None else new_run_id
        check_run_id(new_id, "new_run_id")
        taken = Invalid(f"there is a run {new_id} already; choose another id", field="new_run_id")
        if self._seek(Run, new_id) is not None:
            raise taken
        note = f"forked from {run_id}:{until - start}"
        fork = Fork(new_id, run_id, to_text(self._now()))
        records = copy_all(past.newest(start, until), fork, self._ids, self._db)
        _, run = next(records)
        try:
            self._db.write(lambda: self._put(Run, run, note=note, new_stream=True))
        except Conflict:
            # A concurrent fork got the same id.
            raise taken from None
        for record_class, image in records:
            self._put(record_class, image, note=note)
        given = given_fields({"goal": goal, "branch": branch, "worktree": worktree})
        return self._set(new_id, {**given, "parent_run_id": run_id, "parent_seq": until - start}, note)


_CLEARABLE = ("summary", "repo", "branch", "worktree", "current_task_id")
