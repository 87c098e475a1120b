"""Take over a work item: end its agent, and let a person work in its workspace.

Meanwhile the item's task is paused, so that no conductor claims it. Afterwards the work is saved, checked and landed like that
of an agent, and the record names the person.
"""

import os
import shlex
import time
from dataclasses import dataclass
from typing import Any

from decklog.conductor.agents.description import Description
from decklog.conductor.agents.session import KINDLY, AgentSession, Terms
from decklog.conductor.agents.stream import Follower, StreamReader
from decklog.conductor.commands import Running
from decklog.conductor.context import AttemptWorkspace, RunContext
from decklog.conductor.git.changes import NO_CHANGE, find_faults, list_changes
from decklog.conductor.git.workspaces import Workspace
from decklog.conductor.items.item import BY_HAND, Item, Rounds, find_item, find_workspace
from decklog.conductor.stages import WORK
from decklog.core.display import counted
from decklog.core.errors import Conflict
from decklog.guard.files.gitignore import IgnoreFile
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import Task

SUBTYPE = "conductor.by-hand"
_LEASE_SECONDS = 60.0
_MOST_SECONDS_TO_END = 15.0


@dataclass(frozen=True)
class OpenedWorkspace:
    """A workspace that a person has taken over. `resume` is the command that resumes the agent's session there, if any."""

    folder: str
    resume: str | None
    # Whether it had been taken over before.
    already: bool = False


def open_item(context: RunContext, item: Item, *, by: str) -> OpenedWorkspace:
    """Hand a work item to a person: end its agent if one works on it, and return the workspace."""
    if item.landing.state == "abandoned":
        raise Conflict(f"{item.name} was given up", hint="Start another run for this work.", item=item.name)
    task = item.work or _begin_round(context, item)
    if task.inputs.get(BY_HAND):
        return _describe_workspace(context, find_item(context.log, context.run_id, item.name), already=True)
    attempt = context.attempt(task.id, task.fence)
    is_working = task.state == "running" and attempt.place.is_made
    with context.log.transaction():
        if task.state == "paused":
            context.log.tasks.resume(task.id)
        paused = context.log.tasks.pause(task.id, reason=f"{by} works on it by hand; then: decklog run continue {item.name}")
        fence = task.fence if is_working else paused.fence
        inputs = {**paused.inputs, BY_HAND: {"by": by, "fence": fence}}
        context.log.tasks.edit(task.id, reason=f"{by} takes it over", inputs=inputs)
        _record(context, task, by, f"{by} takes {item.name} over by hand", event="taken")
    if is_working:
        _end_agent(context, task, attempt)
    else:
        _make_workspace(context, paused, by)
    return _describe_workspace(context, find_item(context.log, context.run_id, item.name))


def _begin_round(context: RunContext, item: Item) -> Task:
    """Begin a round of work by hand for an item that waits for its check or landing, or has landed."""
    Rounds(context).resume_item(item)
    again = find_item(context.log, context.run_id, item.name)
    if again.work is not None:
        return again.work
    task = next((one for one in reversed(again.open_tasks) if "tip" in one.inputs), again.landing)
    if task.state == "running":
        raise Conflict(f"{item.name} is being checked or landed now", hint="Try again in a moment.", item=item.name)
    claim = context.log.tasks.claim(context.run_id, worker=_worker(context), task_id=task.id, lease_seconds=_LEASE_SECONDS)
    assert claim is not None, "a task that is named is claimed or refused"
    return Rounds(context).begin_round(claim)


def _worker(context: RunContext) -> str:
    return f"{context.person.name} ({os.uname().nodename})"


def _end_agent(context: RunContext, task: Task, attempt: AttemptWorkspace) -> None:
    """End the agent in a workspace, and record the rest of its output and its cost.

    The conductor that watched the agent can't do so, as it has lost the task.
    """
    running, facts = Running.find(attempt.mark, attempt.agent_folder), attempt.facts()
    if running is None or facts is None:
        return
    running.stop(KINDLY)
    end = time.monotonic() + _MOST_SECONDS_TO_END
    while running.ending() is None and time.monotonic() < end:
        time.sleep(0.05)
    if running.ending() is not None:
        terms = Terms(run_id=context.run_id, task_id=task.id, folder=str(attempt.place.tree))
        agent = context.configuration.agent_for(task, str(facts["agent"]))
        AgentSession(context.log, agent, terms, running).watch(lambda: None)


def _make_workspace(context: RunContext, task: Task, by: str) -> None:
    base = str(task.inputs.get("base") or context.target_commit())
    start = str(task.inputs.get("earlier") or task.inputs.get("start") or base)
    context.refs.fetch_missing([base, start])
    context.attempt(task.id, task.fence).make(base, start, f"by hand: {by}")


def _describe_workspace(context: RunContext, item: Item, *, already: bool = False) -> OpenedWorkspace:
    found = find_workspace(context, item)
    if found is None:
        raise Conflict(f"the workspace of {item.name} is on another machine", hint="Open it there.", item=item.name)
    place, facts = found
    return OpenedWorkspace(str(place.tree), _resume_command(context, place, facts), already)


def _resume_command(context: RunContext, place: Workspace, facts: dict[str, Any]) -> str | None:
    """Return the command that resumes the agent's session in a workspace; its files are still there."""
    agent = context.configuration.agents.get(str(facts["agent"]))
    session = _find_session(agent, place) if agent is not None and agent.resume else None
    if agent is None or session is None:
        return None
    words = [session if word == "{session}" else word for word in agent.resume]
    home = place.folder / "agent" / "home"
    variables = [f"HOME={home}"] if home.is_dir() and not agent.keeps_home else []
    return f"cd {shlex.quote(str(place.tree))} && {shlex.join([*variables, *words])}"


def _find_session(agent: Description, place: Workspace) -> str | None:
    """Return the session id in the output of the agent of a workspace."""
    reader = StreamReader(agent)
    events = (event for line in Follower(place.folder / "agent").lines() for event in reader.read(line))
    return next((str(event.taken["session"]) for event in events if event.taken.get("session")), None)


# The hand-back


def continue_item(context: RunContext, item: Item, *, by: str) -> int:
    """Give a work item back to the conductor, to be checked and landed. Return the number of changed files.

    Without a change, an agent continues the item.
    """
    task = item.work
    if task is None or not task.inputs.get(BY_HAND):
        return 0
    found = find_workspace(context, item)
    if found is None:
        raise Conflict(f"the workspace of {item.name} is on another machine", hint="Continue it there.", item=item.name)
    place, facts = found
    attempt = context.attempt(task.id, int(place.folder.name.rpartition("-")[2]))
    kept = attempt.keep(facts)
    tip = str(kept.tip if kept.is_clean and kept.tip else kept.changed)
    context.refs.publish(place.refs, lambda: "nobody waits for it")
    _refuse_faulty(context, item, facts, tip)
    files = [one.path for one in list_changes(context.repository, str(facts["start"]), tip)]
    with context.log.transaction():
        inputs = {name: value for name, value in task.inputs.items() if name != BY_HAND}
        context.log.tasks.edit(task.id, reason=f"{by} gives it back", inputs=inputs)
        context.log.tasks.resume(task.id)
        body = f"{by} changed {counted(len(files), 'file')} of {item.name} by hand"
        _record(context, task, by, body, event="given back", files=files[:200])
        if files:
            _hand_over(context, item, task, {**facts, "tip": tip, "agent": f"by hand: {by}", "cost": 0})
    attempt.remove()
    return len(files)


def _refuse_faulty(context: RunContext, item: Item, facts: dict[str, Any], tip: str) -> None:
    """Raise Conflict for a change that can't land. A person may also change paths that the agents may not."""
    faults = find_faults(context.repository, str(facts["base"]), str(facts["start"]), tip, ())
    found = [fault for fault in faults if fault.signature != NO_CHANGE]
    if found:
        raise Conflict(f"{item.name} can't land: {found[0].text}", hint="Fix it, then continue.", paths=list(found[0].paths))


def _hand_over(context: RunContext, item: Item, task: Task, result: dict[str, Any]) -> None:
    changed = [one.path for one in list_changes(context.repository, str(result["base"]), str(result["tip"]))]
    _allow_paths(context, item, changed)
    claim: Claim | None = context.log.tasks.claim(
        context.run_id, worker=_worker(context), task_id=task.id, lease_seconds=_LEASE_SECONDS
    )
    assert claim is not None, "a task that is named is claimed or refused"
    context.stages.finish_work(claim, result)


def _allow_paths(context: RunContext, item: Item, changed: list[str]) -> None:
    """Add the paths that a person changed to the allowed paths of later rounds."""
    allowed = list(item.landing.allowed_paths)
    patterns = IgnoreFile(tuple(allowed))
    outside = [f"/{path}" for path in changed if allowed and not patterns.covers(path)]
    if outside:
        context.log.tasks.edit(item.landing.id, reason="a person changed more", allowed_paths=[*allowed, *outside])


def _record(context: RunContext, task: Task, by: str, body: str, **payload: object) -> None:
    assert task.role == WORK, "only work is done by hand"
    context.log.journal.append(
        context.run_id, body, kind="event", subtype=SUBTYPE, agent=by, task_id=task.id, payload={"by": by, **payload}
    )
