"""The context of one run, which all of its stages share: its host, its repository, and the workspaces of its attempts.

A host is one clone with its workspaces on one machine. A file next to the workspaces names it. So two clones on one machine are
two hosts, and a machine that was restarted is the same.
"""

import hashlib
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from decklog.conductor import kill_points
from decklog.conductor.checks.examination import Examination, Examiner
from decklog.conductor.checks.running import Runner
from decklog.conductor.git import workspaces
from decklog.conductor.git.refs import RunRefs, run_refs
from decklog.conductor.git.repository import Person, Repository, ref_part
from decklog.conductor.git.workspaces import Workspace
from decklog.conductor.settings import Configuration
from decklog.conductor.stages import Stages
from decklog.core.errors import Conflict, StillPending, Unproven
from decklog.core.processes import Identity
from decklog.guard.calls.tool import EffectCheck
from decklog.log import Decklog
from decklog.stores.effects.effects import Effect
from decklog.stores.tasks.task import Task

MACHINE_ID = Path("/etc/machine-id")
EndReason = Callable[[], str | None]


def machine() -> str:
    """Return the name of this machine, which is the same after a restart; empty if it has none."""
    try:
        found = MACHINE_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    # The id itself is private.
    return hashlib.sha256(f"decklog:{found}".encode()).hexdigest()[:16] if found else ""


class Host:
    """Records the conductors of this host, so that later ones know which of them are dead."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "hosts" / (machine() or "unnamed")
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @cached_property
    def id(self) -> str:
        """The id of this host, created on first use."""
        path = self._folder / "id"
        new = self._folder / f"id.{os.getpid()}"
        if not path.exists():
            new.write_text(f"host_{uuid.uuid4().hex[:12]}", encoding="ascii")
            # If another process was faster, its id counts.
            with suppress(FileExistsError):
                os.link(new, path)
            new.unlink()
        return path.read_text(encoding="ascii")

    def enter(self) -> str:
        """Record this process; return the name that it claims tasks under."""
        own = Identity.own()
        name = f"conductor-{os.uname().nodename}-{self.id.removeprefix('host_')}-{own.pid}-{own.ticks}"
        new = self._folder / f"{name}.new"
        new.write_text(own.as_text(), encoding="utf-8")
        new.rename(self._folder / f"{name}.json")
        return name

    def is_dead(self, worker: str | None) -> bool:
        """Return whether a task's worker is a conductor of this host that has ended."""
        try:
            text = (self._folder / f"{worker}.json").read_text(encoding="utf-8")
        except OSError:
            return False
        known = Identity.from_text(text)
        # A restart of this machine has ended it as well.
        return known.is_alive() is False or known.boot_id != Identity.own().boot_id


class SideEffects:
    """Performs each step of a run once."""

    def __init__(self, log: Decklog, run_id: str) -> None:
        self._log = log
        self._run_id = run_id
        self._actor = Identity.own().as_text()

    def perform(
        self,
        step: str,
        act: Callable[[], Any],
        look: Callable[[Effect], EffectCheck],
        *,
        task_id: str | None,
        facts: dict[str, object] | None = None,
    ) -> Any:
        """Act, or return the earlier result of the step. After a crash, `look` checks whether it happened."""
        tool = step.partition(":")[0]
        effect = self._log.effects.intend(
            self._run_id, step, f"conductor.{tool}", key=step, actor=self._actor, facts=facts, task_id=task_id
        )
        kill_points.reached(f"{tool}:intended")
        if effect.already:
            effect = self._resolved(effect, look)
        if effect.is_settled:
            return effect.result
        result = act()
        kill_points.reached(f"{tool}:done")
        self._log.effects.settle(effect.id, actor=self._actor, result=result)
        kill_points.reached(f"{tool}:settled")
        return result

    def abandon(self, effect: Effect) -> None:
        """Record that a step of a dead conductor was not done, unless another process is doing it."""
        if effect.is_settled or self._is_being_done(effect):
            return
        error: dict[str, object] = {"code": "abandoned", "message": "its conductor died or lost the task before it was recorded"}
        try:
            if effect.state == "unknown":
                effect = self._log.effects.take_up(effect.id, actor=self._actor, attempts=effect.attempts)
            self._log.effects.settle(effect.id, actor=str(effect.actor), error=error)
        except (Conflict, Unproven):
            return  # another conductor was faster, or only the owner knows whether it was done

    def _resolved(self, effect: Effect, look: Callable[[Effect], EffectCheck]) -> Effect:
        """Return a step that was started before: finalized, or taken over by this process."""
        if effect.is_settled:
            return effect
        if effect.state == "intended" and self._is_being_done(effect):
            raise StillPending(f"{effect.step} is being done by another process", hint="Wait for it.", effect_id=effect.id)
        finding = look(effect)
        seen: dict[str, Any] = {"attempts": effect.attempts, "abandoned_by": effect.actor}
        if finding.happened:
            return self._log.effects.confirm(effect.id, result=finding.result, by="conductor", **seen)
        return self._log.effects.take_up(effect.id, actor=self._actor, **seen)

    def _is_being_done(self, effect: Effect) -> bool:
        # Callers hold the task's lease, so nobody else works on steps that this process began.
        return effect.actor not in (None, self._actor) and bool(Identity.from_text(str(effect.actor)).is_alive())


class ChangeReviewer(Protocol):
    """Reviews changes that passed the checks. The conductor calls no model itself."""

    def __call__(self, context: "RunContext", task: Task, base: str, tip: str, end_reason: EndReason) -> Examination: ...


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The log, repository and settings of a run. `remote` is the git remote that its hosts share, if any."""

    log: Decklog
    run_id: str
    repository: Repository
    configuration: Configuration
    person: Person
    reviewer: ChangeReviewer | None = None
    remote: str | None = None

    @cached_property
    def refs(self) -> RunRefs:
        """The refs of the run, here and at the remote."""
        return run_refs(self.repository, self.run_id, self.remote)

    @property
    def target(self) -> str:
        """The ref of the landed commits."""
        return self.refs.target

    @property
    def folder(self) -> Path:
        return self.repository.state / ref_part(self.run_id)

    @property
    def log_file(self) -> str | None:
        return self.log.db.file

    @cached_property
    def holder(self) -> str:
        """The name under which this process claims tasks and owns folders."""
        return self.host.enter()

    @cached_property
    def host(self) -> Host:
        """The host of this clone and machine."""
        return Host(self.repository.state)

    @property
    def checks_folder(self) -> Path:
        """The folder of running checks. Each conductor has a subfolder, which a later one can remove."""
        return self.folder / "checks"

    @cached_property
    def stages(self) -> Stages:
        return Stages(self.log, self.run_id, self.configuration)

    @cached_property
    def effects(self) -> SideEffects:
        return SideEffects(self.log, self.run_id)

    def target_commit(self) -> str:
        """Return the commit that the target is at."""
        return self.refs.target_commit()

    def runner(self, end_reason: EndReason = lambda: None) -> Runner:
        """Return a runner of checks."""
        return Runner(
            repository=self.repository,
            person=self.person,
            sandbox=self.configuration.sandbox,
            log_file=self.log_file,
            folder=self.checks_folder / self.holder,
            end_reason=end_reason,
        )

    def examiner(self, end_reason: EndReason = lambda: None, *, task_id: str | None = None, fence: int = 0) -> Examiner:
        """Return an examiner of changes, for a task or for none."""
        return Examiner(self.log, self.run_id, self.configuration, self.runner(end_reason), task_id=task_id, fence=fence)

    def examine(self, task: Task, base: str, tip: str, end_reason: EndReason) -> Examination:
        """Examine a change for a task by the checks and, if they pass and the settings require it, by a review."""
        found = self.examiner(end_reason, task_id=task.id, fence=task.fence).examine(base, tip)
        if not found.is_green or not self.configuration.is_reviewed:
            return found
        assert self.reviewer is not None, "a run whose settings ask for a review has a reviewer"
        return self.reviewer(self, task, base, tip, end_reason)

    def attempt(self, task_id: str, fence: int) -> "AttemptWorkspace":
        """Return the workspace of an attempt."""
        return AttemptWorkspace(self, task_id, fence)


@dataclass(frozen=True)
class AttemptWorkspace:
    """The workspace of the attempt at a task under a fencing token. It is made, saved and removed once."""

    context: RunContext
    task_id: str
    fence: int

    @cached_property
    def place(self) -> Workspace:
        return workspaces.workspace(self.context.repository, self.context.run_id, self.task_id, self.fence)

    @property
    def agent_folder(self) -> Path:
        return self.place.folder / "agent"

    @property
    def mark(self) -> str:
        """The mark in the environment of the attempt's processes."""
        context = self.context
        return hashlib.sha256(f"{context.repository.common}:{context.run_id}:{self.task_id}:{self.fence}".encode()).hexdigest()[
            :32
        ]

    def facts(self) -> dict[str, Any] | None:
        """Return the facts of the attempt: commits, time, agent and host; None if no workspace was recorded."""
        known = self.context.log.effects.known(self.context.run_id, f"place:{self.task_id}:{self.fence}")
        return None if known is None else dict(known.facts)

    @property
    def is_removed(self) -> bool:
        known = self.context.log.effects.known(self.context.run_id, f"clean:{self.task_id}:{self.fence}")
        return known is not None and known.is_settled

    def perform(self, name: str, act: Callable[[], Any], look: Callable[[Any], EffectCheck], **facts: object) -> Any:
        """Perform one step of the attempt once."""
        step = f"{name}:{self.task_id}:{self.fence}"
        return self.context.effects.perform(step, act, look, task_id=self.task_id, facts=facts)

    def make(self, base: str, start: str, agent: str) -> dict[str, Any]:
        """Make the workspace from the files of a commit; return the facts of the attempt."""
        context, at = self.context, int(self.context.log.clock.now().timestamp())
        facts = self.facts() or {"base": base, "start": start, "at": at, "agent": agent, "host": context.host.id}
        self.perform(
            "place",
            lambda: workspaces.make(context.repository, self.place, str(facts["start"]), context.person),
            lambda _: EffectCheck(self.place.is_made),
            **facts,
        )
        return facts

    def keep(self, facts: dict[str, Any]) -> workspaces.KeptAttempt:
        """Save all work of the attempt by refs."""
        return workspaces.keep(self.context.repository, self.place, str(facts["start"]), self.context.person, int(facts["at"]))

    def keep_and_publish(self, facts: dict[str, Any], end_reason: EndReason, **more: object) -> dict[str, Any]:
        """Save all work of the attempt, here and at the remote. Return it in its recorded form."""

        def keep() -> dict[str, object]:
            kept = self.keep(facts)
            # Before it is recorded: readers of the log must be able to fetch it.
            self.context.refs.publish(self.place.refs, end_reason)
            return kept.as_dict()

        # Keeping again gives the same refs, so there is nothing to look for.
        kept: dict[str, Any] = self.perform("keep", keep, lambda _: EffectCheck(False), **more)
        return kept

    def remove(self) -> None:
        """Remove the workspace."""
        folder = self.place.folder

        def remove() -> None:
            if folder.exists():
                workspaces.remove(self.place)

        self.perform("clean", remove, lambda _: EffectCheck(not folder.exists()))

    def snapshot(self, facts: dict[str, Any]) -> str:
        """Create a commit of the workspace's current files. No ref keeps it."""
        context = self.context
        return workspaces.snapshot(context.repository, self.place, facts["start"], context.person, facts["at"])
