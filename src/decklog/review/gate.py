"""The gate: seven passes over one change, the free ones first, and one verdict that is bound to its tree and its patch."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.checks.running import Runner
from decklog.records.values import to_json
from decklog.review.asking import Asked
from decklog.review.change import Change
from decklog.review.critique import kept_for_review
from decklog.review.passes.adversarial import adversarial
from decklog.review.passes.architectural import architectural
from decklog.review.passes.feedback_binding import feedback_binding
from decklog.review.passes.functional import functional
from decklog.review.passes.prose import prose
from decklog.review.passes.security import security
from decklog.review.passes.static import static
from decklog.review.proof.judging import Proof
from decklog.review.proof.proving import Proving
from decklog.review.result import ENDING, ORDER, PassResult, Status, from_dict, judge, skipped
from decklog.review.settings import ReviewSettings

if TYPE_CHECKING:
    from decklog.conductor.settings.check import Check
    from decklog.log import Decklog
    from decklog.stores.workflow.reviews import Review


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Reviews one change for one run. `proof` gives what is known already of how a test shows it, `last` is the review before it
    of the same change by the same rules.
    """

    log: "Decklog"
    change: Change
    settings: ReviewSettings
    runner: Runner
    ask: Asked
    run_id: str
    task_id: str | None = None
    fence: int = 0
    feedback_id: str | None = None
    is_mending: bool = False
    say: Callable[[PassResult], object] = lambda _: None
    proof: Callable[[Change], Proof] | None = None
    last: "Review | None" = None

    def review(self) -> "Review":
        """Take the change through the passes, and put the verdict on record."""
        results = list(self._results())
        rules = self.settings.rules
        judged = judge(results, block_below=rules.block_below, change_below=rules.change_below)
        change = self.change
        kept = [one.as_dict() for one in judged.results]
        findings: list[object] = [{"pass": one["pass"], **finding} for one in kept for finding in one["findings"]]
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
            passes=list(kept),
            findings=findings,
            task_id=self.task_id,
            feedback_id=self.feedback_id,
        )

    def one(self, number: int) -> PassResult:
        """Run one pass alone; it makes no verdict."""
        result = self._passes()[number]()
        self._keep(result)
        return result

    # The passes

    def _results(self) -> Iterator[PassResult]:
        passes, known = self._passes(), self._known()
        ended = ""
        for number in ORDER:
            result = skipped(number, ended) if ended else known.get(number) or passes[number]()
            if not ended and number not in known:
                self._keep(result)
            self.say(result)
            if number in ENDING and result.status is Status.FAIL:
                ended = f"pass {number} {result.name} failed"
            yield result

    def _passes(self) -> dict[int, Callable[[], PassResult]]:
        change, settings, ask = self.change, self.settings, self.ask
        rules = settings.rules
        return {
            1: lambda: static(change, settings, self._examiner(settings.static_checks)),
            2: lambda: functional(change, settings, self._examiner(settings.functional_checks), self.runner, self._mark),
            3: lambda: architectural(change, settings, ask),
            4: lambda: security(change, tests=settings.tests, samples=rules.samples),
            5: lambda: prose(change, rules, ask, tests=settings.tests),
            6: lambda: adversarial(change, rules, ask, suspected=self._suspected()),
            7: self._bound,
        }

    def _suspected(self) -> str:
        """Give what critique kept while the change was made, if it was made in this run."""
        return kept_for_review(self.log, self.run_id, self.task_id)

    @property
    def _mark(self) -> str:
        return f"{self.run_id}:{self.task_id or 'review'}:{self.fence}:measured"

    def _bound(self) -> PassResult:
        given = {"feedback_id": self.feedback_id, "is_mending": self.is_mending}
        return feedback_binding(self.log, self.change, self.proof or self._proven, self.ask, **given)  # type: ignore[arg-type]

    def _proven(self, change: Change) -> Proof:
        return Proving(self.log, self.settings, self.runner, self.run_id, lambda _: None).prove(change)

    def _examiner(self, checks: "tuple[Check, ...]") -> Examiner:
        configuration = self.settings.configuration(checks)
        return Examiner(self.log, self.run_id, configuration, self.runner, task_id=self.task_id, fence=self.fence)

    # What is on record already

    @property
    def _identity(self) -> str:
        """Name what a result counts for: the same change by the same rules, about the same feedback."""
        facts = [self.change.base, self.change.tree, self.change.patch, self.change.message, self.settings.digest]
        return hashlib.sha256(to_json([*facts, self.feedback_id, self.is_mending]).encode()).hexdigest()

    def _keep(self, result: PassResult) -> None:
        self.log.reviews.keep_pass(self.run_id, self._identity, result.number, result.as_dict(), task_id=self.task_id)

    def _known(self) -> dict[int, PassResult]:
        """Find the results that a gate which was killed, or could not prove all, came to: what said something has said it."""
        found: dict[int, PassResult] = {}
        is_known = self.last is not None and self.log.reviews.can_rely_on(self.last)
        earlier: list[Any] = self.last.passes if self.last is not None and is_known else []
        for kept in self.log.reviews.passes(self.run_id, self._identity):
            told: Any = kept.result
            found.setdefault(kept.number, from_dict(told))
        for one in earlier:
            found.setdefault(one["number"], from_dict(one))
        return {number: one for number, one in found.items() if one.status in (Status.PASS, Status.FAIL)}
