"""`AsyncDecklog.once`: an `async with` block or an asynchronous function that runs once per key."""

from collections.abc import Awaitable, Callable, Generator
from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from decklog.aio import loops
from decklog.core.errors import Invalid

if TYPE_CHECKING:
    from decklog.aio.stores import AsyncStore
    from decklog.stores.effects.acting_once import Once, Verb
    from decklog.stores.effects.effects import Effect

P = ParamSpec("P")
R = TypeVar("R")


class AsyncOnce:
    """Runs an `async with` block or an asynchronous function once per run and key; in a claim's block, per task and key.

    In a block, do the work only if `already` is False, and set `result` to its outcome. A block that is cancelled leaves an
    effect of unknown outcome.
    """

    def __init__(self, effects: "AsyncStore", once: "Once") -> None:
        self._effects = effects
        self._once = once

    @property
    def effect(self) -> "Effect | None":
        """The record of the block."""
        return self._once.effect

    @property
    def already(self) -> bool:
        """Whether the block ran before."""
        return self._once.already

    @property
    def result(self) -> Any:
        """The outcome of the block."""
        return self._once.result

    @result.setter
    def result(self, value: Any) -> None:
        self._once.result = value

    async def __aenter__(self) -> Self:
        verbs, found = self._once.begin(), None
        try:
            while (verb := _next(verbs, found)) is not None:
                name, args, kwargs = verb
                found = await getattr(self._effects, name)(*args, **kwargs)
        finally:
            # Release the key if the steps did not finish.
            verbs.close()
        return self

    async def __aexit__(self, _kind: Any, problem: BaseException | None, _trace: Any) -> None:
        try:
            was_cancelled = await self._record(problem)
        finally:
            self._once.leave()
        if was_cancelled and problem is None:
            raise loops.cancellation()

    async def _record(self, problem: BaseException | None) -> bool:
        """Record how the block ended, even if somebody cancels meanwhile; return whether somebody did."""
        verb = self._once.ending(problem)
        if verb is None:
            return False
        name, args, kwargs = verb
        try:
            return (await self._effects._insist(name, *args, **kwargs))[1]
        except Invalid as refused:
            name, args, kwargs = self._once.ending_without(refused)
            await self._effects._insist(name, *args, **kwargs)
            raise

    def __call__(self, function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        """Make an asynchronous function run once for each set of arguments, which are part of the key and must be JSON."""
        if not iscoroutinefunction(function):
            raise Invalid(f"{function.__qualname__} is not asynchronous: use Decklog.once", field="function")

        @wraps(function)
        async def call(*args: P.args, **kwargs: P.kwargs) -> R:
            async with AsyncOnce(self._effects, self._once.for_call(function, args, kwargs)) as once:
                if not once.already:
                    once.result = await function(*args, **kwargs)
            result: R = once.result
            return result

        return call


def _next(verbs: "Generator[Verb, Any, Effect]", found: Any) -> "Verb | None":
    """Return the next verb to await; None after the last."""
    try:
        return verbs.send(found)
    except StopIteration:
        return None
