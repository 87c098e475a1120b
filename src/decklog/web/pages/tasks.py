"""The pages of tasks: the list of all runs by state, one task, and the form that changes it."""

from collections.abc import Callable
from typing import Any

from decklog import TaskState
from decklog.core.errors import DecklogError, Denied, Invalid
from decklog.web.forms import Paused, form_error, reason_of, signature_of, signed
from decklog.web.pages.entries import fold_entries
from decklog.web.site import PageView, SiteRequest, command, http_status

PAGE, ENTRIES = 50, 40
# States that can be listed over all runs. Pending and finished tasks are listed in their run.
STATES = ("running", "waiting", "blocked", "paused")


def read(request: SiteRequest) -> PageView:
    """Load the tasks of all runs with a state, the latest change first."""
    state, worker = request.word("state") or "running", request.word("worker")
    if state not in STATES:
        raise Invalid(f"state is one of {', '.join(STATES)}", field="state", hint="What is pending or over is listed in its run.")
    given: dict[str, Any] = {"state": TaskState(state), "worker": worker}
    page = request.log.tasks.find(**given, limit=PAGE, after=request.word("after"))
    shell_line = command("tasks", "find", "--state", state, *(("--worker", worker) if worker else ()))
    names = request.log.overview.names(run_ids=list({task.run_id for task in page}))
    shown = {
        "names": names,
        "tasks": page,
        "words": request.log.overview.words(task_ids=[task.id for task in page])["tasks"],
        "state": state,
        "states": STATES,
        "worker": worker,
        "is_first": request.word("after") is None,
    }
    return PageView("tasks.html", "Tasks", shell_line, page, shown, page.next, "tasks")


def one(request: SiteRequest) -> PageView:
    """Load one task: its status and reason, dependencies, attempts and entries."""
    log, task_id = request.log, request.path["task_id"]
    found = log.tasks.details(task_id)
    entries = log.journal.find(found["task"]["run_id"], task_id=task_id, limit=ENTRIES)
    shown = {
        "found": found,
        "task": found["task"],
        "word": log.overview.words(task_ids=[task_id])["tasks"][task_id],
        "why": found["why"],
        "names": log.overview.names(run_ids=[found["task"]["run_id"]]),
        "entries": fold_entries(entries[::-1]),
        "more": entries.next,
    }
    title = f"{found['task']['title']} · Task"
    return PageView("task.html", title, command("tasks", "details", task_id), found, shown, place="tasks")


# Changing a task


FORM = "tasks.change"
_TYPED = ("verb", "reason", "priority")
_ANY_VERBS = {"priority": "Change priority", "abandon": "Abandon, which can't be undone"}
_OPEN_VERBS = {"pause": "Pause", **_ANY_VERBS}
_STOPPED_VERBS = {"resume": "Resume", **_ANY_VERBS}
VERBS: dict[TaskState, dict[str, str]] = {
    **dict.fromkeys((TaskState.PENDING, TaskState.RUNNING), _OPEN_VERBS),
    **dict.fromkeys((TaskState.PAUSED, TaskState.WAITING, TaskState.BLOCKED), _STOPPED_VERBS),
}


def read_change(request: SiteRequest, **answer: Any) -> PageView:
    """Load the form with the possible changes of a task."""
    task = request.log.tasks.get(request.path["task_id"])
    verbs = VERBS.get(task.state, {})
    shown = {
        "task": task,
        "verbs": verbs,
        "proof": signature_of(request) if verbs else None,
        "token": request.session.form_token(FORM, task.id),
        "typed": dict.fromkeys(_TYPED, ""),
        "problem": None,
    }
    shell_line = command("tasks", next(iter(verbs), "get"), task.id)
    return PageView(
        "task_change.html", f"Change {task.title}", shell_line, {"task": task, "verbs": verbs}, shown | answer, place="tasks"
    )


def change(request: SiteRequest) -> PageView | str:
    """Change the task as the form asks. Return the next address, or the form again with the problem and the typed values."""
    task_id = request.path["task_id"]
    if not request.session.is_form_token(request.form.get("token", ""), FORM, task_id):
        raise Denied("the form belongs to another session", hint="Reload the page and answer again.")
    try:
        _change(request, task_id)
    except DecklogError as problem:
        typed = {name: request.form.get(name, "") for name in _TYPED}
        view = read_change(request, problem=form_error(problem), typed=typed)
        return PageView(**{**vars(view), "status": 429 if isinstance(problem, Paused) else http_status(problem)})
    return f"/tasks/{task_id}"


def _change(request: SiteRequest, task_id: str) -> None:
    verb, reason = request.form.get("verb", ""), reason_of(request)
    act = _act(request, task_id, verb, reason)
    if not reason:
        raise Invalid("give a reason: the agent that works on it reads it", field="reason")
    # Anybody may change a task. Where an owner is registered, a signature shows who did.
    with signed(request), request.log.transaction():
        request.log.proofs.run_signed(f"tasks.{verb}", {"task_id": task_id, "reason": reason}, act)


def _act(request: SiteRequest, task_id: str, verb: str, reason: str) -> Callable[[], object]:
    tasks = request.log.tasks
    if verb == "pause":
        return lambda: tasks.pause(task_id, reason=reason)
    if verb == "abandon":
        return lambda: tasks.abandon(task_id, reason=reason)
    if verb == "resume":
        return lambda: (tasks.resume(task_id), tasks.comment(task_id, reason))
    if verb == "priority":
        given = request.form.get("priority", "").strip()
        if not (given.isascii() and given.removeprefix("-").isdecimal() and len(given) < 6):
            raise Invalid("a priority is a whole number", field="priority")
        return lambda: tasks.edit(task_id, reason=reason, priority=int(given))
    raise Invalid(f"a task is changed by {', '.join({**_OPEN_VERBS, **_STOPPED_VERBS})}", field="verb")
