"""`log.once`: run a block or a function once per key, and return its first result afterwards."""

from collections.abc import Callable, Generator
from functools import wraps
from inspect import iscoroutinefunction, signature
from typing import Any, ParamSpec, Self, TypeVar

from decklog.core.errors import DecklogError, Invalid
from decklog.journal.attribution import claims, task_of
from decklog.stores.effects import acting_once
from decklog.stores.effects.acting_once import OnceCall, Verb
from decklog.stores.effects.effects import Effect, Effects

P = ParamSpec("P")
R = TypeVar("R")

_TOOL = "once"
_LONGEST_ARGUMENTS = 2000


class Once:
    """Runs a block or a function once per run and key; in a claim's block, once per task and key.

    In a block, do the work only if `already` is False, and set `result` to its outcome. A repeated block gets the first `result`,
    or raises the first error.
    """

    def __init__(self, effects: Effects, key: str | None = None, *, run_id: str | None = None, arguments: Any = None) -> None:
        self._effects = effects
        self._key = key
        self._run_id = run_id
        self._arguments = arguments
        self._act: OnceCall | None = None
        self.effect: Effect | None = None
        self.already = False
        self.result: Any = None

    # The block

    def __enter__(self) -> Self:
        acting_once.drive(self._effects, self.begin())
        return self

    def __exit__(self, _kind: Any, problem: BaseException | None, _trace: Any) -> None:
        try:
            if (verb := self.ending(problem)) is not None:
                self._record(verb)
        finally:
            self.leave()

    def _record(self, verb: Verb) -> None:
        name, args, kwargs = verb
        try:
            getattr(self._effects, name)(*args, **kwargs)
        except Invalid as refused:
            name, args, kwargs = self.ending_without(refused)
            getattr(self._effects, name)(*args, **kwargs)
            raise

    def begin(self) -> Generator[Verb, Any, Effect]:
        """Yield the verbs that start the block; afterwards `already` and `result` are set."""
        self._effects.check_can_act()
        act = self._new_act()
        acting_once.enter(act)
        try:
            self.effect = yield from acting_once.begin(act)
            self.already = self.effect.is_settled
            if self.already and self.effect.error is not None:
                raise acting_once.error_of(self.effect, f"{act.step!r} ended in this before. To try again, use another key.")
        except BaseException:
            acting_once.leave(act)
            raise
        self._act = act
        self.result = self.effect.result if self.already else None
        return self.effect

    def ending(self, problem: BaseException | None) -> Verb | None:
        """Return the verb that records the end of the block; None if it was recorded before."""
        assert self.effect is not None
        assert self._act is not None
        if self.already:
            return None
        if problem is not None:
            if isinstance(problem, Exception) and not isinstance(problem, DecklogError):
                problem = DecklogError(f"{type(problem).__name__}: {problem}")
            return acting_once.ending_in(self.effect, self._act.actor, problem)
        return ("settle", (self.effect.id,), {"actor": self._act.actor, "result": self.result})

    def ending_without(self, problem: Invalid) -> Verb:
        """Return the verb that records a block whose result can't be stored: it happened, and must not be repeated."""
        assert self.effect is not None
        assert self._act is not None
        return "settle", (self.effect.id,), {"actor": self._act.actor, "error": problem.as_dict()}

    def leave(self) -> None:
        """Allow others of this process to use the key."""
        assert self._act is not None
        acting_once.leave(self._act)

    def _new_act(self) -> OnceCall:
        if not self._key or not self._key.strip():
            raise Invalid('a block that runs once needs a key: log.once("deploy")', field="key")
        run_id, task_id = self._where()
        key = acting_once.key_of(self._key, _TOOL, self._arguments, task_id)
        # Long texts are shortened for readers of the record; the key has the digest of the full texts.
        arguments = {
            name: f"{value[:_LONGEST_ARGUMENTS]}…" if isinstance(value, str) and len(value) > _LONGEST_ARGUMENTS else value
            for name, value in (self._arguments or {}).items()
        }
        return OnceCall(run_id, self._key, _TOOL, key, acting_once.own_actor(), arguments, task_id)

    def _where(self) -> tuple[str, str | None]:
        held = claims()
        run_id = self._run_id or (held[-1].task.run_id if held else None)
        if run_id is None:
            raise Invalid("the run is unknown", hint="Give run_id=, or call it in a claim's block.", field="run_id")
        return run_id, task_of(run_id)

    # The decorator

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wrap a function, so that it runs once for each set of arguments. They are part of the key and must be JSON."""
        if iscoroutinefunction(function):
            raise Invalid(f"{function.__qualname__} is asynchronous: use AsyncDecklog.once", field="function")

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with self.for_call(function, args, kwargs) as once:
                if not once.already:
                    once.result = function(*args, **kwargs)
            result: R = once.result
            return result

        return call

    def for_call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Once":
        """Build the block of one call."""
        key = self._key or f"{function.__module__}.{function.__qualname__}"
        arguments = dict(signature(function).bind(*args, **kwargs).arguments)
        return Once(self._effects, key, run_id=self._run_id, arguments=arguments)
