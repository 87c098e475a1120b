"""The result of a review stage, and the verdict and confidence computed from all seven."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from decklog.stores.workflow.reviews import Review, ReviewVerdict

STAGES = ("static", "functional", "architectural", "security", "prose", "adversarial", "feedback-binding")
# Stages without a model come first. A failure of one of these ends the review.
ENDING = (1, 2, 4)
ORDER = (1, 2, 4, 5, 3, 6, 7)


class Severity(StrEnum):
    """The severity of a finding. The change is unproven until a person answers a `question`."""

    BLOCKING = "blocking"
    SIGNIFICANT = "significant"
    QUESTION = "question"
    MINOR = "minor"
    INFO = "info"


class StageStatus(StrEnum):
    """The outcome of a stage. Without a check it is `unproven`, never `pass`."""

    PASS = "pass"
    FAIL = "fail"
    UNPROVEN = "unproven"
    SKIPPED = "skipped"


# Findings that need an action.
ACTIONABLE = (Severity.BLOCKING, Severity.SIGNIFICANT, Severity.QUESTION)
_COSTS = {Severity.SIGNIFICANT: 15, Severity.MINOR: 3}
_MOST_FOR_MINOR = 15


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding of a stage: its text, severity, location and remedy."""

    severity: Severity
    kind: str
    text: str
    file: str | None = None
    line: int | None = None
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """The result of one stage. `score` is from a model; `why` is why the stage is unproven or skipped."""

    number: int
    status: StageStatus
    findings: tuple[Finding, ...] = ()
    score: int | None = None
    why: str = ""
    by: tuple[str, ...] = ()
    is_outage: bool = False

    @property
    def name(self) -> str:
        return STAGES[self.number - 1]

    def as_dict(self) -> dict[str, Any]:
        """Return the form that is stored and shown."""
        return {
            "pass": self.number,
            "name": self.name,
            "number": self.number,
            "status": self.status,
            "findings": list(map(asdict, self.findings)),
            "score": self.score,
            "why": self.why,
            "by": list(self.by),
            "is_outage": self.is_outage,
        }


def from_dict(stored: Mapping[str, Any]) -> StageResult:
    """Build a result from its stored form."""
    findings = tuple(Finding(**{**one, "severity": Severity(one["severity"])}) for one in stored["findings"])
    return StageResult(
        number=stored["number"],
        status=StageStatus(stored["status"]),
        findings=findings,
        score=stored["score"],
        why=stored["why"],
        by=tuple(stored["by"]),
        is_outage=stored["is_outage"],
    )


def conclude(
    number: int,
    findings: Iterable[Finding] = (),
    *,
    unproven: str = "",
    note: str = "",
    score: int | None = None,
    by: Iterable[str] = (),
    is_outage: bool = False,
) -> StageResult:
    """Build the result from findings: severe ones fail the stage, questions and missing checks make it unproven."""
    found = tuple(findings)
    severities = {finding.severity for finding in found}
    if severities & {Severity.BLOCKING, Severity.SIGNIFICANT}:
        status = StageStatus.FAIL
    elif unproven or Severity.QUESTION in severities:
        status = StageStatus.UNPROVEN
    else:
        status = StageStatus.PASS
    why = unproven or ("a person has to decide" if status is StageStatus.UNPROVEN else "")
    return StageResult(
        number=number,
        status=status,
        findings=found,
        score=score,
        why="; ".join(part for part in (why, note) if part),
        by=tuple(by),
        is_outage=is_outage,
    )


def skip(number: int, why: str) -> StageResult:
    """Build the result of a stage that is not run."""
    return StageResult(number=number, status=StageStatus.SKIPPED, why=why)


@dataclass(frozen=True)
class GateVerdict:
    """The verdict on seven results, with the reasons for its confidence."""

    verdict: ReviewVerdict
    confidence: int | None
    reasons: tuple[str, ...]
    results: tuple[StageResult, ...] = field(default=())


def judge(results: Sequence[StageResult], *, block_below: int, change_below: int) -> GateVerdict:
    """Return the verdict of seven results: the worst counts, and unproven is worse than request-changes."""
    failing = [one for one in results if one.status is StageStatus.FAIL]
    blocking = [one for one in failing if any(finding.severity is Severity.BLOCKING for finding in one.findings)]
    ending = blocking or [one for one in failing if one.number in ENDING]
    low = next((one.score for one in results if one.score is not None), None)
    unproven = [one for one in results if one.status is StageStatus.UNPROVEN]
    if ending or (low is not None and low < block_below):
        verdict = ReviewVerdict.BLOCK
    elif unproven:
        verdict = ReviewVerdict.UNPROVEN
    elif failing or (low is not None and low < change_below):
        verdict = ReviewVerdict.REQUEST_CHANGES
    else:
        verdict = ReviewVerdict.PASS
    confidence, reasons = _confidence(results, verdict, low)
    ordered = tuple(sorted(results, key=lambda one: one.number))
    return GateVerdict(verdict, confidence, tuple(reasons), ordered)


def _confidence(results: Sequence[StageResult], verdict: ReviewVerdict, score: int | None) -> tuple[int | None, list[str]]:
    """Return the confidence in a passing verdict, with each step of its computation."""
    outcomes = [f"stage {one.number} {one.name}: {one.status}{f' ({one.why})' if one.why else ''}" for one in results]
    if verdict.holds:
        return None, [*outcomes, "no confidence: the change is not let through"]
    value, reasons = 75, ["75: at most this much without an adversarial review"]
    if score is not None:
        value, reasons = score, [f"{score}: score of the adversarial review"]
    for severity, cost in _COSTS.items():
        count = sum(finding.severity is severity for one in results for finding in one.findings)
        total = min(count * cost, _MOST_FOR_MINOR if severity is Severity.MINOR else 100)
        if total:
            value, reasons = value - total, [*reasons, f"-{total}: {count} {severity} finding{'s' if count > 1 else ''}"]
    return max(0, value), [*outcomes, *reasons]


def had_outage(review: Review) -> bool:
    """Return whether a model of a review was unavailable because of an outage."""
    stages: list[Any] = review.passes
    return any(one["is_outage"] for one in stages)
