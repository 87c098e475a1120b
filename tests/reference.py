"""Writes the reference pages: the Python API from signatures and docstrings, and the errors with their exit codes."""

import ast
import inspect
import re
import sys
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints, is_typeddict

import decklog
from decklog.cli.exits import exit_code
from decklog.core import errors
from decklog.log import STORES, store_class
from decklog.records.operations import Operation, keyword_fields, operations_of
from decklog.records.record import Record

_WRITTEN = "Written by `make docs` from the code itself; a test keeps it true."

# Exit codes that no error has alone, and what each says to whoever reads nothing else.
_EXITS = {
    0: "done; an empty list is done",
    1: "failed: the input can't be used, or something is wrong with the log or the machine",
    2: "the command line itself is wrong",
    3: "what was named is not there",
    4: "not permitted",
    5: "the present state does not allow it",
    6: "refused by a guard, a budget or a gate",
    7: "an answer is still pending",
    75: "busy: try again",
    124: "timed out",
    130: "interrupted",
}


def errors_md() -> str:
    """Give every error with its code, its exit code and what it means, by root."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DecklogError)]
    parts = [
        "# Errors and exit codes",
        _WRITTEN,
        "Every error is an `Exception` of Python with a `message`, a `hint` (what to do next, also in the traceback), a stable "
        "`code`, `retryable`, and its facts in `details`. Catch one of the five roots, or an error by its name; all are names "
        "of `decklog`. On the command line the same facts are the `error` of the JSON envelope, and the exit code says of what "
        "kind it was.",
        "## Errors",
    ]
    for root in (kind for kind in kinds if kind.__base__ is errors.DecklogError):
        family = [kind for kind in kinds if issubclass(kind, root)]
        rows = [f"| `{kind.__name__}` | `{kind.code}` | {_exit_of(kind)} | {_again(kind)} | {kind.__doc__} |" for kind in family]
        head = ["| error | code | exit code | try again | meaning |", "| --- | --- | ---: | --- | --- |"]
        parts += [f"### {root.__name__}", "\n".join([*head, *rows])]
    exits = [f"| {code} | {meaning} |" for code, meaning in _EXITS.items()]
    parts += ["## Exit codes", "\n".join(["| exit code | meaning |", "| ---: | --- |", *exits])]
    return "\n\n".join(parts) + "\n"


def _exit_of(kind: type[errors.DecklogError]) -> int:
    code = exit_code(kind("…"))
    assert code in _EXITS
    return code


def _again(kind: type[errors.DecklogError]) -> str:
    return "yes" if kind.retryable else ""


def python_md() -> str:
    """Give the log, every store with its verbs, every record with its fields, and every enumeration with its values."""
    parts = [
        "# Python",
        _WRITTEN,
        "Everything here is a name of the package: `from decklog import Decklog, Task`. A verb that only a manager uses says so; "
        "under [`AsyncDecklog`](../asyncio.md) each is awaited. Times are UTC, money is micro-dollars, and what is refused is "
        "raised ([errors](errors.md)).",
        "## Decklog",
        *_paragraphs(inspect.getdoc(decklog.Decklog)),
        *(part for name in _OF_THE_LOG for part in _method(decklog.Decklog, name)),
    ]
    for name in STORES:
        parts += _store(name, store_class(name))
    parts += ["## Records", *(part for kind in _public(Record) for part in _record(kind))]
    parts += ["## Results", _OF_RESULTS, *(part for kind in _results() for part in _result(kind))]
    parts += ["## Enumerations", *(part for kind in _public(Enum) for part in _enumeration(kind))]
    return "\n\n".join(parts) + "\n"


# What is said of results before they are listed.
_OF_RESULTS = (
    "Where a verb returns no record, it returns a dictionary of JSON values. Each is a `TypedDict`, so a type checker knows its "
    "keys."
)

_OF_THE_LOG = ("open", "acting", "proving", "transaction", "submit", "close")


def _public(kind: type) -> list[type[Any]]:
    named = (getattr(decklog, name) for name in decklog.__all__)
    return [one for one in named if isinstance(one, type) and issubclass(one, kind) and one is not kind]


def _store(name: str, kind: type) -> list[str]:
    parts = [f"## log.{name}", *_paragraphs(kind.__doc__)]
    for operation in operations_of(kind):
        parts += [f"### {name}.{operation.name}", _block(f"{name}.{operation.name}", _node(operation.function), operation)]
        parts += _paragraphs(operation.function.__doc__)
        if operation.manager_only:
            parts.append("*For a manager.*")
    return parts


def _method(kind: type, name: str) -> list[str]:
    function = inspect.unwrap(getattr(kind, name))
    return [f"### {kind.__name__}.{name}", _block(f"{kind.__name__}.{name}", _node(function)), *_paragraphs(function.__doc__)]


def _record(kind: type[Record]) -> list[str]:
    shown = [f"| `{name}` | `{_spelled(text)}` |" for name, text in kind.__annotations__.items() if name in _fields(kind)]
    return [f"### {kind.__name__}", *_paragraphs(kind.__doc__), "\n".join(["| field | type |", "| --- | --- |", *shown])]


def _results() -> list[Any]:
    """Return the exported results that are dictionaries with declared keys."""
    given = (decklog.NewTask, decklog.TaskFields)
    return [kind for name in decklog.__all__ if is_typeddict(kind := getattr(decklog, name)) and kind not in given]


def _result(kind: Any) -> list[str]:
    hints = get_type_hints(kind)
    shown = [
        f"| `{name}` | `{_spelled(text)}` | {'' if name in kind.__required_keys__ else 'yes'} |" for name, text in hints.items()
    ]
    head = ["| key | type | may be absent |", "| --- | --- | --- |"]
    return [f"### {kind.__name__}", *_paragraphs(kind.__doc__), "\n".join([*head, *shown])]


def _fields(kind: type[Record]) -> dict[str, Any]:
    return dict(kind.__dataclass_fields__)


def _enumeration(kind: type[Enum]) -> list[str]:
    return [f"### {kind.__name__}", ", ".join(f"`{member.value}`" for member in kind)]


def _spelled(annotation: object) -> str:
    """Write a type as it stands in the source: without the modules that its names come from."""
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return re.sub(r"\b[a-z_]\w*\.", "", text).replace("|", "\\|")


def _block(path: str, node: ast.FunctionDef, operation: Operation | None = None) -> str:
    arguments, returns = _arguments(node, operation), _answer(node, operation)
    line = f"{path}({', '.join(arguments)}) -> {returns}"
    if len(line) > 110:
        line = f"{path}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f") -> {returns}"
    return f"```\n{line}\n```"


def _arguments(node: ast.FunctionDef, operation: Operation | None) -> list[str]:
    written = node.args
    defaults = [None] * (len(written.args) - len(written.defaults)) + list(written.defaults)
    given = [
        _argument(part, default) for part, default in zip(written.args, defaults, strict=True) if part.arg not in ("self", "cls")
    ]
    given += [f"*{_argument(written.vararg, None)}"] if written.vararg else ["*"] if written.kwonlyargs else []
    given += [_argument(part, default) for part, default in zip(written.kwonlyargs, written.kw_defaults, strict=True)]
    fields = None if operation is None else keyword_fields(inspect.unwrap(operation.function))
    if fields:
        return [*given, *(f"{name}: {_spelled(kind).replace(chr(92), '')} = ..." for name, kind in fields.items())]
    return given + ([f"**{_argument(written.kwarg, None)}"] if written.kwarg else [])


def _argument(part: ast.arg, default: ast.expr | None) -> str:
    kind = f": {_text(part.annotation)}" if part.annotation else ""
    return f"{part.arg}{kind}" + (f" = {ast.unparse(default)}" if default is not None else "")


def _text(annotation: ast.expr | None) -> str:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    return "None" if annotation is None else ast.unparse(annotation)


def _answer(node: ast.FunctionDef, operation: Operation | None) -> str:
    """Give what a caller gets; of a verb that is written as steps, what they come to."""
    text = _text(node.returns)
    if operation is None or operation.steps is None:
        return text
    inner = ast.parse(text, mode="eval").body
    assert isinstance(inner, ast.Subscript)
    assert isinstance(inner.slice, ast.Tuple)
    given, _, answer = inner.slice.elts
    if operation.through == "follow":
        assert isinstance(given, ast.BinOp)
        assert isinstance(given.right, ast.Subscript)
        return f"Iterator[{ast.unparse(given.right.slice)}]"
    return ast.unparse(answer)


def _node(function: Any) -> ast.FunctionDef:
    plain = inspect.unwrap(function)
    owner, _, name = plain.__qualname__.rpartition(".")
    (kind,) = [node for node in _module(plain.__module__).body if isinstance(node, ast.ClassDef) and node.name == owner]
    return [node for node in kind.body if isinstance(node, ast.FunctionDef) and node.name == name][-1]


@cache
def _module(name: str) -> ast.Module:
    return ast.parse(Path(sys.modules[name].__file__ or "").read_text(encoding="utf-8"))


def _paragraphs(text: str | None) -> list[str]:
    cleaned = inspect.cleandoc(text or "")
    return [" ".join(paragraph.split()) for paragraph in cleaned.split("\n\n") if paragraph.strip()]
