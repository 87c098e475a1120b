"""Actions on a run: pause, resume, stop, try again, and write to its agents."""

from collections.abc import Mapping
from typing import Any

from decklog.core.errors import Conflict
from decklog.web.actions.forms import REASON, ActionForm, FormField, WebAction, actor_of
from decklog.web.site import SiteRequest, command

PAUSE, RESUME, STOP, RETRY, MESSAGE = "pause-run", "resume-run", "stop-run", "retry-run", "message-run"
_MOST_TASKS = 200
# Marks tasks that were paused with their run, so that they go on with it.
_STOPPED = "run stopped: "
_GOING_ON = ("planning", "active")


def _run(asked: SiteRequest, run_id: str, states: tuple[str, ...], what: str) -> Any:
    run = asked.log.runs.get(run_id)
    if run.status.value not in states:
        raise Conflict(f"run {run_id} is {run.status.value}: it can't be {what}", run_id=run_id)
    return run


def _link(run_id: str) -> str:
    return f"/runs/{run_id}/overview"


def _is_conducted(run: Any) -> bool:
    return "conductor" in run.metadata


def _pausing(asked: SiteRequest, run_id: str) -> ActionForm:
    run = _run(asked, run_id, _GOING_ON, "paused")
    said = command("run", "stop", run_id) if _is_conducted(run) else command("runs", "update", run_id, "--status", "paused")
    return ActionForm(
        title="Pause the run",
        button="Pause run",
        subject=run.goal,
        link=_link(run_id),
        explanation="Nobody gets another task of it. Agents finish the tasks that they have.",
        command=said,
        fields=(REASON,),
        state=run.status.value,
    )


def _pause(asked: SiteRequest, run_id: str, given: Mapping[str, str]) -> str:
    asked.log.runs.update(run_id, status="paused")
    _note(asked, run_id, "paused", given["reason"])
    return _link(run_id)


def _resuming(asked: SiteRequest, run_id: str) -> ActionForm:
    run = _run(asked, run_id, ("paused",), "resumed")
    explanation = "Its tasks can be claimed again."
    if _is_conducted(run):
        explanation += f" Agents start when a conductor works on it: {command('run', 'work', run_id)}"
    return ActionForm(
        title="Resume the run",
        button="Resume run",
        subject=run.goal,
        link=_link(run_id),
        explanation=explanation,
        command=command("runs", "update", run_id, "--status", "active"),
        state=run.status.value,
    )


def _resume(asked: SiteRequest, run_id: str, _: Mapping[str, str]) -> str:
    asked.log.runs.update(run_id, status="active")
    return _link(run_id)


def _stopping(asked: SiteRequest, run_id: str) -> ActionForm:
    run = _run(asked, run_id, (*_GOING_ON, "paused"), "stopped")
    running = asked.log.tasks.find(run_id, state="running", limit=_MOST_TASKS)
    return ActionForm(
        title="Stop the run",
        button="Stop run",
        subject=run.goal,
        link=_link(run_id),
        explanation="It ends as cancelled. Agents lose the tasks that they have, and what they have done so far is kept.",
        command=command("runs", "finish", run_id, "--status", "cancelled", "--summary", "WHY"),
        fields=(REASON,),
        facts=tuple((str(task.worker), task.title) for task in running[:5]),
        state=run.status.value,
    )


def _stop(asked: SiteRequest, run_id: str, given: Mapping[str, str]) -> str:
    for task in asked.log.tasks.find(run_id, state="running", limit=_MOST_TASKS):
        asked.log.tasks.pause(task.id, reason=f"{_STOPPED}{given['reason']}")
    asked.log.runs.finish(run_id, status="cancelled", summary=given["reason"])
    return _link(run_id)


def _retrying(asked: SiteRequest, run_id: str) -> ActionForm:
    run = _run(asked, run_id, ("failed", "cancelled"), "tried again")
    explanation = "It is active again. Tasks that were blocked, or paused when it was stopped, can be claimed."
    if _is_conducted(run):
        explanation += f" Agents start when a conductor works on it: {command('run', 'work', run_id)}"
    return ActionForm(
        title="Retry the run",
        button="Retry run",
        subject=run.goal,
        link=_link(run_id),
        explanation=explanation,
        command=command("runs", "update", run_id, "--status", "active"),
        facts=(("ended", f"{run.status.value}: {run.summary or 'no reason given'}"),),
        state=run.status.value,
    )


def _retry(asked: SiteRequest, run_id: str, _: Mapping[str, str]) -> str:
    log = asked.log
    log.runs.update(run_id, status="active")
    blocked = log.tasks.find(run_id, state="blocked", limit=_MOST_TASKS)
    paused = log.tasks.find(run_id, state="paused", limit=_MOST_TASKS)
    for task in (*blocked, *(one for one in paused if (one.reason or "").startswith(_STOPPED))):
        log.tasks.resume(task.id)
    return _link(run_id)


def _messaging(asked: SiteRequest, run_id: str) -> ActionForm:
    run = asked.log.runs.get(run_id)
    return ActionForm(
        title="Message to the agents",
        button="Send message",
        subject=run.goal,
        link=_link(run_id),
        explanation="Agents of the run read it at the next break in their work.",
        command=command("inbox", "post", actor_of(asked), "TEXT", "--run", run_id),
        fields=(FormField("text", "Message"),),
        is_signed=False,
    )


def _message(asked: SiteRequest, run_id: str, given: Mapping[str, str]) -> str:
    asked.log.inbox.post(actor_of(asked), given["text"], run_id=run_id)
    return _link(run_id)


def _note(asked: SiteRequest, run_id: str, verb: str, reason: str) -> None:
    asked.log.journal.append(run_id, f"{verb}: {reason}", kind="event", subtype=f"run.{verb}")


ACTIONS = {
    PAUSE: WebAction(_pausing, _pause),
    RESUME: WebAction(_resuming, _resume),
    STOP: WebAction(_stopping, _stop),
    RETRY: WebAction(_retrying, _retry),
    MESSAGE: WebAction(_messaging, _message),
}
