"""The review gate: run seven stages on one change, those without a model first, and record one verdict."""

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.checks.running import PASSED, Runner
from decklog.conductor.git.repository import Repository, ref_part
from decklog.conductor.git.workspaces import remove_folder
from decklog.conductor.settings import NAME, Check, require_consent
from decklog.core.python_source import parsed
from decklog.guard.files.gitignore import IgnoreFile
from decklog.log import Decklog
from decklog.models.asking import BuildProvider
from decklog.records.values import to_json
from decklog.review import settings as review_settings
from decklog.review.change import Change, between, find_default_base
from decklog.review.critique import find_kept_findings
from decklog.review.deterministic import run_security, run_static
from decklog.review.linters import Linters
from decklog.review.model_stages import Ask, run_adversarial, run_architectural, run_feedback_binding, run_prose
from decklog.review.proof.judging import FixProof
from decklog.review.proof.measuring import Measuring
from decklog.review.proof.proving import Proving
from decklog.review.result import ENDING, ORDER, Finding, Severity, StageResult, StageStatus, conclude, from_dict, judge, skip
from decklog.review.settings import ReviewSettings
from decklog.stores.workflow.reviews import Review, ReviewVerdict

# Findings of an examination that only a person can decide.
_QUESTIONS = ("protected", "knows-its-tests", "old-tests")
_NO_RESULT = ("error", "inherited", "flaky")
_NO_BEHAVIOUR = (".md", ".rst", ".txt", ".adoc", ".editorconfig", ".gitignore")
# Nodes that decide how code behaves. A refactoring may change names, calls and the layout of functions.
_BEHAVIOUR = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.If, ast.IfExp, ast.Raise, ast.Try, ast.While, ast.match_case)
_MOST = 20


@dataclass(frozen=True)
class FunctionalStage:
    """Stage 2: runs the checks of the base on a change, and measures what they prove."""

    change: Change
    settings: ReviewSettings
    examiner: Examiner
    runner: Runner
    mark: str

    def run(self) -> StageResult:
        """Run the checks on the change. If they pass, measure which changed lines they test."""
        checks = self.settings.functional_checks
        by = [check.name for check in checks]
        if not checks:
            return conclude(2, unproven="the base commit of the change defines no check that runs tests", by=by)
        found = self.examiner.examine(self.change.base, self.change.head)
        findings = [one for row in found.findings for one in _read_findings(row, is_held=found.outcome == "held")]
        without_result = {str(one["check"]): str(one["text"]) for one in found.findings if one["kind"] in _NO_RESULT}
        unproven = "; ".join(f"{name} gave no result{f': {why}' if why else ''}" for name, why in without_result.items())
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
            mark=f"{self.mark}:measured",
            seconds=self.settings.rules.measure_seconds,
        )
        return measuring.findings(paths)

    def _vacuous_tests(self, check: Check) -> Iterator[Finding]:
        """Yield a finding if behaviour changes but all new tests pass without the change."""
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
                remedy="Add a test that fails without the change.",
            )

    def _changes_behaviour(self, tests: IgnoreFile) -> bool:
        """Return whether code changes in more than texts, types, names and the layout of functions."""
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
    """Yield a finding of an examination as findings of a review."""
    kind, output = str(row["kind"]), str(row.get("output", ""))[-1500:].strip()
    if kind in _NO_RESULT:
        yield Finding(severity=Severity.INFO, kind=kind, text=f"{row['check']}: {row['text'] or kind}", remedy=output)
        return
    severity = Severity.QUESTION if is_held and kind in _QUESTIONS else Severity.BLOCKING
    names = [str(name) for name in (*row.get("tests", ()), *row.get("lines", ()))][:_MOST]
    text = ": ".join(part for part in (str(row.get("check", "")), str(row["text"]), ", ".join(names)) if part)
    for path in (row.get("paths") or row.get("changed") or [None])[:_MOST]:
        yield Finding(severity=severity, kind=kind, text=text, file=path, remedy=output)


@dataclass(frozen=True, kw_only=True)
class ReviewGate:
    """Reviews one change for one run.

    `proof` replaces the proof of a fix; `last` is the previous review of the same change by the same settings.
    """

    log: Decklog
    change: Change
    settings: ReviewSettings
    runner: Runner
    ask: Ask
    run_id: str
    task_id: str | None = None
    fence: int = 0
    feedback_id: str | None = None
    is_fix: bool = False
    on_stage: Callable[[StageResult], object] = lambda _: None
    proof: Callable[[Change], FixProof] | None = None
    last: Review | None = None

    def review(self) -> Review:
        """Run the stages and record the verdict."""
        results = list(self._results())
        rules = self.settings.rules
        judged = judge(results, block_below=rules.block_below, change_below=rules.change_below)
        change = self.change
        stages = [one.as_dict() for one in judged.results]
        findings: list[object] = [{"pass": one["pass"], **finding} for one in stages for finding in one["findings"]]
        return self.log.reviews.record(
            self.run_id,
            judged.verdict,
            base=change.base,
            head=change.head,
            tree=change.tree,
            patch=change.patch,
            settings=self.settings.digest,
            confidence=judged.confidence,
            reasons=list(judged.reasons),
            passes=list(stages),
            findings=findings,
            task_id=self.task_id,
            feedback_id=self.feedback_id,
        )

    def run_stage(self, number: int) -> StageResult:
        """Run one stage alone, without a verdict."""
        result = self._stages()[number]()
        self._record(result)
        return result

    # The stages

    def _results(self) -> Iterator[StageResult]:
        stages, known = self._stages(), self._known_results()
        ended = ""
        for number in ORDER:
            result = skip(number, ended) if ended else known.get(number) or stages[number]()
            if not ended and number not in known:
                self._record(result)
            self.on_stage(result)
            if number in ENDING and result.status is StageStatus.FAIL:
                ended = f"stage {number} {result.name} failed"
            yield result

    def _stages(self) -> dict[int, Callable[[], StageResult]]:
        change, settings, ask = self.change, self.settings, self.ask
        suspected = find_kept_findings(self.log, self.run_id, self.task_id)
        return {
            1: lambda: run_static(change, settings, self._examiner(settings.static_checks), self._linters.run),
            2: lambda: FunctionalStage(
                change, settings, self._examiner(settings.functional_checks), self.runner, self._mark
            ).run(),
            3: lambda: run_architectural(change, settings, ask),
            4: lambda: run_security(change, settings, self._linters.run),
            5: lambda: run_prose(change, settings.rules, ask),
            6: lambda: run_adversarial(change, settings.rules, ask, suspected=suspected),
            7: self._feedback_binding,
        }

    @cached_property
    def _linters(self) -> Linters:
        return Linters(self.runner, self.change, self.settings, f"{self._mark}:linters")

    @property
    def _mark(self) -> str:
        return f"{self.run_id}:{self.task_id or 'review'}:{self.fence}"

    def _feedback_binding(self) -> StageResult:
        prove = self.proof or Proving(self.log, self.settings, self.runner, self.run_id, lambda _: None).prove
        return run_feedback_binding(self.log, self.change, prove, self.ask, feedback_id=self.feedback_id, is_fix=self.is_fix)

    def _examiner(self, checks: tuple[Check, ...]) -> Examiner:
        configuration = self.settings.configuration(checks)
        return Examiner(self.log, self.run_id, configuration, self.runner, task_id=self.task_id, fence=self.fence)

    # Recorded results

    @property
    def _identity(self) -> str:
        """The digest that identifies results: of the change, the settings and the feedback."""
        facts = [self.change.base, self.change.tree, self.change.patch, self.change.message, self.settings.digest]
        return hashlib.sha256(to_json([*facts, self.feedback_id, self.is_fix]).encode()).hexdigest()

    def _record(self, result: StageResult) -> None:
        self.log.reviews.keep_pass(self.run_id, self._identity, result.number, result.as_dict(), task_id=self.task_id)

    def _known_results(self) -> dict[int, StageResult]:
        """Return the recorded passed and failed stages of an earlier gate, which are not run again."""
        is_reliable = self.last is not None and self.log.reviews.can_rely_on(self.last)
        stored: list[Any] = [one.result for one in self.log.reviews.passes(self.run_id, self._identity)]
        stored += self.last.passes if self.last is not None and is_reliable else []
        found: dict[int, StageResult] = {}
        for one in map(from_dict, stored):
            found.setdefault(one.number, one)
        return {number: one for number, one in found.items() if one.status in (StageStatus.PASS, StageStatus.FAIL)}


# The goal of a review's run is this and the title of the change.
GOAL = "Review: "
_LONGEST_TITLE = 100


def load_settings(change: Change) -> ReviewSettings:
    """Load the review settings of a change from its base commit."""
    return review_settings.read(change.repository.read(change.base, NAME))


def find_change(repository: Repository, words: str | None, *, base: str = "") -> Change:
    """Return the change of `BASE..HEAD` or a head. Without a base, use the branch of the settings."""
    change = between(repository, words, base=base)
    named = load_settings(change).rules.base
    if base or not named or ".." in (words or ""):
        return change
    return between(repository, words, base=_published_branch(repository, named))


def _published_branch(repository: Repository, branch: str) -> str:
    """Return the remote's branch if it is known; the local one may be ahead."""
    remote = f"refs/remotes/origin/{branch}"
    return remote if repository.resolve(remote) is not None else branch


def find_base(repository: Repository) -> str | None:
    """Return the commit that changes are published against; None if there is none."""
    usual = find_default_base(repository)
    content = None if usual is None else repository.read(usual, NAME)
    named = review_settings.read(content).rules.base if content is not None else ""
    return repository.resolve(_published_branch(repository, named)) if named else usual


def has_gate(repository: Repository) -> bool:
    """Return whether the published branch has a gate, even if its settings can't be parsed."""
    base = find_default_base(repository)
    content = repository.read(base, NAME) if base is not None else None
    return content is not None and b"[review" in content


def build_gate(
    log: Decklog,
    change: Change,
    settings: ReviewSettings,
    folder: Path,
    *,
    run_id: str,
    make: BuildProvider | None = None,
    end_reason: Callable[[], str | None] = lambda: None,
    **given: Any,
) -> ReviewGate:
    """Build a gate whose checks and models run in `folder`, with the prompts of the change's base commit."""
    repository = change.repository
    runner = Runner.beneath(folder / "checks", log, repository, settings.sandbox, end_reason=end_reason)
    models = settings.setup(log, repository, change.base, folder / "calls", build=make, end_reason=end_reason)
    ask = Ask(models, log, run_id, given.get("task_id"))
    return ReviewGate(log=log, change=change, settings=settings, runner=runner, ask=ask, run_id=run_id, **given)


def last_review(log: Decklog, change: Change, settings: ReviewSettings, feedback_id: str | None) -> Review | None:
    """Return the last review of exactly this commit by these settings."""
    found = log.reviews.latest(change.tree, change.patch)
    is_same = found is not None and (found.head, found.settings, found.feedback_id) == (change.head, settings.digest, feedback_id)
    return found if is_same else None


def _is_final(log: Decklog, review: Review) -> bool:
    """Return whether another review can't change the verdict.

    An unproven change may be proven by now. A pass counts only if the gate signed it.
    """
    return review.verdict is ReviewVerdict.BLOCK or log.reviews.lets_pass(review.id)


def review(log: Decklog, change: Change, *, again: bool = False, feedback_id: str | None = None, **given: Any) -> Review:
    """Review a change in a separate run. A killed review continues from its last stage. `given` are fields of the gate."""
    settings = load_settings(change)
    last = None if again else last_review(log, change, settings, feedback_id)
    if last is not None and _is_final(log, last):
        return last.mark_already()
    with _open_gate(log, change, settings, feedback_id=feedback_id, last=last, **given) as gate:
        found = gate.review()
    log.runs.finish(gate.run_id, status="completed", summary=f"{found.verdict} on tree {found.tree[:12]}")
    return found


def run_stage(log: Decklog, change: Change, number: int, **given: Any) -> StageResult:
    """Run one stage of the gate alone, in the run of the change, without a verdict."""
    with _open_gate(log, change, load_settings(change), **given) as gate:
        return gate.run_stage(number)


@contextmanager
def _open_gate(
    log: Decklog, change: Change, settings: ReviewSettings, *, feedback_id: str | None = None, **given: Any
) -> Iterator[ReviewGate]:
    """Build the gate of a review in its own run and folder."""
    require_consent(change.repository, change.base)
    run_id = _start_run(log, change, settings, feedback_id)
    folder = change.repository.state / "reviews" / ref_part(run_id)
    _remove_folder(folder)
    try:
        yield build_gate(log, change, settings, folder, run_id=run_id, feedback_id=feedback_id, **given)
    finally:
        _remove_folder(folder)


def _start_run(log: Decklog, change: Change, settings: ReviewSettings, feedback_id: str | None) -> str:
    """Start the run of a review, or return its open one."""
    facts = [str(change.repository.common), change.base, change.head, settings.digest, feedback_id]
    identity = hashlib.sha256(to_json(facts).encode()).hexdigest()
    ended = len(log.reviews.find(tree=change.tree, patch=change.patch, limit=200))
    title = (change.messages[-1].partition("\n")[0] if change.messages else "the files as they are")[:_LONGEST_TITLE]
    return log.runs.start(f"{GOAL}{title}", key=f"review:{identity}:{ended}", repo=str(change.repository.folder)).id


def _remove_folder(folder: Path) -> None:
    if folder.exists():
        remove_folder(folder)
