"""How a run ended or why it is blocked, in one line with the cause."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from decklog.core.figures import counted
from decklog.web.pages.entries.rows import EntryRow
from decklog.web.pages.items import finding_of
from decklog.web.pages.run_moment import RunMoment
from decklog.web.rendering import segment


@dataclass(frozen=True)
class OutcomeLine:
    """An outcome: `shade` is fail, need, hold or done; `cause` may be empty; `link` leads to the cause."""

    shade: str
    title: str
    cause: str = ""
    link: str | None = None


def outcome_of(
    head: RunMoment, tasks: Sequence[Any], failures: Sequence[EntryRow], verdicts: Sequence[Any]
) -> OutcomeLine | None:
    """Return the line above a run's overview; None for a run that simply continues."""
    match head.word:
        case "failed":
            return OutcomeLine("fail", "Failed", *_cause(head, tasks, failures, verdicts))
        case "cancelled":
            return OutcomeLine("hold", "Cancelled", head.summary or "")
        case "done":
            return OutcomeLine("done", "Done", head.summary or "")
        case "needs attention":
            said = f"{counted(head.waiting, 'decision')} {'waits' if head.waiting == 1 else 'wait'}."
            return OutcomeLine("need", "Needs attention", said, "/inbox" if head.at is None else None)
        case "stalled":
            return OutcomeLine("fail", "Stalled", _silence(head))
        case "blocked" | "waiting" | "paused":
            return OutcomeLine("fail" if head.word == "blocked" else "hold", head.word.capitalize(), *_stop(head, tasks))
    return None


def _stop(head: RunMoment, tasks: Sequence[Any]) -> tuple[str, str | None]:
    """Return why a run can't continue: the first of its tasks with the run's status."""
    task = next((task for task in tasks if task.state.value == head.word), None)
    if task is None:
        return "", None
    return f"{task.title}: {task.blocker or task.reason or 'no reason given'}", f"/tasks/{segment(task.id)}"


def _cause(
    head: RunMoment, tasks: Sequence[Any], failures: Sequence[EntryRow], verdicts: Sequence[Any]
) -> tuple[str, str | None]:
    """Return why a run failed or can't continue: its summary, a task's blocker, or its newest failed check or attempt."""
    blocked = [task for task in tasks if task.state.value in ("blocked", "paused")]
    if head.ended_at is not None and head.summary:
        return head.summary, f"/tasks/{segment(blocked[0].id)}" if blocked else None
    if blocked:
        why = blocked[0].blocker or blocked[0].reason or blocked[0].state.value
        return f"{blocked[0].title}: {why}", f"/tasks/{segment(blocked[0].id)}"
    if verdicts and verdicts[0].outcome.value in ("fail", "error"):
        return finding_of(verdicts[0]), f"/runs/{segment(head.id)}/checks"
    if failures:
        return f"{failures[0].what} {failures[0].text}".strip(), f"/runs/{segment(head.id)}/entries/{failures[0].seq}"
    return "No cause is recorded.", f"/runs/{segment(head.id)}/journal"


def _silence(head: RunMoment) -> str:
    lost = next((task for task in head.working_on if task["lease_ended"]), None)
    return f"The lease of {lost['worker']} on “{lost['title']}” ended." if lost else "Nothing was written for longer than usual."
