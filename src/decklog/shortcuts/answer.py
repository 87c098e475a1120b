"""What a verb of the short way answers: a line or few in words, the same as small JSON, and how it went."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from decklog import Approval, ClaimExplanation, Task

# How it went, as the exit codes of the command line have it.
DONE, REFUSED, PENDING = 0, 6, 7


class ShortcutAnswer:
    """An answer; `reason` explains missing data."""

    def __init__(
        self,
        text: str,
        data: "Any",
        *,
        code: int = DONE,
        reason: "ClaimExplanation | None" = None,
        warnings: "Iterable[str]" = (),
        notes: "Iterable[str]" = (),
    ) -> None:
        # What became of things since the last call; it comes before the answer.
        self.notes = list(notes)
        self.text = text
        self.data = data
        self.code = code
        self.reason = reason
        self.warnings = list(warnings)


def task_answer(task: "Task", answers: "list[Approval]", notes: "Iterable[str]" = ()) -> ShortcutAnswer:
    """Return a task for its worker, with the answers to questions about it."""
    told = {
        "do": task.objective,
        "done when": "; ".join(task.acceptance),
        "check with": "; ".join(task.verification),
        "only in": ", ".join(task.allowed_paths),
        "given": _json(task.inputs),
        "so far": task.stage or "",
        "last try": (task.summary or task.blocker or "") if task.attempts > 1 else "",
    }
    lines = [f"{task.id}  {one_line(task.title)}"]
    lines += [f"  {name}: {one_line(text)}" for name, text in told.items() if text]
    lines += [f"  asked: {one_line(approval.question or '')} -> {said_of(approval)}" for approval in answers]
    return ShortcutAnswer("\n".join(lines), task_data(task, answers), notes=notes)


def task_data(task: "Task", answers: "list[Approval]") -> "dict[str, Any]":
    """Return what a worker needs of a task as small JSON."""
    names = ("objective", "acceptance", "verification", "allowed_paths", "inputs", "stage")
    data: dict[str, Any] = {"task": task.id, "run": task.run_id, "title": task.title}
    data |= {name: value for name in names if (value := getattr(task, name))}
    data |= {"attempt": task.attempts, "fence": task.fence}
    if task.attempts > 1 and (task.summary or task.blocker):
        data["last_try"] = task.summary or task.blocker
    return {**data, "answers": [approval_data(approval) for approval in answers]} if answers else data


def approval_data(approval: "Approval") -> "dict[str, Any]":
    """Return a question and its answer as small JSON."""
    told = {"approval": approval.id, "state": approval.state.value, "question": approval.question}
    told |= {"by": approval.decided_by, "rationale": approval.rationale}
    return {name: value for name, value in told.items() if value}


def said_of(approval: "Approval") -> str:
    """Say in words what became of a question."""
    if approval.state == "open":
        return "no answer yet"
    who = f" by {approval.decided_by}" if approval.decided_by else ""
    return f"{approval.state}{who}" + (f": {one_line(approval.rationale)}" if approval.rationale else "")


def one_line(text: str) -> str:
    return " ".join(text.split())


def _json(value: object) -> str:
    if not value:
        return ""
    import json

    return json.dumps(value, ensure_ascii=False)
