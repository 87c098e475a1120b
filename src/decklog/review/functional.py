"""Stage 2: the tests of the base and of the change, whether new tests need the change, and what they run of it."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.checks.running import PASSED, Runner
from decklog.conductor.settings import Check
from decklog.core.python_source import parsed
from decklog.guard.files.gitignore import IgnoreFile
from decklog.review.change import Change
from decklog.review.proof.measuring import Measuring
from decklog.review.result import Finding, Severity, StageResult, conclude
from decklog.review.settings import ReviewSettings

# Findings of an examination that only a person can decide.
_QUESTIONS = ("protected", "knows-its-tests", "old-tests")
_NO_RESULT = ("error", "inherited", "flaky")
_NO_BEHAVIOUR = (".md", ".rst", ".txt", ".adoc", ".editorconfig", ".gitignore")
# What decides how code behaves. Names, calls and the layout of functions may change in a refactoring.
_BEHAVIOUR = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.If, ast.IfExp, ast.Raise, ast.Try, ast.While, ast.match_case)
_MOST = 20


@dataclass(frozen=True, kw_only=True)
class Functional:
    """Runs stage 2 on one change."""

    change: Change
    settings: ReviewSettings
    examiner: Examiner
    runner: Runner
    mark: str

    def run(self) -> StageResult:
        """Run the checks of the base on the change; where they pass, measure what they show of it."""
        checks = self.settings.functional_checks
        by = [check.name for check in checks]
        if not checks:
            return conclude(2, unproven="no check that runs tests is defined in the commit that the change starts from", by=by)
        found = self.examiner.examine(self.change.base, self.change.head)
        findings = [one for row in found.findings for one in _read_findings(row, is_held=found.outcome == "held")]
        unsaid = {str(one["check"]): str(one["text"]) for one in found.findings if one["kind"] in _NO_RESULT}
        unproven = "; ".join(f"{name} could not say{f': {why}' if why else ''}" for name, why in unsaid.items())
        if not unproven and not any(one.severity is Severity.BLOCKING for one in findings):
            findings += [one for check in checks for one in self._vacuous_tests(check)]
            check = next((one for one in checks if one.report == "junit"), None)
            if check is not None and self.settings.rules.measure_seconds and not findings:
                findings += self._measure(check)
        return conclude(2, findings, unproven=unproven, by=by)

    def _measure(self, check: Check) -> Iterator[Finding]:
        tests = IgnoreFile(self.settings.tests)
        paths = [one.path for one in self.change.paths if one.status != "D" and not tests.covers(one.path)]
        measuring = Measuring(
            runner=self.runner,
            examiner=self.examiner,
            check=check,
            change=self.change,
            mark=self.mark,
            seconds=self.settings.rules.measure_seconds,
        )
        return measuring.findings(paths)

    def _vacuous_tests(self, check: Check) -> Iterator[Finding]:
        """Yield a finding when a change of behaviour brings tests that all pass without it."""
        change, examiner, tests = self.change, self.examiner, IgnoreFile(self.settings.tests)
        paths = [one.path for one in change.paths if one.status != "D"]
        new_tests = [path for path in paths if tests.covers(path)]
        if check.report != "junit" or not new_tests or not self._changes_behaviour(tests):
            return
        after = examiner.verdict(check, change.head, paths)[1].tests or {}
        before = examiner.verdict(check, change.base, ())[1].tests or {}
        added = [name for name in after if name not in before]
        if not added:
            return
        without = examiner.verdict(check, examiner.with_files_of(change.head, change.base, new_tests), paths)[1]
        if without.tests is not None and all(without.tests.get(name) == PASSED for name in added):
            yield Finding(
                severity=Severity.SIGNIFICANT,
                kind="vacuous-test",
                text=f"every new test passes without the change: {', '.join(sorted(added)[:_MOST])}",
                file=new_tests[0],
                remedy="Add a test that fails when the change is taken back.",
            )

    def _changes_behaviour(self, tests: IgnoreFile) -> bool:
        """Return whether code differs in more than words, types, names and the layout of functions."""
        before: Counter[str] = Counter()
        after: Counter[str] = Counter()
        for one in self.change.paths:
            if tests.covers(one.path) or one.path.endswith(_NO_BEHAVIOUR):
                continue
            if PurePosixPath(one.path).suffix != ".py":
                return True
            before += _behaviour(self.change.content(one.path, at_base=True))
            after += _behaviour(self.change.content(one.path))
        return before != after


def _behaviour(content: bytes | None) -> Counter[str]:
    """Count the values, operators and conditions of a module."""
    tree = parsed(content or b"")
    return Counter(_parts(tree)) if tree is not None else Counter([repr(content)])


def _parts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    if isinstance(node, ast.Constant):
        yield repr(node.value)
    elif isinstance(node, _BEHAVIOUR):
        yield type(node).__name__
    elif isinstance(node, ast.comprehension):
        yield from ["condition"] * len(node.ifs)
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                yield from _parts(child)


def _read_findings(row: Mapping[str, Any], *, is_held: bool) -> Iterator[Finding]:
    """Yield what an examination found as findings of a review."""
    kind, output = str(row["kind"]), str(row.get("output", ""))[-1500:].strip()
    if kind in _NO_RESULT:
        yield Finding(severity=Severity.INFO, kind=kind, text=f"{row['check']}: {row['text'] or kind}", remedy=output)
        return
    severity = Severity.QUESTION if is_held and kind in _QUESTIONS else Severity.BLOCKING
    names = [str(name) for name in (*row.get("tests", ()), *row.get("lines", ()))][:_MOST]
    text = ": ".join(part for part in (str(row.get("check", "")), str(row["text"]), ", ".join(names)) if part)
    for path in (row.get("paths") or row.get("changed") or [None])[:_MOST]:
        yield Finding(severity=severity, kind=kind, text=text, file=path, remedy=output)
