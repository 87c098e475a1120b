"""Change a task on the web: a verb that fits its state, a reason, and the owner's signature if one is registered."""

from collections.abc import Callable
from typing import Any

from decklog import TaskState
from decklog.core.errors import DecklogError, Denied, Invalid
from decklog.web.actions.forms import signature_of, signed
from decklog.web.answers import status_of
from decklog.web.deciding import Paused, form_error, reason_of
from decklog.web.site import PageView, SiteRequest, command

FORM = "tasks.change"
TYPED = ("verb", "reason", "priority")
_ANY = {"priority": "Change priority", "abandon": "Abandon, which can't be undone"}
_OPEN = {"pause": "Pause", **_ANY}
_STOPPED = {"resume": "Resume", **_ANY}
VERBS: dict[TaskState, dict[str, str]] = {
    **dict.fromkeys((TaskState.PENDING, TaskState.RUNNING), _OPEN),
    **dict.fromkeys((TaskState.PAUSED, TaskState.WAITING, TaskState.BLOCKED), _STOPPED),
}


def read(asked: SiteRequest, **answer: Any) -> PageView:
    """Read what can be done with a task, and how the owner signs it."""
    task = asked.log.tasks.get(asked.path["task_id"])
    verbs = VERBS.get(task.state, {})
    shown = {
        "task": task,
        "verbs": verbs,
        "proof": signature_of(asked) if verbs else None,
        "token": asked.session.form_token(FORM, task.id),
        "typed": dict.fromkeys(TYPED, ""),
        "problem": None,
    }
    said = command("tasks", next(iter(verbs), "get"), task.id)
    return PageView(
        "task_change.html", f"Change {task.title}", said, {"task": task, "verbs": verbs}, shown | answer, place="tasks"
    )


def change(asked: SiteRequest) -> PageView | str:
    """Change the task as the form asks. Return the next address, or the form again with the problem and the typed values."""
    task_id = asked.path["task_id"]
    if not asked.session.is_form_token(asked.form.get("token", ""), FORM, task_id):
        raise Denied("this form is not of this session", hint="Reload the page and answer again.")
    try:
        _change(asked, task_id)
    except DecklogError as problem:
        typed = {name: asked.form.get(name, "") for name in TYPED}
        view = read(asked, problem=form_error(problem), typed=typed)
        return PageView(**{**vars(view), "status": 429 if isinstance(problem, Paused) else status_of(problem)})
    return f"/tasks/{task_id}"


def _change(asked: SiteRequest, task_id: str) -> None:
    verb, reason = asked.form.get("verb", ""), reason_of(asked)
    act = _act(asked, task_id, verb, reason)
    if not reason:
        raise Invalid("give a reason: the agent that works on it reads it", field="reason")
    # Anybody may change a task. Where an owner is registered, a signature shows who did.
    with signed(asked), asked.log.transaction():
        asked.log.proofs.under(f"tasks.{verb}", {"task_id": task_id, "reason": reason}, act)


def _act(asked: SiteRequest, task_id: str, verb: str, reason: str) -> Callable[[], object]:
    tasks = asked.log.tasks
    if verb == "pause":
        return lambda: tasks.pause(task_id, reason=reason)
    if verb == "abandon":
        return lambda: tasks.abandon(task_id, reason=reason)
    if verb == "resume":
        return lambda: (tasks.resume(task_id), tasks.comment(task_id, reason))
    if verb == "priority":
        given = asked.form.get("priority", "").strip()
        if not (given.isascii() and given.removeprefix("-").isdecimal() and len(given) < 6):
            raise Invalid("a priority is a whole number", field="priority")
        return lambda: tasks.edit(task_id, reason=reason, priority=int(given))
    raise Invalid(f"a task is changed by {', '.join({**_OPEN, **_STOPPED})}", field="verb")
