"""Tests that a change moves or calls otherwise, and tests that it hides: by what they claim, and not by their names alone."""

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from decklog.conductor.checks.report import PASSED
from decklog.core.python_source import parsed

_Scope = ast.Module | ast.ClassDef


@dataclass(frozen=True)
class TestFile:
    """A file of tests as it is before or after a change."""

    path: str
    content: bytes

    __test__ = False

    @property
    def stem(self) -> str:
        return self.path.rpartition("/")[2].partition(".")[0]


def moved(
    lost: Sequence[str], was: Mapping[str, str], now: Mapping[str, str], old: Sequence[TestFile], new: Sequence[TestFile]
) -> set[str]:
    """Name those of some lost tests of Python that are run under another name, and claim the same by the same means.

    Each new name stands for one of them.
    """
    before, after = _claims(old), _claims(new)
    free = [name for name, outcome in now.items() if outcome == PASSED and name not in was]
    found = set()
    for name in lost:
        claimed = _claimed(name, before)
        other = next((one for one in free if _case(one) == _case(name) and claimed & _claimed(one, after)), None)
        if claimed and other is not None:
            free.remove(other)
            found.add(name)
    return found


def hidden(files: Sequence[TestFile]) -> list[str]:
    """Name the tests of Python that another of the same name, further down, keeps from being run."""
    found = []
    for file in files:
        for scope in _scopes(file):
            names = [str(one.name) for one in scope.body if is_test(one)]  # type: ignore[attr-defined]
            found += sorted(f"{file.path}::{name}" for name in set(names) if names.count(name) > 1)
    return found


def _case(name: str) -> str:
    """Return what tells the cases of one test apart."""
    return name.partition("::")[2].partition("[")[2]


def _claimed(name: str, claims: Mapping[tuple[str, str], set[str]]) -> set[str]:
    """Return what the tests claim that a name of a report may mean."""
    where, _, test = name.partition("::")
    function = test.partition("[")[0]
    return {one for (stem, called), said in claims.items() if called == function and stem in where for one in said}


def _claims(files: Sequence[TestFile]) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for file in files:
        scopes = _scopes(file)
        defined = _defined(scopes[0]) if scopes else {}
        for scope in scopes:
            own = [one for one in scope.body if not is_test(one)] if isinstance(scope, ast.ClassDef) else []
            around = [*own, *scope.bases, *scope.decorator_list] if isinstance(scope, ast.ClassDef) else []
            for node in filter(is_test, scope.body):
                found.setdefault((file.stem, node.name), set()).add(_claim(node, around, defined))  # type: ignore[attr-defined]
    return found


def _scopes(file: TestFile) -> list[_Scope]:
    """Return what tests stand in: the module, then its classes; nothing of what is no Python."""
    module = parsed(file.content)
    if module is None:
        return []
    return [module, *(node for node in ast.walk(module) if isinstance(node, ast.ClassDef))]


def is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _claim(node: ast.stmt, around: Sequence[ast.AST], defined: Mapping[str, Sequence[ast.stmt]]) -> str:
    """Write down what a test does, whatever it is called, with all of its class and its file that it stands on."""
    plain = copy.copy(node)
    plain.name = "test"  # type: ignore[attr-defined]
    wanted, seen = [_used(one) for one in (node, *around)], set[str]()
    while wanted:
        for name in wanted.pop() & defined.keys() - seen:
            seen.add(name)
            wanted += [_used(statement) for statement in defined[name]]
    ground = [statement for name in sorted(seen) for statement in defined[name]]
    return "\n".join(ast.dump(one) for one in (plain, *around, *ground))


def _defined(module: _Scope) -> dict[str, list[ast.stmt]]:
    """Return the statements of a module by the names that they define; what is imported at once is so name by name."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in (one for whole in module.body for one in _parts(whole)):
        for name in _names(statement):
            found.setdefault(name, []).append(statement)
    return found


def _parts(statement: ast.stmt) -> list[ast.stmt]:
    match statement:
        case ast.ImportFrom(module=module, names=names, level=level):
            return [ast.ImportFrom(module, [one], level) for one in names]
        case ast.Import(names=names):
            return [ast.Import([one]) for one in names]
        case _:
            return [statement]


def _names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement defines, or makes something else of: `shop.price = …` is about `shop`."""
    match statement:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(one.asname or one.name).partition(".")[0] for one in names}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return set().union(*map(_used, targets))
        case ast.Expr(value=value) | ast.AugAssign(target=value) | ast.AnnAssign(target=value):
            return _used(value)
        case _:
            return _used(statement)


def _used(node: ast.AST) -> set[str]:
    """Return the names that are read, and those of arguments, which a runner may look up."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
