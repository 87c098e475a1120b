"""Keys that a function no longer gives back, while whoever calls it still reads them."""

import ast
import re
import textwrap
from collections.abc import Iterator

from decklog.core.python_source import parsed
from decklog.review.rules.languages import suffix_of
from decklog.review.rules.rule import SCRIPTS
from decklog.review.rules.source import Source
from decklog.review.structure.signatures import Declared, declared, split
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import Tree

_OBJECT = re.compile(r"(?:\breturn|=>)\s*\(?\s*\{(?P<keys>[^{}]*)\}")
_REMEDY = "Change those who read it too, or keep the key."


def lost_keys(tree: Tree) -> Iterator[Trouble]:
    """Find readers of keys that a function of the change gave back and gives back no more."""
    lost = [one for source in tree.sources if not source.is_test for one in _lost(source)]
    texts = tree.naming({name for _, name, _ in lost})
    for family, name, keys in lost:
        for path, text in texts.items():
            if suffix_of(path) in family and not any(one.name == name for one in declared(text, suffix_of(path))):
                yield from _read(path, text, name, keys)


def _lost(source: Source) -> Iterator[tuple[tuple[str, ...], str, set[str]]]:
    """Give the functions of a file that give back fewer keys, each with those that are gone."""
    family = (".py", ".pyi") if source.is_python else SCRIPTS if source.suffix in SCRIPTS else ()
    if not family or not source.before or not source.text:
        return
    before = {(one.owner, one.name): one for one in declared(source.before, source.suffix)}
    for new in declared(source.text, source.suffix):
        old = before.get((new.owner, new.name))
        if old is None or old.body == new.body:
            continue
        had, has = (_keys(one, is_python=source.is_python) for one in (old, new))
        if had is not None and has is not None and had - has:
            yield family, new.name, had - has


def _keys(one: Declared, *, is_python: bool) -> set[str] | None:
    """Give the keys of what a function gives back, where each time it is written out; None where that can't be told."""
    if not is_python:
        found = [split(match["keys"]) for match in _OBJECT.finditer(one.body)]
        if not found or any(part.startswith("...") for parts in found for part in parts):
            return None
        return {re.split(r"[:(]", part)[0].strip(" \"'") for parts in found for part in parts}
    tree = parsed(textwrap.dedent(one.body).encode(errors="replace"))
    given = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)] if tree is not None else []
    if not given or not all(isinstance(value, ast.Dict) and all(value.keys) for value in given):
        return None
    keys = [key for value in given if isinstance(value, ast.Dict) for key in value.keys]
    return {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def _read(path: str, text: str, name: str, keys: set[str]) -> Iterator[Trouble]:
    """Find where a file reads a key of what it was given by this function: at once, or by the name that it gave to it."""
    call = rf"\b{re.escape(name)}\([^()\n]*\)"
    names = set(re.findall(rf"\b(\w+)\s*(?::[^=\n]+)?=\s*(?:await\s+)?(?:[\w.]+\.)?{re.escape(name)}\(", text))
    of = "|".join((call, *(rf"\b{re.escape(one)}" for one in sorted(names))))
    for key in sorted(keys):
        word = re.escape(key)
        dotted = rf"|\??\.{word}\b(?!\s*\()" if suffix_of(path) in SCRIPTS else ""
        taken = rf"|\{{[^{{}}\n]*\b{word}\b[^{{}}\n]*\}}\s*=\s*(?:await\s+)?{call}" if dotted else ""
        form = re.compile(rf"(?:{of})(?:\[\s*['\"]{word}['\"]\s*\]|\.get\(\s*['\"]{word}['\"]{dotted}){taken}")
        if (used := form.search(text)) is not None:
            line = text.count("\n", 0, used.start()) + 1
            yield Trouble("removed-name", f"{name} gives no {key} any more, and it is still read here", path, line, _REMEDY)
