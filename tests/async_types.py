"""Writes down what a type checker sees of an asynchronous log: each verb with the signature of the plain one, to be awaited."""

import ast
import inspect
import subprocess
import sys
from functools import cache
from pathlib import Path

from decklog.log import STORES, store_class
from decklog.records.operations import Operation, operations_of
from tests.db.processes import ROOT

HEAD = (
    "# What a type checker sees of an asynchronous log. Written by `make docs` from the operations; a test keeps it true.\n"
    "# ruff: noqa: E501\n"
)
# How an answer differs from the plain one.
_ANSWERS = {"Claim": "AsyncClaim"}
_AIO = {"AsyncClaim": "decklog.aio.stores", "AsyncIterator": "collections.abc", "overload": "typing"}


def async_types() -> str:
    """Return the stub of every store, formatted."""
    homes: dict[str, str] = {}
    stores = [_store(store_class(name), homes) for name in STORES]
    names = "".join(f"    {name}: Async{store_class(name).__name__}\n" for name in STORES)
    imports = "".join(f"from {module} import {name}\n" for name, module in sorted(homes.items()) if module)
    text = f"{HEAD}{imports}\n{''.join(stores)}class Stores:\n{names}"
    return _formatted(text)


def _formatted(text: str) -> str:
    ruff = str(Path(sys.executable).parent / "ruff")
    for words in (["check", "--select", "I,F401", "--fix", "--quiet"], ["format", "--quiet"]):
        command = [ruff, *words, "--stdin-filename", "typed.pyi", "-"]
        done = subprocess.run(command, input=text, cwd=ROOT, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


def _store(kind: type, homes: dict[str, str]) -> str:
    verbs = [_written(node, operation, homes) for operation in operations_of(kind) for node in nodes_of(operation)]
    return f"class Async{kind.__name__}:\n{''.join(verbs)}\n"


def nodes_of(operation: Operation) -> list[ast.FunctionDef]:
    """Return the definition of a verb, or all of its overloads."""
    function = inspect.unwrap(operation.function)
    class_name = function.__qualname__.partition(".")[0]
    tree = parse_module(function.__module__)
    (owner,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name]
    found = [node for node in ast.walk(owner) if isinstance(node, ast.FunctionDef) and node.name == operation.name]
    return [node for node in found if _is_overload(node)] or found


def _is_overload(node: ast.FunctionDef) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list)


@cache
def parse_module(name: str) -> ast.Module:
    """Parse an imported module."""
    return ast.parse(Path(sys.modules[name].__file__ or "").read_text(encoding="utf-8"))


@cache
def _names(module: str) -> dict[str, str]:
    """Name what a module imports or defines, with where it comes from."""
    found: dict[str, str] = {}
    for node in ast.walk(parse_module(module)):
        match node:
            case ast.ImportFrom(module=str() as source, names=names):
                found |= {alias.name: source for alias in names}
            case ast.ClassDef(name=name):
                found[name] = module
            case ast.Assign(targets=[ast.Name(id=name)]):
                found.setdefault(name, module)
    return found


def _written(node: ast.FunctionDef, operation: Operation, homes: dict[str, str]) -> str:
    module = inspect.unwrap(operation.function).__module__
    for part in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *filter(None, [node.args.kwarg])]:
        part.annotation = part.annotation and plain_annotation(part.annotation)
    node.args.defaults = [ast.Constant(...) for _ in node.args.defaults]
    node.args.kw_defaults = [default and ast.Constant(...) for default in node.args.kw_defaults]
    returns = answer_of(plain_annotation(node.returns), operation)
    signature = ast.unparse(node.args)
    _collect(ast.parse(f"def verb({signature}) -> {returns}: ..."), module, homes)
    mark = "@overload\n    " if _is_overload(node) else ""
    if mark:
        homes["overload"] = "typing"
    start = "def" if operation.through == "follow" else "async def"
    return f'    {mark}{start} {node.name}({signature}) -> {returns}:\n        """{operation.summary}"""\n'


def plain_annotation(annotation: ast.expr | None) -> ast.expr:
    """Read an annotation that is written as text."""
    assert annotation is not None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def answer_of(returns: ast.expr, operation: Operation) -> str:
    """Return the type of the asynchronous verb's result."""
    text = returned_type(returns, operation, "AsyncIterator")
    plain = text.removesuffix(" | None")
    return text.replace(plain, _ANSWERS.get(plain, plain))


def returned_type(returns: ast.expr, operation: Operation, iterator: str) -> str:
    """Return the type of a verb's result. A generator of steps yields lists of items or ends with a result."""
    if operation.steps is None:
        return ast.unparse(returns)
    assert isinstance(returns, ast.Subscript)
    assert isinstance(returns.slice, ast.Tuple)
    given, _, result = returns.slice.elts
    if operation.through != "follow":
        return ast.unparse(result)
    assert isinstance(given, ast.BinOp)
    assert isinstance(given.right, ast.Subscript)
    return f"{iterator}[{ast.unparse(given.right.slice)}]"


def _collect(tree: ast.AST, module: str, homes: dict[str, str]) -> None:
    """Note where the names of a signature come from; a name has one meaning in all stores."""
    known = {**_names(module), **_AIO}
    for name in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}:
        home = known.get(name, "")
        assert homes.setdefault(name, home) == home, f"{name} is of {home} and of {homes[name]}"
