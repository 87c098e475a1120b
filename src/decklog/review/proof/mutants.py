"""Mutants of Python statements that a test should notice: another operator, condition or constant."""

import ast
import copy
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
_LONGEST = 60


@dataclass(frozen=True)
class Mutant:
    """A file with one small change."""

    path: str
    line: int
    before: str
    after: str
    content: bytes


def mutants(path: str, content: bytes, lines: Collection[int]) -> Iterator[Mutant]:
    """Yield mutants of the expressions that begin on some lines of a file, at most one a line."""
    source = content.decode(errors="replace")
    used: set[int] = set()
    for node in _expressions(ast.parse(source)):
        changed = _mutate(node) if node.lineno in lines and node.lineno not in used else None
        before = ast.get_source_segment(source, node) if changed is not None else None
        if changed is None or before is None:
            continue
        used.add(node.lineno)
        after = ast.unparse(changed)
        yield Mutant(path, node.lineno, before[:_LONGEST], after[:_LONGEST], _spliced(content, node, f"({after})"))


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions of a tree, outer ones first; not those in annotations and f-strings, whose positions are wrong."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns") or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr):
                yield child
            if isinstance(child, ast.AST):
                yield from _expressions(child)


def _mutate(node: ast.expr) -> ast.expr | None:
    """Return a changed expression; None for one that stays."""
    other = copy.deepcopy(node)
    match other:
        case ast.Compare(ops=[first, *_]) if type(first) in _COMPARED:
            other.ops[0] = _COMPARED[type(first)]()
        case ast.BinOp(op=operator) if type(operator) in _COMPUTED:
            other.op = _COMPUTED[type(operator)]()
        case ast.BoolOp(op=ast.And()):
            other.op = ast.Or()
        case ast.BoolOp(op=ast.Or()):
            other.op = ast.And()
        case ast.UnaryOp(op=ast.Not()):
            return other.operand
        case ast.Constant(value=bool(value)):
            other.value = not value
        case ast.Constant(value=int(value) | float(value)):
            other.value = value + 1
        case _:
            return None
    return other


def _spliced(content: bytes, node: ast.AST, text: str) -> bytes:
    """Replace an expression by a text; Python counts columns in bytes."""
    rows = content.splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
    before, after = rows[first][: node.col_offset], rows[last][node.end_col_offset :]  # type: ignore[attr-defined]
    return b"".join([*rows[:first], before, text.encode(), after, *rows[last + 1 :]])
