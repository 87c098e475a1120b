"""Measure which changed lines the tests run and which mutants they detect, within a time limit."""

import ast
import copy
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.checks.running import Runner
from decklog.conductor.settings import Check
from decklog.review.change import Change
from decklog.review.proof.lines import added_statements
from decklog.review.proof.trials import Watched, run_trial
from decklog.review.result import Finding, Severity
from decklog.stores.workflow.verdicts import CheckOutcome

MOST_MUTANTS = 10
_DOCUMENTS = frozenset(
    (".md", ".rst", ".txt", ".toml", ".json", ".yaml", ".yml", ".ini", ".cfg", ".lock", ".css", ".html", ".svg", "")
)
_SHOWN = 20
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
_LONGEST_SHOWN = 60
Statements = Mapping[str, Sequence[range]]


@dataclass(frozen=True)
class Mutant:
    """A file with one small change."""

    path: str
    line: int
    before: str
    after: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """Measures one change by one check that reports tests. Findings lower the confidence, but don't fail the stage."""

    runner: Runner
    examiner: Examiner
    check: Check
    change: Change
    mark: str
    seconds: int

    def findings(self, paths: Sequence[str]) -> Iterator[Finding]:
        """Yield findings for changed statements that no test runs and mutants that no test detects."""
        python = [path for path in paths if path.endswith(".py")]
        others = sorted({PurePosixPath(path).suffix for path in paths if not path.endswith(".py")} - _DOCUMENTS)
        if others:
            yield _unproven(f"which lines tests run of {', '.join(others)} is unknown: only Python can be watched")
        found = {path: spans for path in python if (spans := added_statements(self.change, path))}
        if found:
            yield from self._measured(found)

    def _measured(self, found: Statements) -> Iterator[Finding]:
        verdict = self.examiner.verdict(self.check, self.change.head, self._changed)[0]
        takes = (verdict.duration_ms or 0) / 1000
        if 2 * takes > self.seconds:
            yield _unproven(f"{self.check.name} takes {takes:.0f} s, and measure_seconds is {self.seconds}")
            return
        begun = time.monotonic()
        lines = {path: sorted(line for span in spans for line in span) for path, spans in found.items()}
        check = replace(self.check, minutes=min(self.check.minutes, self.seconds / 60))
        trial = run_trial(self.runner, check, self.change.head, f"{self.mark}:lines", Watched((), lines, ()), self._changed)
        if trial.said.outcome is not CheckOutcome.PASS or not trial.seen:
            yield _unproven(
                f"the probe saw nothing of {self.check.name}: run it without -I, -E and -S, and without another tracer"
            )
            return
        run = {path: {line for one in trial.seen for line in one.outside.get(path, ())} for path in found}
        yield from _not_run(found, run)
        yield from self._try_mutants(found, run, takes, begun)

    def _try_mutants(self, found: Statements, run: Mapping[str, set[int]], takes: float, begun: float) -> Iterator[Finding]:
        """Try mutants of statements that tests run, spread over all of them, while there is time."""
        every = [one for path in found for one in mutants(path, self.change.content(path) or b"", run[path])]
        # Evenly from the first to the last, the same ones every time.
        count = min(len(every), MOST_MUTANTS)
        wanted = [every[number * len(every) // count] for number in range(count)]
        check = replace(self.check, minutes=min(self.check.minutes, (3 * takes + 5) / 60))
        tries = survived = 0
        for number, mutant in enumerate(wanted):
            if time.monotonic() - begun + takes > self.seconds or self.runner.end_reason() is not None:
                break
            tries += 1
            commit = self.examiner.with_content(self.change.head, mutant.path, mutant.content)
            said = self.runner.run(check, commit, f"{self.mark}:mutant:{number}", self._changed)
            if said.outcome is CheckOutcome.PASS:
                survived += 1
                yield _unnoticed(mutant)
        total, ran = sum(map(len, found.values())), sum(_is_run(span, run[path]) for path in found for span in found[path])
        text = f"tests run {ran} of {total} changed statements and notice {tries - survived} of {tries} mutants"
        yield Finding(severity=Severity.INFO, kind="measured", text=text)

    @property
    def _changed(self) -> list[str]:
        return [one.path for one in self.change.paths if one.status != "D"]


def _not_run(found: Statements, run: Mapping[str, set[int]]) -> Iterator[Finding]:
    for path, spans in found.items():
        missing = [span.start for span in spans if not _is_run(span, run[path])]
        if missing:
            text = f"no test runs {len(missing)} of {len(spans)} changed statements"
            where = ", ".join(map(str, missing[:_SHOWN]))
            remedy = f"Run them in a test: line{'s' if len(missing) > 1 else ''} {where}"
            yield Finding(severity=Severity.MINOR, kind="not-run", text=text, file=path, line=missing[0], remedy=remedy)


def _is_run(span: range, lines: set[int]) -> bool:
    return any(line in lines for line in span)


def _unnoticed(mutant: Mutant) -> Finding:
    text = f"no test notices when `{mutant.before}` is `{mutant.after}`"
    remedy = "Test what depends on it; if nothing does, it may not be needed."
    return Finding(severity=Severity.MINOR, kind="unnoticed", text=text, file=mutant.path, line=mutant.line, remedy=remedy)


def _unproven(why: str) -> Finding:
    """Return the note that something was not measured; it blocks nothing."""
    return Finding(severity=Severity.INFO, kind="not-measured", text=f"unproven: {why}")


# Mutants


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
        yield Mutant(path, node.lineno, before[:_LONGEST_SHOWN], after[:_LONGEST_SHOWN], _spliced(content, node, f"({after})"))


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
