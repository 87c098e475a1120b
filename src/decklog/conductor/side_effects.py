"""Side effects outside of the log: recorded before they happen, finalized after, and looked for after a crash."""

from collections.abc import Callable
from typing import Any

from decklog.conductor import kill_points
from decklog.core.errors import Conflict, StillPending, Unproven
from decklog.core.processes import Identity
from decklog.guard.calls.tool import EffectCheck
from decklog.log import Decklog
from decklog.stores.effects.effects import Effect


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
        """Act, or return the earlier result of the step. `look` checks after a crash whether it happened."""
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
        """Return a step that was begun before as finalized, or as ours to do."""
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
