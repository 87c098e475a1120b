"""Run a store's verb from its signature, and add the status of runs and tasks to its answer."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from decklog.cli.call import HAND_WRITTEN, SENTENCES, Invocation, WrongUsage
from decklog.cli.exits import use_shape_of
from decklog.cli.parameters import parameters_of, read_words
from decklog.cli.show import confirm, show
from decklog.core.display import dollars
from decklog.log import Decklog, store_class
from decklog.records.operations import Operation, operations_of
from decklog.records.record import Page, Record

NAME = "live_status"
# The fields that every task has, whole or in brief.
_TASK = {"id", "title", "state"}
# Ids of one query.
_BATCH = 200
# Accepted as well, because people type it.
_ALIASES = {"list": "find"}


def with_words(log: Decklog, result: Any) -> Any:
    """Return runs or tasks, alone, in a page or within an answer, as data with their status; other results unchanged."""
    if isinstance(result, list):
        if not result or not _has_word(result[0]):
            return result
        rows = of_records(log, result[0].table, [record.as_dict() for record in result])
        return Page(rows, next=getattr(result, "next", None))
    if isinstance(result, dict):
        return _with_status(result, _words(log, "tasks", list(_tasks(result))))
    return of_records(log, result.table, [result.as_dict()])[0] if _has_word(result) else result


def _tasks(value: Any) -> Iterator[str]:
    """Yield the ids of the tasks within an answer."""
    if isinstance(value, dict) and value.keys() >= _TASK:
        yield value["id"]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _tasks(inner)


def _with_status(value: Any, words: dict[str, str]) -> Any:
    """Return the answer with the status of each task after its id."""
    if isinstance(value, list):
        return [_with_status(inner, words) for inner in value]
    if not isinstance(value, dict):
        return value
    inside = {name: _with_status(inner, words) for name, inner in value.items()}
    return {"id": value["id"], NAME: words.get(value["id"]), **inside} if value.keys() >= _TASK else inside


def _has_word(value: Any) -> bool:
    return isinstance(value, Record) and value.table in ("runs", "tasks")


def of_records(log: Decklog, table: str, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records of runs or tasks, each with its status after its id."""
    found = _words(log, table, [record["id"] for record in records])
    return [{"id": record["id"], NAME: found.get(record["id"]), **record} for record in records]


def _words(log: Decklog, table: str, ids: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for start in range(0, len(ids), _BATCH):
        some = ids[start : start + _BATCH]
        found |= log.overview.words(run_ids=some)["runs"] if table == "runs" else log.overview.words(task_ids=some)["tasks"]
    return found


def operations(store: str) -> dict[str, Operation]:
    """Return a store's verbs by their names on the command line."""
    found = {operation.name.replace("_", "-"): operation for operation in operations_of(store_class(store))}
    # `show` shows a record of every store: it is Python's `get`.
    getting = found.pop("get", None)
    if getting is not None and "show" not in HAND_WRITTEN.get(store, ()):
        found["show"] = getting
    return found


def find_operation(store: str, verb: str) -> Operation | None:
    """Return a store's verb by its name on the command line, or by a name that people type for it."""
    known = operations(store.replace("-", "_"))
    verb = verb.replace("_", "-")
    return known.get(verb if verb in known else _ALIASES.get(verb, verb))


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
    if operation.owner_only:
        words = call.take_key(words, flags)
    arguments = read_words(parameters, words)
    with call.open(writing=operation.writes) as log, acting(log, call), _proving(log, call, store, operation, arguments):
        if store == "runs" and not operation.writes:
            from decklog.agents.closing import close_killed_sessions

            close_killed_sessions(log, call.spool())
        result = getattr(getattr(log, store), operation.name)(**arguments)
        reason = _why_none(log, arguments) if result is None and (store, operation.name) == ("tasks", "claim") else None
        warnings = list(getattr(result, "warnings", ()))
        if operation.writes and isinstance(result, Record) and not (call.json or call.fields):
            return confirm(result, warnings)
        if (store, operation.name) == ("prices", "quote") and not call.json:
            # An amount in microdollars, which people read in dollars.
            return show(dollars(result, exact=True), as_json=False)
        if store in ("runs", "tasks") and not operation.writes:
            result = with_words(log, result)
        return show(result, as_json=call.json, warnings=warnings, reason=reason)


def _unknown(store: str, verb: str) -> WrongUsage:
    """Return the error for an unknown verb of a store, with the closest known one."""
    spelled = store.replace("_", "-")
    if verb == "undo":
        hint = f"Any record's last change is undone by: decklog journal undo {store} ID"
        return WrongUsage(f"unknown command: {spelled} undo", hint=hint)
    from decklog.cli.suggestions import unknown_command

    verbs = list(dict.fromkeys([*operations(store), *HAND_WRITTEN.get(store, ())]))
    problem = unknown_command(f"decklog {spelled}", verb, verbs, known=verbs)
    if store in SENTENCES and problem.hint and problem.hint.startswith("Commands"):
        problem.hint = f'A sentence is filed as it is: decklog {spelled} "…". {problem.hint}'
    return problem


def _why_none(log: Decklog, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return why a claim got no task."""
    taken = {parameter.name for parameter in parameters_of(operations("tasks")["why-none"])}
    return {**log.tasks.why_none(**{name: value for name, value in arguments.items() if name in taken})}


def _proving(
    log: Decklog, call: Invocation, store: str, operation: Operation, arguments: dict[str, Any]
) -> AbstractContextManager[None]:
    if not operation.owner_only:
        return nullcontext()
    from decklog.cli.screens.approval import show_signed
    from decklog.cli.signing import proving

    show_signed(log, f"{store}.{operation.name}", arguments)
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
