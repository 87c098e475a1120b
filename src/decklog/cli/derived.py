"""Runs a store's verb straight from its signature."""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from decklog.cli.call import HAND_WRITTEN, SENTENCES, Invocation, WrongUsage
from decklog.cli.exits import use_shape_of
from decklog.cli.parameters import parameters_of, read_words
from decklog.core.figures import dollars
from decklog.log import Decklog, store_class
from decklog.records.operations import Operation, operations_of
from decklog.records.record import Record

# Accepted as well, because people type it.
_ALSO = {"list": "find"}


def operations(store: str) -> dict[str, Operation]:
    """Return a store's verbs by their names on the command line."""
    found = {operation.name.replace("_", "-"): operation for operation in operations_of(store_class(store))}
    # One word shows a record, whatever the store: Python's `get` is `show` here.
    getting = found.pop("get", None)
    if getting is not None and "show" not in HAND_WRITTEN.get(store, ()):
        found["show"] = getting
    return found


def find_operation(store: str, verb: str) -> Operation | None:
    """Return a store's verb by its name on the command line, or by a name that people type for it."""
    known = operations(store.replace("-", "_"))
    verb = verb.replace("_", "-")
    return known.get(verb if verb in known else _ALSO.get(verb, verb))


def run_operation(call: Invocation) -> int:
    """Run `STORE VERB …` and show its result."""
    store, verb, *words = call.words
    store = store.replace("-", "_")
    operation = find_operation(store, verb)
    if operation is None:
        raise _unknown(store, verb.replace("_", "-"))
    parameters = parameters_of(operation)
    flags = {parameter.flag for parameter in parameters}
    words = call.take_agent(words, flags)
    use_shape_of(call)
    if operation.manager_only:
        words = call.take_key(words, flags)
    arguments = read_words(parameters, words)
    from decklog.cli.show import show

    with call.open(writing=operation.writes) as log, acting(log, call), _proving(log, call, store, operation, arguments):
        if store == "runs" and not operation.writes:
            from decklog.agents.interrupted import close_killed_sessions

            close_killed_sessions(log, call.spool())
        result = getattr(getattr(log, store), operation.name)(**arguments)
        reason = _reason(log, store, operation, arguments) if result is None else None
        warnings = list(getattr(result, "warnings", ()))
        if operation.writes and isinstance(result, Record) and not (call.json or call.fields):
            from decklog.cli.show import confirm

            return confirm(verb, result, warnings)
        if (store, operation.name) in _AMOUNTS and not call.json:
            return show(dollars(result, exact=True), as_json=False)
        return show(_told(log, store, operation, result), as_json=call.json, warnings=warnings, reason=reason)


def _unknown(store: str, verb: str) -> WrongUsage:
    """Return the error for a verb that a store does not have, with the one that was probably meant."""
    spelled = store.replace("_", "-")
    if verb == "undo":
        hint = f"Any record's last change is undone by: decklog journal undo {store} ID"
        return WrongUsage(f"unknown command: {spelled} undo", hint=hint)
    from decklog.cli.meant import meant

    verbs = list(dict.fromkeys([*operations(store), *HAND_WRITTEN.get(store, ())]))
    near = meant(verb, verbs)
    if near is not None:
        hint = f"See its options: decklog {spelled} {near} --help"
        return WrongUsage(f"unknown command: {spelled} {verb} (did you mean {near}?)", hint=hint, known=verbs)
    sentence = f'A sentence is filed as it is: decklog {spelled} "…". ' if store in SENTENCES else ""
    hint = f"{sentence}Commands: {', '.join(verbs)}. See: decklog {spelled} --help"
    return WrongUsage(f"unknown command: {spelled} {verb}", hint=hint, known=verbs)


def _told(log: Decklog, store: str, operation: Operation, result: Any) -> Any:
    """Return what is shown of a result: runs and tasks that somebody looks at come with the word for how they stand."""
    if store not in ("runs", "tasks") or operation.writes:
        return result
    from decklog.cli.standing import with_words

    return with_words(log, result)


# Verbs that return an amount in microdollars, which people read in dollars.
_AMOUNTS = {("prices", "quote")}
# Verbs that may answer with nothing, and the verb that knows why when it is asked the same.
_REASONS = {("tasks", "claim"): "why_none"}


def _reason(log: Decklog, store: str, operation: Operation, arguments: dict[str, Any]) -> dict[str, Any] | None:
    if (name := _REASONS.get((store, operation.name))) is None:
        return None
    taken = {parameter.name for parameter in parameters_of(operations(store)[name.replace("_", "-")])}
    reason: dict[str, Any] = getattr(getattr(log, store), name)(
        **{name: value for name, value in arguments.items() if name in taken}
    )
    return reason


def _proving(
    log: Decklog, call: Invocation, store: str, operation: Operation, arguments: dict[str, Any]
) -> AbstractContextManager[None]:
    if not operation.manager_only:
        return nullcontext()
    from decklog.cli.proving import proving
    from decklog.cli.signed import tell_signed

    tell_signed(log, f"{store}.{operation.name}", arguments)
    return proving(log, call.key)


def acting(log: Decklog, call: Invocation) -> AbstractContextManager[None]:
    """Attribute what is written to the agent that the call or the environment names."""
    names = ("agent", "agent_id", "group_id", "task_id")
    given: dict[str, Any] = {name: getattr(call, name, None) or os.environ.get(f"DECKLOG_{name.upper()}") for name in names}
    fence = os.environ.get("DECKLOG_FENCE") if given["task_id"] else None
    if not any(given.values()):
        return nullcontext()
    if fence is not None and not fence.isdecimal():
        raise WrongUsage(f"DECKLOG_FENCE is {fence!r}; it is the number that a claim gave")
    return log.acting(**given, fence=None if fence is None else int(fence))
