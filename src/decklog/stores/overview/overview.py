"""The overview of a whole log. The number and cost of its statements do not grow with the log."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

from decklog.core.clock import to_text
from decklog.core.errors import Busy, Denied, Invalid, LeaseLost
from decklog.db.where import page_size, parse_enum, parse_position, placed
from decklog.journal.entry import EntryKind, EntryKindLike
from decklog.journal.rows import find_stream_number
from decklog.records.operations import reads, reads_in_steps
from decklog.records.record import Page, Record
from decklog.records.values import to_json
from decklog.stores.base import StoreParts
from decklog.stores.of_run import run_not_found
from decklog.stores.overview import run_list, run_view, spending, summary, task_counts, waiting
from decklog.stores.overview.board import BoardColumn, columns, workloads
from decklog.stores.overview.families import Base, Families
from decklog.stores.overview.run_facts import RunOverview
from decklog.stores.overview.run_list import (
    MOST_GOING_ON,
    NEWEST_GOING_ON,
    STATES,
    RunFilter,
    RunSort,
    RunsTable,
    place_in,
    place_of,
)
from decklog.stores.overview.run_view import Comparison, RunView
from decklog.stores.overview.search import SearchQuery, SearchResult, find_hits
from decklog.stores.overview.spending import (
    BudgetOverview,
    SpendingView,
    SpendKey,
    SpendKeyLike,
    budget_overviews,
    global_budget,
    spent,
)
from decklog.stores.overview.status import TASK_FACTS, Status, StatusLike, of_task
from decklog.stores.overview.summary import Recent, Summary, by_status, sentence
from decklog.stores.overview.waiting import AttentionGroup, WaitingItem
from decklog.stores.results.overview import DaySpending, EndedRun, FailedTask, StatusWords, TaskSummary, Workload

T = TypeVar("T")


MOST_DAYS = 400
_ORDER = list(Status)


class TaskReader(Protocol):
    """A store of tasks."""

    def get(self, task_id: str) -> Any: ...


class HistoryReader(Protocol):
    """A store of runs that evaluates their entries."""

    def with_history(self, run_id: str, look: Callable[[Any, Any, Any], T]) -> T: ...
    def with_comparison(self, moments: tuple[str, str], look: Callable[[Any, Any], T]) -> T: ...


class DueSchedules(Protocol):
    """A store of schedules that adds due tasks."""

    def is_any_due(self) -> bool: ...
    def run_due(self) -> list[Any]: ...


class Overview(Families):
    """Shows the status of runs and tasks, what waits for a person, and the cost."""

    derived = (task_counts.TABLE, spending.TABLE)

    def __init__(
        self,
        parts: StoreParts,
        *,
        tasks: Callable[[], TaskReader],
        schedules: Callable[[], DueSchedules],
        past: Callable[[], HistoryReader],
    ) -> None:
        super().__init__(parts)
        self._past = past
        self._tasks = tasks
        self._schedules = schedules

    @reads_in_steps
    def now(self, *, limit: int = 12) -> Summary:
        """Summarize what needs a person, what runs, what stalled and what it costs.

        The first `limit` waiting items and unfinished runs are listed. Due tasks of schedules are added first.
        """
        size = page_size(limit)
        # A claim adds due tasks too. A caller without permission to write still sees what exists.
        if not self._db.read_only and self._schedules().is_any_due():
            with suppress(Denied, Busy, LeaseLost):
                self._schedules().run_due()
        return self._read_with_base(lambda base: self._summary(base, size))

    @reads_in_steps
    def runs(
        self,
        *,
        status: StatusLike | None = None,
        repo: str | None = None,
        branch: str | None = None,
        text: str | None = None,
        parent_run_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[RunOverview]:
        """List runs, newest first, each with its status, tasks, last entry, workers, waiting items and spending.

        `text` is a part of the goal, ignoring case; it is searched in the newest 5,000 runs. A status of unfinished runs covers
        the newest 200.
        """
        size, wanted = page_size(limit), RunFilter(repo, branch, text, parent_run_id, since, until)
        word = None if status is None else parse_enum(Status, status, "status")
        return self._read_with_base(lambda base: self._listed(word, wanted, size, after, base))

    def table(
        self,
        *,
        status: Status | None = None,
        sort: RunSort = RunSort.ATTENTION,
        descending: bool = True,
        limit: int = 20,
        after: str | None = None,
        **filters: Any,
    ) -> RunsTable:
        """List runs with their activity of the last hour, counts by status and open decisions, in one consistent read.

        Runs that need a person come first, then running, stalled, idle and paused ones, then finished runs by their end.
        A column is sorted among unfinished runs and the latest 200 finished ones. Filters are those of `RunFilter`.
        """
        size, wanted = page_size(limit), RunFilter(**filters)

        def read(base: Base) -> RunsTable:
            look, is_cut = partial(base.look, self._db), False
            if sort is RunSort.ATTENTION:
                page, going = run_list.attention_first(look, status, wanted, size, after)
            else:
                page, going, is_cut = run_list.by_column(look, status, wanted, size, after, sort, descending=descending)
            counts, is_many = run_list.counts(self._db, wanted, going)
            activity = summary.last_hour(self._db, page, base.now)
            return RunsTable(page, len(base.items), activity, counts, is_cut or is_many)

        return self._read_with_base(read)

    @reads_in_steps
    def run(self, run_id: str) -> RunOverview:
        """Show the status of one run."""
        found = self._read_with_base(lambda base: base.runs_of(self._db, [run_id]))
        if not found:
            raise run_not_found(self._db, run_id, "List them: decklog overview runs")
        return found[0]

    @reads
    def task(self, task_id: str) -> TaskSummary:
        """Return the status of a task: its state, or needs attention, stalled or failed."""
        task = self._tasks().get(task_id)
        word = self._words_of_tasks(self._base(), [task.id])[task.id]
        return {"id": task.id, "run_id": task.run_id, "title": task.title, "status": word, "state": task.state.value}

    @reads_in_steps
    def words(self, *, run_ids: list[str] | None = None, task_ids: list[str] | None = None) -> StatusWords:
        """Return the status of runs and tasks by their ids, up to 200 of each."""
        runs, tasks = _within_limit(run_ids), _within_limit(task_ids)

        def read(base: Base) -> StatusWords:
            found = {run.id: run.status.value for run in base.runs_of(self._db, runs)}
            return {"runs": found, "tasks": self._words_of_tasks(base, tasks)}

        return self._read_with_base(read)

    @reads
    def names(self, *, run_ids: list[str] | None = None, task_ids: list[str] | None = None) -> dict[str, str]:
        """Return the goals of runs and the titles of tasks by their ids, up to 200 of each."""
        runs, tasks = _within_limit(run_ids), _within_limit(task_ids)
        found: dict[str, str] = {}
        for sql, ids in (("select id, goal from runs", runs), ("select id, title from tasks", tasks)):
            if ids:
                marks, bound = placed(ids)
                found |= dict(self._db.rows(f"{sql} where id in ({marks})", self._db.values.bind(bound)[0])[1])
        return found

    @reads_in_steps
    def waiting(self, *, limit: int = 20, after: str | None = None) -> Page[WaitingItem]:
        """List what waits for a person: decisions first, then blocked tasks, then stalled runs.

        Decisions are approvals, unknown effects, questions, spent budgets and stale evidence. Each group is sorted by deadline,
        then by waiting time. The oldest 200 of each kind are listed.
        """
        size = page_size(limit)
        place = None if after is None else tuple(place_in(after, 5))

        def read(base: Base) -> list[WaitingItem]:
            runs = base.look(self._db, NEWEST_GOING_ON, {})
            stalled = [waiting.stalled(run) for run in runs if run.status is Status.STALLED]
            return sorted([*base.items, *waiting.blocked(self._db), *stalled], key=lambda item: item.place)

        items = self._read_with_base(read)
        left = [item for item in items if place is None or item.place > place]
        return Page(left[:size], next=to_json(left[size - 1].place) if len(left) > size else None)

    @reads_in_steps
    def run_view(
        self,
        run_id: str,
        *,
        at: str | None = None,
        since: str | None = None,
        before: int | None = None,
        kind: EntryKindLike | None = None,
        buckets: int = 300,
        lanes: int = 200,
        entries: int = 50,
        tasks: int = 50,
        after: str | None = None,
        board: int = 0,
        records: list[str] | None = None,
        roles: list[str] | None = None,
        first_tasks: int = 0,
        spent: int = 0,
        milestones: int = 0,
    ) -> RunView:
        """Show one run, now or as of an entry or a time: its head, counts, activity strip, timeline, tasks and latest entries.

        The timeline starts at `since`, an entry or a time, and ends at the shown moment; the strip covers the whole run. Entries
        are those before the number `before`, or those of a kind. Tasks are those after the cursor `after`, by creation. `board`
        is the number of current tasks in each column. `records` names tables whose newest 50 records are shown. `roles` selects
        those of the first 200 tasks that have one of these roles now. `first_tasks` is a number of current tasks, running and
        held-up ones first. `spent` is the number of entries at which spending is reported, `milestones` the number of failures,
        questions and checkpoints. A size of 0 leaves a part out. Tools and changes are searched in the newest 20,000 entries.
        """
        classes = self._journal.record_classes()
        wanted = run_view.ViewRequest(
            at=at,
            since=since,
            before=before,
            kind=None if kind is None else parse_enum(EntryKind, kind, "kind"),
            buckets=buckets,
            lanes=lanes and page_size(lanes),
            entries=entries and page_size(entries),
            tasks=tasks and page_size(tasks),
            after=after,
            board=board and page_size(board),
            records=run_view.kinds(classes, records or []),
            roles=roles or [],
            first_tasks=first_tasks and page_size(first_tasks),
            spent=spent and page_size(spent),
            milestones=milestones and page_size(milestones),
        )

        def look(*past: Any) -> RunView:
            return run_view.build_view(self._db, wanted, self._base(), classes["tasks"], *past)

        return self._past().with_history(run_id, look)

    def contents(self, run_id: str) -> dict[str, Any]:
        """Count the records of a run, for the tabs of its page."""
        return self._db.read(lambda: run_view.contents(self._db, run_id))

    def labels(self, task_ids: list[str]) -> list[dict[str, Any]]:
        """Load what labels tasks on a timeline: the tags, and the result of a work task."""
        return self._db.read(lambda: run_view.labels(self._db, task_ids))

    def graph(self, run_id: str, *, most: int) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
        """Load the tasks of a run and their dependencies, for a drawing."""
        return self._db.read(lambda: run_view.graph(self._db, run_id, most))

    @reads_in_steps
    def compare(self, before: str, after: str) -> Comparison:
        """Show two moments side by side, each given as RUN, RUN:ENTRY or RUN@TIME: their status, and which records differ.

        Runs of more than 2,000 entries are shown without `differences`; use `runs diff`.
        """
        return self._past().with_comparison(
            (before, after), lambda *past: run_view.build_comparison(self._db, self._base(), *past)
        )

    @reads_in_steps
    def money(
        self,
        *,
        days: int = 30,
        since: datetime | None = None,
        until: datetime | None = None,
        by: SpendKeyLike = SpendKey.MODEL,
        limit: int = 20,
    ) -> SpendingView:
        """Show spending: each UTC day by model, the most expensive models, agents or runs, and the budgets.

        It covers `days` days up to today or `until`, or all days from `since` on.
        """
        last = (until or self._now()).astimezone(UTC).date()
        first = since.astimezone(UTC).date() if since is not None else last - timedelta(days=days - 1)
        if not 0 <= (last - first).days < MOST_DAYS:
            field = "days" if since is None else "since"
            raise Invalid(f"from {first} to {last} is no span of 1 to {MOST_DAYS} days", field=field)
        key, size = parse_enum(SpendKey, by, "by"), page_size(limit)
        return self._read_with_base(lambda base: spent(self._db, base, (first, last), key.column or "model", size))

    @reads_in_steps
    def board(self, run_id: str, *, per_column: int = 30) -> list[BoardColumn]:
        """Show a run's tasks in columns (to do, doing, blocked or paused, finished), each with its count and first tasks."""
        size = page_size(per_column)

        def look(_history: Any, _place: Any, story: Any) -> list[BoardColumn]:
            return columns(self._db, run_id, size, story, self._base())

        return self._past().with_history(run_id, look)

    @reads_in_steps
    def search(
        self,
        words: str,
        *,
        kind: str | None = None,
        run_id: str | None = None,
        agent: str | None = None,
        since: datetime | None = None,
        going_on: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> SearchResult:
        """Search runs, tasks, lessons, questions, files and entries by words, newest first; `word*` matches a prefix.

        Only the newest entry of each record counts. Kinds, runs and agents are counted among the newest 1,000 hits; `next`
        continues after them. Entries that are not indexed yet are read directly; `going_on` reads only those of unfinished runs:
        its cost does not depend on the number of finished runs.
        """
        if not words.strip():
            raise Invalid("search needs at least one word", field="words")
        size, place = page_size(limit), parse_position(after)
        number = None if run_id is None else self._db.read(lambda: find_stream_number(self._db, run_id))
        if run_id is not None and number is None:
            raise run_not_found(self._db, run_id, "List them: decklog overview runs")
        beginning = None if since is None else to_text(since)
        query = SearchQuery(words, kind, agent, size, place, number, going_on, beginning)
        return self._db.read(lambda: find_hits(self._db, query))

    @reads_in_steps
    def days(
        self, *, since: datetime | None = None, until: datetime | None = None, by: SpendKeyLike = SpendKey.NONE
    ) -> list[DaySpending]:
        """Sum up the spending of each UTC day, optionally by model, agent or run; by default of the last 30 days.

        The cost covers calls with a known price; `unpriced_calls` counts the others.
        """
        key = parse_enum(SpendKey, by, "by")
        last = (until or self._now()).astimezone(UTC).date()
        first = since.astimezone(UTC).date() if since is not None else last - timedelta(days=29)
        if (last - first).days >= MOST_DAYS:
            raise Invalid(f"from {first} to {last} is longer than {MOST_DAYS} days; ask for parts of it", field="since")
        days = first.isoformat(), last.isoformat()
        names = ("day",) if key.column is None else ("day", key.column)
        return self._db.read(lambda: spending.by(self._db, names, *days))

    @reads
    def stations(self) -> list[Workload]:
        """Count the work of the newest 200 active runs by role: tasks to do, running, blocked or paused, and failed, and groups.

        Tasks count for their role, running ones without a role for their worker, and groups for their assignee. `who` is null if
        there is none. Counts stop at 1,000 of each kind.
        """
        return workloads(self._db)

    @reads
    def decisions(self) -> int:
        """Count the decisions that wait for a person; stalled runs are not counted."""
        return len(self._base().items)

    @reads
    def budgets(self) -> list[BudgetOverview]:
        """List the status of the budgets in their present periods, without those of runs that are over."""
        return budget_overviews(self._db, self._now())

    @reads
    def attention(self) -> list[AttentionGroup]:
        """List open problems by kind: the count, the newest case and its cause.

        These are runs that failed since yesterday, new feedback with high or critical severity, and of unfinished runs blocked
        tasks, failed attempts, and failed checks and blocked reviews of the last 7 days. Up to 100 of a kind are counted.
        """
        return waiting.attention_groups(self._db, self._now())

    @reads
    def ended(self, since: datetime, *, limit: int = 20) -> list[EndedRun]:
        """List the runs that ended since a time, the latest first, each with its word."""
        return summary.ended_runs(self._db, since, page_size(limit))

    @reads
    def failed_tasks(self, since: datetime, *, limit: int = 20) -> list[FailedTask]:
        """List the tasks of all runs that used up their attempts since a time, the latest first."""
        return summary.failed_tasks(self._db, since, page_size(limit))

    @reads
    def activity(self, run_ids: list[str], *, span_seconds: int = 3600, buckets: int = 24) -> dict[str, list[int]]:
        """Count the newest 120 entries of each run over the last `span_seconds`, in even steps."""
        if not 1 <= buckets <= 300 or not 1 <= span_seconds <= 3600 * 24 * 366:
            raise Invalid("activity has 1 to 300 steps, and covers up to a year", field="buckets")
        return summary.activity(self._db, _within_limit(run_ids), self._now(), timedelta(seconds=span_seconds), buckets)

    @reads
    def recent(self, run_ids: list[str], *, limit: int = 5) -> Recent:
        """Show what happened lately: the last hour of some runs, tasks that failed today, runs that ended since yesterday."""
        now = self._now()
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        size = page_size(limit)
        return Recent(
            activity=summary.activity(self._db, _within_limit(run_ids), now),
            failed=summary.failed_tasks(self._db, midnight, size),
            ended=summary.ended_runs(self._db, now - timedelta(days=1), size),
        )

    # Loading

    def _words_of_tasks(self, base: Base, task_ids: list[str]) -> dict[str, str]:
        if not task_ids:
            return {}
        marks, ids = placed(task_ids)
        bound, _ = self._db.values.bind(ids)
        names, rows = self._db.rows(TASK_FACTS.format(ids=marks), bound)
        found: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in rows]
        steady_now, held_up = base.steady_now, base.tasks
        return {task["id"]: of_task(task, needs_person=task["id"] in held_up, steady_now=steady_now).value for task in found}

    def _summary(self, base: Base, size: int) -> Summary:
        found = base.look(self._db, NEWEST_GOING_ON, {})
        runs, is_cut = found[:MOST_GOING_ON], len(found) > MOST_GOING_ON
        runs.sort(key=lambda run: (_ORDER.index(run.status), -run.last_at.timestamp()))
        cost, unpriced = self._today(base)
        counts = by_status(runs)
        at_work = [run for run in runs if run.status in (Status.RUNNING, Status.NEEDS_ATTENTION) and run.agents]
        agents = len({agent for run in at_work for agent in run.agents})
        is_new = not runs and self._db.one("select 1 from runs limit 1", {}) is None
        return Summary(
            at=base.now,
            sentence=sentence(len(base.items), counts, (agents, len(at_work)), cost, base.budgets, is_new=is_new, is_cut=is_cut),
            decisions=len(base.items),
            waiting=base.items[:size],
            counts=counts,
            agents=agents,
            runs=runs[:size],
            spent_today=cost,
            unpriced_today=unpriced,
            budgets=base.budgets,
            is_new=is_new,
            is_cut=is_cut,
        )

    def _today(self, base: Base) -> tuple[int, int]:
        """Return today's spending and the number of calls without a price. A global budget has both."""
        if (budget := global_budget(base.budgets)) is not None:
            return budget.today, budget.unpriced_today
        today = base.now.astimezone(UTC).date().isoformat()
        spent = spending.by(self._db, ("day",), today, today)
        return (spent[0]["cost_microdollars"], spent[0]["unpriced_calls"]) if spent else (0, 0)

    def _listed(self, word: Status | None, wanted: RunFilter, size: int, after: str | None, base: Base) -> Page[RunOverview]:
        place = None if after is None else place_in(after, 2)
        if word is not None and word not in STATES:
            # The status is derived from current facts, and no index has it.
            found = [run for run in base.look(self._db, NEWEST_GOING_ON, {}) if run.status is word and wanted.fits(run)]
            found = [run for run in found if place is None or place_of(run) < tuple(place)]
        else:
            sql, given = wanted.sql(STATES.get(word) if word else None, place, size + 1)
            found = base.look(self._db, sql, given)
        return Page(found[:size], next=to_json(place_of(found[size - 1])) if len(found) > size else None)

    # Derived tables

    def audit(self, _record_classes: Mapping[str, type[Record]]) -> Iterator[dict[str, Any]]:
        yield from task_counts.audit(self._db)
        yield from spending.audit(self._db)

    def derive(self) -> None:
        self._db.write(lambda: task_counts.derive(self._db))
        self._db.write(lambda: spending.derive(self._db))


def _within_limit(ids: list[str] | None) -> list[str]:
    """Return some ids. Raise Invalid if there are too many."""
    if ids is not None and len(ids) > MOST_GOING_ON:
        raise Invalid(f"ask for up to {MOST_GOING_ON} runs or tasks at once", field="run_ids")
    return ids or []
