"""Find Python tests that a change moves, renames, hides or removes, by comparing their code as well as their names.

A removed test is accepted if all that it checks is code that the change removes as well.
"""

import ast
import copy
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from decklog.conductor.checks.removed_code import RemovedCode, bound_names, gone
from decklog.conductor.checks.running import PASSED
from decklog.conductor.git.changes import list_changes
from decklog.conductor.git.repository import Repository
from decklog.core.python_source import parsed
from decklog.guard.files.gitignore import IgnoreFile

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_WORD = re.compile(r"\w+")
# Calls that check something: of unittest, of test runners, of mocks.
_LOOKS = ("assert", "fail", "raises", "warns", "expect", "check", "verify")


@dataclass(frozen=True)
class TestFile:
    """A file of tests before or after a change."""

    path: str
    content: bytes

    __test__ = False

    @property
    def stem(self) -> str:
        return self.path.rpartition("/")[2].partition(".")[0]


@dataclass(frozen=True)
class _Test:
    """One test of a file, with its class."""

    file: TestFile
    node: _Function
    scope: ast.ClassDef | None
    module: ast.Module

    def is_meant(self, name: str) -> bool:
        """Return whether a name in a report may be this test."""
        where, _, test = name.partition("::")
        is_here = self.file.stem in where and (self.scope is None or self.scope.name in f"{where}::{test}")
        return is_here and test.partition("[")[0].rpartition("::")[2] == self.node.name

    @cached_property
    def claim(self) -> str:
        """The code of the test without its name, together with the parts of its class and file that it uses."""
        plain = copy.copy(self.node)
        plain.name = "test"
        own = [one for one in self.scope.body if not is_test(one)] if self.scope is not None else []
        around = [*own, *self.scope.bases, *self.scope.decorator_list] if self.scope is not None else []
        defined = _defined(self.module)
        wanted, seen = [_used(one) for one in (self.node, *around)], set[str]()
        while wanted:
            for name in wanted.pop() & defined.keys() - seen:
                seen.add(name)
                wanted += [_used(statement) for statement in defined[name]]
        ground = [statement for name in sorted(seen) for statement in defined[name]]
        return "\n".join(ast.dump(one) for one in (plain, *around, *ground))

    def set_up(self, sight: "_Sight") -> set[str]:
        """Return the attributes and methods of its class that depend on removed code."""
        others = [one for one in self.scope.body if isinstance(one, _Function) and not is_test(one)] if self.scope else []
        kept = {f"self.{one.name}" for one in others if sight.sees(one)}
        assigned = [node for one in others for node in ast.walk(one) if isinstance(node, ast.Assign) and sight.sees(node.value)]
        return kept | {_dotted(target) for node in assigned for target in node.targets if isinstance(target, ast.Attribute)}


def _tests(file: TestFile) -> Iterator[_Test]:
    """Yield the tests of a file and its classes; nothing if it can't be parsed."""
    module = parsed(file.content)
    if module is None:
        return
    scopes: list[ast.Module | ast.ClassDef] = [module, *(one for one in ast.walk(module) if isinstance(one, ast.ClassDef))]
    for scope in scopes:
        for node in scope.body:
            if is_test(node) and isinstance(node, _Function):
                yield _Test(file, node, scope if isinstance(scope, ast.ClassDef) else None, module)


def is_test(node: ast.stmt) -> bool:
    return isinstance(node, _Function) and node.name.startswith("test")


def moved(
    lost: Sequence[str], was: Mapping[str, str], now: Mapping[str, str], old: Sequence[TestFile], new: Sequence[TestFile]
) -> set[str]:
    """Return the lost tests that still run under another name with the same code.

    Each new name counts for one of them.
    """
    before, after = ([test for file in files for test in _tests(file)] for files in (old, new))
    free = [name for name, outcome in now.items() if outcome == PASSED and name not in was]
    found = set()
    for name in lost:
        claims = {test.claim for test in before if test.is_meant(name)}
        same = [test for test in after if test.claim in claims]
        other = next((one for one in free if _case(one) == _case(name) and any(test.is_meant(one) for test in same)), None)
        if other is not None:
            free.remove(other)
            found.add(name)
    return found


def hidden(files: Sequence[TestFile]) -> list[str]:
    """List the tests that do not run, because a later one has the same name."""
    found = []
    for file in files:
        names = Counter((id(test.scope), test.node.name) for test in _tests(file))
        found += sorted(f"{file.path}::{name}" for (_, name), count in names.items() if count > 1)
    return found


def _case(name: str) -> str:
    """Return the case of a parametrised test."""
    return name.partition("::")[2].partition("[")[2]


@lru_cache(maxsize=8)
def _defined(module: ast.Module) -> dict[str, list[ast.stmt]]:
    """Return the statements of a module by the names that they define; imports are split by name."""
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
    """Return the names that a statement defines or changes; `shop.price = …` changes `shop`."""
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
    """Return the names that are read, and those of arguments, which may be fixtures."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}


# Removed with their code


@dataclass(frozen=True)
class _Sight:
    """How a test file uses removed code: imported modules and names, and its own names that depend on removed code.

    `looking` has the names of its helpers that assert something.
    """

    gone: RemovedCode
    modules: dict[str, str]
    imported: dict[str, tuple[str, str]]
    looking: frozenset[str]
    own: frozenset[str] = frozenset()

    def sees(self, node: ast.AST, known: Collection[str] = ()) -> bool:
        """Return whether code uses removed code or something that depends on it."""
        return any(self._is_gone(one, known) for one in ast.walk(node))

    def _is_gone(self, node: ast.AST, known: Collection[str]) -> bool:
        match node:
            case ast.Name(id=name):
                taken = self.imported.get(name)
                return name in known or name in self.own or (taken is not None and self.gone.has(*taken))
            case ast.arg(arg=name):
                # It may be a fixture.
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
        """Return the last parts of imported names that are not removed."""
        parts = [one for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute) and not self._is_gone(one, ())]
        # Skip the left part of an attribute, which may be a module.
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


def _build_sight(module: ast.Module, gone: RemovedCode, shared: frozenset[str] = frozenset()) -> _Sight:
    """Return the removed code as a file uses it; `shared` are fixtures of other files that depend on it."""
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
        own = {name for node in module.body if not _has_tests(node) for name in bound_names(node) if sight.sees(node)}
        if own <= sight.own:
            return sight
        sight = replace(sight, own=sight.own | own)


def _shared(files: Sequence[TestFile], gone: RemovedCode) -> frozenset[str]:
    """Return the shared fixtures that depend on removed code."""
    modules = [parsed(file.content) for file in files if file.stem == "conftest"]
    return frozenset(name for module in modules if module is not None for name in _build_sight(module, gone).own)


def _has_tests(node: ast.stmt) -> bool:
    return is_test(node) or (isinstance(node, ast.ClassDef) and any(is_test(one) for one in node.body))


def with_their_code(lost: Sequence[str], old: Sequence[TestFile], gone: RemovedCode, tree: "RemovedTests") -> set[str]:
    """Return the lost tests that checked only removed code.

    Each of their assertions is about removed code, or is in another test, too; and other tests name the remaining code.
    """
    if not gone.names and not gone.methods:
        return set()
    shared = _shared(old, gone)
    tests: list[tuple[_Test, _Sight]] = []
    for file in old:
        module = parsed(file.content)
        sight = _build_sight(module, gone, shared) if module is not None else None
        tests += [(test, sight) for test in _tests(file) if sight is not None]
    found = set()
    for name in lost:
        meant = [(test, sight) for test, sight in tests if test.is_meant(name)]
        if meant and all(_is_of_gone(test, sight, tree) for test, sight in meant):
            found.add(name)
    return found


def _is_of_gone(test: _Test, sight: _Sight, tree: "RemovedTests") -> bool:
    known = test.set_up(sight) | {one.arg for one in ast.walk(test.node.args) if isinstance(one, ast.arg) and sight.sees(one)}
    if not sight.sees(test.node, known):
        return False
    others = list(_find_other_assertions(sight, test.node.body, known, is_within=False))
    staying = tree.words_of_code(sight.staying(test.node))
    files = tree.tests_naming(staying)
    if not all(any(_has_word(file, word) for file in files) for word in staying):
        return False
    statements = (
        {ast.dump(node) for file in files for node in ast.walk(parsed(file.content) or ast.Module([], []))} if others else set()
    )
    return all(ast.dump(one) in statements for one in others)


def _has_word(file: TestFile, word: str) -> bool:
    module = parsed(file.content)
    return module is not None and any(
        (isinstance(one, ast.Name) and one.id == word) or (isinstance(one, ast.Attribute) and one.attr == word)
        for one in ast.walk(module)
    )


def _find_other_assertions(sight: _Sight, body: Sequence[ast.stmt], known: set[str], *, is_within: bool) -> Iterator[ast.AST]:
    """Yield the assertions of a test that do not depend on removed code. Names that do are added to `known`."""
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
            if not sees and not (is_within and _fails(node)) and _has_assertion(node, sight.looking):
                yield node
            continue
        if (
            isinstance(node, ast.With | ast.AsyncWith)
            and not sees
            and any(_has_assertion(one.context_expr, sight.looking) for one in node.items)
        ):
            yield node
        for part in inner:
            yield from _find_other_assertions(sight, part, known, is_within=is_within or sees)


def _fails(node: ast.stmt) -> bool:
    """Return whether a statement always fails instead of checking something."""
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return isinstance(node, ast.Raise) or (isinstance(called, ast.Attribute) and called.attr == "fail")


def _has_assertion(node: ast.AST, helpers: Collection[str]) -> bool:
    """Return whether something is asserted, directly or by a call."""
    if isinstance(node, ast.Assert | ast.Raise):
        return True
    called = (one.func for one in ast.walk(node) if isinstance(one, ast.Call))
    names = [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in called]
    return any(name in helpers or name.lower().lstrip("_").startswith(_LOOKS) for name in names)


# Old files without removed tests


def without(file: TestFile, names: Collection[str], gone: RemovedCode) -> bytes | None:
    """Return a file without some of its tests and what only they used; None if no test is left."""
    module = parsed(file.content)
    if module is None:
        return file.content
    going = {(test.scope and test.scope.name, test.node.name) for test in _tests(file) if any(map(test.is_meant, names))}
    before, sight = ast.dump(module), _build_sight(module, gone)
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
    """Return a statement of a module without removed names; None if nothing is left."""
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


# The tests of a change


def python_files(
    repository: Repository, base: str, tip: str, is_wanted: Callable[[str], bool]
) -> tuple[dict[str, bytes | None], dict[str, bytes | None]]:
    """Read the changed files of Python before and after a change; a missing one is None."""
    paths = [one.path for one in list_changes(repository, base, tip) if one.path.endswith(".py") and is_wanted(one.path)]
    old, new = ({path: repository.read(commit, path) for path in paths} for commit in (base, tip))
    return old, new


def test_files(files: Mapping[str, bytes | None]) -> list[TestFile]:
    return [TestFile(path, content) for path, content in files.items() if content is not None]


class RemovedTests:
    """Separates lost tests of remaining code from tests that were removed with their code."""

    def __init__(self, repository: Repository, base: str, tip: str, tests: IgnoreFile) -> None:
        self._repository, self._base, self._tip, self._tests = repository, base, tip, tests
        self._let_go: set[str] = set()

    def left(self, lost: Sequence[str]) -> list[str]:
        """Return the lost tests that checked remaining code."""
        unknown = [name for name in lost if name not in self._let_go]
        if unknown:
            old, _ = python_files(self._repository, self._base, self._tip, self._tests.covers)
            self._let_go |= with_their_code(unknown, test_files(old), self._gone, self)
        return [name for name in unknown if name not in self._let_go]

    def without(self, paths: Collection[str]) -> dict[str, bytes | None]:
        """Return old test files without tests that were removed with their code; None for a file without other tests."""
        if not self._let_go:
            return {}
        old, _ = python_files(self._repository, self._base, self._tip, lambda path: path in paths)
        return {file.path: without(file, self._let_go, self._gone) for file in test_files(old)}

    @cached_property
    def _gone(self) -> RemovedCode:
        old, new = python_files(self._repository, self._base, self._tip, lambda path: not self._tests.covers(path))
        return gone(old, new, self.words_of_code)

    def words_of_code(self, words: Collection[str]) -> set[str]:
        """Return the words that code outside of tests still contains."""
        files = [content for path, content in self._naming(words) if not self._tests.covers(path)]
        found = {word for content in files for word in _WORD.findall(content.decode(errors="replace"))}
        return found.intersection(words)

    def tests_naming(self, words: Collection[str]) -> list[TestFile]:
        """Return the test files that contain one of the words."""
        return [TestFile(path, content) for path, content in self._naming(words) if self._tests.covers(path)]

    def _naming(self, words: Collection[str]) -> list[tuple[str, bytes]]:
        """Read the Python files of the new tree that contain one of the words."""
        if not words:
            return []
        wanted = [part for word in sorted(words) for part in ("-e", word)]
        found = self._repository.on_objects("grep", "-l", "-z", "-w", "-F", *wanted, self._tip, "--", "*.py", accepted=(0, 1)).out
        paths = [name.partition(b":")[2].decode(errors="surrogateescape") for name in found.split(b"\0") if name]
        read = [(path, self._repository.read(self._tip, path)) for path in paths]
        return [(path, content) for path, content in read if content is not None]
