"""The merge lane: one candidate after the other, examined as it will be, and the target moved to exactly that commit."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from decklog.conductor import kill_points
from decklog.conductor.git.changes import changes
from decklog.conductor.git.repository import Repository
from decklog.conductor.site import RunContext
from decklog.guard.calls.tool import EffectCheck

if TYPE_CHECKING:
    from decklog.stores.effects.effects import Effect
    from decklog.stores.tasks.claim import Claim
    from decklog.stores.tasks.task import Task

MOST_RACES = 5


class MergeQueue:
    """Lands pieces of one run."""

    def __init__(self, site: RunContext, wanted_end: Callable[[], str | None]) -> None:
        self._site = site
        self._repository: Repository = site.repository
        self._wanted_end = wanted_end
        # What was begun to land the piece before this: who has the task alone adds to it.
        self._begun: list[Effect] = []

    def land(self, claim: "Claim") -> None:
        """Land a piece that is green, or hand it on to whom it is to go next."""
        task = claim.task
        if task.inputs.get("parts"):
            # Others were put in its place, and all of them are in the target.
            target = self._site.target_commit()
            self._say_landed(claim, target)
            return
        landed = self._landed_before(task)
        if landed is not None:
            self._has_landed(claim, landed)
            return
        if self._site.rounds.has_another(claim):
            return
        for _ in range(MOST_RACES):
            if self._tried(claim):
                return
        claim.release("the target moved each time; it goes to the end of the queue")

    def _tried(self, claim: "Claim") -> bool:
        """Try to land a piece on the target as it is now; say whether that settled it."""
        task = claim.task
        target, tip = self._site.target_commit(), str(task.inputs["tip"])
        self._site.tips.bring([tip])
        merged = self._repository.merge(target, tip)
        if merged.conflicts:
            text = "it does not merge with what has landed since"
            self._site.stages.rework(claim, target, [{"kind": "conflict", "text": text, "paths": list(merged.conflicts)}])
            return True
        if merged.tree == self._repository.tree(target):
            self._say_landed(claim, target)
            return True
        candidate = self._candidate(task, merged.tree, target)
        return self._decided(claim, target, candidate) or self._advanced(claim, target, candidate)

    def _candidate(self, task: "Task", tree: str, target: str) -> str:
        """Make the commit that would land; the same merge is the same commit however often it is made."""
        title = task.title.removeprefix("Land: ")
        message = f"{title}\n\nDecklog-Run: {self._site.run_id}\nDecklog-Task: {task.id}\n"
        commit = self._repository.commit(tree, [target], message, self._site.person, int(str(task.inputs["at"])))
        kill_points.reached("lane:candidate")
        return commit

    def _decided(self, claim: "Claim", target: str, candidate: str) -> bool:
        """Examine a candidate; say whether it was handed on to somebody instead of landing."""
        task = claim.task
        found = self._site.examined(task, target, candidate, self._wanted_end)
        if found.is_green:
            # Checks and a review take their time.
            return self._site.rounds.has_another(claim)
        if self._wanted_end() is not None:
            claim.release("it was being checked when the conductor was told to stop")
        elif found.about is not None and self._site.stages.was_denied(task) is None:
            self._site.stages.asked(claim, found.about, found.findings)
        else:
            self._site.stages.rework(claim, target, found.findings)
        return True

    def _advanced(self, claim: "Claim", target: str, candidate: str) -> bool:
        """Move the target to the candidate, if it is still where it was; say whether it moved."""
        task = claim.task
        step = f"advance:{task.id}:{candidate}:{target}"
        if not self._advance(step, task.id, candidate, target):
            return False
        self._has_landed(claim, candidate)
        return True

    def _has_landed(self, claim: "Claim", commit: str) -> None:
        self._say_landed(
            claim, commit, [one.path for one in changes(self._repository, self._repository.parents(commit)[0], commit)]
        )

    def _say_landed(self, claim: "Claim", commit: str, files: Sequence[str] = ()) -> None:
        """Say that a piece is in the target, and of what others began to land of it that it came to nothing."""
        for effect in self._begun:
            self._site.acts.abandon(effect)
        with self._site.log.transaction():
            self._site.stages.landed(claim, commit, self._repository.tree(commit), files)
            self._site.rounds.landed(claim.task, commit)

    def _advance(self, step: str, task_id: str, candidate: str, old: str) -> bool:
        facts: dict[str, object] = {"candidate": candidate, "old": old}

        def swap() -> bool:
            return self._site.tips.advance(candidate, old)

        moved: bool = self._site.acts.perform(
            step, swap, lambda _: EffectCheck(self._is_in(candidate), True), task_id=task_id, facts=facts
        )
        return moved

    def _is_in(self, candidate: str) -> bool:
        target = self._site.target_commit()
        # Another host's that never came to the target need not be here.
        return self._repository.has(candidate) and self._repository.is_ancestor(candidate, target)

    def _landed_before(self, task: "Task") -> str | None:
        """Find the commit as which a piece was landed by somebody who then died; none is null."""
        target = self._site.target_commit()
        effects = self._site.log.effects
        self._begun = list(effects.find(self._site.run_id, tool="conductor.advance", task_id=task.id, limit=100))
        for effect in self._begun:
            candidate = str(effect.facts["candidate"])
            if self._is_in(candidate):
                self._advance(effect.step, task.id, candidate, str(effect.facts["old"]))
                return candidate
            if effect.facts["old"] != target:
                # Another piece has landed since: the target never is there again, and this one lands by another step.
                self._site.acts.abandon(effect)
        return None
