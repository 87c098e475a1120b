"""Actions on a task: requeue it when its lease has lapsed, try it again, and write to its agent."""

from collections.abc import Mapping

from decklog import Task
from decklog.core.errors import Conflict
from decklog.web.actions.forms import REASON, ActionForm, FormField, WebAction, actor_of
from decklog.web.pages.tasks import is_lapsed
from decklog.web.site import SiteRequest, command

REQUEUE, RETRY, MESSAGE = "requeue-task", "retry-task", "message-task"


def _link(task: Task) -> str:
    return f"/tasks/{task.id}"


def _requeuing(asked: SiteRequest, task_id: str) -> ActionForm:
    task = asked.log.tasks.get(task_id)
    if not is_lapsed(asked, task):
        raise Conflict(f"the lease of {task_id} has not lapsed", hint="To take it from its agent, pause it.", task_id=task_id)
    return ActionForm(
        title="Requeue the task",
        button="Requeue task",
        subject=task.title,
        link=_link(task),
        explanation=f"{task.worker} did not extend its lease. The task goes back to the queue, and the next agent can claim it.",
        command=f"{command('tasks', 'pause', task_id, '--reason', 'WHY')} && {command('tasks', 'resume', task_id)}",
        fields=(REASON,),
        state=str(task.fence),
    )


def _requeue(asked: SiteRequest, task_id: str, given: Mapping[str, str]) -> str:
    # Pausing takes the task from its worker, whose next call is refused; resuming queues it again.
    asked.log.tasks.pause(task_id, reason=given["reason"])
    return _link(asked.log.tasks.resume(task_id))


def _retrying(asked: SiteRequest, task_id: str) -> ActionForm:
    task = asked.log.tasks.get(task_id)
    if task.state.value != "blocked":
        raise Conflict(f"task {task_id} is {task.state.value}, not blocked", task_id=task_id)
    return ActionForm(
        title="Retry the task",
        button="Retry task",
        subject=task.title,
        link=_link(task),
        explanation="It goes back to the queue with one more attempt.",
        command=command("tasks", "resume", task_id),
        fields=(REASON,),
        facts=(("blocked by", task.blocker or task.reason or "no reason given"),),
        state=str(task.fence),
    )


def _retry(asked: SiteRequest, task_id: str, given: Mapping[str, str]) -> str:
    task = asked.log.tasks.resume(task_id)
    asked.log.tasks.comment(task_id, given["reason"])
    return _link(task)


def _messaging(asked: SiteRequest, task_id: str) -> ActionForm:
    task = asked.log.tasks.get(task_id)
    return ActionForm(
        title="Message to the agent",
        button="Send message",
        subject=task.title,
        link=_link(task),
        explanation=f"{task.worker or 'The agent that claims the task'} reads it at the next break in the work.",
        command=command("inbox", "post", actor_of(asked), "TEXT", "--run", task.run_id, "--task", task_id),
        fields=(FormField("text", "Message"),),
        is_signed=False,
    )


def _message(asked: SiteRequest, task_id: str, given: Mapping[str, str]) -> str:
    task = asked.log.tasks.get(task_id)
    asked.log.inbox.post(actor_of(asked), given["text"], run_id=task.run_id, task_id=task_id)
    return _link(task)


ACTIONS = {
    REQUEUE: WebAction(_requeuing, _requeue),
    RETRY: WebAction(_retrying, _retry),
    MESSAGE: WebAction(_messaging, _message),
}
