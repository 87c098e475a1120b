"""The merge queue: one candidate at a time, examined as it will land, and the target moved to exactly that commit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from decklog.conductor import kill_points
from decklog.conductor.context import RunContext, WantedEnd
from decklog.conductor.git.changes import changes
from decklog.guard.calls.tool import EffectCheck

if TYPE_CHECKING:
    from decklog.stores.effects.effects import Effect
    from decklog.stores.tasks.claim import Claim
    from decklog.stores.tasks.task import Task

MOST_RACES = 5


class MergeQueue:
    """Lands work items of one run."""

    def __init__(self, context: RunContext, wanted_end: WantedEnd) -> None:
        self._context = context
        self._repository = context.repository
        self._wanted_end = wanted_end
        # Earlier steps to land the work item. Only the owner of the task adds to them.
        self._begun: list[Effect] = []

    def land(self, claim: "Claim") -> None:
        """Land a work item that passed its checks, or hand it on."""
        if claim.task.inputs.get("parts"):
            # It was replaced by others, and all of them have landed.
            self._record(claim, self._context.target_commit())
            return
        landed = self._landed_before(claim.task)
        if landed is not None:
            self._record_change(claim, landed)
            return
        if self._context.rounds.has_another(claim):
            return
        for _ in range(MOST_RACES):
            if self._tried(claim):
                return
        claim.release("the target moved each time; it goes to the end of the queue")

    def _tried(self, claim: "Claim") -> bool:
        """Try to land a work item on the target as it is now; return whether the task is handed on."""
        task = claim.task
        target, tip = self._context.target_commit(), str(task.inputs["tip"])
        self._context.tips.fetch_missing([tip])
        merged = self._repository.merge(target, tip)
        if merged.conflicts:
            text = "it does not merge with what has landed since"
            self._context.stages.rework(claim, target, [{"kind": "conflict", "text": text, "paths": list(merged.conflicts)}])
            return True
        if merged.tree == self._repository.tree(target):
            self._record(claim, target)
            return True
        candidate = self._candidate(task, merged.tree, target)
        if self._is_handed_on(claim, target, candidate):
            return True
        if not self._advance(f"advance:{task.id}:{candidate}:{target}", task.id, candidate, target):
            return False
        self._record_change(claim, candidate)
        return True

    def _candidate(self, task: "Task", tree: str, target: str) -> str:
        """Create the commit to land; the same merge gives the same commit."""
        title = task.title.removeprefix("Land: ")
        message = f"{title}\n\nDecklog-Run: {self._context.run_id}\nDecklog-Task: {task.id}\n"
        commit = self._repository.commit(tree, [target], message, self._context.person, int(str(task.inputs["at"])))
        kill_points.reached("lane:candidate")
        return commit

    def _is_handed_on(self, claim: "Claim", target: str, candidate: str) -> bool:
        """Examine a candidate; return whether it is handed on instead of landed."""
        stages = self._context.stages
        found = self._context.examined(claim.task, target, candidate, self._wanted_end)
        if found.is_green:
            # Somebody may have asked for another round meanwhile.
            return self._context.rounds.has_another(claim)
        if self._wanted_end() is not None:
            claim.release("the conductor was stopped while it was being checked")
        elif found.about is not None and stages.was_denied(claim.task) is None:
            stages.asked(claim, found.about, found.findings)
        else:
            stages.rework(claim, target, found.findings)
        return True

    def _record_change(self, claim: "Claim", commit: str) -> None:
        changed = changes(self._repository, self._repository.parents(commit)[0], commit)
        self._record(claim, commit, [one.path for one in changed])

    def _record(self, claim: "Claim", commit: str, files: Sequence[str] = ()) -> None:
        """Record that a work item has landed, and abandon other steps to land it."""
        for effect in self._begun:
            self._context.effects.abandon(effect)
        with self._context.log.transaction():
            self._context.stages.landed(claim, commit, self._repository.tree(commit), files)
            self._context.rounds.landed(claim.task, commit)

    def _advance(self, step: str, task_id: str, candidate: str, old: str) -> bool:
        """Move the target to the candidate if it is still where it was; return whether it moved."""
        moved: bool = self._context.effects.perform(
            step,
            lambda: self._context.tips.advance(candidate, old),
            lambda _: EffectCheck(self._is_landed(candidate), True),
            task_id=task_id,
            facts={"candidate": candidate, "old": old},
        )
        return moved

    def _is_landed(self, candidate: str) -> bool:
        target = self._context.target_commit()
        # A candidate of another host that did not land may be missing here.
        return self._repository.has(candidate) and self._repository.is_ancestor(candidate, target)

    def _landed_before(self, task: "Task") -> str | None:
        """Return the commit of a work item that a dead conductor landed; None if there is none."""
        target = self._context.target_commit()
        self._begun = list(
            self._context.log.effects.find(self._context.run_id, tool="conductor.advance", task_id=task.id, limit=100)
        )
        for effect in self._begun:
            candidate, old = str(effect.facts["candidate"]), str(effect.facts["old"])
            if self._is_landed(candidate):
                self._advance(effect.step, task.id, candidate, old)
                return candidate
            if old != target:
                # The target never goes back, so this step can't succeed any more.
                self._context.effects.abandon(effect)
        return None
