"""The statements of Python files that a change adds or removes."""

import ast
from collections.abc import Mapping, Sequence

from decklog.conductor.git.changes import lines_of
from decklog.review.change import Change

Lines = Mapping[str, Sequence[int]]


def changed_lines(change: Change, paths: Sequence[str]) -> tuple[Lines, Lines]:
    """Return the lines of Python files that a change adds, and those of the base that it removes."""
    added: dict[str, list[int]] = {}
    removed: dict[str, list[int]] = {}
    for line in lines_of(change.short_diff):
        if line.path in paths:
            added.setdefault(line.path, []).extend([] if line.new is None else [line.new])
            removed.setdefault(line.path, []).extend([] if line.old is None else [line.old])
    return (
        {path: _statements(change.content(path), lines) for path, lines in added.items()},
        {path: _statements(change.content(path, at_base=True), lines) for path, lines in removed.items()},
    )


def added_statements(change: Change, path: str) -> list[range]:
    """Return the added statements of a Python file by their lines, without definitions and docstrings."""
    wanted = {line.number for line in change.added_by_file.get(path, ())}
    try:
        tree = ast.parse(change.content(path) or b"")
    except (SyntaxError, ValueError):
        return []
    spans = [range(node.lineno, _end_of_head(node) + 1) for node in ast.walk(tree) if isinstance(node, ast.stmt) and _runs(node)]
    return sorted((span for span in spans if wanted.intersection(span)), key=lambda span: span.start)


def _runs(node: ast.stmt) -> bool:
    """Return whether a statement does something when it runs: no definition, docstring or declaration."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return False
    return not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Global | ast.Nonlocal)


def _statements(content: bytes | None, lines: Sequence[int]) -> list[int]:
    """Extend lines to their whole statements: a tracer reports a statement by its first line."""
    try:
        tree = ast.parse(content or b"")
    except (SyntaxError, ValueError):
        return sorted(set(lines))
    wanted, found = set(lines), set(lines)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            span = range(node.lineno, _end_of_head(node) + 1)
            if wanted.intersection(span):
                found.update(span)
    return sorted(found)


def _end_of_head(node: ast.stmt) -> int:
    """Return the last line of a statement without the statements within it."""
    body = getattr(node, "body", None)
    first = body[0].lineno - 1 if isinstance(body, list) and body else (node.end_lineno or node.lineno)
    return max(node.lineno, first)
