"""The report of a week: its figures, as Markdown and as HTML."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from html import escape
from typing import Any

from decklog.core.clock import to_text
from decklog.core.display import counted, dollars, sparkline
from decklog.core.errors import Invalid
from decklog.log import Decklog
from decklog.records.record import find_all
from decklog.stores.money.ledger import SpendByLike
from decklog.stores.overview.waiting import WaitingItem
from decklog.stores.results.money import SpendRow, SpendSummary
from decklog.stores.runs.run import Run
from decklog.transfer.report.document import called_out, figures, table
from decklog.transfer.report.page import add_tone, join_lines

_SEVEN_DAYS = timedelta(days=7)
_OVER = ("completed", "failed", "cancelled")


@dataclass(frozen=True, kw_only=True)
class RunWeek:
    """One run's part of the week."""

    id: str
    goal: str
    status: str
    summary: str | None
    spent_microdollars: int
    tasks_done: int
    tasks_open: int
    tasks_blocked: int


@dataclass(frozen=True, kw_only=True)
class Week:
    """A week from Monday on in UTC, with its runs and figures."""

    start: datetime
    end: datetime
    spent_microdollars: int
    spent_before_microdollars: int
    calls: int
    unpriced_calls: int
    days: list[dict[str, Any]]
    models: list[SpendRow]
    runs: list[RunWeek]
    waiting: list[WaitingItem]
    decided: list[dict[str, Any]]
    blocked: list[dict[str, Any]]
    lessons: list[str]

    @property
    def title(self) -> str:
        last = self.end - timedelta(days=1)
        return f"Week {self.start.isocalendar().week}, {self.start.day} {self.start:%B} to {last.day} {last:%B %Y}"

    @property
    def tasks_done(self) -> int:
        return sum(run.tasks_done for run in self.runs)

    def as_dict(self) -> dict[str, Any]:
        data = {**vars(self), "title": self.title, "tasks_done": self.tasks_done, "runs": [vars(run) for run in self.runs]}
        data["waiting"] = [item.as_dict() for item in self.waiting]
        return {name: to_text(value) if isinstance(value, datetime) else value for name, value in data.items()}


def read_week(log: Decklog, day: date) -> Week:
    """Read the week that contains a day."""
    monday = day - timedelta(days=day.weekday())
    start = datetime(monday.year, monday.month, monday.day, tzinfo=UTC)
    return _Reader(log, start, start + _SEVEN_DAYS).read()


def parse_week_option(text: str | None, today: date) -> date:
    """Return a day of the week that the option names: a date, `last`, or by default today."""
    if text is None:
        return today
    if text == "last":
        return today - _SEVEN_DAYS
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text!r} is no day", hint="Write it as 2026-11-15, or as `last`.", field="of") from None


class _Reader:
    """Reads what happened between two times from the stores."""

    def __init__(self, log: Decklog, start: datetime, end: datetime) -> None:
        self._log = log
        self._start = start
        self._end = end
        self._blocked: list[dict[str, Any]] = []

    def read(self) -> Week:
        spent, runs = self._spent("model"), self._runs()
        total = spent["total"]
        return Week(
            start=self._start,
            end=self._end,
            spent_microdollars=total["cost_microdollars"],
            spent_before_microdollars=self._spent("model", back=_SEVEN_DAYS)["total"]["cost_microdollars"],
            calls=total["calls"],
            unpriced_calls=total["unpriced_calls"],
            days=self._days(),
            models=spent["rows"],
            runs=runs,
            waiting=self._waiting(),
            decided=self._decided(),
            blocked=self._blocked,
            lessons=self._lessons(),
        )

    def _spent(self, by: SpendByLike, *, back: timedelta = timedelta()) -> SpendSummary:
        since, until = self._start - back, self._end - back - timedelta(microseconds=1)
        return self._log.ledger.summary(by=by, since=since, until=until)

    def _days(self) -> list[dict[str, Any]]:
        spent = {row["key"]: row["cost_microdollars"] for row in self._spent("day")["rows"]}
        passed = min(_SEVEN_DAYS, self._log.clock.now() - self._start)
        days = [f"{self._start + timedelta(days=number):%Y-%m-%d}" for number in range(passed.days + (passed < _SEVEN_DAYS))]
        return [{"day": day, "microdollars": spent.get(day, 0)} for day in days]

    def _runs(self) -> list[RunWeek]:
        spent = {row["key"] or "": row["cost_microdollars"] for row in self._spent("run")["rows"]}
        runs = [*find_all(self._log.runs.find, until=self._end)]
        found = [self._run(run, spent.get(run.id, 0)) for run in runs if self._is_of_the_week(run, spent)]
        return [run for run in found if run is not None]

    def _is_of_the_week(self, run: Run, spent: dict[str, int]) -> bool:
        """Return whether a run may belong to the week: it is active, began or ended in it, or cost money in it."""
        return run.id in spent or run.status not in _OVER or self._is_within(run.ended_at) or self._is_within(run.started_at)

    def _run(self, run: Run, spent: int) -> RunWeek | None:
        tasks = [*find_all(self._log.tasks.find, run.id)]
        done = [task for task in tasks if task.state == "done" and self._is_within(task.updated_at)]
        blocked = [task for task in tasks if task.state == "blocked" and run.status not in _OVER]
        self._blocked += [
            {"run_id": run.id, "task_id": task.id, "title": task.title, "blocker": task.blocker or task.reason}
            for task in blocked
        ]
        if not (spent or done or self._is_within(run.started_at) or self._is_within(run.updated_at)):
            return None
        return RunWeek(
            id=run.id,
            goal=run.goal,
            status=self._log.overview.run(run.id).status.value,
            summary=run.summary,
            spent_microdollars=spent,
            tasks_done=len(done),
            tasks_open=sum(task.state not in ("done", "abandoned", "blocked") for task in tasks),
            tasks_blocked=len(blocked),
        )

    def _waiting(self) -> list[WaitingItem]:
        """Return the items that `decklog now` lists for a person, without those from after the week."""
        found = find_all(self._log.overview.waiting)
        return [item for item in found if item.is_decision and item.since < self._end]

    def _decided(self) -> list[dict[str, Any]]:
        found = find_all(self._log.approvals.find)
        names = ("id", "run_id", "question", "asked_by", "state", "decided_by", "decided_at", "asked_at", "rationale")
        decided = (one for one in found if one.decided_by and self._is_within(one.decided_at))
        return [{name: getattr(one, name) for name in names} for one in decided]

    def _lessons(self) -> list[str]:
        since, until = self._start, self._end - timedelta(microseconds=1)
        return [one.body for one in find_all(self._log.memory.find, since=since, until=until)]

    def _is_within(self, moment: datetime | None) -> bool:
        return moment is not None and self._start <= moment < self._end


_RUN_HEADS = ("run", "status", "done this week", "still open", "spent")
_MODEL_HEADS = ("model", "calls", "spent")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MARKED = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def week_markdown(week: Week) -> Iterator[str]:
    """Write the week as Markdown, line by line."""
    yield f"# {week.title}"
    yield ""
    yield f"{_headline(week)}."
    yield from _list_section("Needs attention", waiting(week))
    yield from _list_section("Blocked", blocked(week))
    if week.runs:
        yield from ("", "## Runs", "", *_aligned_table(_RUN_HEADS, [_cells(run) for run in week.runs], numbers=3))
    yield from _list_section("Answered", [_decision(one) for one in week.decided])
    if week.calls:
        chart = sparkline([int(day["microdollars"]) for day in week.days])
        yield from ("", "## Money", "", f"{_spent(week)}. By day: {_days(week)} `{chart}`", "")
        yield from _aligned_table(_MODEL_HEADS, list(_models(week)), numbers=2)
    yield from _list_section("Learned", week.lessons)


def week_page(week: Week) -> Iterator[str]:
    """Yield the parts of the week's page."""
    yield f"<h1>{escape(week.title)}</h1>\n<p>{escape(_headline(week))}.</p>\n"
    yield figures(_figures(week))
    yield called_out("Needs attention", waiting(week))
    yield called_out("Blocked", blocked(week), "needs stuck")
    if week.runs:
        yield "<h2>Runs</h2>\n"
        rows = ((goal, add_tone(status), *rest) for goal, status, *rest in map(_cells, week.runs))
        yield from table(_RUN_HEADS, rows, numbers=_RUN_HEADS[2:])
    if week.decided:
        yield "<h2>Answered</h2>\n"
        yield f"<ul>{''.join(f'<li>{escape(_decision(one))}</li>' for one in week.decided)}</ul>\n"
    if week.calls:
        yield f'<h2>Money</h2>\n<p>{escape(_spent(week))}.</p>\n<p class="soft">By day: {escape(_days(week))}</p>\n'
        yield from table(_MODEL_HEADS, _models(week), numbers=_MODEL_HEADS[1:])
    if week.lessons:
        yield f"<h2>Learned</h2>\n<ul>{''.join(f'<li>{escape(lesson)}</li>' for lesson in week.lessons)}</ul>\n"


def waiting(week: Week) -> list[str]:
    """List the items that wait for a person, as `decklog now` does."""
    return [f"{join_lines(item.what)} ({', '.join(part for part in (item.by, item.run_id) if part)})" for item in week.waiting]


def blocked(week: Week) -> list[str]:
    """List the blocked tasks with their reasons."""
    return [f"{task['title']} ({task['run_id']}): {join_lines(task['blocker'])}" for task in week.blocked]


def _headline(week: Week) -> str:
    waits, stuck = len(week.waiting), f"; {counted(len(week.blocked), 'task')} blocked" if week.blocked else ""
    return (
        f"{counted(len(week.runs), 'run')}, {_count_ended(week)} completed; {counted(week.tasks_done, 'task')} done; "
        f"{dollars(week.spent_microdollars)} spent; {counted(waits, 'decision') if waits else 'nothing'} "
        f"{'wait' if waits > 1 else 'waits'} for you{stuck}"
    )


def _count_ended(week: Week) -> int:
    return sum(run.status == "done" for run in week.runs)


def _figures(week: Week) -> Iterator[tuple[str, str]]:
    yield dollars(week.spent_microdollars), f"spent; {dollars(week.spent_before_microdollars)} the week before"
    yield str(week.tasks_done), "tasks done"
    yield str(_count_ended(week)), f"of {counted(len(week.runs), 'run')} completed"
    yield str(len(week.waiting)), f"waiting for you{f'; {len(week.blocked):,} blocked' if week.blocked else ''}"


def _cells(run: RunWeek) -> tuple[str, ...]:
    left = f"{run.tasks_open}{f' and {run.tasks_blocked} blocked' if run.tasks_blocked else ''}"
    goal = f"{run.goal} ({run.summary})" if run.summary else run.goal
    return join_lines(goal), run.status, str(run.tasks_done), left, dollars(run.spent_microdollars)


def _decision(one: dict[str, object]) -> str:
    why = f" ({join_lines(str(one['rationale']))})" if one["rationale"] else ""
    return f"{one['decided_by']}: {one['state']}, {join_lines(str(one['question'] or ''))}{why}"


def _spent(week: Week) -> str:
    unknown = f", {week.unpriced_calls} of them unpriced" if week.unpriced_calls else ""
    before = dollars(week.spent_before_microdollars)
    return f"{dollars(week.spent_microdollars)} in {counted(week.calls, 'call')}{unknown}; {before} the week before"


def _days(week: Week) -> str:
    return ", ".join(f"{_WEEKDAYS[number]} {dollars(int(day['microdollars']))}" for number, day in enumerate(week.days))


def _models(week: Week) -> Iterator[tuple[str, str, str]]:
    return ((row["key"] or "", f"{row['calls']:,}", dollars(row["cost_microdollars"])) for row in week.models)


def _list_section(title: str, items: list[str]) -> Iterator[str]:
    if items:
        yield from ("", f"## {title}", "", *(f"- {_escape_markdown(join_lines(item))}" for item in items))


def _aligned_table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, numbers: int) -> Iterator[str]:
    """Write a Markdown table with aligned columns; the last ones are numbers."""
    cells = [heads, *(tuple(map(_escape_markdown, row)) for row in rows)]
    sizes = [max(3, *(len(row[place]) for row in cells)) for place in range(len(heads))]
    words = len(heads) - numbers
    lines = ["-" * size if place < words else "-" * (size - 1) + ":" for place, size in enumerate(sizes)]
    for row in (heads, lines, *cells[1:]):
        sized = enumerate(zip(row, sizes, strict=True))
        yield f"| {' | '.join(text.ljust(size) if place < words else text.rjust(size) for place, (text, size) in sized)} |"


def _escape_markdown(text: str) -> str:
    """Escape Markdown in a text of an agent."""
    return text.translate(_MARKED)
