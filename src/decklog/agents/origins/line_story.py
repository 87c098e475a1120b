"""History of one line: its origin and edit, its commit, the lines that it replaced, and later changes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from decklog.agents.origins.commit_story import resolve_commit
from decklog.agents.session_views import CALLS, RESULTS, call_id
from decklog.agents.sessions import NO_COST, WorkCost, cost_of_work
from decklog.agents.texts import dict_of, text_or_none
from decklog.core.display import dollars
from decklog.core.errors import Invalid, NotFound
from decklog.journal.entry import Entry, EntryKind
from decklog.log import Decklog
from decklog.provenance.attribution import UNCOMMITTED, Origin
from decklog.provenance.blame import BlamedLine, blame_file
from decklog.provenance.git import GitFailed, GitRepository
from decklog.provenance.history import read_commit, read_uncommitted
from decklog.records.record import find_all
from decklog.stores.approvals.approval import Approval
from decklog.stores.provenance.edits import Edit
from decklog.stores.runs.run import Run
from decklog.stores.tasks.task import Task
from decklog.stores.workflow.reviews import Review

_Record = TypeVar("_Record")
_PAGE = 200
_MOST_CALLS = 20_000
_MESSAGE_SUBTYPES = ("said", "agent.text")
_MAX_FOLLOWING_CALLS = 200
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

    edit: Edit
    run: Run | None = None
    task: Task | None = None
    prompt: Entry | None = None
    said: Entry | None = None
    call: Entry | None = None
    test: TestCommand | None = None
    reviews: list[Review] = field(default_factory=list)
    approvals: list[Approval] = field(default_factory=list)
    cost: WorkCost = NO_COST

    @property
    def program(self) -> str | None:
        """The agent's program."""
        return None if self.edit.session is None else self.edit.session.partition(":")[0]

    @property
    def model(self) -> str | None:
        """The model of the session."""
        return None if self.run is None else text_or_none(self.run.metadata.get("model"))

    def as_dict(self) -> dict[str, Any]:
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


def _entry_data(entry: Entry | None) -> dict[str, Any] | None:
    return None if entry is None else {"entry": entry.id, "at": entry.at.isoformat(), "text": entry.body or ""}


def story_of(log: Decklog, edit: Edit) -> EditStory:
    """Collect the log's records about an edit."""
    run, task = _found(log.runs.get, edit.run_id), _found(log.tasks.get, edit.task_id)
    if run is None:
        return EditStory(edit=edit, task=task)
    call = _find_call(log, run.id, edit.call_id)
    cost = cost_of_work(log, run.id, edit.task_id)
    return EditStory(
        edit=edit,
        run=run,
        task=task,
        prompt=_latest_before(log, run.id, ("prompt",), edit, call),
        said=_latest_before(log, run.id, _MESSAGE_SUBTYPES, edit, call),
        call=call,
        test=_test_after(log, run.id, edit, call),
        reviews=list(log.reviews.find(task.run_id if task else run.id, task_id=edit.task_id, limit=_PAGE)),
        approvals=_approvals_of(log, run, task),
        cost=cost,
    )


def _found(get: Callable[[str], _Record], record_id: str | None) -> _Record | None:
    try:
        return None if record_id is None else get(record_id)
    except NotFound:
        return None


def _find_call(log: Decklog, run_id: str, wanted: str | None) -> Entry | None:
    """Return the entry of a tool call, by the id that the agent's program gave it."""
    found = islice(find_all(log.journal.find, run_id, kind=EntryKind.TOOL), _MOST_CALLS if wanted is not None else 0)
    return next((entry for entry in found if entry.subtype in CALLS and call_id(entry) == wanted), None)


def _latest_before(log: Decklog, run_id: str, subtypes: tuple[str, ...], edit: Edit, call: Entry | None) -> Entry | None:
    """Return the newest entry of the subtypes before the call, or up to the time of the edit."""
    until = edit.edited_at if call is None else call.at
    pages = (log.journal.find(run_id, subtype=name, until=until + _MOMENT, limit=_PAGE) for name in subtypes)
    found = [entry for page in pages for entry in page]
    if call is not None:
        # Entries of the same moment are ordered by their sequence number.
        found = [entry for entry in found if (entry.at, entry.seq) < (call.at, call.seq)]
    return max(found, key=lambda entry: (entry.at, entry.seq), default=None)


def _test_after(log: Decklog, run_id: str, edit: Edit, call: Entry | None) -> TestCommand | None:
    """Return the first command after an edit that ran tests, with its outcome."""
    start = (edit.edited_at, 0) if call is None else (call.at, call.seq)
    found = log.journal.find(run_id, kind=EntryKind.TOOL, since=start[0], oldest_first=True, limit=_MAX_FOLLOWING_CALLS)
    entries = [entry for entry in found if (entry.at, entry.seq) > start]
    outcomes = {call_id(entry): dict_of(entry.payload).get("outcome") for entry in entries if entry.subtype in RESULTS}
    for entry in entries:
        if entry.subtype in CALLS and _TESTS.search(entry.body or ""):
            return TestCommand(command=entry.body or "", entry=entry.id, outcome=outcomes.get(call_id(entry)))
    return None


def _approvals_of(log: Decklog, run: Run, task: Task | None) -> list[Approval]:
    """Return the granted approvals of the task, and those of its run without a task, such as a landing."""
    run_id = run.id if task is None else task.run_id
    granted = log.approvals.find(run_id, state="granted", limit=_PAGE)
    return [one for one in granted if one.task_id is None or (task is not None and one.task_id == task.id)]


# Show at most this number of replaced lines.
_MOST_PREVIOUS = 3


@dataclass(frozen=True, kw_only=True)
class LaterChange:
    """Commit that later changed or removed a line."""

    commit: str
    author: str
    subject: str


@dataclass(frozen=True, kw_only=True)
class LineStory:
    """Records about one line. `previous` has the lines that it replaced, each with its origin."""

    line: BlamedLine
    # Current name of the file; `line.path` is the name in the line's commit.
    path: str
    stories: list[EditStory] = field(default_factory=list)
    previous: list[BlamedLine] = field(default_factory=list)
    later: LaterChange | None = None

    @property
    def origin(self) -> Origin:
        """Origin of the line."""
        return self.line.origin

    @property
    def is_committed(self) -> bool:
        """Whether the line is in a commit."""
        return self.line.commit != UNCOMMITTED

    def as_dict(self) -> dict[str, Any]:
        return {
            **_line_data(self.line),
            "path": self.path,
            "path_in_commit": self.line.path,
            "author": _author(self.line) if self.is_committed else None,
            "summary": self.line.facts.get("summary") if self.is_committed else None,
            "edits": [story.as_dict() for story in self.stories],
            "previous": [_line_data(one) for one in self.previous],
            "later": None if self.later is None else vars(self.later),
        }


def _line_data(line: BlamedLine) -> dict[str, Any]:
    commit = None if line.commit == UNCOMMITTED else line.commit
    return {"path": line.path, "line": line.final_line, "text": line.text, "commit": commit, "origin": line.origin.as_dict()}


def _author(line: BlamedLine) -> str:
    return f"{line.facts.get('author', '')} {line.facts.get('author-mail', '')}".strip()


def explain_line(repo: GitRepository, log: Decklog, path: str, number: int, rev: str | None = None) -> LineStory:
    """Collect the records about a line of a file, in the worktree or at a revision."""
    line = _blame_line(repo, log, path, number, rev)
    edits = [log.edits.get(edit) for edit in line.origin.edits]
    return LineStory(
        line=line,
        path=path,
        stories=[story_of(log, edit) for edit in edits],
        previous=_previous_lines(repo, log, path, line),
        later=None if rev is None else _later_change(repo, path, number, rev),
    )


def _blame_line(repo: GitRepository, log: Decklog, path: str, number: int, rev: str | None) -> BlamedLine:
    if number < 1:
        raise Invalid(f"lines are counted from 1, not {number}", field="line")
    if rev is not None:
        resolve_commit(repo, rev)
    try:
        return blame_file(repo, log, path, rev, lines=(number, number))[0]
    except GitFailed as problem:
        raise NotFound(
            f"there is no line {number} of {path}: {str(problem).removeprefix('git blame: fatal: ')}",
            hint="Name a tracked file and one of its lines.",
            path=path,
        ) from None


def _previous_lines(repo: GitRepository, log: Decklog, path: str, line: BlamedLine) -> list[BlamedLine]:
    """Return the lines that a line replaced, from the parent commit."""
    rev: str | None = "HEAD"
    change, number = None, line.final_line
    if line.commit == UNCOMMITTED:
        change = read_uncommitted(repo, path)
    else:
        commit = read_commit(repo, line.commit)
        change = next((file for file in commit.files if file.path == line.path), None)
        rev, number = next(iter(commit.parents), None), line.line
    if change is None or rev is None or change.old_blob is None:
        return []
    start, count = change.replaced_by(number)
    if not count:
        return []
    return blame_file(repo, log, change.old_path, rev, lines=(start, start + min(count, _MOST_PREVIOUS) - 1))


def _later_change(repo: GitRepository, path: str, number: int, rev: str) -> LaterChange | None:
    """Return the commit after a revision, up to HEAD, that changed or removed one of its lines."""
    try:
        out = repo.text("blame", "--reverse", "-s", "-l", f"-L{number},{number}", f"{rev}..HEAD", "--", path)
        last = out.split(" ")[0].lstrip("^")
        after = repo.text("rev-list", "--ancestry-path", "--reverse", f"{last}..HEAD", "--", path).split()
    except GitFailed:
        # The revision is HEAD or no ancestor of it, so nothing came later.
        return None
    if not after:
        return None
    commit = read_commit(repo, after[0])
    return LaterChange(commit=commit.commit, author=commit.author, subject=commit.subject)


_MOST_APPROVALS = 2


class LineFact(NamedTuple):
    """A labelled text. `entry` is the id of its journal entry."""

    label: str
    text: str
    entry: str | None = None


def facts_of(story: LineStory) -> Iterator[LineFact]:
    """Yield the facts about a line, most important first."""
    line = story.line
    yield LineFact("origin", origin_text(story.origin))
    for one in story.stories:
        yield from _edit_facts(one)
    if story.is_committed:
        yield LineFact("commit", f"{line.commit[:10]} by {line.facts.get('author', '')}: {line.facts.get('summary', '')}")
    else:
        yield LineFact("commit", "not committed")
    for before in story.previous:
        yield LineFact("before", f"{before.text}  ({origin_text(before.origin)}, {before.commit[:10]})")
    if story.later is not None:
        later = story.later
        yield LineFact("later", f"changed in {later.commit[:10]} by {later.author}: {later.subject}")
    if not story.stories and story.origin.kind == "unknown":
        yield LineFact("note", "no recorded edit wrote this line; unknown is not a person")


def _edit_facts(story: EditStory) -> Iterator[LineFact]:
    edit = story.edit
    if edit.session is None:
        return
    model = f", {story.model}" if story.model else ""
    how = "" if edit.kind.value == "tool" else f", {edit.kind.value}"
    yield LineFact("session", f"{edit.session}{model}{how}, {edit.edited_at:%Y-%m-%d %H:%M} UTC")
    yield from _entry_facts("prompt", story.prompt)
    yield from _entry_facts("said", story.said)
    yield from _entry_facts("call", story.call)
    if story.task is not None:
        task = story.task
        yield LineFact("task", f"{task.id} {task.title} ({task.state.value}), run {task.run_id}")
    elif story.run is not None:
        yield LineFact("run", f"{story.run.id} {story.run.goal}")
    if story.test is not None:
        yield LineFact("tests", f"{story.test.outcome or 'no result'}: {story.test.command}", story.test.entry)
    for review in story.reviews[:1]:
        confidence = "" if review.confidence is None else f", confidence {review.confidence}"
        yield LineFact("review", f"{review.verdict.value}{confidence} ({review.id})")
    for approval in story.approvals[:_MOST_APPROVALS]:
        yield LineFact("approved", f"by {approval.decided_by}: {approval.question or approval.subject or ''}")
    if story.cost != NO_COST:
        yield LineFact("cost", f"{cost_text(story.cost)} for the whole {'task' if story.task else 'session'}")


def _entry_facts(label: str, entry: Entry | None) -> Iterator[LineFact]:
    if entry is not None:
        yield LineFact(label, entry.body or "", entry.id)


def origin_text(origin: Origin) -> str:
    """Return an origin as text."""
    if origin.kind == "agent":
        return f"agent {' + '.join(origin.sessions)}"
    if origin.kind == "mixed":
        return f"mixed: {' + '.join(origin.sessions)} worked here at the same time"
    return f"person {origin.person}" if origin.person else origin.kind


def cost_text(cost: WorkCost) -> str:
    """Return a cost in dollars, or "unpriced" if no call has a known price."""
    if not cost.microdollars and cost.unpriced_calls:
        return "unpriced"
    return dollars(cost.microdollars)
