"""Actions on a work item of a conductor's run: comment on a line, message, pause, resume, retry, give up; and landing a run."""

from collections.abc import Mapping
from typing import Any

from decklog.conductor import starting
from decklog.conductor.context import RunContext
from decklog.conductor.items.change import change_of, located
from decklog.conductor.items.item import BY_HAND, Item, find_item, split_name
from decklog.conductor.items.rounds import Rounds
from decklog.conductor.results import landing
from decklog.core.errors import Conflict, Invalid
from decklog.core.figures import counted
from decklog.core.folders import state_home
from decklog.web.actions.forms import REASON, ActionForm, FormField, Offer, WebAction, actor_of, is_registered, signed
from decklog.web.site import SiteRequest, command

COMMENT, MESSAGE = "comment-item", "message-item"
PAUSE, RESUME, RETRY, STOP, LAND = "pause-item", "resume-item", "retry-item", "stop-item", "land-run"


def context_of(asked: SiteRequest, run_id: str) -> RunContext:
    """Return the context of a run's repository. Raise Unavailable if it is on another machine."""
    return starting.found_here(asked.log, run_id, state=state_home())


def named(asked: SiteRequest, subject_id: str) -> Item:
    """Return the work item with the name RUN.ITEM."""
    run_id, name = split_name(subject_id)
    return find_item(asked.log, run_id or "", name)


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
    """List the tasks to pause when an item is paused: those that run or are next."""
    return [task for task in item.open_tasks if task.state.value == "running" or _is_next(task)]


def _is_next(task: Any) -> bool:
    return task.state.value == "pending" and not task.open_dependencies


def _paused(item: Item) -> list[Any]:
    return [task for task in item.open_tasks if task.state.value == "paused" and BY_HAND not in task.inputs]


def _form(item: Item, **given: Any) -> ActionForm:
    title = item.landing.title.removeprefix("Land: ")
    return ActionForm(**{"subject": f"{item.name}: {title}", "link": page_of(item), **given})


# Messages to the item's agent


def _commenting(asked: SiteRequest, subject_id: str) -> ActionForm:
    item = named(asked, subject_id)
    return _form(
        item,
        title="Comment on a line",
        button="Send comment",
        explanation="Another round works on it, from the change as it is. Send as many as you like.",
        command=command("run", "comment", subject_id, "FILE:LINE", "TEXT"),
        fields=(FormField("where", "File and line", "line", hint="src/lexer.py:12"), FormField("text", "Comment")),
        is_signed=False,
    )


def _comment(asked: SiteRequest, subject_id: str, given: Mapping[str, str]) -> str:
    item = named(asked, subject_id)
    context = context_of(asked, item.run_id)
    path, _, number = given["where"].rpartition(":")
    if not path or not number.isdecimal() or len(number) > 9:
        raise Invalid(f"{given['where']!r} names no line: write FILE:LINE, such as src/lexer.py:12", field="where")
    change = change_of(context, item)
    quoted = located(context.repository, "" if change is None else change.tip, path, int(number))
    with signed(asked, is_needed=False) as who:
        Rounds(context).post(item, given["text"], by=who, where=(path, int(number)), quoted=quoted)
    return page_of(item)


def _messaging(asked: SiteRequest, subject_id: str) -> ActionForm:
    return _form(
        named(asked, subject_id),
        title="Message to the agent",
        button="Send message",
        explanation="Its agent gets the message at its next turn, or in the next round.",
        command=command("run", "message", subject_id, "TEXT"),
        fields=(FormField("text", "Message"),),
        is_signed=False,
    )


def _message(asked: SiteRequest, subject_id: str, given: Mapping[str, str]) -> str:
    item = named(asked, subject_id)
    context = context_of(asked, item.run_id)
    with signed(asked, is_needed=False) as who:
        Rounds(context).post(item, given["text"], by=who)
    return page_of(item)


# Pausing, resuming and retrying


def _pausing(asked: SiteRequest, subject_id: str) -> ActionForm:
    item = named(asked, subject_id)
    tasks = _pausable(item)
    if not tasks:
        raise Conflict(f"nothing of {item.name} runs or is next", item=item.name)
    return _form(
        item,
        title="Pause the work item",
        button="Pause item",
        explanation="Its agent is ended, and what it has done so far is kept. Nobody claims it until you resume it.",
        command=command("tasks", "pause", tasks[0].id, "--reason", "WHY"),
        fields=(REASON,),
    )


def _pause(asked: SiteRequest, subject_id: str, given: Mapping[str, str]) -> str:
    item = named(asked, subject_id)
    for task in _pausable(item):
        asked.log.tasks.pause(task.id, reason=given["reason"])
    return page_of(item)


def _resuming(asked: SiteRequest, subject_id: str) -> ActionForm:
    item = named(asked, subject_id)
    tasks = _paused(item)
    if not tasks:
        raise Conflict(f"{item.name} is not paused", item=item.name)
    return _form(
        item,
        title="Resume the work item",
        button="Resume item",
        explanation="It goes back to the queue.",
        command=command("tasks", "resume", tasks[0].id),
    )


def _resume(asked: SiteRequest, subject_id: str, _: Mapping[str, str]) -> str:
    item = named(asked, subject_id)
    for task in _paused(item):
        asked.log.tasks.resume(task.id)
    return page_of(item)


def _retrying(asked: SiteRequest, subject_id: str) -> ActionForm:
    item = named(asked, subject_id)
    held = [task for task in item.open_tasks if task.state.value in ("blocked", "waiting")]
    if not held:
        raise Conflict(f"{item.name} is not blocked", item=item.name)
    return _form(
        item,
        title="Retry the work item",
        button="Retry item",
        explanation="It begins again with the first agent, and an open question about it is withdrawn.",
        command=command("run", "continue", subject_id),
        facts=tuple((task.state.value, str(task.blocker or task.reason or "no reason given")) for task in held[:3]),
    )


def _retry(asked: SiteRequest, subject_id: str, _: Mapping[str, str]) -> str:
    item = named(asked, subject_id)
    Rounds(context_of(asked, item.run_id)).wake(item)
    return page_of(item)


def _stopping(asked: SiteRequest, subject_id: str) -> ActionForm:
    item = named(asked, subject_id)
    if item.is_over:
        raise Conflict(f"{item.name} is over", item=item.name)
    return _form(
        item,
        title="Give the work item up",
        button="Give up item",
        explanation="Its agent is ended and it does not land. Items that need it stay blocked. This can't be undone.",
        command=command("tasks", "abandon", item.landing.id, "--reason", "WHY"),
        fields=(REASON,),
    )


def _stop(asked: SiteRequest, subject_id: str, given: Mapping[str, str]) -> str:
    item = named(asked, subject_id)
    for task in item.open_tasks:
        asked.log.tasks.abandon(task.id, reason=given["reason"])
    return page_of(item)


# Landing


def _landing(asked: SiteRequest, run_id: str) -> ActionForm:
    context = context_of(asked, run_id)
    plan = landing.prepare(context, None, cwd=context.repository.folder)
    if plan.is_done:
        raise Conflict(f"{plan.branch} has everything of the run already", run_id=run_id)
    how = "a merge, which is checked first" if plan.is_merge else "fast-forward"
    return ActionForm(
        title=f"Land on {plan.branch}",
        button="Land",
        subject=asked.log.runs.get(run_id).goal,
        link=f"/runs/{run_id}/changes",
        explanation="The branch moves forward to what the run has landed. Commits that no check has passed are checked first.",
        command=command("run", "land", run_id, "--branch", plan.branch),
        facts=(
            ("repository", str(context.repository.folder)),
            ("change", f"{counted(plan.files, 'file')}, {plan.old[:12]} to {plan.new[:12]}, {how}"),
        ),
        state=f"{plan.branch} {plan.old} {plan.new}",
    )


def _land(asked: SiteRequest, run_id: str, _: Mapping[str, str]) -> str:
    context = context_of(asked, run_id)
    plan = landing.prepare(context, None, cwd=context.repository.folder)
    landing.examine(context, plan)
    by = actor_of(asked) if is_registered(asked) else context.person.name
    landing.land(context, plan, by=by, proof=signed(asked))
    return f"/runs/{run_id}/changes"


ACTIONS = {
    COMMENT: WebAction(_commenting, _comment, is_one_change=False),
    MESSAGE: WebAction(_messaging, _message, is_one_change=False),
    PAUSE: WebAction(_pausing, _pause),
    RESUME: WebAction(_resuming, _resume),
    RETRY: WebAction(_retrying, _retry),
    STOP: WebAction(_stopping, _stop),
    LAND: WebAction(_landing, _land, is_one_change=False),
}
