"""Which files of a tree a file imports: Python by its syntax, JavaScript and Go by their words."""

import ast
import posixpath
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from decklog.core.python_source import parsed
from decklog.review.rules.languages import suffix_of
from decklog.review.rules.rule import SCRIPTS

_FROM = re.compile(
    r"(?m)^[ \t]*(?:import|export)\b(?:\s+(?P<type>type)\b)?[^;'\"]*?['\"](?P<module>\.[^'\"\n]+)['\"]"
    r"|\b(?:require|import)\(\s*['\"](?P<asked>\.[^'\"\n]+)['\"]\s*\)"
)
_ENDINGS = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".vue", ".svelte", "/index.ts", "/index.tsx", "/index.js", "")


@dataclass(frozen=True)
class Imported:
    """One import: the file that it leads to, its line, the names it takes, and whether it is done when the module is read."""

    path: str
    line: int
    names: tuple[tuple[str, str], ...] = ()
    alias: str = ""
    is_at_once: bool = True
    is_for_types: bool = False


def imports(path: str, text: str, files: Collection[str], module: str = "") -> list[Imported]:
    """Give what a file imports of its own tree. `module` is how a module of Go calls itself."""
    suffix = suffix_of(path)
    if suffix in (".py", ".pyi"):
        tree = parsed(text.encode(errors="replace"))
        return list(_of_python(path, tree, files)) if tree is not None else []
    if suffix in SCRIPTS:
        return list(_of_scripts(path, text, files))
    return list(_of_go(text, files, module)) if suffix == ".go" and module else []


# Python


def _of_python(path: str, tree: ast.Module, files: Collection[str]) -> Iterator[Imported]:
    pending: list[tuple[ast.AST, bool, bool]] = [(node, True, False) for node in tree.body]
    while pending:
        node, at_once, for_types = pending.pop()
        if isinstance(node, ast.Import):
            for name in node.names:
                found = located(path, name.name, 0, files)
                if found:
                    yield Imported(found, node.lineno, (), name.asname or name.name, at_once, for_types)
        elif isinstance(node, ast.ImportFrom):
            yield from _taken(path, node, files, at_once=at_once, for_types=for_types)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            is_typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            pending += [(child, at_once and not inside, for_types or is_typing) for child in statements(node)]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Give the statements that stand within one. No expression has any, and there are ten times as many of those."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner = getattr(node, name, None)
        if isinstance(inner, list):
            yield from inner


def _taken(path: str, node: ast.ImportFrom, files: Collection[str], *, at_once: bool, for_types: bool) -> Iterator[Imported]:
    base = located(path, node.module or "", node.level, files)
    for name in node.names:
        inner = located(path, f"{node.module}.{name.name}" if node.module else name.name, node.level, files)
        if inner:
            yield Imported(inner, node.lineno, (), name.asname or name.name, at_once, for_types)
        elif base:
            yield Imported(base, node.lineno, ((name.name, name.asname or name.name),), "", at_once, for_types)


def located(path: str, name: str, level: int, files: Collection[str]) -> str:
    """Find the file of a module of Python that another file names; nothing where it is none of the tree."""
    folder = posixpath.dirname(path)
    parts = name.split(".") if name else []
    if level:
        for _ in range(level - 1):
            folder = posixpath.dirname(folder)
        return _module(posixpath.join(folder, *parts), files)
    roots = [""]
    while folder:
        roots.append(folder)
        folder = posixpath.dirname(folder)
    return next((found for root in (*roots, "src") if (found := _module(posixpath.join(root, *parts), files))), "")


def _module(path: str, files: Collection[str]) -> str:
    return next((one for one in (f"{path}.py", f"{path}/__init__.py", f"{path}.pyi") if one in files), "")


# Others


def _of_scripts(path: str, text: str, files: Collection[str]) -> Iterator[Imported]:
    for found in _FROM.finditer(text):
        target = script(path, found["module"] or found["asked"], files)
        if target:
            line = text.count("\n", 0, found.end()) + 1
            start = text.rfind("\n", 0, found.start()) + 1
            row = text[start : text.find("\n", found.end()) if "\n" in text[found.end() :] else len(text)]
            yield Imported(target, line, tuple(_names(row)), _namespace(row), not row[:1].isspace(), found["type"] is not None)


def script(path: str, module: str, files: Collection[str]) -> str:
    """Find the file that a relative address of JavaScript leads to."""
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
    return next((place + ending for ending in _ENDINGS if place + ending in files), "") or _typed(place, files)


def _typed(place: str, files: Collection[str]) -> str:
    """Find the TypeScript that an address with the ending of what is made of it means."""
    root, ending = posixpath.splitext(place)
    return next((root + one for one in (".ts", ".tsx") if ending in (".js", ".jsx") and root + one in files), "")


def _names(row: str) -> Iterator[tuple[str, str]]:
    listed = re.search(r"\{(?P<names>[^{}]*)\}", row)
    for part in listed["names"].split(",") if listed is not None else ():
        words = re.findall(r"[\w$]+", part.removeprefix("type "))
        if words:
            yield words[0], words[-1]


def _namespace(row: str) -> str:
    found = re.search(r"\*\s+as\s+([\w$]+)|(?:const|let|var)\s+([\w$]+)\s*=|import\s+([\w$]+)\s+from", row)
    return next((name for name in found.groups() if name), "") if found is not None else ""


def _of_go(text: str, files: Collection[str], module: str) -> Iterator[Imported]:
    for found in re.finditer(rf"(?m)^\s*(?:import\s+)?(?:(?P<alias>\w+)\s+)?\"{re.escape(module)}/(?P<folder>[^\"\n]+)\"", text):
        inside = sorted(one for one in files if posixpath.dirname(one) == found["folder"] and one.endswith(".go"))
        for one in inside:
            yield Imported(one, text.count("\n", 0, found.end()) + 1, (), found["alias"] or found["folder"].rpartition("/")[2])
