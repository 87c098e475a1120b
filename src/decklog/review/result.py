"""The one form of result that all passes have, and the verdict and confidence that follow from seven of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from decklog.stores.workflow.reviews import Review, ReviewVerdict

NAMES = ("static", "functional", "architectural", "security", "prose", "adversarial", "feedback-binding")
# Free of charge, and so first; whoever fails one of the first three is not shown to a model.
ENDING = (1, 2, 4)
ORDER = (1, 2, 4, 5, 3, 6, 7)


class Severity(StrEnum):
    """How bad a finding is. A `question` is for a person: until one has answered, the change is unproven."""

    BLOCKING = "blocking"
    SIGNIFICANT = "significant"
    QUESTION = "question"
    MINOR = "minor"
    INFO = "info"


class Status(StrEnum):
    """How a pass ended. Not checked is `unproven`, and never a pass."""

    PASS = "pass"
    FAIL = "fail"
    UNPROVEN = "unproven"
    SKIPPED = "skipped"


# What whoever mends a change, or a person, is told of it.
TOLD = (Severity.BLOCKING, Severity.SIGNIFICANT, Severity.QUESTION)
_COSTS = {Severity.SIGNIFICANT: 15, Severity.MINOR: 3}
_MOST_FOR_MINOR = 15


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that a pass found: what, how bad, where, and what mends it."""

    severity: Severity
    kind: str
    text: str
    file: str | None = None
    line: int | None = None
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class PassResult:
    """What one pass came to. `score` is a model's own; `why` says what could not be checked, or why it was skipped."""

    number: int
    status: Status
    findings: tuple[Finding, ...] = ()
    score: int | None = None
    why: str = ""
    by: tuple[str, ...] = ()
    is_weather: bool = False

    @property
    def name(self) -> str:
        return NAMES[self.number - 1]

    def as_dict(self) -> dict[str, Any]:
        """Spell it as it is kept and shown."""
        return {
            "pass": self.number,
            "name": self.name,
            **asdict(self),
            "by": list(self.by),
            "findings": list(map(asdict, self.findings)),
        }


def from_dict(kept: Mapping[str, Any]) -> PassResult:
    """Read a result as it was kept."""
    findings = tuple(Finding(**{**one, "severity": Severity(one["severity"])}) for one in kept["findings"])
    return PassResult(
        number=kept["number"],
        status=Status(kept["status"]),
        findings=findings,
        score=kept["score"],
        why=kept["why"],
        by=tuple(kept["by"]),
        is_weather=kept["is_weather"],
    )


def passed(
    number: int,
    findings: Iterable[Finding] = (),
    *,
    unproven: str = "",
    score: int | None = None,
    by: Iterable[str] = (),
    is_weather: bool = False,
) -> PassResult:
    """Give the result that follows from findings: bad ones fail, a question or something unchecked is unproven."""
    found = tuple(findings)
    severities = {finding.severity for finding in found}
    if severities & {Severity.BLOCKING, Severity.SIGNIFICANT}:
        status = Status.FAIL
    elif unproven or Severity.QUESTION in severities:
        status = Status.UNPROVEN
    else:
        status = Status.PASS
    why = unproven or ("a person is asked" if status is Status.UNPROVEN else "")
    return PassResult(number=number, status=status, findings=found, score=score, why=why, by=tuple(by), is_weather=is_weather)


def skipped(number: int, why: str) -> PassResult:
    """Give the result of a pass that was not to be run."""
    return PassResult(number=number, status=Status.SKIPPED, why=why)


@dataclass(frozen=True)
class Judgement:
    """What seven results come to."""

    verdict: ReviewVerdict
    confidence: int | None
    reasons: tuple[str, ...]
    results: tuple[PassResult, ...] = field(default=())


def judge(results: Sequence[PassResult], *, block_below: int, change_below: int) -> Judgement:
    """Make one verdict of seven results: the worst counts, and what is not known counts as worse than what is to be changed."""
    failing = [one for one in results if one.status is Status.FAIL]
    ending = [one for one in failing if one.number in ENDING or _has(one, Severity.BLOCKING)]
    low = next((one.score for one in results if one.score is not None), None)
    unproven = [one for one in results if one.status is Status.UNPROVEN]
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
    return Judgement(verdict, confidence, tuple(reasons), ordered)


def _has(result: PassResult, severity: Severity) -> bool:
    return any(finding.severity is severity for finding in result.findings)


def _confidence(results: Sequence[PassResult], verdict: ReviewVerdict, score: int | None) -> tuple[int | None, list[str]]:
    """Say how sure a verdict that lets a change through is, and how that comes about; one that holds it has no such figure."""
    told = [f"pass {one.number} {one.name}: {one.status}{f' ({one.why})' if one.why else ''}" for one in results]
    if verdict.holds:
        return None, [*told, "no confidence: it is not let through"]
    value, reasons = (100, []) if score is None else (score, [f"{score}: score of the adversarial review"])
    if score is None:
        value, reasons = 75, ["75: at most this much without an adversarial review"]
    counts = {severity: sum(f.severity is severity for one in results for f in one.findings) for severity in _COSTS}
    for severity, count in counts.items():
        cost = min(count * _COSTS[severity], _MOST_FOR_MINOR if severity is Severity.MINOR else 100)
        if cost:
            value, reasons = value - cost, [*reasons, f"-{cost}: {count} {severity} finding{'s' if count > 1 else ''}"]
    return max(0, value), [*told, *reasons]


def is_weather(review: Review) -> bool:
    """Say whether a model of a review could not be asked, for a reason that passes by itself."""
    passes: list[Any] = review.passes
    return any(one["is_weather"] for one in passes)
