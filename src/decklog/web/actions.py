"""The actions of the dashboard on runs, tasks, budgets and questions, and the pages of their forms."""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from decklog import Task
from decklog.core.display import DOLLAR, dollars
from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.web.forms import REASON, FormField, Subject, WebAction, actor_of, build_view, send, signed
from decklog.web.item_actions import ITEM_ACTIONS
from decklog.web.site import PageView, SiteRequest, command, is_lapsed

REQUEUE_TASK = "requeue-task"
_MOST_TASKS = 200
# Marks tasks that were paused with their run, so that they are resumed with it.
_STOPPED = "run stopped: "
_MESSAGE = (FormField("text", "Message"),)

# Runs


def _run_in(states: tuple[str, ...], what: str) -> Callable[[SiteRequest, str], Subject]:
    """Return a loader of runs that raises Conflict unless the run is in one of the states; no states allow any."""

    def load(request: SiteRequest, run_id: str) -> Subject:
        run = request.log.runs.get(run_id)
        if states and run.status.value not in states:
            raise Conflict(f"run {run_id} is {run.status.value}: it can't be {what}", run_id=run_id)
        return Subject(run, run.goal, f"/runs/{run_id}/overview", run.status.value if states else "")

    return load


def _is_conducted(run: Any) -> bool:
    return "conductor" in run.metadata


def _with_agents(explanation: str, run: Any) -> str:
    """Add to an explanation how the agents of a conductor's run start again."""
    return (
        f"{explanation} Agents start when a conductor works on it: {command('run', 'work', run.id)}"
        if _is_conducted(run)
        else explanation
    )


def _pause_run(request: SiteRequest, run: Any, given: Mapping[str, str]) -> None:
    request.log.runs.update(run.id, status="paused")
    request.log.journal.append(run.id, f"paused: {given['reason']}", kind="event", subtype="run.paused")


def _running(request: SiteRequest, run: Any) -> tuple[tuple[str, str], ...]:
    running = request.log.tasks.find(run.id, state="running", limit=_MOST_TASKS)
    return tuple((str(task.worker), task.title) for task in running[:5])


def _stop_run(request: SiteRequest, run: Any, given: Mapping[str, str]) -> None:
    for task in request.log.tasks.find(run.id, state="running", limit=_MOST_TASKS):
        request.log.tasks.pause(task.id, reason=f"{_STOPPED}{given['reason']}")
    request.log.runs.finish(run.id, status="cancelled", summary=given["reason"])


def _retry_run(request: SiteRequest, run: Any, _: Mapping[str, str]) -> None:
    log = request.log
    log.runs.update(run.id, status="active")
    blocked = log.tasks.find(run.id, state="blocked", limit=_MOST_TASKS)
    paused = log.tasks.find(run.id, state="paused", limit=_MOST_TASKS)
    for task in (*blocked, *(one for one in paused if (one.reason or "").startswith(_STOPPED))):
        log.tasks.resume(task.id)


_RUN_ACTIONS = {
    "pause-run": WebAction(
        load=_run_in(("planning", "active"), "paused"),
        title="Pause the run",
        button="Pause run",
        explanation="No more tasks are claimed. Agents finish the tasks that they have.",
        command=lambda _, run: (
            command("run", "stop", run.id) if _is_conducted(run) else command("runs", "update", run.id, "--status", "paused")
        ),
        fields=(REASON,),
        perform=_pause_run,
    ),
    "resume-run": WebAction(
        load=_run_in(("paused",), "resumed"),
        title="Resume the run",
        button="Resume run",
        explanation=lambda _, run: _with_agents("Its tasks can be claimed again.", run),
        command=lambda _, run: command("runs", "update", run.id, "--status", "active"),
        perform=lambda request, run, _: request.log.runs.update(run.id, status="active"),
    ),
    "stop-run": WebAction(
        load=_run_in(("planning", "active", "paused"), "stopped"),
        title="Stop the run",
        button="Stop run",
        explanation="The run ends as cancelled. Agents lose their tasks, and the work so far is kept.",
        command=lambda _, run: command("runs", "finish", run.id, "--status", "cancelled", "--summary", "WHY"),
        fields=(REASON,),
        facts=_running,
        perform=_stop_run,
    ),
    "retry-run": WebAction(
        load=_run_in(("failed", "cancelled"), "tried again"),
        title="Retry the run",
        button="Retry run",
        explanation=lambda _, run: _with_agents(
            "The run is active again. Tasks that were blocked, or paused by the stop, can be claimed.", run
        ),
        command=lambda _, run: command("runs", "update", run.id, "--status", "active"),
        facts=lambda _, run: (("ended", f"{run.status.value}: {run.summary or 'no reason given'}"),),
        perform=_retry_run,
    ),
    "message-run": WebAction(
        load=_run_in((), ""),
        title="Message to the agents",
        button="Send message",
        explanation="Agents of the run read it at the next break in their work.",
        command=lambda request, run: command("inbox", "post", actor_of(request), "TEXT", "--run", run.id),
        fields=_MESSAGE,
        is_signed=False,
        perform=lambda request, run, given: request.log.inbox.post(actor_of(request), given["text"], run_id=run.id),
    ),
}

# Tasks


def _task(request: SiteRequest, task_id: str) -> Subject:
    task = request.log.tasks.get(task_id)
    return Subject(task, task.title, f"/tasks/{task_id}")


def _lapsed_task(request: SiteRequest, task_id: str) -> Subject:
    task = request.log.tasks.get(task_id)
    if not is_lapsed(request, task):
        raise Conflict(f"the lease of {task_id} has not lapsed", hint="To take it from its agent, pause it.", task_id=task_id)
    return Subject(task, task.title, f"/tasks/{task_id}", str(task.fence))


def _blocked_task(request: SiteRequest, task_id: str) -> Subject:
    task = request.log.tasks.get(task_id)
    if task.state.value != "blocked":
        raise Conflict(f"task {task_id} is {task.state.value}, not blocked", task_id=task_id)
    return Subject(task, task.title, f"/tasks/{task_id}", str(task.fence))


def _requeue(request: SiteRequest, task: Task, given: Mapping[str, str]) -> None:
    # Pausing takes the task from its worker, whose next call is refused; resuming queues it again.
    request.log.tasks.pause(task.id, reason=given["reason"])
    request.log.tasks.resume(task.id)


def _retry_task(request: SiteRequest, task: Task, given: Mapping[str, str]) -> None:
    request.log.tasks.resume(task.id)
    request.log.tasks.comment(task.id, given["reason"])


_TASK_ACTIONS = {
    REQUEUE_TASK: WebAction(
        load=_lapsed_task,
        title="Requeue the task",
        button="Requeue task",
        explanation=lambda _, task: f"{task.worker} did not extend its lease. The task returns to the queue for another agent.",
        command=lambda _, task: (
            f"{command('tasks', 'pause', task.id, '--reason', 'WHY')} && {command('tasks', 'resume', task.id)}"
        ),
        fields=(REASON,),
        perform=_requeue,
    ),
    "retry-task": WebAction(
        load=_blocked_task,
        title="Retry the task",
        button="Retry task",
        explanation="It goes back to the queue with one more attempt.",
        command=lambda _, task: command("tasks", "resume", task.id),
        fields=(REASON,),
        facts=lambda _, task: (("blocked by", task.blocker or task.reason or "no reason given"),),
        perform=_retry_task,
    ),
    "message-task": WebAction(
        load=_task,
        title="Message to the agent",
        button="Send message",
        explanation=lambda _, task: f"{task.worker or 'The agent that claims the task'} reads it at the next break in the work.",
        command=lambda request, task: command(
            "inbox", "post", actor_of(request), "TEXT", "--run", task.run_id, "--task", task.id
        ),
        fields=_MESSAGE,
        is_signed=False,
        perform=lambda request, task, given: request.log.inbox.post(
            actor_of(request), given["text"], run_id=task.run_id, task_id=task.id
        ),
    ),
}

# Budgets


def _budget(request: SiteRequest, budget_id: str) -> Subject:
    found = next((one for one in request.log.overview.budgets() if one.id == budget_id), None)
    if found is None:
        raise NotFound(f"there is no active budget {budget_id!r}", hint="See: decklog budgets find")
    link = f"/runs/{found.run_id}/spend" if found.run_id else "/spend"
    return Subject(found, f"Budget of {found.whose}", link, f"{found.ceiling}")


def _raise_command(_: SiteRequest, budget: Any) -> str:
    limit = ("--limit", "DOLLARS") if budget.unit == "microdollars" else ("--limit-tokens", "N")
    scope = (budget.scope, *(("--scope-id", budget.scope_id) if budget.scope_id else ()))
    return command("budgets", "set", *scope, "--period", budget.period, *limit)


def _new_limit(_: SiteRequest, budget: Any) -> tuple[FormField, ...]:
    is_money = budget.unit == "microdollars"
    now = f"{budget.ceiling / DOLLAR:.2f}" if is_money else str(budget.ceiling)
    return (FormField("limit", "New limit", "line", hint=f"now {now}", unit="$" if is_money else "tokens"),)


def _raise_budget(request: SiteRequest, budget: Any, given: Mapping[str, str]) -> None:
    limit = _limit(given["limit"], budget.unit)
    amount: dict[str, Any] = {"limit_microdollars" if budget.unit == "microdollars" else "limit_tokens": limit}
    kept = {"period": budget.period, "action": budget.action, "warn_percent": budget.warn_percent}
    with signed(request):
        request.log.budgets.set(budget.scope, scope_id=budget.scope_id, **amount, **kept)


def _run_of_budget(request: SiteRequest, run_id: str) -> Subject:
    run = request.log.runs.get(run_id)
    return Subject(run, run.goal, f"/runs/{run_id}/spend")


def _spent(request: SiteRequest, run: Any) -> tuple[tuple[str, str], ...]:
    return (("spent", dollars(int(request.log.ledger.summary(run.id)["total"]["cost_microdollars"]))),)


def _set_budget(request: SiteRequest, run: Any, given: Mapping[str, str]) -> None:
    limit = _limit(given["limit"], "microdollars")
    with signed(request):
        request.log.budgets.set("run", scope_id=run.id, limit_microdollars=limit)


def _limit(text: str, unit: str) -> int:
    """Parse an amount of dollars or tokens."""
    try:
        amount = Decimal(text.removeprefix("$").replace(",", ""))
        whole = int(amount * (DOLLAR if unit == "microdollars" else 1))
    except (InvalidOperation, ValueError, OverflowError):
        whole = 0
    if whole <= 0:
        raise Invalid(f"a limit is an amount such as 12.50 (got {text!r})", field="limit")
    return whole


_BUDGET_ACTIONS = {
    "raise-budget": WebAction(
        load=_budget,
        title="Raise the budget",
        button="Raise budget",
        explanation="The new limit replaces the old one at once. Earlier spending counts.",
        command=_raise_command,
        fields=_new_limit,
        facts=lambda _, budget: (("spent", budget.said), ("used", f"{budget.percent} %")),
        perform=_raise_budget,
        is_one_change=False,
    ),
    "set-budget": WebAction(
        load=_run_of_budget,
        title="Set a budget",
        button="Set budget",
        explanation="At the limit no more calls are reserved for the run. You can raise it at any time.",
        command=lambda _, run: command("budgets", "set", "run", "--scope-id", run.id, "--limit", "DOLLARS"),
        fields=(FormField("limit", "Limit", "line", unit="$"),),
        facts=_spent,
        perform=_set_budget,
        is_one_change=False,
    ),
}

# Questions


def _question(request: SiteRequest, message_id: str) -> Subject:
    message = request.log.inbox.get(message_id)
    if message.state.value not in ("pending", "seen"):
        raise Conflict(f"message {message_id} is {message.state.value}", hint="Reload the inbox.")
    return Subject(message, message.body, "/inbox", message.state.value)


_QUESTION_ACTIONS = {
    "answer-question": WebAction(
        load=_question,
        title="Answer the question",
        button="Send answer",
        explanation=lambda _, message: f"{message.from_handle} reads the answer at the next break in the work.",
        command=lambda request, message: command("inbox", "answer", message.id, "TEXT", "--by", actor_of(request)),
        fields=(FormField("text", "Answer"),),
        is_signed=False,
        perform=lambda request, message, given: request.log.inbox.answer(message.id, given["text"], by=actor_of(request)),
    ),
}

ACTIONS: dict[str, WebAction] = {**_RUN_ACTIONS, **_TASK_ACTIONS, **_BUDGET_ACTIONS, **_QUESTION_ACTIONS, **ITEM_ACTIONS}


def _find(request: SiteRequest) -> tuple[str, WebAction]:
    verb = request.path["verb"]
    if verb not in ACTIONS:
        raise NotFound(f"there is no action {verb!r}")
    return verb, ACTIONS[verb]


def read(request: SiteRequest) -> PageView:
    """Load the form of an action."""
    verb, action = _find(request)
    return build_view(request, verb, action.form(request, request.path["id"]))


def act(request: SiteRequest) -> PageView | str:
    """Perform the action of a form."""
    verb, action = _find(request)
    return send(request, verb, action)
