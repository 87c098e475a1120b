"""Summary of the last session in a folder for the next agent: results, failures and lessons."""

from collections.abc import Iterator, Sequence

from decklog.agents.views.listing import SessionSummary, priced, sessions
from decklog.agents.views.steps import Step, steps_of
from decklog.core.figures import dollars
from decklog.log import Decklog

# Size limit of the summary.
MOST_BYTES = 1500
_SESSIONS, _FILES, _FAILING, _LESSONS = 50, 8, 3, 3
_LONGEST = 240
_CHANGES = frozenset(["Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch", "write_file", "replace"])


def last_session(log: Decklog, folder: str | None = None) -> SessionSummary | None:
    """Return the newest ended session, preferably one of the folder."""
    newest = None
    for number, one in enumerate(sessions(log)):
        if number == _SESSIONS:
            break
        if one.ended_at is None or one.task_id is not None:
            continue
        if folder is None or one.folder == folder:
            return one
        newest = newest or one
    return newest


def told(log: Decklog, found: SessionSummary) -> Iterator[str]:
    """Yield lines about a session, within the size limit."""
    room = MOST_BYTES
    for text in _lines(log, found):
        line = _one_line(text)
        room -= len(line.encode()) + 1
        if room < 0:
            return
        yield line


def _lines(log: Decklog, found: SessionSummary) -> Iterator[str]:
    one = priced(log, found)
    steps = steps_of(log, one)
    ended = f"{one.ended_at or one.started_at:%Y-%m-%d %H:%M} UTC"
    yield f"Last session here ({one.program}, {one.status} {ended}, {dollars(one.microdollars)}): {one.goal}"
    if said := next((step.text for step in reversed(steps) if step.kind == "said" and step.agent_id is None), None):
        yield f"- said at its end: {said}"
    if files := _changed(steps):
        more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
        yield f"- changed: {', '.join(files[:_FILES])}{more}"
    for step in _failing(steps):
        lines = step.output.strip().splitlines()
        yield f"- left failing: {step.text}" + (f" ({lines[-1].strip()})" if lines else "")
    for lesson in log.memory.find(since=one.started_at, until=one.ended_at, limit=_LESSONS):
        yield f"- learned: {lesson.body}"
    yield f"- all of it: decklog sessions show {one.session}"


def _changed(steps: Sequence[Step]) -> list[str]:
    done = (step for step in steps if step.kind == "call" and step.tool in _CHANGES and step.outcome == "ok")
    paths = (path.strip() for step in done for path in step.text.partition(" ")[2].split(","))
    return list(dict.fromkeys(path for path in paths if path))


def _failing(steps: Sequence[Step]) -> list[Step]:
    """Return the commands whose last call failed, the latest first."""
    last = {step.text: step for step in steps if step.kind == "call" and step.tool == "Bash" and step.outcome is not None}
    failed = [step for step in last.values() if step.outcome == "failed"]
    return sorted(failed, key=lambda step: step.at, reverse=True)[:_FAILING]


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
