"""Side effects of tools that happen only once per step, by the protocol of `acting_once`."""

from collections.abc import Callable
from typing import Any

from decklog.core.errors import TooLarge
from decklog.guard.calls.tool import Check, EffectCheck, Tool, ToolCall, from_data, map_texts, to_data
from decklog.stores.effects import acting_once
from decklog.stores.effects.acting_once import Found, OnceCall
from decklog.stores.effects.effects import Effect

LONGEST_ARGUMENT = 2000


def effect_key(step: str, tool: str, arguments: dict[str, Any], task_id: str | None = None) -> str:
    """Return the key of a tool's effect."""
    return acting_once.build_key(step, tool, to_data(arguments), task_id)


def shorten_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Shorten arguments for people. The effect's key contains their digest."""
    shortened: dict[str, Any] = map_texts(
        to_data(arguments), lambda text: text if len(text) <= LONGEST_ARGUMENT else f"{text[:LONGEST_ARGUMENT]}…"
    )
    return shortened


class ToolEffect:
    """The side effect of a tool in one step: performed at most once, and always recorded."""

    def __init__(self, call: ToolCall, tool: Tool, arguments: dict[str, Any], check: Check | None) -> None:
        assert call.step is not None
        self._call = call
        self._tool = tool
        self._arguments = arguments
        self._check = check
        self._effects = call.log.effects
        key = effect_key(call.step, tool.name, arguments, call.task_id)
        actor = acting_once.default_actor()
        self._act = OnceCall(call.run_id, call.step, tool.name, key, actor, shorten_arguments(arguments), call.task_id)

    def perform(self, prepare: Callable[[], None], act: Callable[[], Any]) -> Any:
        """Perform the effect, or return its earlier result. `prepare` may raise an error before anything is recorded."""
        acting_once.enter(self._act)
        try:
            verbs = acting_once.begin(self._act, prepare=prepare, facts=self._facts, look=self._look)
            effect = acting_once.drive(self._effects, verbs)
            self._call.notes["effect_id"] = effect.id
            return self._replay(effect) if effect.is_settled else self._perform_first(effect, act)
        finally:
            acting_once.leave(self._act)

    def _facts(self) -> dict[str, Any]:
        return self._tool.expect(self._call, self._arguments) if self._tool.expect else {}

    def _look(self, effect: Effect) -> Found:
        """Return what happened, by the tool's verification, and else by the caller's check."""
        finding, by = self._tool.verify(self._call, effect) if self._tool.verify else EffectCheck(None), self._tool.name
        if finding.happened is None and self._check is not None:
            finding, by = self._check(effect), "check"
        return finding.happened, to_data(finding.result), by

    def _replay(self, effect: Effect) -> Any:
        self._call.notes["already"] = True
        if effect.error is not None:
            raise acting_once.build_error(
                effect, f"This is the recorded error of step {effect.step!r}. To try again, name another step."
            )
        return from_data(self._tool.returns, effect.result)

    def _perform_first(self, effect: Effect, act: Callable[[], Any]) -> Any:
        actor = self._act.actor
        try:
            result = act()
        except BaseException as problem:
            name, args, kwargs = acting_once.outcome_changes(effect, actor, problem)
            if name == "doubt":
                self._call.keep_files()
            getattr(self._effects, name)(*args, **kwargs)
            raise
        try:
            self._effects.settle(effect.id, actor=actor, result=to_data(result))
        except TooLarge as problem:
            # Record that it happened, even though its result can't be stored.
            self._effects.settle(effect.id, actor=actor, error=problem.as_dict())
        return result
