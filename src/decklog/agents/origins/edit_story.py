"""History of one edit from the journal: prompt, message, call, task, tests, reviews, approvals and cost."""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from decklog.agents.origins.costs import NO_COST, WorkCost, cost_of_work
from decklog.core.errors import NotFound
from decklog.journal.entry import EntryKind

if TYPE_CHECKING:
    from decklog.journal.entry import Entry
    from decklog.log import Decklog
    from decklog.stores.approvals.approval import Approval
    from decklog.stores.provenance.edits import Edit
    from decklog.stores.runs.run import Run
    from decklog.stores.tasks.task import Task
    from decklog.stores.workflow.reviews import Review

_PAGE = 200
_MOST_CALLS = 20_000
_SAID = ("said", "agent.text")
_CALLS = ("call", "agent.tool")
_RESULTS = ("result", "agent.result")
_LOOKED_AHEAD = 200
# Commands that run tests.
_TESTS = re.compile(
    r"\b(pytest|unittest|tox|nox|(npm|yarn|pnpm|bun)( run)? test|jest|vitest|cargo (nextest|test)|go test|make (test|check)\S*"
    r"|ctest|rspec|rake test|mvn \S*test|gradlew? \S*test|dotnet test|phpunit|mix test|swift test)\b"
)
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class TestCommand:
    """Command that ran tests after the edit. `outcome` is None while it has no result."""

    command: str
    entry: str
    outcome: str | None


@dataclass(frozen=True, kw_only=True)
class EditStory:
    """Records about one edit. A field without a record is None or empty."""

    edit: "Edit"
    run: "Run | None" = None
    task: "Task | None" = None
    prompt: "Entry | None" = None
    said: "Entry | None" = None
    call: "Entry | None" = None
    test: TestCommand | None = None
    reviews: "list[Review]" = field(default_factory=list)
    approvals: "list[Approval]" = field(default_factory=list)
    cost: WorkCost = NO_COST

    @property
    def program(self) -> str | None:
        """The agent's program."""
        return None if self.edit.session is None else self.edit.session.partition(":")[0]

    @property
    def model(self) -> str | None:
        """The model of the session."""
        found = None if self.run is None else self.run.metadata.get("model")
        return found if isinstance(found, str) else None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        edit = self.edit
        return {
            "edit": edit.id,
            "kind": edit.kind.value,
            "at": edit.edited_at.isoformat(),
            "session": edit.session,
            "program": self.program,
            "model": self.model,
            "run": edit.run_id,
            "task": None if self.task is None else {"id": self.task.id, "title": self.task.title, "state": self.task.state.value},
            "prompt": _entry_data(self.prompt),
            "said": _entry_data(self.said),
            "call": _entry_data(self.call),
            "test": None if self.test is None else vars(self.test),
            "reviews": [{"id": one.id, "verdict": one.verdict.value, "confidence": one.confidence} for one in self.reviews],
            "approvals": [
                {
                    "id": one.id,
                    "question": one.question,
                    "by": one.decided_by,
                    "at": one.decided_at and one.decided_at.isoformat(),
                }
                for one in self.approvals
            ],
            "cost_microdollars": self.cost.microdollars,
            "unpriced_calls": self.cost.unpriced_calls,
        }


def _entry_data(entry: "Entry | None") -> dict[str, Any] | None:
    return None if entry is None else {"entry": entry.id, "at": entry.at.isoformat(), "text": entry.body or ""}


def story_of(log: "Decklog", edit: "Edit") -> EditStory:
    """Collect the log's records about an edit."""
    run, task = _run_of(log, edit.run_id), _task_of(log, edit.task_id)
    if run is None:
        return EditStory(edit=edit, task=task)
    call = _find_call(log, run.id, edit.call_id)
    cost = cost_of_work(log, run.id, edit.task_id)
    return EditStory(
        edit=edit,
        run=run,
        task=task,
        prompt=_latest_before(log, run.id, ("prompt",), edit, call),
        said=_latest_before(log, run.id, _SAID, edit, call),
        call=call,
        test=_test_after(log, run.id, edit, call),
        reviews=list(log.reviews.find(task.run_id if task else run.id, task_id=edit.task_id, limit=_PAGE)),
        approvals=_approvals_of(log, run, task),
        cost=cost,
    )


def _run_of(log: "Decklog", run_id: str | None) -> "Run | None":
    try:
        return None if run_id is None else log.runs.get(run_id)
    except NotFound:
        return None


def _task_of(log: "Decklog", task_id: str | None) -> "Task | None":
    try:
        return None if task_id is None else log.tasks.get(task_id)
    except NotFound:
        return None


def _find_call(log: "Decklog", run_id: str, call_id: str | None) -> "Entry | None":
    """Return the entry of a tool call, by the id that the agent's program gave it."""
    after, seen = None, 0
    while call_id is not None and seen < _MOST_CALLS:
        page = log.journal.find(run_id, kind=EntryKind.TOOL, limit=_PAGE, after=after)
        for entry in page:
            if entry.subtype in _CALLS and _call_id(entry) == call_id:
                return entry
        seen, after = seen + len(page), page.next
        if after is None:
            break
    return None


def _latest_before(log: "Decklog", run_id: str, subtypes: tuple[str, ...], edit: "Edit", call: "Entry | None") -> "Entry | None":
    """Return the newest entry of the subtypes before the call, or up to the time of the edit."""
    until = edit.edited_at if call is None else call.at
    pages = (log.journal.find(run_id, subtype=name, until=until + _MOMENT, limit=_PAGE) for name in subtypes)
    found = [entry for page in pages for entry in page]
    if call is not None:
        # Entries of the same moment are ordered by their sequence number.
        found = [entry for entry in found if (entry.at, entry.seq) < (call.at, call.seq)]
    return max(found, key=lambda entry: (entry.at, entry.seq), default=None)


def _test_after(log: "Decklog", run_id: str, edit: "Edit", call: "Entry | None") -> TestCommand | None:
    """Return the first command after an edit that ran tests, with its outcome."""
    start = (edit.edited_at, 0) if call is None else (call.at, call.seq)
    found = log.journal.find(run_id, kind=EntryKind.TOOL, since=start[0], oldest_first=True, limit=_LOOKED_AHEAD)
    entries = [entry for entry in found if (entry.at, entry.seq) > start]
    outcomes = {_call_id(entry): _facts(entry).get("outcome") for entry in entries if entry.subtype in _RESULTS}
    for entry in entries:
        if entry.subtype in _CALLS and _TESTS.search(entry.body or ""):
            return TestCommand(command=entry.body or "", entry=entry.id, outcome=outcomes.get(_call_id(entry)))
    return None


def _approvals_of(log: "Decklog", run: "Run", task: "Task | None") -> "list[Approval]":
    """Return granted approvals of the task, and those of its run that name no task, such as landing it."""
    run_id = run.id if task is None else task.run_id
    granted = log.approvals.find(run_id, state="granted", limit=_PAGE)
    return [one for one in granted if one.task_id is None or (task is not None and one.task_id == task.id)]


def _facts(entry: "Entry") -> dict[str, Any]:
    return entry.payload if isinstance(entry.payload, dict) else {}


def _call_id(entry: "Entry") -> Any:
    return _facts(entry).get("call")
