"""Tests in Python that are turned off, hold whatever the code does, or look at less than before."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from decklog.review.rules.disabled_tests import DISABLED, VACUOUS, WEAKENED
from decklog.review.rules.rule import Found
from decklog.review.rules.source import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
_LINK = re.compile(r"https?://|#\d+|\b[A-Z][A-Z0-9]+-\d+\b|\bgh-\d+")
_SKIPS = re.compile(r"(?:^|\.)(?:mark\.skip|unittest\.skip|skip|mark\.xfail|expectedFailure|SkipTest|skipTest|xfail)$")
_OPPOSITES = ((ast.Is, ast.IsNot), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Lt, ast.GtE), (ast.Gt, ast.LtE))
_LOOKS = re.compile(
    r"(?i)assert|raises|warns|expect|should|check|verify|fail|must|ensure|compare|match|equal|approx|validate|snapshot|is_|same"
    r"|holds"
)
_OFF_NAME = re.compile(r"^(?:_+test_|x_?test_|disabled_?test_|skip_?test_|no_?test_|off_test_|dont_test|todo_test)")


def tests_of_python(source: Source) -> Iterator[Found]:
    """Find what is wrong with the tests on new lines of a module."""
    tree = source.tree
    if tree is None or not source.is_test:
        return
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            yield from _turned_off(source, node)
        if isinstance(node, Function) and node.name.startswith("test"):
            if source.is_new(node.lineno, node.end_lineno or node.lineno):
                yield from _vacuous(source, node)
        elif isinstance(node, ast.Assign) and source.is_new(node.lineno, node.lineno):
            yield from _settings(node)
    if source.old_tree is not None:
        yield from _weakened(source, source.old_tree, tree)


def _called(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def _is_linked(node: ast.AST) -> bool:
    return _LINK.search(ast.unparse(node)) is not None


def _turned_off(source: Source, node: Function | ast.ClassDef) -> Iterator[Found]:
    for one in node.decorator_list:
        if source.is_new(one.lineno, one.end_lineno or one.lineno) and _is_skip(one) and not _is_linked(one):
            yield Found(DISABLED, one.lineno)
    if isinstance(node, ast.ClassDef):
        return
    if (
        _OFF_NAME.match(node.name)
        and source.is_new(node.lineno, node.lineno)
        and not any("fixture" in ast.unparse(one) for one in node.decorator_list)
    ):
        yield Found(DISABLED, node.lineno)
    # A skip that stands first, under no condition.
    for first in node.body[:2] if node.name.startswith("test") else ():
        value = first.value if isinstance(first, ast.Expr) else first.exc if isinstance(first, ast.Raise) else None
        is_bare_return = isinstance(first, ast.Return) and len(node.body) > 1
        is_skip = value is not None and _SKIPS.search(_called(value)) is not None and not _is_linked(value)
        if (is_skip or is_bare_return) and source.is_new(first.lineno, first.lineno):
            yield Found(DISABLED, first.lineno)


def _is_skip(node: ast.expr) -> bool:
    called = _called(node)
    if called.endswith(("skipif", "skipIf", "skipUnless")) and isinstance(node, ast.Call) and node.args:
        first = node.args[0]
        return isinstance(first, ast.Constant) and bool(first.value) is not called.endswith("Unless")
    if called.endswith("xfail") and isinstance(node, ast.Call):
        words = {word.arg: word.value for word in node.keywords}
        is_strict = isinstance(strict := words.get("strict"), ast.Constant) and strict.value is True
        # Under a condition, or held to fail: it says something.
        return not is_strict and not node.args and "condition" not in words
    return _SKIPS.search(called) is not None


def _settings(node: ast.Assign) -> Iterator[Found]:
    names = [one.id for one in node.targets if isinstance(one, ast.Name)]
    if (
        (
            "pytestmark" in names
            and any(_is_skip(one) for one in ast.walk(node.value) if isinstance(one, ast.Call | ast.Attribute))
        )
        or ("__test__" in names and isinstance(node.value, ast.Constant) and node.value.value is False)
        or names in (["collect_ignore"], ["collect_ignore_glob"])
    ):
        yield Found(DISABLED, node.lineno)


# Tests that hold whatever the code does


def _vacuous(source: Source, node: Function) -> Iterator[Found]:
    mocks = _mocks(node)
    for one in ast.walk(node):
        if (
            (
                isinstance(one, ast.Assert)
                and source.is_new(one.lineno, one.lineno)
                and (_always_holds(one.test) or _asks_mock(one.test, mocks))
            )
            or (isinstance(one, ast.Try) and _hides_assertions(one) and source.is_new(one.lineno, one.end_lineno or one.lineno))
            or (isinstance(one, ast.For) and _goes_through_nothing(one) and source.is_new(one.lineno, one.lineno))
            or (isinstance(one, ast.Call) and _catches_anything(one) and source.is_new(one.lineno, one.lineno))
            or (isinstance(one, ast.Call) and _compares_itself(one) and source.is_new(one.lineno, one.lineno))
        ):
            yield Found(VACUOUS, one.lineno)
    for line in (*_asks_what_it_made_up(node), *_expects_itself(node)):
        if source.is_new(line, line):
            yield Found(VACUOUS, line)
    if not _looks_at_something(node):
        yield Found(VACUOUS, node.lineno)


def _goes_through_nothing(node: ast.For) -> bool:
    """Say whether claims stand in a loop over nothing."""
    is_empty = isinstance(node.iter, ast.List | ast.Tuple) and not node.iter.elts
    return is_empty and any(isinstance(one, ast.Assert) for one in ast.walk(node))


def _mocks(node: Function) -> set[str]:
    """Name what a test makes up itself."""
    made = [one for one in ast.walk(node) if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)]
    return {
        target.id
        for one in made
        if re.search(r"(?:^|\.)(?:Magic|Async|Non\w*)?Mock$", _called(one.value))
        for target in one.targets
        if isinstance(target, ast.Name)
    }


def _asks_mock(node: ast.expr, mocks: set[str]) -> bool:
    """Say whether a claim is about what something made up was told to answer."""
    left = node.left if isinstance(node, ast.Compare) else node
    if not isinstance(left, ast.Call) or not isinstance(left.func, ast.Attribute | ast.Name):
        return False
    root = ast.unparse(left.func).partition(".")[0]
    return root in mocks and not {one.id for arg in left.args for one in ast.walk(arg) if isinstance(one, ast.Name)} - mocks


def _asks_what_it_made_up(node: Function) -> Iterator[int]:
    """Find claims about a call of the very thing for which the test has put something else."""
    made = {name for one in ast.walk(node) if isinstance(one, ast.Call) and (name := _put_in_place(one))}
    for claim in _claims(node) if made else ():
        compared = claim.test.left if isinstance(claim.test, ast.Compare) else claim.test
        value = compared.value if isinstance(compared, ast.Await) else compared
        if isinstance(value, ast.Call) and _called(value).rpartition(".")[2] in made:
            yield claim.lineno


def _put_in_place(call: ast.Call) -> str:
    """Name what a call stands something in for, if it also says what that is to answer."""
    called = _called(call)
    placed = re.search(r"(?:^|\.)(?:patch\.object|monkeypatch\.setattr)$", called) is not None and len(call.args) >= 2
    name = call.args[1] if placed else call.args[0] if re.search(r"(?:^|\.)patch$", called) and call.args else None
    words = {word.arg for word in call.keywords}
    answers = bool(words & {"return_value", "side_effect", "new"}) or len(call.args) > (2 if placed else 1)
    is_named = isinstance(name, ast.Constant) and isinstance(name.value, str)
    return str(name.value).rpartition(".")[2] if is_named and answers and "wraps" not in words else ""  # type: ignore[union-attr]


def _expects_itself(node: Function) -> Iterator[int]:
    """Find claims that something is what the line before took from the same call and named what is expected."""
    for block in (one.body for one in ast.walk(node) if isinstance(one, Function | ast.With | ast.For | ast.If)):
        for first, second in pairwise(block):
            match first, second:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value),
                    ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])),
                ) if re.match(r"(?:expected|want|exp|correct|golden|right)", name):
                    sides = {ast.dump(left), ast.dump(right)}
                    if sides == {ast.dump(value), ast.dump(ast.Name(name, ast.Load()))}:
                        yield second.lineno


def _looks_at_something(node: Function) -> bool:
    """Say whether a test can fail by what it looks at; what a fixture or a helper looks at is told by its name."""
    words = [arg.arg for arg in [*node.args.args, *node.args.kwonlyargs]]
    for one in ast.walk(node):
        if isinstance(one, ast.Assert | ast.Raise | ast.With | ast.AsyncWith):
            return True
        if isinstance(one, ast.Call):
            words.append(_called(one))
    body = [one for one in node.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    is_only_pass = all(isinstance(one, ast.Pass) for one in body)
    # Without a decorator and without a call into something that looks: nothing can be seen.
    return not is_only_pass and (any(_LOOKS.search(word) for word in words) or bool(node.decorator_list) or _is_delegating(body))


def _is_delegating(body: list[ast.stmt]) -> bool:
    """Say whether a test only hands on to a helper: one of its own, or one with things to look at."""
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return False
    value = body[0].value.value if isinstance(body[0].value, ast.Await) else body[0].value
    return isinstance(value, ast.Call) and (
        _called(value).startswith(("_", "self.", "cls.")) or len(value.args) + len(value.keywords) > 1
    )


def _always_holds(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Tuple(elts=elts):
            return bool(elts)
        case ast.BoolOp(op=ast.Or(), values=values):
            compared = [
                (ast.dump(one.left), ast.dump(one.comparators[0]), type(one.ops[0]))
                for one in values
                if isinstance(one, ast.Compare)
            ]
            # Either it is so, or it is not: nothing is claimed.
            both = any(
                (left, right, other) in compared for left, right, op in compared for is_so, other in _OPPOSITES if op is is_so
            )
            return both or any(isinstance(one, ast.Constant) and bool(one.value) for one in values)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Constant(value=value)):
            return not value
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is() | ast.GtE() | ast.LtE()], comparators=[right]):
            if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
                return True
            if ast.dump(left) == ast.dump(right):
                # Two calls may give two things: that they are the same is a claim.
                return not any(isinstance(one, ast.Call | ast.Await) for one in ast.walk(left))
            return isinstance(node.ops[0], ast.GtE) and ast.unparse(left).startswith("len(") and ast.unparse(right) == "0"
        case ast.Compare(
            left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts)]
        ):
            return {ast.unparse(one) for one in elts} >= {"True", "False"}
        case _:
            return False


def _compares_itself(node: ast.Call) -> bool:
    called = _called(node)
    if re.search(r"\.assert(?:True|_)$", called) and node.args:
        return isinstance(node.args[0], ast.Constant) and bool(node.args[0].value)
    if re.search(r"\.assert(?:Equal|Equals|Is|In|AlmostEqual)$", called) and len(node.args) >= 2:
        first, second = node.args[:2]
        same = ast.dump(first) == ast.dump(second) and not isinstance(first, ast.Call)
        return same or (isinstance(first, ast.Constant) and isinstance(second, ast.Constant))
    return False


def _hides_assertions(node: ast.Try) -> bool:
    has_assertion = any(
        isinstance(one, ast.Assert) or (isinstance(one, ast.Call) and "assert" in _called(one))
        for part in node.body
        for one in ast.walk(part)
    )
    for handler in node.handlers:
        caught = "" if handler.type is None else ast.unparse(handler.type)
        is_wide = handler.type is None or re.search(r"\b(?:Base)?Exception\b|\bAssertionError\b", caught) is not None
        if has_assertion and is_wide and all(isinstance(one, ast.Pass | ast.Return | ast.Continue) for one in handler.body):
            return True
    return False


def _catches_anything(node: ast.Call) -> bool:
    return (
        re.search(r"(?:^|\.)(?:raises|assertRaises)$", _called(node)) is not None
        and len(node.args) == 1
        and ast.unparse(node.args[0]) in ("Exception", "BaseException")
        and not any(word.arg in ("match", "check") for word in node.keywords)
    )


# Tests that look at less


def _claims(node: Function) -> list[ast.Assert]:
    return [one for one in ast.walk(node) if isinstance(one, ast.Assert)]


def _weakened(source: Source, before: ast.Module, after: ast.Module) -> Iterator[Found]:
    """Compare tests of the same name: an exact claim that became a vague one about the same thing."""
    old = {node.name: node for node in ast.walk(before) if isinstance(node, Function)}
    for node in ast.walk(after):
        if not isinstance(node, Function) or not node.name.startswith("test") or node.name not in old:
            continue
        kept = {ast.dump(one.test) for one in _claims(node)}
        lost = [one for one in _claims(old[node.name]) if ast.dump(one.test) not in kept]
        exact = {
            ast.dump(one.test.left) for one in lost if isinstance(one.test, ast.Compare) and isinstance(one.test.ops[0], ast.Eq)
        }
        for claim in _claims(node):
            if source.is_new(claim.lineno, claim.lineno) and _vague(claim.test) in exact:
                yield Found(WEAKENED, claim.lineno)
        yield from (Found(WEAKENED, line) for line in _fewer_cases(source, old[node.name], node))


def _fewer_cases(source: Source, before: Function, after: Function) -> Iterator[int]:
    """Find lists of cases that are shorter than before, and whose cases are nowhere else in the file."""
    had = _cases(before)
    for names, (line, cases) in _cases(after).items():
        lost = [case for case in had.get(names, (0, []))[1] if case not in cases]
        if lost and len(cases) < len(had[names][1]) and source.tree is not None:
            # Spelled as they are here: quotes of one kind, and nothing but a space between two words.
            said = ast.unparse(source.tree)
            if not all(case in said for case in lost):
                yield line


def _cases(node: Function) -> dict[str, tuple[int, list[str]]]:
    """Give the cases that a test is run with, and their line, by the names that they are given to."""
    found = {}
    for one in node.decorator_list:
        if isinstance(one, ast.Call) and _called(one).endswith("parametrize") and len(one.args) >= 2:
            names, cases = ast.unparse(one.args[0]), one.args[1]
            if isinstance(cases, ast.List | ast.Tuple):
                found[names] = (one.lineno, [ast.unparse(case) for case in cases.elts])
    return found


def _vague(node: ast.expr) -> str:
    """Give what a vague claim is about: that it is there, is of a type, or is more than something."""
    match node:
        case ast.Compare(left=left, ops=[ast.IsNot() | ast.NotEq() | ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE() | ast.In()]):
            return ast.dump(left)
        case ast.Call(func=ast.Name(id="isinstance"), args=[first, *_]):
            return ast.dump(first)
        case _:
            return ast.dump(node)
