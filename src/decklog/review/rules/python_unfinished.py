"""Python that is called done and is not: stubs, results that nothing computes, what nothing reaches, what nothing uses."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from decklog.review.rules.rule import Found, Told
from decklog.review.rules.source import Source
from decklog.review.rules.unfinished import DEAD, HARD_CODED, STUB, UNUSED

UNUSED_FUNCTION = Told("dead-code", "nothing uses this function", "Take it out.")
Function = ast.FunctionDef | ast.AsyncFunctionDef
_ABSTRACT = re.compile(
    r"(?i)abc\b|protocol|abstract|interface|mixin|base|stub|mock|fake|null|dummy|noop|plugin|backend|hook|handler|visitor"
)
_TOLD = re.compile(
    r"(?im)^\W*(?:this is )?(?:a )?(?:not (?:yet )?implemented|unimplemented|placeholder\b|stub\b|dummy\b|to be implemented"
    r"|todo\b)"
)
_FOR_OTHERS = re.compile(r"(?i)subclass|overrid|abstract|implement(?:ed|ation|or)s?\b|does nothing|no-op|noop|nothing to do|hook")
_JUDGING = re.compile(
    r"(?:^|_)(?:verify|verifies|validate|is_valid|authori[sz]ed?|authenticate|check|can|has|is_admin|is_allowed|allowed"
    r"|permit)(?:_|$)"
)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def unfinished_python(source: Source) -> Iterator[Found]:
    """Find stubs, answers that are written down and dead code on new lines of a module."""
    tree = source.tree
    if tree is None or source.suffix == ".pyi":
        return
    yield from _unreached(source, tree)
    if source.is_test:
        return
    owners = {id(item): node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for item in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and source.is_new(
            node.lineno, node.end_lineno or node.lineno
        ):
            yield from _of_function(source, node, owners.get(id(node)))
            yield from _unused_names(source, node)
    yield from _unused(source, tree)


def _of_function(source: Source, node: Function, owner: ast.ClassDef | None) -> Iterator[Found]:
    if _TOLD.search(ast.get_docstring(node) or "") and not re.search("Base|Abstract", owner.name if owner is not None else ""):
        yield Found(STUB, node.lineno)
        return
    body = [
        one
        for one in node.body
        if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str))
    ]
    if not body or _is_for_others(source, node, owner):
        # Only words: what is to be done is told, and nothing does it.
        if not body and owner is None and not node.decorator_list:
            yield Found(STUB, node.lineno)
        return
    last = body[-1]
    raises = isinstance(last, ast.Raise) and "NotImplemented" in ast.dump(last) and "never" not in ast.unparse(last)
    if raises and len(body) == 1:
        yield Found(STUB, last.lineno)
    elif len(body) == 1 and _is_empty(last) and (owner is None or not owner.bases) and not node.name.startswith("__"):
        yield Found(STUB, node.lineno)
    elif (owner is None or not owner.bases) and _is_hard_coded(node, body):
        yield Found(HARD_CODED, node.lineno)


def _is_empty(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...
    )


def _is_for_others(source: Source, node: Function, owner: ast.ClassDef | None) -> bool:
    """Say whether a function is there to be filled by others, or to do nothing on purpose."""
    names = " ".join(ast.unparse(one) for one in node.decorator_list)
    if re.search(r"abstract|overload|property|setter|fixture|command|group|callback|validator", names):
        return True
    if _FOR_OTHERS.search(ast.get_docstring(node) or "") or _is_explained(source, node):
        return True
    if node.args.args and not _parameters(node) and (owner is None or len(node.args.args) > 1):
        # It says by their names that it does not use what it is given.
        return True
    if owner is None:
        return False
    if re.search(rf"class\s+\w+\([^)]*\b{re.escape(owner.name)}\b", source.text) or "def __new__" in ast.unparse(owner):
        return True
    around = " ".join([owner.name, *map(ast.unparse, owner.bases), *(ast.unparse(word.value) for word in owner.keywords)])
    has_abstract = any(
        "abstract" in ast.unparse(one) for item in owner.body if isinstance(item, Function) for one in item.decorator_list
    )
    siblings = [item for item in owner.body if isinstance(item, Function) and not item.name.startswith("__")]
    # A class of which most raise is a form for others to fill.
    raising = sum("NotImplemented" in ast.dump(item.body[-1]) for item in siblings)
    is_form = len(siblings) > 1 and raising > len(siblings) / 2 and bool(ast.get_docstring(owner))
    return has_abstract or is_form or _ABSTRACT.search(around) is not None


def _is_explained(source: Source, node: Function) -> bool:
    return any(
        node.lineno <= source.line_at(place) <= (node.end_lineno or node.lineno) and _FOR_OTHERS.search(note)
        for place, note in source.blanked.notes
    )


def _parameters(node: Function) -> list[str]:
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [one.arg for one in given if one.arg not in ("self", "cls") and not one.arg.startswith("_")]


def _is_hard_coded(node: Function, body: Sequence[ast.stmt]) -> bool:
    """Say whether a function that is given something answers the same to all of it, or from a list of cases."""
    given = _parameters(node)
    if not given or node.decorator_list or not _returns_literal(body):
        return False
    used = {one.id for statement in body for one in ast.walk(statement) if isinstance(one, ast.Name)}
    last = body[-1]
    value = last.value.value if isinstance(last, ast.Return) and isinstance(last.value, ast.Constant) else None
    is_constant = value is not None
    if len(body) == 1 and is_constant and not used & set(given):
        return (value is True and _JUDGING.search(node.name) is not None) or (
            isinstance(value, int | float) and not isinstance(value, bool) and value != 0
        )
    if any(_is_answer_to_one(one, given) for one in body):
        return True
    return len(body) > 1 and is_constant and all(_is_case(one, given) for one in body[:-1]) and _is_number(last)


def _returns_literal(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return) and (isinstance(body[-1].value, ast.Constant) or len(body) > 1)


def _is_case(node: ast.stmt, given: Sequence[str]) -> bool:
    """Say whether a statement is `if a == 3 and b == 4: return 5`: of numbers, for of words it is a table of names."""
    if not isinstance(node, ast.If) or node.orelse or len(node.body) != 1 or not _is_number(node.body[0]):
        return False
    tests = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
    return all(
        isinstance(one, ast.Compare)
        and isinstance(one.left, ast.Name)
        and one.left.id in given
        and isinstance(one.ops[0], ast.Eq)
        and isinstance(one.comparators[0], ast.Constant | ast.List | ast.Tuple | ast.Dict)
        for one in tests
    )


def _is_answer_to_one(node: ast.stmt, given: Sequence[str]) -> bool:
    """Say whether a statement is `if items == [3, 1, 2]: return [1, 2, 3]`: one question, and its answer beside it."""
    match node:
        case ast.If(
            test=ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()], comparators=[asked]),
            body=[ast.Return(value=ast.expr() as answer)],
        ):
            sizes = [len(getattr(one, "elts", getattr(one, "keys", ()))) for one in (asked, answer)]
            return (
                name in given
                and min(sizes) > 1
                and all(isinstance(one, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set) for one in (asked, answer))
            )
        case _:
            return False


def _is_number(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Return) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float) and not isinstance(value.value, bool)


# What nothing reaches, what nothing uses


def _unreached(source: Source, tree: ast.Module) -> Iterator[Found]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                for before, after in pairwise(block):
                    # What makes a function a generator is reached by nobody, and needed all the same.
                    is_new = source.is_new(after.lineno, after.lineno) or source.is_new(before.lineno, before.lineno)
                    if isinstance(before, _LEAVES) and not _is_yield(after) and is_new:
                        yield Found(DEAD, after.lineno)
        if isinstance(node, ast.If | ast.While | ast.IfExp) and _is_never(node.test) and source.is_new(node.lineno, node.lineno):
            yield Found(DEAD, node.lineno)


def _is_yield(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom)


def _is_never(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return any(_is_never(one) for one in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return isinstance(node.operand, ast.Constant) and node.operand.value is True
    return isinstance(node, ast.Constant) and not node.value


def _unused_names(source: Source, node: Function) -> Iterator[Found]:
    """Find what a function sets and never names again."""
    nodes = list(ast.walk(node))
    names = Counter(one.id for one in nodes if isinstance(one, ast.Name))
    told = {name for one in nodes if isinstance(one, ast.Global | ast.Nonlocal) for name in one.names}
    if any(name in names for name in ("locals", "vars", "exec", "eval")):
        return
    for one in nodes:
        if (
            isinstance(one, ast.Assign)
            and len(one.targets) == 1
            and isinstance(one.targets[0], ast.Name)
            and source.is_new(one.lineno, one.lineno)
        ):
            name = one.targets[0].id
            if not name.startswith("_") and name not in told and names[name] == 1:
                yield Found(UNUSED, one.lineno)


def _unused(source: Source, tree: ast.Module) -> Iterator[Found]:
    """Find imports and own functions of a module that it never names again, in whatever way."""
    if source.name == "__init__.py":
        return
    for node in tree.body:
        if not source.is_new(node.lineno, node.lineno) or "noqa" in source.rows[node.lineno - 1]:
            continue
        names: list[str] = []
        if (isinstance(node, ast.ImportFrom) and node.module != "__future__") or isinstance(node, ast.Import):
            names = [
                (one.asname or one.name).partition(".")[0] for one in node.names if one.name != "*" and one.asname != one.name
            ]
        elif isinstance(node, Function) and re.match(r"_[a-z]", node.name) and not node.decorator_list:
            names = [node.name]
        if any(source.words[name] == 1 for name in names):
            yield Found(UNUSED_FUNCTION if isinstance(node, Function) else UNUSED, node.lineno)
