"""The gate: seven stages over one change, those without a model first, and one verdict for its tree and patch."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.checks.running import Runner
from decklog.records.values import to_json
from decklog.review.change import Change
from decklog.review.critique import kept_for_review
from decklog.review.deterministic import run_security, run_static
from decklog.review.functional import Functional
from decklog.review.linters import Linters
from decklog.review.model_stages import Ask, run_adversarial, run_architectural, run_feedback_binding, run_prose
from decklog.review.proof.judging import FixProof
from decklog.review.proof.proving import Proving
from decklog.review.result import ENDING, ORDER, StageResult, StageStatus, from_dict, judge, skip
from decklog.review.settings import ReviewSettings

if TYPE_CHECKING:
    from decklog.conductor.settings import Check
    from decklog.log import Decklog
    from decklog.stores.workflow.reviews import Review


@dataclass(frozen=True, kw_only=True)
class ReviewGate:
    """Reviews one change for one run.

    `proof` returns a proof that is already known; `last` is the previous review of the same change by the same settings.
    """

    log: "Decklog"
    change: Change
    settings: ReviewSettings
    runner: Runner
    ask: Ask
    run_id: str
    task_id: str | None = None
    fence: int = 0
    feedback_id: str | None = None
    is_mending: bool = False
    on_stage: Callable[[StageResult], object] = lambda _: None
    proof: Callable[[Change], FixProof] | None = None
    last: "Review | None" = None

    def review(self) -> "Review":
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
        """Run one stage alone; it makes no verdict."""
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
        return {
            1: lambda: run_static(change, settings, self._examiner(settings.static_checks), self._linters.run),
            2: lambda: self._functional().run(),
            3: lambda: run_architectural(change, settings, ask),
            4: lambda: run_security(change, settings, self._linters.run),
            5: lambda: run_prose(change, settings.rules, ask),
            6: lambda: run_adversarial(change, settings.rules, ask, suspected=self._suspected()),
            7: self._feedback_binding,
        }

    @cached_property
    def _linters(self) -> Linters:
        return Linters(self.runner, self.change, self.settings, f"{self._mark}:linters")

    def _functional(self) -> Functional:
        examiner = self._examiner(self.settings.functional_checks)
        return Functional(
            change=self.change, settings=self.settings, examiner=examiner, runner=self.runner, mark=f"{self._mark}:measured"
        )

    def _suspected(self) -> str:
        """Return what critique suspected while the change was made in this run."""
        return kept_for_review(self.log, self.run_id, self.task_id)

    @property
    def _mark(self) -> str:
        return f"{self.run_id}:{self.task_id or 'review'}:{self.fence}"

    def _feedback_binding(self) -> StageResult:
        prove, feedback_id = self.proof or self._prove, self.feedback_id
        return run_feedback_binding(self.log, self.change, prove, self.ask, feedback_id=feedback_id, is_mending=self.is_mending)

    def _prove(self, change: Change) -> FixProof:
        return Proving(self.log, self.settings, self.runner, self.run_id, lambda _: None).prove(change)

    def _examiner(self, checks: "tuple[Check, ...]") -> Examiner:
        configuration = self.settings.configuration(checks)
        return Examiner(self.log, self.run_id, configuration, self.runner, task_id=self.task_id, fence=self.fence)

    # Results on record

    @property
    def _identity(self) -> str:
        """The digest of what a result counts for: the change, the settings and the feedback."""
        facts = [self.change.base, self.change.tree, self.change.patch, self.change.message, self.settings.digest]
        return hashlib.sha256(to_json([*facts, self.feedback_id, self.is_mending]).encode()).hexdigest()

    def _record(self, result: StageResult) -> None:
        self.log.reviews.keep_pass(self.run_id, self._identity, result.number, result.as_dict(), task_id=self.task_id)

    def _known_results(self) -> dict[int, StageResult]:
        """Return the results of a gate that was killed or could not prove everything; failed and passed ones stay."""
        found: dict[int, StageResult] = {}
        is_reliable = self.last is not None and self.log.reviews.can_rely_on(self.last)
        earlier: list[Any] = self.last.passes if self.last is not None and is_reliable else []
        for one in self.log.reviews.passes(self.run_id, self._identity):
            stored: Any = one.result
            found.setdefault(one.number, from_dict(stored))
        for stored in earlier:
            found.setdefault(stored["number"], from_dict(stored))
        return {number: one for number, one in found.items() if one.status in (StageStatus.PASS, StageStatus.FAIL)}
