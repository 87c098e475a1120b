"""Names that a change takes away while somebody still uses them: functions, classes, modules, targets, scripts, files."""

import ast
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from decklog.core.python_source import parsed
from decklog.review.rules.blanking import blanked
from decklog.review.rules.languages import suffix_of
from decklog.review.rules.rule import JVM, SCRIPTS, SETTINGS, SHELLS, C
from decklog.review.rules.source import Source
from decklog.review.structure.callers import family_of
from decklog.review.structure.imports import imports
from decklog.review.structure.signatures import declared
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import Tree, is_history

_REMEDY = "Change those who use it too, or keep it."
_TYPES = re.compile(r"\b(?:class|interface|struct|trait|enum|type|record|object|protocol)\s+(?P<name>[A-Za-z_]\w*)")
_VALUES = re.compile(
    r"(?m)^(?:export\s+)(?:const|let|var)\s+(?P<name>[\w$]+)|\bexports\.(?P<given>[\w$]+)\s*="
    r"|^(?:pub\s+)?(?:const|static)\s+(?P<constant>\w+)\s*:"
)
_SHELL = re.compile(r"(?m)^[ \t]*(?:function\s+)?(?P<name>[\w-]+)\s*\(\)\s*\{")
_TARGET = re.compile(r"(?m)^(?P<name>[A-Za-z][\w.-]*)\s*:(?!=)")
_CODE = (*SCRIPTS, *JVM, *C, ".go", ".rs", ".php", ".rb", ".cs", ".swift", ".dart")
_CLASS = re.compile(r"\.([A-Za-z][\w-]+)(?=[^{}]*\{)")
_SETTING = re.compile(r"(?m)^\s*[\"']?([A-Za-z][\w-]{2,})[\"']?\s*[:=]")
_MOST = 60
_COMMON = {name for kind in (str, list, dict, set, bytes, Path, re.Pattern, re.Match) for name in dir(kind)} | {
    "close",
    "read",
    "write",
    "flush",
    "name",
}


@dataclass(frozen=True)
class _Gone:
    """A name that a file had and has no more."""

    source: Source
    name: str
    owner: str = ""


def removed_names(tree: Tree) -> Iterator[Trouble]:
    """Find uses of what is gone."""
    gone = [one for source in tree.sources if not source.is_test for one in _gone(source)][:_MOST]
    texts = tree.naming({one.name for one in gone})
    seen: set[tuple[str, str]] = set()
    for found in (*_of_code(tree, gone, texts), *_of_python(tree), *_of_targets(tree), *_of_settings(tree), *_of_files(tree)):
        if (found.file or "", found.text) not in seen:
            seen.add((found.file or "", found.text))
            yield found


def _used(name: str, path: str, line: int) -> Trouble:
    return Trouble("removed-name", f"{name} is gone, and is still used here", path, line, _REMEDY)


# Languages but Python


def names_of(text: str, suffix: str) -> set[tuple[str, str]]:
    """Give the names that a file offers, each with the class that it belongs to."""
    if suffix in SHELLS:
        return {("", one["name"]) for one in _SHELL.finditer(text)}
    if suffix not in _CODE:
        return set()
    bare = blanked(text, suffix).bare
    found = {(one.owner, one.name) for one in declared(text, suffix)}
    found |= {("", one["name"]) for one in _TYPES.finditer(bare)}
    return found | {("", next(name for name in one.groups() if name)) for one in _VALUES.finditer(bare)}


def _gone(source: Source) -> Iterator[_Gone]:
    kept = {name for _, name in names_of(source.text, source.suffix)}
    for owner, name in sorted(names_of(source.before, source.suffix)):
        if name not in kept and len(name) > 1:
            yield _Gone(source, name, owner)


def _of_code(tree: Tree, gone: Sequence[_Gone], texts: Mapping[str, str]) -> Iterator[Trouble]:
    for one in gone:
        family = family_of(one.source.suffix) if one.source.suffix not in SHELLS else (*SHELLS, "makefile")
        word = re.compile(rf"(?<![\w$]){re.escape(one.name)}(?![\w$])")
        near = {path: text for path, text in texts.items() if suffix_of(path) in family and word.search(text)}
        if any(
            (one.owner == "" or owner == one.owner or not owner) and name == one.name
            for path, text in near.items()
            for owner, name in names_of(text, suffix_of(path))
        ) and not (one.owner and _is_overridden(one, near)):
            # It is still declared somewhere, so that whoever names it may mean that one.
            continue
        for path, text in near.items():
            if (line := _line_of_use(tree, one, path, text)) is not None:
                yield _used(one.name, path, line)


def _is_overridden(one: _Gone, near: Mapping[str, str]) -> bool:
    return any(
        re.search(rf"\b(?:implements|extends|for|:)\s[^{{]*\b{re.escape(one.owner)}\b|\b{re.escape(one.owner)}\s+for\b", text)
        for text in near.values()
    )


def _line_of_use(tree: Tree, one: _Gone, path: str, text: str) -> int | None:
    """Give the line where a file uses a name that is gone, if it does so in a way that leads to it."""
    suffix = suffix_of(path)
    bare = blanked(text, suffix).bare
    name, own = re.escape(one.name), path == one.source.path
    if suffix in SCRIPTS and not own:
        for found in imports(path, text, tree.files):
            if found.path == one.source.path:
                if any(taken == one.name for taken, _ in found.names):
                    return found.line
                if found.alias and (used := re.search(rf"\b{re.escape(found.alias)}\.{name}\b", bare)) is not None:
                    return _line(bare, used.start())
        return None
    if suffix in SHELLS:
        form = rf"(?m)(?:^|[;&|({{]|\b(?:then|do|else|if|while)\b)\s*{name}(?=\s|$|;)(?!\s*\(\))"
        reads = own or posixpath.basename(one.source.path) in text
        return _line(bare, used.end()) if reads and (used := re.search(form, bare)) is not None else None
    if one.owner:
        mentions = own or re.search(rf"\b{re.escape(one.owner)}\b", bare) is not None
        if suffix in (*JVM, ".cs"):
            return _line_of_typed_use(one, bare)
        form = rf"(?:\.|->|::){name}\s*\(|@Override\s+[\w<>\[\] ]*\b{name}\s*\(|\boverride\s+[\w<>\[\] ]*\b{name}\s*\("
        used = re.search(form, bare) if mentions else None
        return None if used is None else _line(bare, used.start())
    if re.search(rf"\b(?:let|var|val|const|mut)\s+{name}\b|\b{name}\s*:=", bare):
        return None
    package = re.escape(posixpath.basename(posixpath.dirname(one.source.path)) or "")
    is_near = posixpath.dirname(path) == posixpath.dirname(one.source.path)
    form = (
        rf"\b{package}\.{name}\b"
        if suffix == ".go" and not is_near
        else rf"(?<![\w.$>]){name}\s*[(<;,)\s{{]|(?:::|\\){name}\b|\buse\s[^;]*\b{name}\b"
    )
    if suffix == ".rb":
        form = rf"(?:\.|(?<![\w.:@]))(?<!def ){name}(?![\w?!=:])"
    if suffix == ".go" and not is_near and not package:
        form = rf"\b\w+\.{name}\b"
    used = re.search(form, bare)
    return None if used is None else _line(bare, used.end() - 1)


def _line_of_typed_use(one: _Gone, bare: str) -> int | None:
    """Give the line where a method that is gone is called on, or declared for, what the file says is of its class."""
    name, owner = re.escape(one.name), re.escape(one.owner)
    of_class = re.findall(rf"\b{owner}\b(?:<[^<>]*>)?\s+(\w+)|\b(\w+)\s*:\s*{owner}\b|\b(\w+)\s*=\s*(?:new\s+)?{owner}\(", bare)
    receivers = "|".join({re.escape(name) for names in of_class for name in names if name})
    is_below = re.search(rf"(?:implements|extends|:)\s[^{{]*\b{owner}\b", bare) is not None
    forms = [rf"\b(?:{receivers})\s*\.\s*{name}\s*\("] if receivers else []
    forms += [rf"(?:@Override\s+|\boverride\s+)[\w<>\[\], ]*\b{name}\s*\("] if is_below else []
    used = re.search("|".join(forms), bare) if forms else None
    return None if used is None else _line(bare, used.end() - 1)


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


# Python


def _of_python(tree: Tree) -> Iterator[Trouble]:
    """Find imports and uses of names that modules had before the change."""
    lost = {one.path: _bound(one.before) - _bound(one.text) for one in tree.sources if one.is_python and not one.is_test}
    deleted = {path for path in lost if path not in tree.files}
    lost = {path: names for path, names in lost.items() if names}
    words = {name for names in lost.values() for name in names}
    words |= {posixpath.basename(path).rpartition(".")[0] for path in deleted}
    known = tree.files | deleted
    for path, text in tree.naming(words).items():
        if suffix_of(path) not in (".py", ".pyi") or not _may_import(text, lost, deleted):
            continue
        yield from _imported(path, text, known, lost, deleted)
    for source in tree.sources:
        if source.is_python and source.text:
            yield from _unbound(source, lost.get(source.path, set()))
    yield from _of_methods(tree)


def _may_import(text: str, lost: Mapping[str, set[str]], deleted: set[str]) -> bool:
    """Say whether a file has the words of such an import at all: to read its syntax takes a thousand times as long."""
    return any(
        _own_name(path) in text and (path in deleted or any(name in text for name in names)) for path, names in lost.items()
    ) or any(_own_name(path) in text for path in deleted)


def _own_name(path: str) -> str:
    """Give the word by which others import a module; of a package that is the folder's, and at the top there is none."""
    stem = posixpath.basename(path).rpartition(".")[0]
    return stem if stem != "__init__" else ""


def _bound(text: str) -> set[str]:
    """Give the names that a module of Python has when it was read; none where that can't be told."""
    tree = parsed(text.encode(errors="replace"))
    found: set[str] = set()
    pending: list[ast.AST] = list(tree.body) if tree is not None else []
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(name.asname or name.name).partition(".")[0] for name in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        pending.extend(ast.iter_child_nodes(node))
    return found


def _imported(
    path: str, text: str, files: frozenset[str] | set[str], lost: Mapping[str, set[str]], deleted: set[str]
) -> Iterator[Trouble]:
    aliases: dict[str, str] = {}
    for one in imports(path, text, files):
        if one.path in deleted:
            yield _used(one.path, path, one.line)
        for name, _ in one.names:
            if name in lost.get(one.path, ()) and one.path not in deleted:
                yield _used(name, path, one.line)
        if one.alias and one.path in lost and one.path not in deleted:
            aliases[one.alias] = one.path
    tree = parsed(text.encode(errors="replace")) if aliases else None
    for node in ast.walk(tree) if tree is not None else ():
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Load)
            and (module := aliases.get(ast.unparse(node.value))) is not None
            and node.attr in lost[module]
        ):
            yield _used(node.attr, path, node.lineno)


def _unbound(source: Source, lost: set[str]) -> Iterator[Trouble]:
    """Find names that a module used to have and still uses, and names that it offers and does not have."""
    tree = source.tree
    if tree is None:
        return
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    stored |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound = _bound(source.text)
    if "*" in bound:
        return
    stored |= {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    stored |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in lost and node.id not in stored:
            yield _used(node.id, source.path, node.lineno)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__" and "__getattr__" not in bound:
            for one in getattr(node.value, "elts", ()):
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value in lost and one.value not in bound:
                    yield Trouble("removed-name", f"__all__ offers {one.value}, which is gone", source.path, one.lineno, _REMEDY)


def _of_methods(tree: Tree) -> Iterator[Trouble]:
    """Find uses of what a class had and has no more."""
    gone: dict[str, tuple[str, str, bool]] = {}
    for source in tree.sources:
        if source.is_python and not source.is_test and source.old_tree is not None and source.tree is not None:
            now = {node.name: node for node in source.tree.body if isinstance(node, ast.ClassDef)}
            for node in source.old_tree.body:
                if isinstance(node, ast.ClassDef) and node.name in now:
                    for name in _methods(node) - _methods(now[node.name]):
                        gone[name] = (node.name, source.path, not node.bases)
    texts = {path: text for path, text in tree.naming(gone).items() if suffix_of(path) == ".py"} if gone else {}
    still = {one.name for text in texts.values() for one in declared(text, ".py")}
    for path, text in texts.items():
        parsed_text = parsed(text.encode(errors="replace"))
        for used in ast.walk(parsed_text) if parsed_text is not None else ():
            if isinstance(used, ast.Attribute) and used.attr in gone and used.attr not in still:
                owner, home, is_alone = gone[used.attr]
                # Of a class that inherits, only what is asked of the class itself is surely meant.
                if ast.unparse(used.value) == owner or (is_alone and (path == home or re.search(rf"\b{owner}\b", text))):
                    yield _used(f"{owner}.{used.attr}", path, used.lineno)


def _methods(node: ast.ClassDef) -> set[str]:
    found = {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    found |= {
        one.id for part in node.body for one in ast.walk(part) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    found |= {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)}
    # What texts, lists and the like have too tells nothing of whom it is asked.
    return {name for name in found if not name.startswith("__") and name not in _COMMON}


# Targets, scripts, files


def _of_targets(tree: Tree) -> Iterator[Trouble]:
    for source in tree.sources:
        name = source.name.lower()
        if name in ("makefile", "gnumakefile") or source.suffix == ".mk":
            lost = {one["name"] for one in _TARGET.finditer(source.before)} - {
                one["name"] for one in _TARGET.finditer(source.text)
            }
            yield from _called(tree, lost, r"\b(?:make|\$\(MAKE\))\s+(?:-\S+\s+)*(?:[\w.-]+\s+)*?{}(?![\w.-])")
        elif name == "package.json":
            lost = _scripts(source.before) - _scripts(source.text)
            yield from _called(tree, lost, r"\b(?:npm|pnpm|yarn|bun)\s+(?:run(?:-script)?\s+)?{}(?![\w:.-])")


def _of_settings(tree: Tree) -> Iterator[Trouble]:
    """Find keys of settings, and classes of style sheets, that are gone and that code still asks for."""
    for source in tree.sources:
        if source.suffix in (".css", ".scss", ".less"):
            lost = set(_CLASS.findall(source.before)) - set(_CLASS.findall(source.text))
            yield from _called(tree, lost, r"class(?:Name)?\s*=\s*[\"'{][^\"'}\n]*(?<![\w-]){}(?![\w-])")
        elif source.suffix in SETTINGS and not source.is_test and source.name != "package.json":
            lost = set(_SETTING.findall(source.before)) - set(_SETTING.findall(source.text))
            for found in _called(tree, lost, r"(?:\[|get\(|environ\W+|env\W+|\.)[\"']?(?<!\w){}(?!\w)"):
                if source.name in tree.text(found.file or "") and suffix_of(found.file or "") in (".py", *_CODE):
                    yield found


def _scripts(text: str) -> set[str]:
    try:
        found = json.loads(text)
    except ValueError:
        return set()
    scripts = found.get("scripts") if isinstance(found, dict) else None
    return set(scripts) if isinstance(scripts, dict) else set()


def _called(tree: Tree, lost: set[str], form: str) -> Iterator[Trouble]:
    for path, text in tree.naming(lost).items():
        for name in lost if not is_history(path) else ():
            used = re.search(form.replace("{}", re.escape(name)), text)
            if used is not None:
                yield _used(name, path, _line(text, used.start()))


def _of_files(tree: Tree) -> Iterator[Trouble]:
    """Find words that still lead to a file which was moved or deleted."""
    lost = [
        one.path
        for one in tree.change.paths
        if one.status == "D" and not tree.is_test(one.path) and suffix_of(one.path) not in (".py", *_CODE)
    ]
    for path, text in tree.naming({posixpath.basename(one) for one in lost}).items():
        for one in lost if not is_history(path) and not tree.is_test(path) else ():
            for used in re.finditer(rf"(?<![\w./-])(?:\./)?(?P<up>(?:\.\./)*){re.escape(one)}(?![\w/-]|\.\w)", text):
                near = posixpath.normpath(posixpath.join(posixpath.dirname(path), used["up"] or "", one))
                if near not in tree.files:
                    yield _used(one, path, _line(text, used.start()))
                    break
