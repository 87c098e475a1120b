"""Calls of a function in a file: what is given to it, and what is done with what comes back."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from decklog.core.python_source import parsed
from decklog.review.rules.blanking import blanked
from decklog.review.structure.signatures import Declared, closing, split

_DECLARING = re.compile(r"\b(?:fn|func|fun|function|def|sub)\s*\*?\s*$")

_TAKES_ANYTHING = re.compile(r"(?:^|\.)(?:print|repr|str|list|tuple|iter|next|run|gather|append|map|zip|wait_for|\w*[tT]ask)$")


@dataclass(frozen=True)
class Called:
    """One call. `receiver` is what stands before the dot; `takes` how many names what comes back is given to, if it is."""

    line: int
    receiver: str
    placed: int
    named: frozenset[str] = frozenset()
    is_open: bool = False
    takes: int | None = None
    is_awaited: bool = False
    keys: frozenset[str] = frozenset()
    is_opened: bool = True
    # What comes back is given on, or compared, as the one thing that it is.
    is_part: bool = False

    def fits(self, one: Declared) -> bool:
        """Say whether a function takes what is given here."""
        if self.is_open:
            return True
        if not (one.takes_any_name or self.named <= one.names):
            return False
        by_name = sum(p.is_needed and p.by != "name" and p.name in self.named for p in one.parameters)
        given_by_name = {p.name for p in one.parameters if p.is_needed and p.by == "name"}
        return one.least - by_name <= self.placed <= one.most and given_by_name <= self.named


def calls(text: str, name: str, suffix: str) -> list[Called]:
    """Find the calls of a name in a file."""
    if suffix in (".py", ".pyi"):
        tree = parsed(text.encode(errors="replace"))
        return list(_of_python(tree, name)) if tree is not None else []
    return list(_of_text(text, name, suffix))


def _of_python(tree: ast.Module, name: str) -> Iterator[Called]:
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        receiver = ""
        if isinstance(node.func, ast.Attribute) and node.func.attr == name:
            receiver = ast.unparse(node.func.value)
        elif not (isinstance(node.func, ast.Name) and node.func.id == name):
            continue
        above = parents.get(node)
        yield Called(
            node.lineno,
            receiver,
            len(node.args),
            frozenset(one.arg for one in node.keywords if one.arg),
            any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords),
            _takes(above),
            isinstance(
                above, ast.Await | ast.Call | ast.Return | ast.Lambda | ast.List | ast.Tuple | ast.Starred | ast.comprehension
            ),
            is_part=_is_part(above, node),
        )


def _is_part(above: ast.AST | None, node: ast.Call) -> bool:
    if isinstance(above, ast.Call):
        return node in above.args and not _TAKES_ANYTHING.search(ast.unparse(above.func))
    return isinstance(above, ast.Compare) and not any(isinstance(one, ast.Tuple) for one in (above.left, *above.comparators))


def _takes(above: ast.AST | None) -> int | None:
    """Say for how many values a place has room; None where that can't be told."""
    if isinstance(above, ast.Assign) and len(above.targets) == 1:
        target = above.targets[0]
        if isinstance(target, ast.Tuple | ast.List):
            return None if any(isinstance(one, ast.Starred) for one in target.elts) else len(target.elts)
        return 1
    # A sum, a comparison, a part of a text or an attribute is of one value.
    return 1 if isinstance(above, ast.BinOp | ast.FormattedValue | ast.Attribute | ast.UnaryOp | ast.AugAssign) else None


def _of_text(text: str, name: str, suffix: str) -> Iterator[Called]:
    bare = blanked(text, suffix).bare
    for match in re.finditer(
        rf"(?<![\w$])(?P<to>(?:[\w$\])]+\s*(?:\?\.|\.|->|::)\s*)*){re.escape(name)}(?:::?<[^<>()]*>|<[^<>()]*>)?\s*\(", bare
    ):
        before = bare[max(0, match.start() - 60) : match.start()]
        if _DECLARING.search(before) or re.search(r"func\s+\([^)]*\)\s*$", before):
            continue
        opened = match.end() - 1
        inner = bare[opened + 1 : closing(bare, opened)]
        start = bare.rfind("\n", 0, match.start()) + 1
        given = split(inner)
        yield Called(
            bare.count("\n", 0, match.end()) + 1,
            re.sub(r"\s|\?", "", match["to"]).rstrip(".:->"),
            len(given),
            is_open=any("..." in one or (one.startswith("*") and suffix == ".rb") for one in given),
            takes=_left(bare[start : match.start()]),
            is_awaited=re.search(r"\b(?:await|return|yield)\b|=>\s*$|[(,\[]\s*$", bare[start : match.start()]) is not None
            or re.match(r"\s*\.(?:then|catch|finally)\b", bare[closing(bare, opened) + 1 :]) is not None,
            keys=_keys(given),
            is_opened=_is_opened(bare[start : match.start()], bare[closing(bare, opened) + 1 :][:12]),
        )


def _keys(given: list[str]) -> frozenset[str]:
    """Give the names of an object that is written out as the only thing given."""
    if len(given) != 1 or not given[0].startswith("{") or "..." in given[0]:
        return frozenset()
    return frozenset(re.split(r"[:(]", part)[0].strip(" \"'") for part in split(given[0][1:-1]))


def _is_opened(before: str, after: str) -> bool:
    """Say whether somebody looks into what comes back, hands it on, or leaves it."""
    is_looked_into = re.match(r"\s*(?:\?|\.|!)", after) is not None
    return (
        is_looked_into
        or re.search(r"\b(?:match|if let|while let|await|return|Ok|Some|Err)\b|=>\s*$|[(,\[{]\s*$", before) is not None
        or "=" not in before
    )


def _left(before: str) -> int | None:
    found = re.match(r"\s*(?:if|for|switch)?\s*(?:var\s+)?(?P<names>[\w., _]+?)\s*:?=\s*$", before)
    return len(found["names"].split(",")) if found is not None else None
