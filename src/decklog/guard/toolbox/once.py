"""Side effects of tools happen once: the tool's part in the protocol of `acting_once`."""

from collections.abc import Callable
from typing import Any

from decklog.core.errors import TooLarge
from decklog.guard.calls.tool import Check, EffectCheck, Tool, ToolCall, from_data, texts, to_data
from decklog.stores.effects import acting_once
from decklog.stores.effects.acting_once import Found, OnceCall
from decklog.stores.effects.effects import Effect

LONGEST_ARGUMENT = 2000


def key_of(step: str, tool: str, arguments: dict[str, Any], task_id: str | None = None) -> str:
    """Build the key of a tool's effect."""
    return acting_once.key_of(step, tool, to_data(arguments), task_id)


def brief(arguments: dict[str, Any]) -> dict[str, Any]:
    """Shorten arguments for a person; their digest is the effect's key."""
    shortened: dict[str, Any] = texts(
        to_data(arguments), lambda text: text if len(text) <= LONGEST_ARGUMENT else f"{text[:LONGEST_ARGUMENT]}…"
    )
    return shortened


class ToolOnce:
    """Performs a tool's side effect for one step: at most once, and never without a record."""

    def __init__(self, call: ToolCall, tool: Tool, arguments: dict[str, Any], check: Check | None) -> None:
        assert call.step is not None
        self._call = call
        self._tool = tool
        self._arguments = arguments
        self._check = check
        self._effects = call.log.effects
        key = key_of(call.step, tool.name, arguments, call.task_id)
        actor = acting_once.own_actor()
        self._act = OnceCall(call.run_id, call.step, tool.name, key, actor, brief(arguments), call.task_id)

    def perform(self, prepare: Callable[[], None], act: Callable[[], Any]) -> Any:
        """Make the effect, or return what came of it before. `prepare` may refuse before anything is written."""
        acting_once.enter(self._act)
        try:
            verbs = acting_once.begin(self._act, prepare=prepare, facts=self._facts, look=self._look)
            effect = acting_once.drive(self._effects, verbs)
            self._call.notes["effect_id"] = effect.id
            return self._replay(effect) if effect.is_settled else self._make(effect, act)
        finally:
            acting_once.leave(self._act)

    def _facts(self) -> dict[str, Any]:
        return self._tool.expect(self._call, self._arguments) if self._tool.expect else {}

    def _look(self, effect: Effect) -> Found:
        """Ask the tool and then the caller's check what happened."""
        finding, by = self._tool.look(self._call, effect) if self._tool.look else EffectCheck(None), self._tool.name
        if finding.happened is None and self._check is not None:
            finding, by = self._check(effect), "check"
        return finding.happened, to_data(finding.result), by

    def _replay(self, effect: Effect) -> Any:
        self._call.notes["already"] = True
        if effect.error is not None:
            raise acting_once.error_of(effect, f"This is what step {effect.step!r} ended in. To try again, name another step.")
        return from_data(self._tool.returns, effect.result)

    def _make(self, effect: Effect, act: Callable[[], Any]) -> Any:
        actor = self._act.actor
        try:
            result = act()
        except BaseException as problem:
            name, args, kwargs = acting_once.ending_in(effect, actor, problem)
            if name == "doubt":
                self._call.keep_traces()
            getattr(self._effects, name)(*args, **kwargs)
            raise
        try:
            self._effects.settle(effect.id, actor=actor, result=to_data(result))
        except TooLarge as problem:
            # It happened: that must stay known, even where its result can't.
            self._effects.settle(effect.id, actor=actor, error=problem.as_dict())
        return result
