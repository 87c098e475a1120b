"""What a person does from the dashboard with runs, tasks, budgets and questions, and the list of all actions."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from decklog import Task
from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.core.figures import dollars
from decklog.web.forms import REASON, ActionForm, FormField, WebAction, actor_of, build_view, send, signed
from decklog.web.item_actions import ITEM_ACTIONS
from decklog.web.site import PageView, SiteRequest, command, is_lapsed

# Runs


PAUSE_RUN, RESUME_RUN, STOP_RUN, RETRY_RUN, MESSAGE_RUN = "pause-run", "resume-run", "stop-run", "retry-run", "message-run"
_MOST_TASKS = 200
# Marks tasks that were paused with their run, so that they go on with it.
_STOPPED = "run stopped: "
_GOING_ON = ("planning", "active")


def _run(asked: SiteRequest, run_id: str, states: tuple[str, ...], what: str) -> Any:
    run = asked.log.runs.get(run_id)
    if run.status.value not in states:
        raise Conflict(f"run {run_id} is {run.status.value}: it can't be {what}", run_id=run_id)
    return run


def _run_link(run_id: str) -> str:
    return f"/runs/{run_id}/overview"


def _is_conducted(run: Any) -> bool:
    return "conductor" in run.metadata


def _pausing_run(asked: SiteRequest, run_id: str) -> ActionForm:
    run = _run(asked, run_id, _GOING_ON, "paused")
    said = command("run", "stop", run_id) if _is_conducted(run) else command("runs", "update", run_id, "--status", "paused")
    return ActionForm(
        title="Pause the run",
        button="Pause run",
        subject=run.goal,
        link=_run_link(run_id),
        explanation="Nobody gets another task of it. Agents finish the tasks that they have.",
        command=said,
        fields=(REASON,),
        state=run.status.value,
    )


def _pause_run(asked: SiteRequest, run_id: str, given: Mapping[str, str]) -> str:
    asked.log.runs.update(run_id, status="paused")
    _note(asked, run_id, "paused", given["reason"])
    return _run_link(run_id)


def _resuming_run(asked: SiteRequest, run_id: str) -> ActionForm:
    run = _run(asked, run_id, ("paused",), "resumed")
    explanation = "Its tasks can be claimed again."
    if _is_conducted(run):
        explanation += f" Agents start when a conductor works on it: {command('run', 'work', run_id)}"
    return ActionForm(
        title="Resume the run",
        button="Resume run",
        subject=run.goal,
        link=_run_link(run_id),
        explanation=explanation,
        command=command("runs", "update", run_id, "--status", "active"),
        state=run.status.value,
    )


def _resume_run(asked: SiteRequest, run_id: str, _: Mapping[str, str]) -> str:
    asked.log.runs.update(run_id, status="active")
    return _run_link(run_id)


def _stopping_run(asked: SiteRequest, run_id: str) -> ActionForm:
    run = _run(asked, run_id, (*_GOING_ON, "paused"), "stopped")
    running = asked.log.tasks.find(run_id, state="running", limit=_MOST_TASKS)
    return ActionForm(
        title="Stop the run",
        button="Stop run",
        subject=run.goal,
        link=_run_link(run_id),
        explanation="It ends as cancelled. Agents lose the tasks that they have, and what they have done so far is kept.",
        command=command("runs", "finish", run_id, "--status", "cancelled", "--summary", "WHY"),
        fields=(REASON,),
        facts=tuple((str(task.worker), task.title) for task in running[:5]),
        state=run.status.value,
    )


def _stop_run(asked: SiteRequest, run_id: str, given: Mapping[str, str]) -> str:
    for task in asked.log.tasks.find(run_id, state="running", limit=_MOST_TASKS):
        asked.log.tasks.pause(task.id, reason=f"{_STOPPED}{given['reason']}")
    asked.log.runs.finish(run_id, status="cancelled", summary=given["reason"])
    return _run_link(run_id)


def _retrying_run(asked: SiteRequest, run_id: str) -> ActionForm:
    run = _run(asked, run_id, ("failed", "cancelled"), "tried again")
    explanation = "It is active again. Tasks that were blocked, or paused when it was stopped, can be claimed."
    if _is_conducted(run):
        explanation += f" Agents start when a conductor works on it: {command('run', 'work', run_id)}"
    return ActionForm(
        title="Retry the run",
        button="Retry run",
        subject=run.goal,
        link=_run_link(run_id),
        explanation=explanation,
        command=command("runs", "update", run_id, "--status", "active"),
        facts=(("ended", f"{run.status.value}: {run.summary or 'no reason given'}"),),
        state=run.status.value,
    )


def _retry_run(asked: SiteRequest, run_id: str, _: Mapping[str, str]) -> str:
    log = asked.log
    log.runs.update(run_id, status="active")
    blocked = log.tasks.find(run_id, state="blocked", limit=_MOST_TASKS)
    paused = log.tasks.find(run_id, state="paused", limit=_MOST_TASKS)
    for task in (*blocked, *(one for one in paused if (one.reason or "").startswith(_STOPPED))):
        log.tasks.resume(task.id)
    return _run_link(run_id)


def _messaging_run(asked: SiteRequest, run_id: str) -> ActionForm:
    run = asked.log.runs.get(run_id)
    return ActionForm(
        title="Message to the agents",
        button="Send message",
        subject=run.goal,
        link=_run_link(run_id),
        explanation="Agents of the run read it at the next break in their work.",
        command=command("inbox", "post", actor_of(asked), "TEXT", "--run", run_id),
        fields=(FormField("text", "Message"),),
        is_signed=False,
    )


def _message_run(asked: SiteRequest, run_id: str, given: Mapping[str, str]) -> str:
    asked.log.inbox.post(actor_of(asked), given["text"], run_id=run_id)
    return _run_link(run_id)


def _note(asked: SiteRequest, run_id: str, verb: str, reason: str) -> None:
    asked.log.journal.append(run_id, f"{verb}: {reason}", kind="event", subtype=f"run.{verb}")


# Tasks


REQUEUE_TASK, RETRY_TASK, MESSAGE_TASK = "requeue-task", "retry-task", "message-task"


def _task_link(task: Task) -> str:
    return f"/tasks/{task.id}"


def _requeuing(asked: SiteRequest, task_id: str) -> ActionForm:
    task = asked.log.tasks.get(task_id)
    if not is_lapsed(asked, task):
        raise Conflict(f"the lease of {task_id} has not lapsed", hint="To take it from its agent, pause it.", task_id=task_id)
    return ActionForm(
        title="Requeue the task",
        button="Requeue task",
        subject=task.title,
        link=_task_link(task),
        explanation=f"{task.worker} did not extend its lease. The task goes back to the queue, and the next agent can claim it.",
        command=f"{command('tasks', 'pause', task_id, '--reason', 'WHY')} && {command('tasks', 'resume', task_id)}",
        fields=(REASON,),
        state=str(task.fence),
    )


def _requeue(asked: SiteRequest, task_id: str, given: Mapping[str, str]) -> str:
    # Pausing takes the task from its worker, whose next call is refused; resuming queues it again.
    asked.log.tasks.pause(task_id, reason=given["reason"])
    return _task_link(asked.log.tasks.resume(task_id))


def _retrying_task(asked: SiteRequest, task_id: str) -> ActionForm:
    task = asked.log.tasks.get(task_id)
    if task.state.value != "blocked":
        raise Conflict(f"task {task_id} is {task.state.value}, not blocked", task_id=task_id)
    return ActionForm(
        title="Retry the task",
        button="Retry task",
        subject=task.title,
        link=_task_link(task),
        explanation="It goes back to the queue with one more attempt.",
        command=command("tasks", "resume", task_id),
        fields=(REASON,),
        facts=(("blocked by", task.blocker or task.reason or "no reason given"),),
        state=str(task.fence),
    )


def _retry_task(asked: SiteRequest, task_id: str, given: Mapping[str, str]) -> str:
    task = asked.log.tasks.resume(task_id)
    asked.log.tasks.comment(task_id, given["reason"])
    return _task_link(task)


def _messaging_task(asked: SiteRequest, task_id: str) -> ActionForm:
    task = asked.log.tasks.get(task_id)
    return ActionForm(
        title="Message to the agent",
        button="Send message",
        subject=task.title,
        link=_task_link(task),
        explanation=f"{task.worker or 'The agent that claims the task'} reads it at the next break in the work.",
        command=command("inbox", "post", actor_of(asked), "TEXT", "--run", task.run_id, "--task", task_id),
        fields=(FormField("text", "Message"),),
        is_signed=False,
    )


def _message_task(asked: SiteRequest, task_id: str, given: Mapping[str, str]) -> str:
    task = asked.log.tasks.get(task_id)
    asked.log.inbox.post(actor_of(asked), given["text"], run_id=task.run_id, task_id=task_id)
    return _task_link(task)


# Budgets


RAISE_BUDGET, SET_BUDGET = "raise-budget", "set-budget"
_MICRO = 1_000_000


def _budget(asked: SiteRequest, budget_id: str) -> Any:
    found = next((one for one in asked.log.overview.budgets() if one.id == budget_id), None)
    if found is None:
        raise NotFound(f"there is no budget {budget_id!r} that is in force", hint="See: decklog budgets find")
    return found


def _raising_budget(asked: SiteRequest, budget_id: str) -> ActionForm:
    budget = _budget(asked, budget_id)
    is_money = budget.unit == "microdollars"
    said = f"{budget.ceiling / _MICRO:.2f}" if is_money else str(budget.ceiling)
    option, limit = ("--limit", "DOLLARS") if is_money else ("--limit-tokens", "N")
    scope = (budget.scope, *(("--scope-id", budget.scope_id) if budget.scope_id else ()))
    return ActionForm(
        title="Raise the budget",
        button="Raise budget",
        subject=f"Budget of {budget.whose}",
        link=_budget_link(budget),
        explanation="The new limit replaces the old one at once. What was spent before counts.",
        command=command("budgets", "set", *scope, "--period", budget.period, option, limit),
        fields=(FormField("limit", "New limit", "line", hint=f"now {said}", unit="$" if is_money else "tokens"),),
        facts=(("spent", budget.said), ("used", f"{budget.percent} %")),
        state=f"{budget.ceiling}",
    )


def _budget_link(budget: Any) -> str:
    return f"/runs/{budget.run_id}/spend" if budget.run_id else "/spend"


def _raise_budget(asked: SiteRequest, budget_id: str, given: Mapping[str, str]) -> str:
    budget = _budget(asked, budget_id)
    limit = _limit(given["limit"], budget.unit)
    amount: dict[str, Any] = {"limit_microdollars" if budget.unit == "microdollars" else "limit_tokens": limit}
    kept = {"period": budget.period, "action": budget.action, "warn_percent": budget.warn_percent}
    with signed(asked):
        asked.log.budgets.set(budget.scope, scope_id=budget.scope_id, **amount, **kept)
    return _budget_link(budget)


def _setting_budget(asked: SiteRequest, run_id: str) -> ActionForm:
    run = asked.log.runs.get(run_id)
    spent = int(asked.log.ledger.summary(run_id)["total"]["cost_microdollars"])
    return ActionForm(
        title="Set a budget",
        button="Set budget",
        subject=run.goal,
        link=f"/runs/{run_id}/spend",
        explanation="At the limit no more calls are reserved for the run. You can raise it at any time.",
        command=command("budgets", "set", "run", "--scope-id", run_id, "--limit", "DOLLARS"),
        fields=(FormField("limit", "Limit", "line", unit="$"),),
        facts=(("spent", dollars(spent)),),
    )


def _set_budget(asked: SiteRequest, run_id: str, given: Mapping[str, str]) -> str:
    limit = _limit(given["limit"], "microdollars")
    with signed(asked):
        asked.log.budgets.set("run", scope_id=run_id, limit_microdollars=limit)
    return f"/runs/{run_id}/spend"


def _limit(text: str, unit: str) -> int:
    """Parse an amount of dollars or tokens."""
    try:
        amount = Decimal(text.removeprefix("$").replace(",", ""))
        whole = int(amount * (_MICRO if unit == "microdollars" else 1))
    except (InvalidOperation, ValueError, OverflowError):
        whole = 0
    if whole <= 0:
        raise Invalid(f"a limit is an amount such as 12.50 (got {text!r})", field="limit")
    return whole


# Questions


ANSWER = "answer-question"


def _answering(asked: SiteRequest, message_id: str) -> ActionForm:
    message = asked.log.inbox.get(message_id)
    if message.state.value not in ("pending", "seen"):
        raise Conflict(f"message {message_id} is {message.state.value}", hint="Reload the inbox.")
    return ActionForm(
        title="Answer the question",
        button="Send answer",
        subject=message.body,
        link="/inbox",
        explanation=f"{message.from_handle} reads the answer at the next break in the work.",
        command=command("inbox", "answer", message_id, "TEXT", "--by", actor_of(asked)),
        fields=(FormField("text", "Answer"),),
        is_signed=False,
        state=message.state.value,
    )


def _answer(asked: SiteRequest, message_id: str, given: Mapping[str, str]) -> str:
    asked.log.inbox.answer(message_id, given["text"], by=actor_of(asked))
    return "/inbox"


# All actions


ACTIONS: dict[str, WebAction] = {
    PAUSE_RUN: WebAction(_pausing_run, _pause_run),
    RESUME_RUN: WebAction(_resuming_run, _resume_run),
    STOP_RUN: WebAction(_stopping_run, _stop_run),
    RETRY_RUN: WebAction(_retrying_run, _retry_run),
    MESSAGE_RUN: WebAction(_messaging_run, _message_run),
    REQUEUE_TASK: WebAction(_requeuing, _requeue),
    RETRY_TASK: WebAction(_retrying_task, _retry_task),
    MESSAGE_TASK: WebAction(_messaging_task, _message_task),
    RAISE_BUDGET: WebAction(_raising_budget, _raise_budget, is_one_change=False),
    SET_BUDGET: WebAction(_setting_budget, _set_budget, is_one_change=False),
    ANSWER: WebAction(_answering, _answer),
    **ITEM_ACTIONS,
}


def _find(asked: SiteRequest) -> tuple[str, WebAction]:
    verb = asked.path["verb"]
    if verb not in ACTIONS:
        raise NotFound(f"there is no action {verb!r}")
    return verb, ACTIONS[verb]


def read(asked: SiteRequest) -> PageView:
    """Read the form of an action."""
    verb, action = _find(asked)
    return build_view(asked, verb, action.describe(asked, asked.path["id"]))


def act(asked: SiteRequest) -> PageView | str:
    """Perform the action of a form."""
    verb, action = _find(asked)
    return send(asked, verb, action)
