"""The proposal: a lesson that what happened speaks for, the entries that show it, and how sure that makes it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from decklog.records.record import Record


class ProposalKind(StrEnum):
    """From what a lesson is proposed."""

    CHECK = "check"
    ATTEMPT = "attempt"
    BLOCKER = "blocker"
    FIX = "fix"
    REVIEW = "review"
    CORRECTION = "correction"


ProposalKindLike = ProposalKind | Literal["check", "attempt", "blocker", "fix", "review", "correction"]


class ProposalState(StrEnum):
    """What became of it: `gathering` has too little proof to be shown, and `known` says what a lesson says already."""

    GATHERING = "gathering"
    OPEN = "open"
    KNOWN = "known"
    ACCEPTED = "accepted"
    DISMISSED = "dismissed"


ProposalStateLike = ProposalState | Literal["gathering", "open", "known", "accepted", "dismissed"]


class ShownBy(StrEnum):
    """What shows that a lesson is true, each time it was seen."""

    SIGNED = "signed"
    RED_THEN_GREEN = "red-then-green"
    TESTED = "tested"
    RECOGNISED = "recognised"
    CHECKED = "checked"
    UNPROVEN = "unproven"
    STOPPED = "stopped"
    SAID = "said"


# How sure one sighting makes a lesson, by what shows it. What an agent alone said is not enough to be proposed.
_WORTH = {
    ShownBy.SIGNED: (80, "the manager signed it"),
    ShownBy.RED_THEN_GREEN: (70, "the same check was red, then green"),
    ShownBy.TESTED: (65, "a regression test holds it"),
    ShownBy.RECOGNISED: (65, "said by the manager or a reviewer"),
    ShownBy.CHECKED: (60, "a check passed afterwards"),
    ShownBy.UNPROVEN: (50, "said by somebody whose name nothing proves"),
    ShownBy.STOPPED: (30, "work was stopped by it"),
    ShownBy.SAID: (30, "a worker said so"),
}
_EACH_FURTHER, _SUREST = 20, 95
ENOUGH = 50
# What is seen more often than this is no surer.
MOST_EVIDENCE = 20


@dataclass(frozen=True)
class Observation:
    """One time that something showed a lesson. `about` is what makes two of them the same."""

    kind: ProposalKind
    topic: str
    about: str
    body: str
    proof: ShownBy
    refs: "tuple[str, ...]"
    work: str
    by: str | None = None
    payload: "dict[str, Any]" = field(default_factory=dict)
    run_id: str | None = None
    task_id: str | None = None

    def evidence(self) -> dict[str, Any]:
        """Tell it as one piece of the evidence of a proposal."""
        told = {"proof": self.proof.value, "refs": list(self.refs), "work": self.work, "by": self.by}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Proposal(Record):
    """A lesson that is proposed. `evidence` names the entries that show it, and `because` explains its confidence."""

    table = "proposals"
    home = "@memory"

    id: str
    kind: ProposalKind
    subject: str
    topic: str
    body: str
    payload: dict[str, object] = field(default_factory=dict)
    state: ProposalState
    confidence: int
    because: str
    evidence: list[dict[str, object]] = field(default_factory=list)
    run_id: str | None = None
    task_id: str | None = None
    lesson_id: str | None = None
    proposed_at: datetime
    seen_at: datetime
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None

    @property
    def refs(self) -> list[str]:
        """The entries that show it, in the order in which they were seen."""
        named: list[Any] = [ref for one in self.evidence for ref in one["refs"]]  # type: ignore[attr-defined]
        return list(dict.fromkeys(named))


def confidence_of(evidence: Sequence[dict[str, Any]]) -> int:
    """Return how sure some evidence makes a lesson: by its strongest piece, and by how often it was seen independently."""
    return min(max(_WORTH[ShownBy(one["proof"])][0] for one in evidence) + _EACH_FURTHER * (_independent(evidence) - 1), _SUREST)


def _independent(evidence: Sequence[dict[str, Any]]) -> int:
    """Count what was seen independently: in other work or by others; of what workers only said, both must differ."""
    works, sayers = {one["work"] for one in evidence}, {one.get("by") for one in evidence}
    is_only_said = all(one["proof"] == ShownBy.SAID for one in evidence)
    return min(len(works), len(sayers)) if is_only_said else max(len(works), len(sayers))


def because(evidence: Sequence[dict[str, Any]]) -> str:
    """Say in words why a lesson is as sure as it is."""
    strongest = max(evidence, key=lambda one: _WORTH[ShownBy(one["proof"])][0])
    works = len({one["work"] for one in evidence})
    return _WORTH[ShownBy(strongest["proof"])][1] + (f"; seen in {works} pieces of work" if works > 1 else "")


def is_computed(evidence: Sequence[dict[str, Any]]) -> bool:
    """Return whether the proof needs nobody's word: a check was red and then green, and that in two pieces of work."""
    return len({one["work"] for one in evidence if one["proof"] == ShownBy.RED_THEN_GREEN}) > 1
