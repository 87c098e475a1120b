"""Tests of Python that a change takes away with the code that they tried: nothing of what stays is looked at less for it."""

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from decklog.conductor.checks.moved_tests import TestFile, is_test
from decklog.conductor.checks.removed_code import RemovedCode
from decklog.core.python_source import parsed

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# What looks at something by being called: of unittest, of runners, of stand-ins.
_LOOKS = ("assert", "fail", "raises", "warns", "expect", "check", "verify")


@dataclass(frozen=True)
class _Sight:
    """What is gone as one file of tests sees it: modules and names that it imports, and its own that stand on them.

    `looking` are its functions that assert something for others.
    """

    gone: RemovedCode
    modules: dict[str, str]
    imported: dict[str, tuple[str, str]]
    looking: frozenset[str]
    own: frozenset[str] = frozenset()

    def sees(self, node: ast.AST, known: Collection[str] = ()) -> bool:
        """Return whether something in a piece of code is gone, or stands on what is."""
        return any(self._is_gone(one, known) for one in ast.walk(node))

    def _is_gone(self, node: ast.AST, known: Collection[str]) -> bool:
        match node:
            case ast.Name(id=name):
                taken = self.imported.get(name)
                return name in known or name in self.own or (taken is not None and self.gone.has(*taken))
            case ast.arg(arg=name):
                # A runner may look it up, as it does fixtures.
                return name in self.own
            case ast.Attribute(attr=name):
                dotted = _dotted(node)
                if dotted.startswith("self.") and dotted in known:
                    return True
                module, _, last = dotted.rpartition(".")
                return name in self.gone.methods or (bool(module) and self.gone.has(self._module(module), last))
            case _:
                return False

    def _module(self, dotted: str) -> str:
        first, dot, rest = dotted.partition(".")
        return f"{self.modules.get(first, ' ')}{dot}{rest}"

    def staying(self, node: ast.AST) -> set[str]:
        """Return the names that are imported and stay, as a test spells the last part of them."""
        parts = [one for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute) and not self._is_gone(one, ())]
        # What only leads to an attribute may be a module: that names nothing of it.
        leading = {id(one.value) for one in ast.walk(node) if isinstance(one, ast.Attribute)}
        named = [one for one in parts if isinstance(one, ast.Name) and one.id in self.imported and id(one) not in leading]
        reached = [one for one in parts if isinstance(one, ast.Attribute) and _dotted(one).partition(".")[0] in self.modules]
        return {self.imported[one.id][1] for one in named} | {one.attr for one in reached}


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            first = _dotted(value)
            return f"{first}.{name}" if first else ""
        case _:
            return ""


def _sight(module: ast.Module, gone: RemovedCode, shared: frozenset[str] = frozenset()) -> _Sight:
    """See what is gone as a file does; `shared` are names of what other files have for it."""
    modules: dict[str, str] = {}
    imported: dict[str, tuple[str, str]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for one in node.names:
                first = one.name.partition(".")[0]
                modules[one.asname or first] = one.name if one.asname else first
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for one in node.names:
                imported[one.asname or one.name] = (str(node.module), one.name)
                # It may be a module of a package as well.
                modules[one.asname or one.name] = f"{node.module}.{one.name}"
    functions = [node for node in ast.walk(module) if isinstance(node, _Function) and not is_test(node)]
    looking = frozenset(node.name for node in functions if any(isinstance(one, ast.Assert) for one in ast.walk(node)))
    sight = _Sight(gone, modules, imported, looking, shared)
    while True:
        own = {name for node in module.body if not _has_tests(node) for name in _named(node) if sight.sees(node)}
        if own <= sight.own:
            return sight
        sight = _Sight(gone, modules, imported, looking, sight.own | own)


def _shared(files: Sequence[TestFile], gone: RemovedCode) -> frozenset[str]:
    """Return the fixtures for many files that stand on what is gone."""
    modules = [parsed(file.content) for file in files if file.stem == "conftest"]
    return frozenset(name for module in modules if module is not None for name in _sight(module, gone).own)


def _has_tests(node: ast.stmt) -> bool:
    return is_test(node) or (isinstance(node, ast.ClassDef) and any(is_test(one) for one in node.body))


def _named(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign() | ast.AnnAssign():
            return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        case _:
            return set()


@dataclass(frozen=True)
class _Test:
    """One test of a file, with its class."""

    file: TestFile
    node: _Function
    scope: ast.ClassDef | None
    sight: _Sight

    def is_meant(self, name: str) -> bool:
        """Return whether a name of a report may mean it."""
        where, _, test = name.partition("::")
        is_here = self.file.stem in where and (self.scope is None or self.scope.name in f"{where}::{test}")
        return is_here and test.partition("[")[0].rpartition("::")[2] == self.node.name

    @property
    def set_up(self) -> frozenset[str]:
        """What its class keeps, and does for it, that stands on what is gone."""
        others = [one for one in self.scope.body if isinstance(one, _Function) and not is_test(one)] if self.scope else []
        kept = set()
        for one in others:
            if self.sight.sees(one):
                kept.add(f"self.{one.name}")
            for node in ast.walk(one):
                if isinstance(node, ast.Assign) and self.sight.sees(node.value):
                    kept |= {_dotted(target) for target in node.targets if isinstance(target, ast.Attribute)}
        return frozenset(kept)


class ChangedTree(Protocol):
    """The new tree of a change."""

    def words_of_code(self, words: Collection[str]) -> set[str]:
        """Return those of some words that code has, which is no test."""
        ...

    def tests_naming(self, words: Collection[str]) -> list[TestFile]:
        """Return the tests that have one of some words."""
        ...


def with_their_code(lost: Sequence[str], old: Sequence[TestFile], gone: RemovedCode, tree: ChangedTree) -> set[str]:
    """Name those of some lost tests that tried nothing but code that is gone.

    Each looks, wherever it looks, at what is gone, or says what another test says; and what it names of code that stays another
    test names.
    """
    if not gone.names and not gone.methods:
        return set()
    shared = _shared(old, gone)
    tests = [test for file in old for test in _tests(file, gone, shared)]
    found = set()
    for name in lost:
        meant = [test for test in tests if test.is_meant(name)]
        if meant and all(_is_of_gone(test, tree) for test in meant):
            found.add(name)
    return found


def _tests(file: TestFile, gone: RemovedCode, shared: frozenset[str] = frozenset()) -> Iterator[_Test]:
    module = parsed(file.content)
    if module is None:
        return
    sight = _sight(module, gone, shared)
    for scope in (None, *(node for node in module.body if isinstance(node, ast.ClassDef))):
        for node in (module if scope is None else scope).body:
            if is_test(node) and isinstance(node, _Function):
                yield _Test(file, node, scope, sight)


def _is_of_gone(test: _Test, tree: ChangedTree) -> bool:
    known = set(test.set_up) | {one.arg for one in ast.walk(test.node.args) if isinstance(one, ast.arg) and test.sight.sees(one)}
    if not test.sight.sees(test.node, known):
        return False
    others = list(_other_looks(test.sight, test.node.body, known, is_within=False))
    staying = tree.words_of_code(test.sight.staying(test.node))
    files = tree.tests_naming(staying)
    if not all(any(_has_word(file, word) for file in files) for word in staying):
        return False
    said = (
        {ast.dump(node) for file in files for node in ast.walk(parsed(file.content) or ast.Module([], []))} if others else set()
    )
    return all(ast.dump(one) in said for one in others)


def _has_word(file: TestFile, word: str) -> bool:
    module = parsed(file.content)
    return module is not None and any(
        (isinstance(one, ast.Name) and one.id == word) or (isinstance(one, ast.Attribute) and one.attr == word)
        for one in ast.walk(module)
    )


def _other_looks(sight: _Sight, body: Sequence[ast.stmt], known: set[str], *, is_within: bool) -> Iterator[ast.AST]:
    """Yield what a test looks at that does not stand on what is gone. `known` grows by the names that do."""
    for node in body:
        sees = sight.sees(node, known)
        if (
            isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.With | ast.AsyncWith | ast.AsyncFor)
            and sees
        ):
            known |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        inner = [part for part in (getattr(node, name, []) for name in ("body", "orelse", "finalbody")) if part]
        if isinstance(node, ast.Try):
            known |= {one.name for one in node.handlers if one.name} if sight.sees(node, known) else set()
            inner += [one.body for one in node.handlers]
        if not inner:
            if not sees and not (is_within and _fails(node)) and _looks(node, sight.looking):
                yield node
            continue
        if (
            isinstance(node, ast.With | ast.AsyncWith)
            and not sees
            and any(_looks(one.context_expr, sight.looking) for one in node.items)
        ):
            yield node
        for part in inner:
            yield from _other_looks(sight, part, known, is_within=is_within or sees)


def _fails(node: ast.stmt) -> bool:
    """Return whether a statement looks at nothing, and only says that what was looked at is not so."""
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return isinstance(node, ast.Raise) or (isinstance(called, ast.Attribute) and called.attr == "fail")


def _looks(node: ast.AST, helpers: Collection[str]) -> bool:
    """Return whether something is asserted, or something is called that does or may do so."""
    if isinstance(node, ast.Assert | ast.Raise):
        return True
    called = (one.func for one in ast.walk(node) if isinstance(one, ast.Call))
    names = [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in called]
    return any(name in helpers or name.lower().lstrip("_").startswith(_LOOKS) for name in names)


# The old tests without them


def without(file: TestFile, names: Collection[str], gone: RemovedCode) -> bytes | None:
    """Return a file without some of its tests and what they alone stood on; where that leaves no test of those it had, null."""
    module = parsed(file.content)
    if module is None:
        return file.content
    going = {(test.scope and test.scope.name, test.node.name) for test in _tests(file, gone) if any(map(test.is_meant, names))}
    before, sight = ast.dump(module), _sight(module, gone)
    had_tests = _any_tests(module)
    scopes: list[ast.Module | ast.ClassDef] = [module, *(node for node in module.body if isinstance(node, ast.ClassDef))]
    for scope in scopes:
        whose = scope.name if isinstance(scope, ast.ClassDef) else None
        scope.body = [node for node in scope.body if (whose, getattr(node, "name", "")) not in going] or [ast.Pass()]
    module.body = [kept for node in module.body if (kept := _kept(node, sight)) is not None]
    if had_tests and not _any_tests(module):
        return None
    return file.content if ast.dump(module) == before else ast.unparse(module).encode() + b"\n"


def _any_tests(module: ast.Module) -> bool:
    return any(is_test(node) for node in ast.walk(module) if isinstance(node, ast.stmt))


def _kept(node: ast.stmt, sight: _Sight) -> ast.stmt | None:
    """Return a statement of a module without what is gone."""
    gone = sight.gone
    if isinstance(node, ast.ImportFrom) and not node.level:
        module = str(node.module)
        names = [one for one in node.names if not (gone.has(module, one.name) or gone.has_module(f"{module}.{one.name}"))]
        return ast.ImportFrom(node.module, names, 0) if names and not gone.has_module(module) else None
    if isinstance(node, ast.Import):
        modules = [one for one in node.names if not gone.has_module(one.name)]
        return ast.Import(modules) if modules else None
    if _has_tests(node):
        return node
    return None if sight.sees(node) or (isinstance(node, ast.ClassDef) and isinstance(node.body[0], ast.Pass)) else node
