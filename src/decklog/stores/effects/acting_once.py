"""Protocol for an action that happens at most once: record the intent, act, finalize.

After a crash the record shows that the outcome is unknown. The toolbox and `log.once` both use it.
"""

import os
import threading
from collections.abc import Callable, Generator
from hashlib import sha256
from typing import Any, NamedTuple

from decklog.core import errors
from decklog.core.errors import Conflict, DecklogError, StillPending, TimedOut, Unavailable
from decklog.core.processes import Identity
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


def key_of(step: str, tool: str, arguments: Any, task_id: str | None = None) -> str:
    """Build the key of an action from its step, tool, arguments and task, if any."""
    named = {"step": step, "tool": tool, "arguments": arguments}
    if task_id is not None:
        named["task"] = task_id
    return sha256(to_json(named).encode()).hexdigest()


def own_actor() -> str:
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
        raise _unknown(effect)
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


def _unknown(effect: Effect) -> Conflict:
    return Conflict(
        f"Nobody knows whether {effect.tool} of step {effect.step!r} happened: {effect.note or 'it was never settled'}",
        hint=f"Look at what it was to do, then: decklog effects reconcile {effect.id} yes|no --by NAME",
        effect_id=effect.id,
        state="unknown",
    )


def ending_in(effect: Effect, actor: str, problem: BaseException) -> Verb:
    """Return the verb that records a failed action: a final error is its outcome, any other leaves it unknown."""
    if isinstance(problem, DecklogError):
        if _is_final(problem):
            return "settle", (effect.id,), {"actor": actor, "error": problem.as_dict()}
        return "doubt", (effect.id,), {"actor": actor, "note": problem.message}
    return "doubt", (effect.id,), {"actor": actor, "note": f"interrupted by {type(problem).__name__}"}


def _is_final(problem: DecklogError) -> bool:
    """Return whether an error determines the outcome of the action."""
    return isinstance(problem, TimedOut) or not (problem.retryable or isinstance(problem, Unavailable))


def error_of(effect: Effect, hint: str) -> DecklogError:
    """Rebuild the error that a side effect ended with."""
    assert effect.error is not None
    stored = dict(effect.error)
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, DecklogError)]
    kind = next((one for one in kinds if one.code == stored.get("code")), DecklogError)
    details = stored.get("details")
    return kind(str(stored.get("message")), hint=hint, **(details if isinstance(details, dict) else {}))
