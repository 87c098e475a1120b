"""Recover from a dead conductor: adopt its running agents, save all other work, and release its tasks."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from decklog.conductor import commands
from decklog.conductor.commands import Running
from decklog.conductor.context import AttemptWorkspace, RunContext
from decklog.conductor.git import workspaces
from decklog.conductor.items.item import BY_HAND
from decklog.conductor.stages import PLAN, WORK
from decklog.core.errors import Conflict, Unavailable
from decklog.records.record import find_all
from decklog.stores.effects.effects import Effect
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import Task


class Recovery:
    """Takes over the agents, workspaces and tasks of dead conductors of this host."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._log = context.log
        # Set when an attempt lost its lease, or the remote was unreachable.
        self.needs_cleanup = False

    def adopt_agents(self) -> list[tuple[Claim, int]]:
        """Adopt agents that run or ended unseen, each with its workspace's fencing token. Release all other tasks."""
        adopted = []
        running = self._log.tasks.find(self._context.run_id, state="running", limit=200)
        for task in [one for one in running if self._context.host.is_dead(one.worker)]:
            attempt = self._find_attempt(task) if task.role in (PLAN, WORK) else None
            claim = self._release(task, attempt)
            if attempt is not None and claim is not None:
                adopted.append((claim, attempt.fence))
        self.clean_up()
        return adopted

    def _find_attempt(self, task: Task) -> AttemptWorkspace | None:
        """Find the attempt at a task whose agent was started and whose workspace still exists."""
        attempts = (self._context.attempt(task.id, _fence_of(effect)) for effect in self._effects("conductor.spawn", task.id))
        return next((one for one in attempts if not one.is_removed and Running.find(one.mark, one.agent_folder)), None)

    def _release(self, task: Task, attempt: AttemptWorkspace | None) -> Claim | None:
        """Release a task. With an attempt to continue, claim it in the same transaction, so that one conductor gets it."""
        running = Running.find(attempt.mark, attempt.agent_folder) if attempt is not None else None
        if running is not None:
            running.adopt()
        try:
            with self._log.transaction():
                self._log.tasks.release(task.id, fence=task.fence, reason="its conductor has died")
                if attempt is None:
                    return None
                return self._log.tasks.claim(
                    self._context.run_id,
                    worker=self._context.holder,
                    task_id=task.id,
                    lease_seconds=self._context.configuration.lease_seconds,
                    reserve_microdollars=self._context.configuration.item_microdollars,
                )
        except Conflict:
            return None  # another conductor was faster

    # Remains of attempts that are not continued

    def clean_up(self) -> None:
        """Save and remove the unused workspaces of this host, and abandon unfinished steps of ended attempts.

        Workspaces stay while the remote is unreachable: see `needs_cleanup`.
        """
        made = list(self._effects("conductor.place"))
        newest = dict(sorted((str(effect.task_id), _fence_of(effect)) for effect in made))
        self.needs_cleanup = False
        for effect in made:
            # Only its own host can read a workspace.
            if effect.facts.get("host") == self._context.host.id:
                self._clean_up(effect, newest)
        for tool, state in product(("place", "spawn"), ("intended", "unknown")):
            for effect in self._effects(f"conductor.{tool}", state=state):
                if not self._is_in_use(effect, newest):
                    self._context.effects.abandon(effect)
        # Folders of checks that died with their conductor: the checks run again under the next claim.
        for folder in self._context.checks_folder.glob("*"):
            if self._context.host.is_dead(folder.name):
                for check in folder.iterdir():
                    commands.end(check.name)
                workspaces.remove_folder(folder)

    def _clean_up(self, effect: Effect, newest: dict[str, int]) -> None:
        attempt = self._context.attempt(str(effect.task_id), _fence_of(effect))
        if attempt.is_removed or self._is_in_use(effect, newest):
            return
        try:
            commands.end(attempt.mark)
            if attempt.place.is_made:
                attempt.keep_and_publish(dict(effect.facts), lambda: "nobody waits for it")
            attempt.remove()
        except Conflict:
            return  # another conductor of this host does it
        except Unavailable:
            if not self._context.refs.is_unreachable():
                raise
            self.needs_cleanup = True

    def _is_in_use(self, effect: Effect, newest: dict[str, int]) -> bool:
        """Return whether a workspace is in use: taken over by a person, or the newest one of a running task.

        The task is read each time, since other conductors may claim it meanwhile.
        """
        task = self._log.tasks.get(str(effect.task_id))
        by_hand: Any = task.inputs.get(BY_HAND)
        if by_hand:
            return _fence_of(effect) == int(by_hand["fence"])
        return _fence_of(effect) >= newest.get(task.id, 0) and task.state == "running"

    def _effects(self, tool: str, task_id: str | None = None, state: Any = None) -> Iterator[Effect]:
        found = find_all(self._log.effects.find, self._context.run_id, tool=tool, task_id=task_id, state=state)
        # A fork has copies of another run's steps, which name the tasks of that run.
        return (effect for effect in found if effect.step.partition(":")[2].startswith(f"{effect.task_id}:"))


def _fence_of(effect: Effect) -> int:
    return int(effect.step.rpartition(":")[2])
