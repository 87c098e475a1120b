"""The statements of Python files that a change adds or removes."""

import ast
from collections.abc import Callable, Mapping, Sequence

from decklog.conductor.git.changes import parse_lines
from decklog.core.python_source import parsed
from decklog.review.change import Change

Lines = Mapping[str, Sequence[int]]


def changed_lines(change: Change, paths: Sequence[str]) -> tuple[Lines, Lines]:
    """Return the lines of Python files that a change adds, and those of the base that it removes."""
    added: dict[str, list[int]] = {}
    removed: dict[str, list[int]] = {}
    for line in parse_lines(change.short_diff):
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
    return sorted(_spans(change.content(path), wanted, _runs), key=lambda span: span.start)


def _runs(node: ast.stmt) -> bool:
    """Return whether a statement does something when it runs: no definition, docstring or declaration."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return False
    return not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Global | ast.Nonlocal)


def _statements(content: bytes | None, lines: Sequence[int]) -> list[int]:
    """Extend lines to their whole statements: a tracer reports a statement by its first line."""
    return sorted(set(lines).union(*_spans(content, set(lines))))


def _spans(content: bytes | None, lines: set[int], is_counted: Callable[[ast.stmt], bool] = lambda _: True) -> list[range]:
    """Return the lines of each statement that has one of some lines."""
    nodes = (node for node in ast.walk(parsed(content or b"") or ast.Module([], [])) if isinstance(node, ast.stmt))
    spans = [range(node.lineno, _end_of_head(node) + 1) for node in nodes if is_counted(node)]
    return [span for span in spans if lines.intersection(span)]


def _end_of_head(node: ast.stmt) -> int:
    """Return the last line of a statement without the statements within it."""
    body = getattr(node, "body", None)
    first = body[0].lineno - 1 if isinstance(body, list) and body else (node.end_lineno or node.lineno)
    return max(node.lineno, first)
