"""Actions on a work item of a conductor's run: comment on a line, message, pause, resume, retry, give up; and landing a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decklog.conductor import landing, starting
from decklog.conductor.context import RunContext
from decklog.conductor.items.item import BY_HAND, Item, Rounds, find_item, find_item_change, quote_line, split_name
from decklog.core.display import counted
from decklog.core.errors import Conflict, Invalid
from decklog.core.folders import state_home
from decklog.web.forms import REASON, FormField, Offer, Subject, WebAction, actor_of, is_registered, signed
from decklog.web.site import SiteRequest, command

COMMENT, MESSAGE = "comment-item", "message-item"
PAUSE, RESUME, RETRY, STOP = "pause-item", "resume-item", "retry-item", "stop-item"


def context_of(request: SiteRequest, run_id: str) -> RunContext:
    """Return the context of a run's repository. Raise Unavailable if it is on another machine."""
    return starting.open_run_here(request.log, run_id, state=Path(state_home()))


def named(request: SiteRequest, subject_id: str) -> Item:
    """Return the work item with the name RUN.ITEM."""
    run_id, name = split_name(subject_id)
    return find_item(request.log, run_id or "", name)


def subject_of(item: Item) -> str:
    return f"{item.run_id}.{item.name}"


def page_of(item: Item) -> str:
    return f"/runs/{item.run_id}/items/{item.name}"


def offers(item: Item) -> list[Offer]:
    """List the actions that are possible for an item."""
    subject, states = subject_of(item), {task.state.value for task in item.open_tasks}
    if item.is_over:
        return []
    found = [Offer(RETRY, subject, "Retry…", is_urgent=True)] if states & {"blocked", "waiting"} else []
    found += [Offer(RESUME, subject, "Resume…", is_urgent=True)] if _paused(item) else []
    found += [Offer(PAUSE, subject, "Pause…")] if _pausable(item) else []
    return [*found, Offer(STOP, subject, "Give up…")]


def _pausable(item: Item) -> list[Any]:
    """List the tasks to pause with an item: those that are running or ready."""
    return [task for task in item.open_tasks if task.state.value == "running" or _is_next(task)]


def _is_next(task: Any) -> bool:
    return task.state.value == "pending" and not task.open_dependencies


def _paused(item: Item) -> list[Any]:
    return [task for task in item.open_tasks if task.state.value == "paused" and BY_HAND not in task.inputs]


def _item_with(tasks_of: Callable[[Item], list[Any]], problem: str) -> Callable[[SiteRequest, str], Subject]:
    """Return a loader of items that raises Conflict with `problem` if `tasks_of` finds no task of the item."""

    def load(request: SiteRequest, subject_id: str) -> Subject:
        item = named(request, subject_id)
        if not tasks_of(item):
            raise Conflict(problem.format(item.name), item=item.name)
        return Subject(item, f"{item.name}: {item.landing.title.removeprefix('Land: ')}", page_of(item))

    return load


def _held(item: Item) -> list[Any]:
    return [task for task in item.open_tasks if task.state.value in ("blocked", "waiting")]


_any_item = _item_with(lambda item: list(item.tasks), "{} has no task")


def _comment(request: SiteRequest, item: Item, given: Mapping[str, str]) -> None:
    context = context_of(request, item.run_id)
    path, _, number = given["where"].rpartition(":")
    if not path or not number.isdecimal() or len(number) > 9:
        raise Invalid(f"{given['where']!r} is not a line: write FILE:LINE, such as src/lexer.py:12", field="where")
    change = find_item_change(context, item)
    quoted = quote_line(context.repository, "" if change is None else change.tip, path, int(number))
    with signed(request, is_needed=False) as who:
        Rounds(context).post(item, given["text"], by=who, where=(path, int(number)), quoted=quoted)


def _message(request: SiteRequest, item: Item, given: Mapping[str, str]) -> None:
    context = context_of(request, item.run_id)
    with signed(request, is_needed=False) as who:
        Rounds(context).post(item, given["text"], by=who)


def _pause(request: SiteRequest, item: Item, given: Mapping[str, str]) -> None:
    for task in _pausable(item):
        request.log.tasks.pause(task.id, reason=given["reason"])


def _resume(request: SiteRequest, item: Item, _: Mapping[str, str]) -> None:
    for task in _paused(item):
        request.log.tasks.resume(task.id)


def _stop(request: SiteRequest, item: Item, given: Mapping[str, str]) -> None:
    for task in item.open_tasks:
        request.log.tasks.abandon(task.id, reason=given["reason"])


# Landing


@dataclass(frozen=True)
class _Landing:
    """The landing of the requested run."""

    context: RunContext
    plan: landing.LandingPlan

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        plan = self.plan
        how = "a merge, which is checked first" if plan.is_merge else "fast-forward"
        change = f"{counted(plan.files, 'file')}, {plan.old[:12]} to {plan.new[:12]}, {how}"
        return (("repository", str(self.context.repository.folder)), ("change", change))


def _landing(request: SiteRequest, run_id: str) -> Subject:
    context = context_of(request, run_id)
    plan = landing.prepare(context, None)
    if plan.is_done:
        raise Conflict(f"{plan.branch} already has all changes of the run", run_id=run_id)
    goal, state = request.log.runs.get(run_id).goal, f"{plan.branch} {plan.old} {plan.new}"
    return Subject(_Landing(context, plan), goal, f"/runs/{run_id}/changes", state)


def _land(request: SiteRequest, found: _Landing, _: Mapping[str, str]) -> None:
    landing.examine(found.context, found.plan)
    by = actor_of(request) if is_registered(request) else found.context.person.name
    landing.land(found.context, found.plan, by=by, proof=signed(request))


ITEM_ACTIONS = {
    COMMENT: WebAction(
        load=_any_item,
        title="Comment on a line",
        button="Send comment",
        explanation="An agent works on all comments in another round, based on the current change.",
        command=lambda _, item: command("run", "comment", subject_of(item), "FILE:LINE", "TEXT"),
        fields=(FormField("where", "File and line", "line", hint="src/lexer.py:12"), FormField("text", "Comment")),
        is_signed=False,
        perform=_comment,
        is_one_change=False,
    ),
    MESSAGE: WebAction(
        load=_any_item,
        title="Message to the agent",
        button="Send message",
        explanation="The agent gets the message at its next turn, or in the next round.",
        command=lambda _, item: command("run", "message", subject_of(item), "TEXT"),
        fields=(FormField("text", "Message"),),
        is_signed=False,
        perform=_message,
        is_one_change=False,
    ),
    PAUSE: WebAction(
        load=_item_with(_pausable, "{} has no running or ready task"),
        title="Pause the work item",
        button="Pause item",
        explanation="Its agent is ended, and the work so far is kept. The item is not claimed until you resume it.",
        command=lambda _, item: command("tasks", "pause", _pausable(item)[0].id, "--reason", "WHY"),
        fields=(REASON,),
        perform=_pause,
    ),
    RESUME: WebAction(
        load=_item_with(_paused, "{} is not paused"),
        title="Resume the work item",
        button="Resume item",
        explanation="It goes back to the queue.",
        command=lambda _, item: command("tasks", "resume", _paused(item)[0].id),
        perform=_resume,
    ),
    RETRY: WebAction(
        load=_item_with(_held, "{} is not blocked"),
        title="Retry the work item",
        button="Retry item",
        explanation="It begins again with the first agent, and an open question about it is withdrawn.",
        command=lambda _, item: command("run", "continue", subject_of(item)),
        facts=lambda _, item: tuple(
            (task.state.value, str(task.blocker or task.reason or "no reason given")) for task in _held(item)[:3]
        ),
        perform=lambda request, item, _: Rounds(context_of(request, item.run_id)).resume_item(item),
    ),
    STOP: WebAction(
        load=_item_with(lambda item: [] if item.is_over else item.open_tasks, "{} is over"),
        title="Give the work item up",
        button="Give up item",
        explanation="Its agent is ended and it does not land. Items that need it stay blocked. This can't be undone.",
        command=lambda _, item: command("tasks", "abandon", item.landing.id, "--reason", "WHY"),
        fields=(REASON,),
        perform=_stop,
    ),
    "land-run": WebAction(
        load=_landing,
        title=lambda _, found: f"Land on {found.plan.branch}",
        button="Land",
        explanation="The branch moves forward to the landed commits of the run. Unchecked commits are checked first.",
        command=lambda _, found: command("run", "land", found.context.run_id, "--branch", found.plan.branch),
        facts=lambda _, found: found.facts,
        perform=_land,
        is_one_change=False,
    ),
}
