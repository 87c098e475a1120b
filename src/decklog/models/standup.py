"""The daily report: finished work, work in progress, obstacles, costs and open questions."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from decklog.core.clock import from_text, to_text
from decklog.core.display import counted, dollars, one_line
from decklog.log import Decklog
from decklog.models.asking import ModelSetup
from decklog.records.record import find_all
from decklog.stores.approvals.approval import ApprovalState
from decklog.stores.approvals.feedback import FeedbackState
from decklog.stores.approvals.inbox import MessageSeverity, MessageState
from decklog.stores.runs.run import RunStatus
from decklog.stores.tasks.task import Task, TaskState
from decklog.stores.workflow.ci import CiConclusion
from decklog.stores.workflow.gates import GateState
from decklog.stores.workflow.reviews import Review

SITE = "standup"
FORM = {"type": "object", "properties": {"markdown": {"type": "string"}}, "required": ["markdown"], "additionalProperties": False}
_DAY = timedelta(days=1)
_MOST = 20
_GOES_ON = (RunStatus.PLANNING, RunStatus.ACTIVE, RunStatus.PAUSED)
_SECTIONS = {"yesterday": "Yesterday", "today": "Today", "blockers": "In the way", "money": "Money", "questions": "Questions"}


@dataclass(frozen=True, kw_only=True)
class Standup:
    """The report of one day in UTC, each section as lines. `more` counts the omitted lines of each section."""

    day: date
    yesterday: list[str]
    today: list[str]
    blockers: list[str]
    money: list[str]
    questions: list[str]
    more: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "day": self.day.isoformat()}

    @property
    def markdown(self) -> str:
        """The report as text; the same log at the same moment gives the same text."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"# Standup, {self.day.day} {self.day:%B %Y}"
        for name, title in _SECTIONS.items():
            lines: list[str] = getattr(self, name)
            yield f"\n## {title}\n"
            yield from (f"- {line}" for line in lines or ["nothing"])
            if self.more.get(name):
                yield f"- and {self.more[name]} more"


def standup_of(log: Decklog, now: datetime) -> Standup:
    """Read the report of the day that a moment is in, as of that moment."""
    reader = _Reader(log, now)
    found: dict[str, list[str]] = {name: getattr(reader, name)() for name in _SECTIONS}
    more = {name: len(lines) - _MOST for name, lines in found.items() if len(lines) > _MOST}
    return Standup(day=reader.midnight.date(), more=more, **{name: lines[:_MOST] for name, lines in found.items()})


def prose_of(log: Decklog, models: ModelSetup, standup: Standup, *, at: datetime) -> tuple[str | None, str]:
    """Return the report as prose, written by a model, or None and the reason. The facts are the same either way."""
    if not models.has(SITE):
        return None, f"no model is configured for {SITE}"
    run_id = log.runs.start(f"Standup of {standup.day}", key=f"standup:{to_text(at)}").id
    answer = models.ask(log, SITE, FORM, [("facts", standup.markdown)], run_id=run_id)
    log.runs.finish(run_id, status="completed", summary=answer.why or "written")
    return (None, answer.why) if answer.data is None else (str(answer.data["markdown"]), "")


class _Reader:
    """Reads yesterday's results and the present state from the stores."""

    def __init__(self, log: Decklog, now: datetime) -> None:
        self._log = log
        self._now = now
        self.midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        self._since = self.midnight - _DAY
        self._ended = log.overview.ended(self._since, limit=200)
        self._under_way = [run.id for status in _GOES_ON for run in find_all(log.runs.find, status=status)]

    def _changed(self, state: TaskState, begin: datetime, end: datetime) -> list[Task]:
        """List the tasks that entered a state between two times, in active runs and in runs that ended since."""
        runs = [*self._under_way, *(str(run["id"]) for run in self._ended)]
        tasks = (task for run_id in runs for task in find_all(self._log.tasks.find, run_id, state=state))
        return [task for task in tasks if begin <= task.updated_at < end]

    def _tasks_in(self, state: TaskState) -> list[Task]:
        return list(find_all(self._log.tasks.find, state=state))

    # What was done, and what is

    def yesterday(self) -> list[str]:
        ended = [run for run in self._ended if _moment(run["ended_at"]) < self.midnight]
        lines = [f"run {run['id']} {run['status']}: {_line(str(run['summary'] or run['goal']))}" for run in ended]
        return lines + [f"done: {_named(task)}" for task in self._changed(TaskState.DONE, self._since, self.midnight)]

    def today(self) -> list[str]:
        running = self._tasks_in(TaskState.RUNNING)
        lines = [f"under way: {_named(task)}{f', {task.worker}' if task.worker else ''}" for task in running]
        lines += [f"done: {_named(task)}" for task in self._changed(TaskState.DONE, self.midnight, self.midnight + _DAY)]
        for run_id in self._under_way:
            open_tasks = len(list(find_all(self._log.tasks.find, run_id, state=TaskState.PENDING)))
            if open_tasks:
                lines.append(f"to do in run {run_id}: {counted(open_tasks, 'task')}")
        return lines

    # Obstacles and failures

    def _held(self) -> list[Review]:
        """Return the last reviews of changes that the gate blocks, without those that a person approved."""
        last: dict[tuple[str, str], Review] = {}
        for one in self._log.reviews.find(limit=100):
            last.setdefault((one.tree, one.patch), one)
        found = [one for one in last.values() if one.verdict.holds and one.created_at >= self._since]
        return [one for one in found if not self._log.reviews.is_overridden(one.id)]

    def blockers(self) -> list[str]:
        log = self._log
        decisions = log.approvals.find(state=ApprovalState.OPEN, limit=100)
        lines = [f"decision waits: {_line(one.question or one.id)}" for one in decisions]
        lines += [
            f"{state}: {_named(task)}: {_line(task.blocker or task.reason or '')}"
            for state in (TaskState.BLOCKED, TaskState.PAUSED)
            for task in self._tasks_in(state)
        ]
        abandoned = self._changed(TaskState.ABANDONED, self._since, self._now + _DAY)
        lines += [f"given up: {_named(task)}: {_line(task.reason or '')}" for task in abandoned]
        failed = log.ci.find(conclusion=CiConclusion.FAILURE, since=self._since, limit=100)
        lines += [f"CI failed: {one.workflow_name} on {one.branch}, run {one.ci_run_id}" for one in failed]
        lines += [f"the gate's verdict: {one.verdict} of tree {one.tree[:12]}: {one.id}" for one in self._held()]
        lines += [f"closed: {one.name}: {_line(one.reason)}" for one in log.gates.find(state=GateState.CLOSED, limit=100)]
        for state in (FeedbackState.PENDING, FeedbackState.TRIAGED, FeedbackState.IN_FIX):
            lines += [f"feedback {one.id}, {one.state}: {_line(one.body)}" for one in log.feedback.find(state=state, limit=100)]
        return lines

    # Money

    def money(self) -> list[str]:
        rows = self._log.overview.days(since=self._since, until=self._now)
        spent = {str(row["day"]): row for row in rows}
        lines = [self._spent("yesterday", self._since, spent), self._spent("today", self.midnight, spent)]
        budgets = self._log.overview.budgets()
        words = {"warn": "nearly used up", "stop": "used up, nothing more is spent"}
        return lines + [f"budget of {one.whose}, {words[one.state]}: {one.said}" for one in budgets if one.state in words]

    def _spent(self, name: str, day: datetime, spent: dict[str, Any]) -> str:
        row = spent.get(day.date().isoformat(), {})
        unknown = row.get("unpriced_calls", 0)
        more = f", and {counted(unknown, 'call')} of an unknown price" if unknown else ""
        return f"{name}: {dollars(row.get('cost_microdollars', 0))}{more}"

    # Open questions

    def questions(self) -> list[str]:
        waiting = find_all(self._log.overview.waiting)
        lines = [f"{item.kind} {item.id}: {_sentence(item.what)} {item.command}" for item in waiting if item.is_decision]
        for severity in (MessageSeverity.CRITICAL, MessageSeverity.QUESTION):
            # Messages of unauthorised people wait for a person, and are listed already.
            found = self._log.inbox.find(state=MessageState.PENDING, severity=severity, limit=100)
            lines += [f"no answer yet to {one.from_handle}, {one.id}: {_line(one.body)}" for one in found if one.is_authorised]
        return lines


def _named(task: Task) -> str:
    return f"{_line(task.title)} ({task.id})"


def _moment(value: object) -> datetime:
    return value if isinstance(value, datetime) else from_text(str(value))


def _line(text: str) -> str:
    return one_line(text)[:200]


def _sentence(text: str) -> str:
    """End a line with a full stop, unless it ends with punctuation."""
    line = _line(text)
    return line if line.endswith((".", "?", "!")) else f"{line}."
