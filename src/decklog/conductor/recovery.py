"""What a conductor that died left behind: agents that still run are adopted, the rest is kept and given back."""

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from decklog.conductor import commands
from decklog.conductor.commands import Running
from decklog.conductor.git import keeping, places
from decklog.conductor.git.places import place_of
from decklog.conductor.items.item import BY_HAND
from decklog.conductor.site import RunContext
from decklog.conductor.stages import PLAN, WORK
from decklog.core.errors import Conflict, Unavailable
from decklog.guard.calls.tool import EffectCheck

if TYPE_CHECKING:
    from decklog.stores.effects.effects import Effect
    from decklog.stores.tasks.claim import Claim
    from decklog.stores.tasks.task import Task

_PAGE = 200


class Recovery:
    """Takes over from conductors of this host that have ended."""

    def __init__(self, site: RunContext, lease_seconds: float) -> None:
        self._site = site
        self._log = site.log
        self._lease_seconds = lease_seconds
        # Whether something waits for a remote that is away.
        self.has_left = False

    def take_over(self) -> list[tuple["Claim", int]]:
        """Adopt agents that run or ended unseen, each with the fence of its place; give everything else back."""
        adopted = []
        for task in self._of_the_dead():
            fence = self._with_agent(task) if task.role in (PLAN, WORK) else None
            if fence is None:
                self._give_back(task)
            elif (claim := self._claimed(task, fence)) is not None:
                adopted.append((claim, fence))
        self.clean_up()
        self._drop_left_over()
        return adopted

    def pin_all(self) -> None:
        """Keep what is left in the places of a run that is over, and end what still runs there."""
        self.clean_up()
        self._drop_left_over()

    def _of_the_dead(self) -> list["Task"]:
        running = self._log.tasks.find(self._site.run_id, state="running", limit=_PAGE)
        return [task for task in running if self._site.host.is_dead(task.worker)]

    def _with_agent(self, task: "Task") -> int | None:
        """Return the fence of the place in which an agent of a task was started; none is null."""
        for effect in self._effects("conductor.spawn", task.id):
            fence = _fence_of(effect)
            place = place_of(self._site.repository, self._site.run_id, task.id, fence)
            if not self._is_cleaned(task.id, fence) and Running.find(self._site.mark(task.id, fence), place.folder / "agent"):
                return fence
        return None

    def _claimed(self, task: "Task", fence: int) -> "Claim | None":
        """Let a lease change hands in one transaction; of two who try, one gets it."""
        running = Running.find(self._site.mark(task.id, fence), self._folder(task.id, fence))
        if running is not None:
            running.adopt()
        try:
            with self._log.transaction():
                self._log.tasks.release(task.id, fence=task.fence, reason="its conductor has died")
                return self._log.tasks.claim(
                    self._site.run_id,
                    worker=self._site.holder,
                    task_id=task.id,
                    lease_seconds=self._lease_seconds,
                    reserve_microdollars=self._site.configuration.piece_microdollars,
                )
        except Conflict:
            return None  # another conductor was faster

    def _folder(self, task_id: str, fence: int) -> Any:
        return place_of(self._site.repository, self._site.run_id, task_id, fence).folder / "agent"

    def _give_back(self, task: "Task") -> None:
        try:
            self._log.tasks.release(task.id, fence=task.fence, reason="its conductor has died")
        except Conflict:
            return  # another conductor was faster

    # What is left of attempts that nobody goes on with

    def clean_up(self) -> None:
        """Keep and remove the places of this host in which nobody works, and close what was begun for an attempt that is over.

        Where the remote is away, what is left stays where it is for now: see `has_left`.
        """
        places = list(self._effects("conductor.place"))
        newest = dict(sorted((str(effect.task_id), _fence_of(effect)) for effect in places))
        self.has_left = False
        for effect in places:
            # A place of another host is there, and that host's to keep: nobody else can look into it.
            if effect.facts.get("host") == self._site.host.id and not self._is_cleaned(str(effect.task_id), _fence_of(effect)):
                self._clean_up_place(effect, newest)
        # What was begun for an attempt that is over came to nothing; the next attempt has its own.
        for tool, state in product(("place", "spawn"), ("intended", "unknown")):
            for effect in self._effects(f"conductor.{tool}", state=state):
                if not self._is_in_use(effect, newest):
                    self._site.acts.abandon(effect)

    def _clean_up_place(self, effect: "Effect", newest: dict[str, int]) -> None:
        if self._is_in_use(effect, newest):
            return
        try:
            self._keep_and_clean(str(effect.task_id), _fence_of(effect), dict(effect.facts))
        except Conflict:
            return  # another conductor of this host is at it
        except Unavailable:
            if not self._site.tips.is_away():
                raise
            self.has_left = True

    def _is_in_use(self, effect: "Effect", newest: dict[str, int]) -> bool:
        """Return whether an agent may work in a workspace: the newest one of a claimed task is in use.

        Asked anew each time, since others claim meanwhile.
        """
        task = self._log.tasks.get(str(effect.task_id))
        held: Any = task.inputs.get(BY_HAND)
        if held:
            # A person works there.
            return _fence_of(effect) == int(held["fence"])
        return _fence_of(effect) >= newest.get(task.id, 0) and task.state == "running"

    def _drop_left_over(self) -> None:
        """Remove the folders of checks that died with their conductor, and what it had still to remove.

        Whoever claims a task runs its checks again; what is to be removed was kept before.
        """
        for folder in self._site.checks_folder.glob("*"):
            if self._site.host.is_dead(folder.name):
                for check in folder.iterdir():
                    commands.end(check.name)
                places.remove_folder(folder)
        for folder in self._site.removed_folder.glob("*"):
            if self._site.host.is_dead(folder.name):
                places.remove_folder(folder)

    def _keep_and_clean(self, task_id: str, fence: int, facts: dict[str, Any]) -> None:
        site = self._site
        place = place_of(site.repository, site.run_id, task_id, fence)
        commands.end(site.mark(task_id, fence))
        if place.is_made:

            def keep() -> dict[str, object]:
                found = keeping.keep(site.repository, place, facts["start"], site.person, facts["at"])
                site.tips.publish(place.refs, lambda: "nobody waits for it")
                return found.as_dict()

            site.acts.perform(f"keep:{task_id}:{fence}", keep, lambda _: EffectCheck(False), task_id=task_id)

        def clean() -> None:
            if place.folder.exists():
                places.remove(place)

        site.acts.perform(f"clean:{task_id}:{fence}", clean, lambda _: EffectCheck(not place.folder.exists()), task_id=task_id)

    def _is_cleaned(self, task_id: str, fence: int) -> bool:
        known = self._log.effects.known(self._site.run_id, f"clean:{task_id}:{fence}")
        return known is not None and known.is_settled

    def _effects(self, tool: str, task_id: str | None = None, state: Any = None) -> Iterator["Effect"]:
        after = None
        while True:
            page = self._log.effects.find(self._site.run_id, tool=tool, task_id=task_id, state=state, limit=_PAGE, after=after)
            # A fork has copies of steps that were another run's: their names are still that one's.
            yield from (effect for effect in page if effect.step.partition(":")[2].startswith(f"{effect.task_id}:"))
            if (after := page.next) is None:
                return


def _fence_of(effect: "Effect") -> int:
    return int(effect.step.rpartition(":")[2])
