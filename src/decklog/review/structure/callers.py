"""Functions that take or give something else than before, while somebody still calls them as they were."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from decklog.core.python_source import parsed
from decklog.review.rules.languages import suffix_of
from decklog.review.rules.rule import JVM, SCRIPTS, C
from decklog.review.rules.source import Source
from decklog.review.structure.calls import Called, calls
from decklog.review.structure.signatures import Declared, declared, split
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import Tree

_FAMILIES = (SCRIPTS, JVM, C, (".py", ".pyi"), (".go",), (".rs",), (".php",), (".rb",), (".cs",), (".swift",), (".dart",))
_MOST = 40


@dataclass(frozen=True)
class _Changed:
    """What a name of a file was declared as, and is now; more than one where it is overloaded."""

    source: Source
    name: str
    owner: str
    old: tuple[Declared, ...]
    new: tuple[Declared, ...]


def callers(tree: Tree) -> Iterator[Trouble]:
    """Find calls that were right before the change and are not any more."""
    changed = [one for source in tree.sources if not source.is_test for one in _changed(source)][:_MOST]
    texts = tree.naming({one.name for one in changed})
    for one in changed:
        family = family_of(one.source.suffix)
        near = {
            path: text
            for path, text in texts.items()
            if suffix_of(path) in family and re.search(rf"\b{re.escape(one.name)}\b", text)
        }
        others = [
            found
            for path, text in near.items()
            if path != one.source.path
            for found in declared(text, suffix_of(path))
            if found.name == one.name
        ]
        for path, text in near.items():
            yield from _in_file(one, path, text, others)


def family_of(suffix: str) -> tuple[str, ...]:
    """Give the suffixes of files that can call what a file of this suffix declares."""
    return next((family for family in _FAMILIES if suffix in family), (suffix,))


def _changed(source: Source) -> Iterator[_Changed]:
    if not source.before or not source.text or not any(suffix_of(source.path) in family for family in _FAMILIES):
        return
    old, new = _by_name(declared(source.before, source.suffix)), _by_name(declared(source.text, source.suffix))
    for key in old.keys() & new.keys():
        if [_shape(one) for one in old[key]] != [_shape(one) for one in new[key]]:
            yield _Changed(source, key[1], key[0], tuple(old[key]), tuple(new[key]))


def _by_name(found: Sequence[Declared]) -> dict[tuple[str, str], list[Declared]]:
    named = defaultdict(list)
    for one in found:
        if not (one.name.startswith("__") and one.name.endswith("__")):
            named[one.owner, one.name].append(one)
    return named


def _shape(one: Declared) -> object:
    return (
        one.least,
        one.most,
        one.names,
        [p.name for p in one.parameters if p.is_needed and p.by == "name"],
        one.results,
        one.is_async,
        returned(one),
        _keys(one),
        [p.name for p in one.parameters],
        one.returns,
    )


def _in_file(one: _Changed, path: str, text: str, others: Sequence[Declared]) -> Iterator[Trouble]:
    is_own = path == one.source.path
    suffix = suffix_of(path)
    if not is_own and not _is_of(one, text, suffix):
        return
    for call in calls(text, one.name, suffix):
        if any(call.line == new.line for new in one.new if is_own):
            continue
        # A function of the same name elsewhere may be the one that is meant.
        if (one.owner or suffix not in (".py", ".pyi")) and any(call.fits(other) for other in others):
            continue
        if suffix == ".go" and not one.owner and call.receiver and not _is_package(one, call.receiver):
            continue
        if suffix in (".py", ".pyi") and not _is_meant(one, call, text, is_own=is_own):
            continue
        if why := _broken(one, call):
            yield Trouble(
                "caller", f"{one.name} {why}, and is still called as before", path, call.line, "Change the callers too."
            )


def _is_of(one: _Changed, text: str, suffix: str) -> bool:
    """Say whether a file can mean this function: it names the class, or has no function of that name itself."""
    if one.owner and suffix not in (".go",):
        return re.search(rf"\b{re.escape(one.owner)}\b", text) is not None
    return not any(found.name == one.name and not found.owner for found in declared(text, suffix))


def _is_package(one: _Changed, receiver: str) -> bool:
    """Say whether what stands before the dot of a call in Go is the package that has the function."""
    named = re.search(r"(?m)^package\s+(\w+)", one.source.text)
    return named is None or receiver == named[1]


def _is_meant(one: _Changed, call: Called, text: str, *, is_own: bool) -> bool:
    """Say whether a call in Python leads to this function, by how its name was imported."""
    stem = one.source.path.rpartition("/")[2].rpartition(".")[0]
    if stem == "__init__":
        stem = one.source.path.split("/")[-2] if "/" in one.source.path else ""
    if one.owner:
        # `self` of another class than this one is somebody else, which its own file would have declared.
        return bool(call.receiver)
    if not call.receiver:
        return (
            is_own
            or re.search(
                rf"(?m)^\s*from\s+[\w.]*(?:\b{re.escape(stem)}\b)?[\w.]*\s+import\b[^#]*?\b{re.escape(one.name)}\b", text
            )
            is not None
        )
    last = call.receiver.rpartition(".")[2]
    return (
        last == stem
        or re.search(
            rf"\bimport\s+(?:[\w.]+\.)?{re.escape(stem)}\s+as\s+{re.escape(last)}\b|\b{re.escape(stem)}\s+as\s+{re.escape(last)}\b",
            text,
        )
        is not None
    )


def _broken(one: _Changed, call: Called) -> str:
    """Say how a call that fitted does not fit any more; nothing where it does, or never did."""
    if not any(call.fits(old) for old in one.old):
        return ""
    if not any(call.fits(new) for new in one.new):
        return "takes other parameters"
    old, new = one.old[0], one.new[0]
    if len(one.new) > 1 or len(one.old) > 1:
        return ""
    if old.results is not None and old.results != new.results and call.takes == old.results and call.takes != 0:
        return f"gives {new.results} values instead of {old.results}"
    before, after = returned(old), returned(new)
    if before is not None and after is not None and before != after and call.takes == before:
        return f"gives {after} values instead of {before}"
    if before == 1 and after is not None and after > 1 and call.is_part and _is_one(old):
        return f"gives {after} values instead of one"
    if lost := call.keys & frozenset(_keys(old)) - frozenset(_keys(new)):
        return f"takes no {', '.join(sorted(lost))} any more"
    if _is_turned(old, new, call):
        return "takes its parameters in another order"
    if _wrapped(new) and not _wrapped(old) and not call.is_opened:
        return f"gives {new.returns} instead of {old.returns or 'what it holds'}"
    if new.is_async and not old.is_async and not call.is_awaited:
        return "has to be waited for"
    return ""


def _is_turned(old: Declared, new: Declared, call: Called) -> bool:
    """Say whether what is given in its place would now be taken for something else."""
    before, after = ([one.name for one in some.parameters if one.by != "name"] for some in (old, new))
    placed = call.placed
    return (
        before != after
        and sorted(before) == sorted(after)
        and placed > 1
        and before[:placed] != after[:placed]
        and not call.is_open
    )


def _wrapped(one: Declared) -> bool:
    """Say whether what comes back has to be opened before it is of use."""
    return re.match(r"(?:\w+::)*(?:Result|Option|Optional|Promise|Future|Maybe)\b\s*<", one.returns) is not None


def _is_one(one: Declared) -> bool:
    """Say whether a function of Python plainly gave one value: by what it declares, or by a sum, a text or the like."""
    if found := re.search(r"\)\s*->\s*(?P<type>[^:]+):", one.body):
        return not re.search(r"(?i)tuple|any\b|object|sequence|iter|pair", found["type"])
    given = re.findall(r"(?m)\breturn\s+(.+)$", one.body)
    plain = re.compile(r"f?[\"']|-?\d|\[|\{|not\b|(?:int|str|float|len|sum|round)\(")
    return bool(given) and all(plain.match(text) for text in given)


def returned(one: Declared) -> int | None:
    """Say how many values a function of Python gives back, where all its returns agree."""
    tree = parsed(_dedented(one.body).encode(errors="replace")) if one.body.lstrip().startswith(("def ", "async def ")) else None
    if tree is None or not tree.body:
        return None
    found: set[int] = set()
    pending: list[ast.AST] = list(ast.iter_child_nodes(tree.body[0]))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if (
            isinstance(node, ast.Return)
            and node.value is not None
            and not (isinstance(node.value, ast.Constant) and node.value.value is None)
        ):
            found.add(len(node.value.elts) if isinstance(node.value, ast.Tuple) else 1)
        pending.extend(ast.iter_child_nodes(node))
    return found.pop() if len(found) == 1 else None


def _dedented(text: str) -> str:
    import textwrap

    return textwrap.dedent(text)


def _keys(one: Declared) -> tuple[str, ...]:
    """Give the names that a function of JavaScript takes out of an object that it is given."""
    found = re.match(r"[^({]*\(\s*\{(?P<keys>[^{}]*)\}", one.body)
    return tuple(part.partition(":")[0].partition("=")[0].strip() for part in split(found["keys"])) if found is not None else ()
