"""Run a store's verb from its signature, and add a status to the runs and tasks of its result."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from decklog.cli.call import HAND_WRITTEN, SENTENCES, Invocation, WrongUsage
from decklog.cli.exits import set_output_shape
from decklog.cli.parameters import list_parameters, parse_arguments
from decklog.cli.show import confirm, show
from decklog.core.display import dollars
from decklog.log import Decklog, store_class
from decklog.records.operations import Operation, operations_of
from decklog.records.record import Page, Record

STATUS_FIELD = "live_status"
# The fields that every task has, also without empty fields.
_TASK_FIELDS = {"id", "title", "state"}
# Ids of one query.
_IDS_PER_QUERY = 200
# Other names that people type for a verb.
_ALIASES = {"list": "find"}


def add_status(log: Decklog, result: Any) -> Any:
    """Return a result as data, with a status for each run and task in it; return other results unchanged."""
    if isinstance(result, list):
        if not result or not _has_status(result[0]):
            return result
        rows = add_status_to_rows(log, result[0].table, [record.as_dict() for record in result])
        return Page(rows, next=getattr(result, "next", None))
    if isinstance(result, dict):
        return _insert_statuses(result, _load_statuses(log, "tasks", list(_find_task_ids(result))))
    return add_status_to_rows(log, result.table, [result.as_dict()])[0] if _has_status(result) else result


def _find_task_ids(value: Any) -> Iterator[str]:
    """Yield the ids of the tasks within nested data."""
    if isinstance(value, dict) and value.keys() >= _TASK_FIELDS:
        yield value["id"]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _find_task_ids(inner)


def _insert_statuses(value: Any, statuses: dict[str, str]) -> Any:
    """Return the data with the status of each task after its id."""
    if isinstance(value, list):
        return [_insert_statuses(inner, statuses) for inner in value]
    if not isinstance(value, dict):
        return value
    fields = {name: _insert_statuses(inner, statuses) for name, inner in value.items()}
    return {"id": value["id"], STATUS_FIELD: statuses.get(value["id"]), **fields} if value.keys() >= _TASK_FIELDS else fields


def _has_status(value: Any) -> bool:
    return isinstance(value, Record) and value.table in ("runs", "tasks")


def add_status_to_rows(log: Decklog, table: str, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records of runs or tasks, each with its status after its id."""
    found = _load_statuses(log, table, [record["id"] for record in records])
    return [{"id": record["id"], STATUS_FIELD: found.get(record["id"]), **record} for record in records]


def _load_statuses(log: Decklog, table: str, ids: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for start in range(0, len(ids), _IDS_PER_QUERY):
        some = ids[start : start + _IDS_PER_QUERY]
        found |= log.overview.words(run_ids=some)["runs"] if table == "runs" else log.overview.words(task_ids=some)["tasks"]
    return found


def load_operations(store: str) -> dict[str, Operation]:
    """Return a store's verbs by their names on the command line."""
    found = {operation.name.replace("_", "-"): operation for operation in operations_of(store_class(store))}
    # Python's `get` is named `show` on the command line.
    get = found.pop("get", None)
    if get is not None and "show" not in HAND_WRITTEN.get(store, ()):
        found["show"] = get
    return found


def find_operation(store: str, verb: str) -> Operation | None:
    """Return a store's verb by its name on the command line, or by an alias; None if there is none."""
    known = load_operations(store.replace("-", "_"))
    verb = verb.replace("_", "-")
    return known.get(verb if verb in known else _ALIASES.get(verb, verb))


def run_operation(call: Invocation) -> int:
    """Run `STORE VERB …` and show its result."""
    store, verb, *words = call.words
    store = store.replace("-", "_")
    operation = find_operation(store, verb)
    if operation is None:
        raise _unknown_verb(store, verb.replace("_", "-"))
    parameters = list_parameters(operation)
    flags = {parameter.flag for parameter in parameters}
    words = call.take_agent(words, flags)
    set_output_shape(call)
    if operation.owner_only:
        words = call.take_key(words, flags)
    arguments = parse_arguments(parameters, words)
    with (
        call.open(writing=operation.writes) as log,
        attribute_writes(log, call),
        _ask_for_signature(log, call, store, operation, arguments),
    ):
        if store == "runs" and not operation.writes:
            from decklog.agents.closing import close_killed_sessions

            close_killed_sessions(log, call.spool())
        result = getattr(getattr(log, store), operation.name)(**arguments)
        reason = _explain_no_task(log, arguments) if result is None and (store, operation.name) == ("tasks", "claim") else None
        warnings = list(getattr(result, "warnings", ()))
        if operation.writes and isinstance(result, Record) and not (call.json or call.fields):
            return confirm(result, warnings)
        if (store, operation.name) == ("prices", "quote") and not call.json:
            # The quote is in microdollars; people read dollars.
            return show(dollars(result, exact=True), as_json=False)
        if store in ("runs", "tasks") and not operation.writes:
            result = add_status(log, result)
        return show(result, as_json=call.json, warnings=warnings, reason=reason)


def _unknown_verb(store: str, verb: str) -> WrongUsage:
    """Return the error for an unknown verb of a store, with the closest known one."""
    spelled = store.replace("_", "-")
    if verb == "undo":
        hint = f"To undo the last change of any record: decklog journal undo {store} ID"
        return WrongUsage(f"unknown command: {spelled} undo", hint=hint)
    from decklog.cli.suggestions import unknown_command

    verbs = list(dict.fromkeys([*load_operations(store), *HAND_WRITTEN.get(store, ())]))
    problem = unknown_command(f"decklog {spelled}", verb, verbs, known=verbs)
    if store in SENTENCES and problem.hint and problem.hint.startswith("Commands"):
        problem.hint = f'To file a sentence, put it in quotes: decklog {spelled} "…". {problem.hint}'
    return problem


def _explain_no_task(log: Decklog, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return why a claim got no task."""
    taken = {parameter.name for parameter in list_parameters(load_operations("tasks")["why-none"])}
    return {**log.tasks.why_none(**{name: value for name, value in arguments.items() if name in taken})}


def _ask_for_signature(
    log: Decklog, call: Invocation, store: str, operation: Operation, arguments: dict[str, Any]
) -> AbstractContextManager[None]:
    if not operation.owner_only:
        return nullcontext()
    from decklog.cli.screens.approval import show_signed
    from decklog.cli.signing import owner_signature

    show_signed(log, f"{store}.{operation.name}", arguments)
    return owner_signature(log, call.key)


def attribute_writes(log: Decklog, call: Invocation) -> AbstractContextManager[None]:
    """Attribute written records to the agent named by the call or the environment."""
    names = ("agent", "agent_id", "group_id", "task_id")
    given: dict[str, Any] = {name: getattr(call, name, None) or os.environ.get(f"DECKLOG_{name.upper()}") for name in names}
    fence = os.environ.get("DECKLOG_FENCE") if given["task_id"] else None
    if not any(given.values()):
        return nullcontext()
    if fence is not None and not fence.isdecimal():
        raise WrongUsage(f"DECKLOG_FENCE must be the number that a claim returned (got {fence!r})")
    return log.acting(**given, fence=None if fence is None else int(fence))
