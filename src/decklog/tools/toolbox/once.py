"""Effects happen once: an intent first, then the act, then the settling, and after a crash the question what happened."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from decklog import errors
from decklog.errors import Conflict, DecklogError, StillPending, TimedOut, TooLarge, Unavailable
from decklog.tools.calls.call import Call
from decklog.tools.calls.results import from_data, texts, to_data
from decklog.tools.calls.tool import Check, Finding, Tool
from decklog.tools.shell.process_identity import Identity
from decklog.values import to_json

if TYPE_CHECKING:
    from decklog.stores.effects.effects import Effect

LONGEST_ARGUMENT = 2000
# The effects, by run and key, that threads of this process are making at this moment.
_under_way: set[tuple[str, str]] = set()
_lock = threading.Lock()
# A forked child makes none of what its parent is making.
os.register_at_fork(after_in_child=_under_way.clear)


def key_of(step: str, tool: str, arguments: dict[str, Any]) -> str:
    """Name an effect by its step, its tool and its exact arguments."""
    return hashlib.sha256(to_json({"step": step, "tool": tool, "arguments": to_data(arguments)}).encode()).hexdigest()


def brief(arguments: dict[str, Any]) -> dict[str, Any]:
    """Shorten arguments for a person; their digest is the effect's key."""
    shortened: dict[str, Any] = texts(
        to_data(arguments), lambda text: text if len(text) <= LONGEST_ARGUMENT else f"{text[:LONGEST_ARGUMENT]}…"
    )
    return shortened


class Once:
    """Makes one tool's effect for one step: at most once, and never without a trace."""

    def __init__(self, call: Call, tool: Tool, arguments: dict[str, Any], check: Check | None) -> None:
        assert call.step is not None
        self._call = call
        self._tool = tool
        self._arguments = arguments
        self._check = check
        self._effects = call.log.effects
        self._step = call.step
        self._key = key_of(call.step, tool.name, arguments)
        self._actor = Identity.own().as_text()

    def perform(self, prepare: Callable[[], None], act: Callable[[], Any]) -> Any:
        """Make the effect, or give what came of it before. `prepare` may refuse before anything is written."""
        with self._alone():
            effect = self._effects.known(self._call.run_id, self._key)
            is_new = False
            if effect is None:
                prepare()
                effect = self._intend()
                is_new = not effect.already
            self._call.notes["effect_id"] = effect.id
            if not is_new:
                effect = self._resolve(effect, prepare)
            if effect.is_settled:
                return self._replay(effect)
            return self._act(effect, act)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads of this process off the same effect."""
        own = (self._call.run_id, self._key)
        with _lock:
            if own in _under_way:
                raise StillPending(
                    f"{self._tool.name} of step {self._step!r} is being made by another thread", hint="Wait for it."
                )
            _under_way.add(own)
        try:
            yield
        finally:
            with _lock:
                _under_way.discard(own)

    def _facts(self) -> dict[str, Any]:
        return self._tool.expect(self._call, self._arguments) if self._tool.expect else {}

    def _intend(self) -> "Effect":
        return self._effects.intend(
            self._call.run_id,
            self._step,
            self._tool.name,
            key=self._key,
            actor=self._actor,
            arguments=brief(self._arguments),
            facts=self._facts(),
            task_id=self._call.task_id,
        )

    # What is known already

    def _resolve(self, effect: "Effect", prepare: Callable[[], None]) -> "Effect":
        """Bring an effect that was met to where it is settled, or ours to make.

        A check decides before anything is called unknown: what is unknown is for a person alone where an owner is bound.
        """
        if effect.state == "intended":
            self._check_abandoned(effect)
        if effect.is_settled:
            return effect
        finding, by = (Finding(False), "person") if effect.state == "cleared" else self._look(effect)
        seen: dict[str, Any] = {"attempts": effect.attempts, "abandoned_by": effect.actor}
        if finding.happened:
            return self._effects.confirm(effect.id, result=to_data(finding.result), by=by, **seen)
        if finding.happened is None:
            raise self._unknown(self._doubted(effect))
        prepare()
        return self._effects.take_up(effect.id, actor=self._actor, facts=self._facts(), **seen)

    def _check_abandoned(self, effect: "Effect") -> None:
        """Raise `StillPending` unless the effect's actor has ended."""
        assert effect.actor is not None
        # Our own process is not making it, or we would not have come here.
        is_alive = False if effect.actor == self._actor else Identity.from_text(effect.actor).is_alive()
        if is_alive is not False:
            where = "is being made" if is_alive else "was begun where this process can't look"
            raise StillPending(
                f"{effect.tool} of step {effect.step!r} {where}",
                hint=f"Wait for it. If its actor is gone for good: decklog effects reconcile {effect.id} yes|no --by NAME",
                effect_id=effect.id,
            )

    def _doubted(self, effect: "Effect") -> "Effect":
        """Record that nobody knows what came of an effect."""
        if effect.actor is None:
            return effect
        return self._effects.doubt(effect.id, actor=effect.actor, note="its actor ended before it was settled")

    def _look(self, effect: "Effect") -> tuple[Finding, str]:
        """Ask the tool and then the caller's check what happened; say who knew."""
        finding = self._tool.look(self._call, effect) if self._tool.look else Finding(None)
        if finding.happened is None and self._check is not None:
            return self._check(effect), "check"
        return finding, self._tool.name

    def _unknown(self, effect: "Effect") -> Conflict:
        return Conflict(
            f"Nobody knows whether {effect.tool} of step {effect.step!r} happened: {effect.note or 'it was never settled'}",
            hint=f"Look at what it was to do, then: decklog effects reconcile {effect.id} yes|no --by NAME",
            effect_id=effect.id,
            state="unknown",
        )

    def _replay(self, effect: "Effect") -> Any:
        self._call.notes["already"] = True
        if effect.error is not None:
            raise _error_from(effect)
        return from_data(self._tool.returns, effect.result)

    # The act

    def _act(self, effect: "Effect", act: Callable[[], Any]) -> Any:
        try:
            result = act()
        except DecklogError as problem:
            if _is_final(problem):
                self._effects.settle(effect.id, actor=self._actor, error=problem.as_dict())
            else:
                self._leave(effect, problem.message)
            raise
        except BaseException as problem:
            self._leave(effect, f"interrupted by {type(problem).__name__}")
            raise
        try:
            self._effects.settle(effect.id, actor=self._actor, result=to_data(result))
        except TooLarge as problem:
            # It happened: that must stay known, even where its result can't.
            self._effects.settle(effect.id, actor=self._actor, error=problem.as_dict())
        return result

    def _leave(self, effect: "Effect", note: str) -> None:
        """Give up without knowing what happened."""
        self._call.keep_traces()
        self._effects.doubt(effect.id, actor=self._actor, note=note)


def _is_final(problem: DecklogError) -> bool:
    """Say whether an error tells how the act ended, rather than that nobody knows."""
    return isinstance(problem, TimedOut) or not (problem.retryable or isinstance(problem, Unavailable))


def _error_from(effect: "Effect") -> DecklogError:
    """Make the error again that an effect ended in."""
    assert effect.error is not None
    stored = dict(effect.error)
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, DecklogError)]
    kind = next((one for one in kinds if one.code == stored.get("code")), DecklogError)
    details = stored.get("details")
    return kind(
        str(stored.get("message")),
        hint=f"This is what step {effect.step!r} ended in. To try again, name another step.",
        **(details if isinstance(details, dict) else {}),
    )
