"""Every store, operation, record and command. Those that are added later are included."""

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import click

from decklog import Record
from decklog.cli.parameters import Parameter, list_parameters
from decklog.journal.entry import Entry
from decklog.log import STORES, store_class
from decklog.records.operations import Operation, operations_of

STORE_NAMES = list(STORES)


def operations() -> list[tuple[str, Operation]]:
    return [(store, operation) for store in STORE_NAMES for operation in operations_of(store_class(store))]


def named(pairs: list[tuple[str, Operation]]) -> dict[str, Any]:
    """Arguments for `every`, each case named after its operation."""
    return {"argvalues": pairs, "ids": [f"{store}.{operation.name}" for store, operation in pairs]}


def records() -> list[type[Record]]:
    found = [record for store in STORES for record in store_class(store).records]
    return [Entry, *dict.fromkeys(found)]


def commands() -> Iterator[tuple[str, click.Command, int]]:
    """Yield every command with its path and the level of its heading, groups before their members."""
    from decklog.cli.main import menu

    def below(path: str, group: click.Group, level: int) -> Iterator[tuple[str, click.Command, int]]:
        context = click.Context(group, info_name=path)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield f"{path} {name}", command, level
            if isinstance(command, click.Group):
                yield from below(f"{path} {name}", command, level + 1)

    return below("decklog", menu, 2)


def arguments(operation: Operation, text: str, known: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Make calls of an operation with a text wherever one fits: once with everything, once with only what is required."""
    parameters = list_parameters(operation)
    yield {parameter.name: value_for(parameter, text, known) for parameter in parameters}
    yield {parameter.name: value_for(parameter, text, known) for parameter in parameters if parameter.required}


def value_for(parameter: Parameter, text: str, known: dict[str, Any]) -> Any:
    """Make a value of a parameter's type; a known id where the parameter is one."""
    kind = parameter.type
    if parameter.name in known:
        return known[parameter.name]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    origin = getattr(kind, "__origin__", kind)
    inner = getattr(kind, "__args__", (str,))
    simple = {
        int: 1,
        float: 0.01,
        bool: False,
        datetime: datetime(2026, 1, 1, tzinfo=UTC),
        str: text,
        bytes: text.encode(errors="replace"),
    }
    if origin in simple:
        return simple[origin]
    if origin is list:
        whole = {"title": text, "stream": "run_1", "body": text, "payload": {text: [text]}}
        return [whole] if getattr(inner[0], "__origin__", inner[0]) is dict or isinstance(origin, str) else [text]
    if isinstance(kind, str) and kind.startswith("list"):
        return [{"title": text, "stream": "run_1", "body": text}]
    return {"key": text, text: "value", "list": [text, {"deep": text}]}
