"""Handlers of Python that catch whatever comes and tell nobody."""

import ast
import builtins
import re
from collections.abc import Iterator

from decklog.review.rules.rule import Found
from decklog.review.rules.source import Source
from decklog.review.rules.swallowing import SWALLOWED

_BROAD = ("Exception", "BaseException", "StandardError")
# Errors that something went wrong by, and not answers such as "there is none".
_FAILURES = (
    "RuntimeError",
    "DatabaseError",
    "OperationalError",
    "IntegrityError",
    "RequestException",
    "HTTPError",
    "ClientError",
    "AssertionError",
)
# An error of a program's own, unless its name is an answer: there is none, it ended.
_OWN = re.compile(r"(?:Error|Exception|Failure|Failed)$")
_ANSWER = re.compile(
    r"NotFound|DoesNotExist|Exist|Missing|Empty|Time|Cancel|Stop|Exit|Gone|Unsupported|Unavailable|Import|Decod|Pars|Lookup"
    r"|Closed|Connect|Attribute|Key|Skip|Syntax|Unicode|Validation|Type|Value|OS|IO"
)
_REASON = re.compile(r"\w+(?:\W+\w+){3}")
_SHRUG = re.compile(
    r"(?i)^\W*(?:ignor|swallow|suppress|nothing|silent|pass\b|whatever|don'?t care|skip|never mind|noqa|pragma|todo|shh)"
)


def swallowing(source: Source) -> Iterator[Found]:
    """Find handlers on new lines that hide errors; one that says why it may is let go."""
    tree = source.tree
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ExceptHandler):
            is_new = source.is_new(node.lineno, node.end_lineno or node.lineno)
            if is_new and _hides(node, is_test=source.is_test) and not _says_why(source, node):
                yield Found(SWALLOWED, node.lineno)
        elif isinstance(node, ast.With | ast.AsyncWith) and _is_suppressing(source, node):
            yield Found(SWALLOWED, node.lineno)


def _is_suppressing(source: Source, node: ast.With | ast.AsyncWith) -> bool:
    is_told = source.is_new(node.lineno, node.lineno) and not source.is_test
    return is_told and any(_suppresses_all(item.context_expr) for item in node.items)


def _names(node: ast.expr | None) -> list[str]:
    if node is None:
        return ["BaseException"]
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return [one.attr if isinstance(one, ast.Attribute) else one.id if isinstance(one, ast.Name) else "" for one in parts]


def _hides(handler: ast.ExceptHandler, *, is_test: bool) -> bool:
    names = _names(handler.type)
    is_broad = any(name in _BROAD for name in names)
    is_pass = all(_is_nothing(one) for one in handler.body)
    if is_broad and handler.type is None and not any(isinstance(one, ast.Raise) for one in ast.walk(handler)):
        return all(_is_quiet(one) for one in handler.body)
    has_failure = any(
        name in _FAILURES or (_OWN.search(name) and not _ANSWER.search(name) and not hasattr(builtins, name)) for name in names
    )
    return (is_broad and all(_is_quiet(one) for one in handler.body)) or (is_pass and has_failure and not is_test)


def _is_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass | ast.Continue) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _is_quiet(node: ast.stmt) -> bool:
    """Say whether a statement does nothing with an error: nothing, a constant given back, a constant kept."""
    if isinstance(node, ast.Return | ast.Assign):
        return node.value is None or _is_plain(node.value)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = ast.unparse(node.value.func)
        return called in ("print", "pprint") or re.search(r"log\w*\.(?:debug|info)$", called) is not None
    return _is_nothing(node) or isinstance(node, ast.Break)


def _is_plain(node: ast.expr) -> bool:
    parts = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Load, ast.UnaryOp, ast.USub)
    return all(isinstance(one, parts) for one in ast.walk(node))


def _suppresses_all(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called == "suppress" and any(name in _BROAD for one in node.args for name in _names(one))


def _says_why(source: Source, node: ast.ExceptHandler) -> bool:
    first, last = node.lineno, node.end_lineno or node.lineno
    notes = [note.lstrip("# ") for place, note in source.blanked.notes if first - 1 <= source.line_at(place) <= last]
    return any(_REASON.search(note) and not _SHRUG.search(note) for note in notes)
