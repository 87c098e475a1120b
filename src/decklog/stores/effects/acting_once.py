"""Actions that happen at most once: record the intent, act, finalize; and `log.once`, which runs a block or a function so.

After a crash the record shows that the outcome is unknown. The toolbox uses the same protocol.
"""

import os
import threading
from collections.abc import Callable, Generator
from functools import wraps
from hashlib import sha256
from inspect import iscoroutinefunction, signature
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

from decklog.core import errors
from decklog.core.errors import Conflict, DecklogError, Invalid, StillPending, TimedOut, Unavailable
from decklog.core.processes import Identity
from decklog.journal.attribution import find_context_task, list_claims
from decklog.records.values import to_json
from decklog.stores.effects.effects import Effect, Effects, EffectState

# A verb of the effects store with its arguments; the caller of the protocol calls or awaits it.
Verb = tuple[str, tuple[Any, ...], dict[str, Any]]
# Whether an action happened (None if unknown), its result, and who checked.
Found = tuple[bool | None, Any, str]

# The actions, by run and key, that threads and tasks of this process are performing now.
_under_way: set[tuple[str, str]] = set()
_lock = threading.Lock()
# A forked child performs none of its parent's actions.
os.register_at_fork(after_in_child=_under_way.clear)


class OnceCall(NamedTuple):
    """One action, identified by its run and key."""

    run_id: str
    step: str
    tool: str
    key: str
    actor: str
    arguments: dict[str, Any]
    task_id: str | None


def build_key(step: str, tool: str, arguments: Any, task_id: str | None = None) -> str:
    """Build the key of an action from its step, tool, arguments and task, if any."""
    named = {"step": step, "tool": tool, "arguments": arguments}
    if task_id is not None:
        named["task"] = task_id
    return sha256(to_json(named).encode()).hexdigest()


def default_actor() -> str:
    """Return the identity of this process as the actor of a side effect."""
    return Identity.own().as_text()


def enter(act: OnceCall) -> None:
    """Prevent other threads and tasks of this process from performing the same action until `leave`."""
    with _lock:
        if (act.run_id, act.key) in _under_way:
            raise StillPending(f"{act.step!r} ({act.tool}) is being done by another thread or task", hint="Wait for it.")
        _under_way.add((act.run_id, act.key))


def leave(act: OnceCall) -> None:
    """Allow others of this process to perform the action."""
    with _lock:
        _under_way.discard((act.run_id, act.key))


def drive(effects: Effects, verbs: Generator[Verb, Any, Effect]) -> Effect:
    """Call the verbs of a protocol one by one; return the resulting side effect."""
    found: Any = None
    while True:
        try:
            name, args, kwargs = verbs.send(found)
        except StopIteration as over:
            effect: Effect = over.value
            return effect
        found = getattr(effects, name)(*args, **kwargs)


def begin(
    act: OnceCall,
    *,
    prepare: Callable[[], None] = lambda: None,
    facts: Callable[[], dict[str, Any]] = dict,
    look: Callable[[Effect], Found] = lambda _: (None, None, ""),
) -> Generator[Verb, Any, Effect]:
    """Yield the verbs that lead to a finished side effect, or to one that the caller must perform.

    `prepare` may refuse before anything is written. `look` checks whether an action with an unknown outcome happened.
    """
    known: Effect | None = yield "known", (act.run_id, act.key), {}
    effect: Effect
    if known is None:
        prepare()
        given = {"key": act.key, "actor": act.actor, "arguments": act.arguments, "facts": facts(), "task_id": act.task_id}
        effect = yield "intend", (act.run_id, act.step, act.tool), given
        if not effect.already:
            return effect
    else:
        effect = known
    if effect.is_settled:
        return effect
    if effect.state == EffectState.INTENDED:
        _check_abandoned(effect, act.actor)
    # Check before the side effect is marked unknown: if an owner is registered, only the owner may decide an unknown one.
    happened, result, by = (False, None, "") if effect.state == EffectState.CLEARED else look(effect)
    seen: dict[str, Any] = {"attempts": effect.attempts, "abandoned_by": effect.actor}
    if happened is None:
        if effect.actor is not None:
            effect = yield "doubt", (effect.id,), {"actor": effect.actor, "note": "its actor ended before it was settled"}
        raise _unknown_outcome_error(effect)
    if happened:
        effect = yield "confirm", (effect.id,), {"result": result, "by": by, **seen}
        return effect
    prepare()
    effect = yield "take_up", (effect.id,), {"actor": act.actor, "facts": facts(), **seen}
    return effect


def _check_abandoned(effect: Effect, actor: str) -> None:
    """Raise StillPending while the actor of an intended side effect is alive, or can't be checked from here."""
    assert effect.actor is not None
    # This process is not acting, or `enter` would have raised.
    is_alive = False if effect.actor == actor else Identity.from_text(effect.actor).is_alive()
    if is_alive is False:
        return
    where = "is being done by another process" if is_alive else "was begun where this process can't look"
    raise StillPending(
        f"{effect.step!r} ({effect.tool}) {where}",
        hint=f"Wait for it. If its actor is gone for good: decklog effects reconcile {effect.id} yes|no --by NAME",
        effect_id=effect.id,
    )


def _unknown_outcome_error(effect: Effect) -> Conflict:
    return Conflict(
        f"Nobody knows whether {effect.tool} of step {effect.step!r} happened: {effect.note or 'it was never settled'}",
        hint=f"Look at what it was to do, then: decklog effects reconcile {effect.id} yes|no --by NAME",
        effect_id=effect.id,
        state="unknown",
    )


def outcome_changes(effect: Effect, actor: str, problem: BaseException) -> Verb:
    """Return the verb that records a failed action: a final error is its outcome, any other leaves it unknown."""
    if isinstance(problem, DecklogError):
        if _is_final(problem):
            return "settle", (effect.id,), {"actor": actor, "error": problem.as_dict()}
        return "doubt", (effect.id,), {"actor": actor, "note": problem.message}
    return "doubt", (effect.id,), {"actor": actor, "note": f"interrupted by {type(problem).__name__}"}


def _is_final(problem: DecklogError) -> bool:
    """Return whether an error determines the outcome of the action."""
    return isinstance(problem, TimedOut) or not (problem.retryable or isinstance(problem, Unavailable))


def build_error(effect: Effect, hint: str) -> DecklogError:
    """Rebuild the error that a side effect ended with."""
    assert effect.error is not None
    stored = dict(effect.error)
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, DecklogError)]
    kind = next((one for one in kinds if one.code == stored.get("code")), DecklogError)
    details = stored.get("details")
    return kind(str(stored.get("message")), hint=hint, **(details if isinstance(details, dict) else {}))


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
        drive(self._effects, self.begin())
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
        enter(act)
        try:
            self.effect = yield from begin(act)
            self.already = self.effect.is_settled
            if self.already and self.effect.error is not None:
                raise build_error(self.effect, f"{act.step!r} ended in this before. To try again, use another key.")
        except BaseException:
            leave(act)
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
            return outcome_changes(self.effect, self._act.actor, problem)
        return ("settle", (self.effect.id,), {"actor": self._act.actor, "result": self.result})

    def ending_without(self, problem: Invalid) -> Verb:
        """Return the verb that records a block whose result can't be stored: it happened, and must not be repeated."""
        assert self.effect is not None
        assert self._act is not None
        return "settle", (self.effect.id,), {"actor": self._act.actor, "error": problem.as_dict()}

    def leave(self) -> None:
        """Allow others of this process to use the key."""
        assert self._act is not None
        leave(self._act)

    def _new_act(self) -> OnceCall:
        if not self._key or not self._key.strip():
            raise Invalid('a block that runs once needs a key: log.once("deploy")', field="key")
        run_id, task_id = self._where()
        key = build_key(self._key, _TOOL, self._arguments, task_id)
        # Long texts are shortened for readers of the record; the key has the digest of the full texts.
        arguments = {
            name: f"{value[:_LONGEST_ARGUMENTS]}…" if isinstance(value, str) and len(value) > _LONGEST_ARGUMENTS else value
            for name, value in (self._arguments or {}).items()
        }
        return OnceCall(run_id, self._key, _TOOL, key, default_actor(), arguments, task_id)

    def _where(self) -> tuple[str, str | None]:
        held = list_claims()
        run_id = self._run_id or (held[-1].task.run_id if held else None)
        if run_id is None:
            raise Invalid("the run is unknown", hint="Give run_id=, or call it in a claim's block.", field="run_id")
        return run_id, find_context_task(run_id)

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
