"""Find Python code that a change removes and does not move or rename."""

import ast
import copy
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from decklog.core.python_source import parsed

# Two definitions with this similarity are one that was renamed.
_ALIKE = 0.75
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Files = Mapping[str, bytes | None]


@dataclass(frozen=True)
class RemovedCode:
    """The removed code of a change: names by file, methods by name alone, and whole files."""

    names: frozenset[tuple[str, str]] = frozenset()
    methods: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()

    def has(self, module: str, name: str) -> bool:
        """Return whether an imported name of a module is removed."""
        return any(one == name and is_module(path, module) for path, one in self.names)

    def has_module(self, module: str) -> bool:
        """Return whether the file of a module is removed."""
        return any(is_module(path, module) for path in self.files)


def is_module(path: str, module: str) -> bool:
    """Return whether a module is imported from a file, in any folder."""
    dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return dotted == module or dotted.endswith(f".{module}")


def _trees(files: Files) -> dict[str, ast.Module | None]:
    """Parse files; a missing file, or one that is no Python, is None."""
    return {path: None if content is None else parsed(content) for path, content in files.items()}


def gone(before: Files, after: Files, named: Callable[[Collection[str]], Collection[str]]) -> RemovedCode:
    """Find the removed code of changed files. `named` returns the words that any code still contains."""
    old, new = _trees(before), _trees(after)
    if any(new[path] is None for path in after if after[path] is not None):
        # The names of a file that can't be parsed are unknown.
        return RemovedCode()
    was, now = ({path: bound(tree) for path, tree in trees.items() if tree is not None} for trees in (old, new))
    known = {place for place, _ in _definitions(old)}
    added = [node for place, node in _definitions(new) if place not in known]
    lost = {
        (path, name): node
        for path, names in was.items()
        for name, node in names.items()
        if name not in now.get(path, {}) and not _is_kept(name, node, added)
    }
    methods = {
        node.name: node
        for path, names in was.items()
        for node in _methods(names, now.get(path, {}))
        if not _is_kept(node.name, node, added)
    }
    files = frozenset(path for path, content in after.items() if content is None)
    return RemovedCode(frozenset(_find_removed(lost)), frozenset(set(methods) - set(named(set(methods)))), files)


def bound(tree: ast.Module) -> dict[str, ast.AST]:
    """Return the top-level names of a module, each with its definition."""
    return {name: node for node in tree.body for name in bound_names(node)}


def bound_names(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(one.asname or one.name).partition(".")[0] for one in names}
        case ast.Assign() | ast.AnnAssign():
            return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        case _:
            return set()


def _find_removed(lost: Mapping[tuple[str, str], ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield the removed names; an imported name is removed if it is where it was defined."""
    own = {key for key, node in lost.items() if not isinstance(node, ast.Import | ast.ImportFrom)}
    yield from own
    for (path, name), node in lost.items():
        if isinstance(node, ast.ImportFrom):
            origin = next((one.name for one in node.names if (one.asname or one.name) == name), name)
            module = _absolute(path, node)
            if any(one == origin and is_module(where, module) for where, one in own):
                yield path, name


def _absolute(path: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = path.rpartition("/")[0].split("/")
    kept = package[: len(package) - node.level + 1]
    return ".".join([*kept, *([node.module] if node.module else [])])


# Moved, or renamed


def _definitions(trees: Mapping[str, ast.Module | None]) -> Iterator[tuple[str, _Definition]]:
    """Yield functions, classes and methods, each with its qualified name and file."""
    for path, tree in trees.items():
        if tree is not None:
            yield from _within(path, tree)


def _within(place: str, around: ast.AST) -> Iterator[tuple[str, _Definition]]:
    for node in ast.iter_child_nodes(around):
        inner = f"{place}:{node.name}" if isinstance(node, _Definition) else place
        if isinstance(node, _Definition):
            yield inner, node
        yield from _within(inner, node)


def _methods(was: Mapping[str, ast.AST], now: Mapping[str, ast.AST]) -> Iterator[_Definition]:
    """Yield the methods that classes no longer have, of classes that stay and of removed ones."""
    for name, node in was.items():
        if isinstance(node, ast.ClassDef):
            other = now.get(name)
            kept = {one.name for one in other.body if isinstance(one, _Definition)} if isinstance(other, ast.ClassDef) else set()
            yield from (one for one in node.body if isinstance(one, _Definition) and one.name not in kept)


def _is_kept(name: str, node: ast.AST, added: Collection[_Definition]) -> bool:
    """Return whether an added definition has the same name, or nearly the same body."""
    if any(one.name == name for one in added):
        return True
    if not isinstance(node, _Definition):
        return False
    words = _words_of(node)
    return any(SequenceMatcher(None, words, _words_of(one), autojunk=False).ratio() >= _ALIKE for one in added)


def _words_of(node: _Definition) -> list[str]:
    """Return the words of a definition, without its name and docstring, with numbered local names."""
    body = [one for one in node.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    plain = copy.deepcopy(ast.Module(body or [ast.Pass()], []))
    own = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    own |= {one.id for one in ast.walk(plain) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    order: dict[str, str] = {}
    for one in ast.walk(plain):
        if isinstance(one, ast.Name) and one.id in own:
            one.id = order.setdefault(one.id, f"n{len(order)}")
        elif isinstance(one, ast.arg):
            one.arg = order.setdefault(one.arg, f"n{len(order)}")
    return ast.unparse(plain).replace("(", " ( ").replace(")", " ) ").split()
