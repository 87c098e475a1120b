"""Reviews: results of the review gate for a change, bound to its tree and its patch."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeVar

from decklog.db.where import Where, parse_enum
from decklog.records.fork_rules import ForkRule, Refer
from decklog.records.operations import reads, within_lease
from decklog.records.record import Page, Record
from decklog.records.values import to_json
from decklog.stores.base import Store, StoreParts
from decklog.stores.checks import check_filled


class Grants(Protocol):
    """Approvals of people; implemented by the approvals store."""

    def granted_for(self, run_id: str, digest: str) -> Any: ...


class ReviewVerdict(StrEnum):
    """The result of the review gate. `block` and `unproven` prevent publishing."""

    PASS = "pass"
    REQUEST_CHANGES = "request-changes"
    BLOCK = "block"
    UNPROVEN = "unproven"

    @property
    def holds(self) -> bool:
        """Whether nothing may be published."""
        return self in (ReviewVerdict.BLOCK, ReviewVerdict.UNPROVEN)


ReviewVerdictLike = ReviewVerdict | Literal["pass", "request-changes", "block", "unproven"]


@dataclass(frozen=True, kw_only=True)
class Review(Record):
    """The result of the gate for one change. `patch` is git's stable id of what it changes, `settings` the digest of the rules.

    `passes` has the seven results in their order; `reasons` explain the confidence.
    """

    table = "reviews"
    is_work = True
    fork = ForkRule(
        "A review is about a patch, wherever it is met.", fields={"task_id": Refer("tasks")}, same_ids=("feedback_id",)
    )

    id: str
    run_id: str
    base: str
    head: str
    tree: str
    patch: str
    settings: str
    verdict: ReviewVerdict
    created_at: datetime
    task_id: str | None = None
    confidence: int | None = None
    reasons: list[object] = field(default_factory=list)
    passes: list[object] = field(default_factory=list)
    findings: list[object] = field(default_factory=list)
    feedback_id: str | None = None

    @property
    def about(self) -> dict[str, str]:
        """The subject of an approval to let it pass: exactly this change, with exactly this verdict."""
        return {"publish": self.tree, "patch": self.patch, "verdict": self.verdict.value, "review": self.id}


@dataclass(frozen=True, kw_only=True)
class ReviewPass(Record):
    """What one pass came to. `counts_for` names the change, the rules, and what it answers."""

    table = "review_passes"
    is_work = True
    fork = ForkRule("A stage of a review counts for its patch, wherever it is met.", fields={"task_id": Refer("tasks")})

    id: str
    run_id: str
    counts_for: str
    number: int
    result: object
    created_at: datetime
    task_id: str | None = None


R = TypeVar("R", Review, ReviewPass)


def _digest(record: Review | ReviewPass) -> str:
    details = {name: value for name, value in record.as_dict().items() if name != "already"}
    return hashlib.sha256(to_json(details).encode()).hexdigest()


_NEWEST = "created_at desc, id desc"


class Reviews(Store):
    """Stores results of the review gate, which `decklog review` runs."""

    records = (Review, ReviewPass)

    def __init__(self, parts: StoreParts, *, approvals: Callable[[], Grants]) -> None:
        super().__init__(parts)
        self._approvals = approvals
        # Digests of the reviews and stages that this process recorded, by id.
        self._made: dict[str, str] = {}

    def record(
        self,
        run_id: str,
        verdict: ReviewVerdict,
        *,
        base: str,
        head: str,
        tree: str,
        patch: str,
        settings: str,
        confidence: int | None = None,
        reasons: list[object] | None = None,
        passes: list[object] | None = None,
        findings: list[object] | None = None,
        task_id: str | None = None,
        feedback_id: str | None = None,
    ) -> Review:
        """Record a result of the review gate. No interface offers this: a verdict comes only from running the gate.

        Anybody who can open the log can call it. If an owner is registered, `lets_pass` relies on it only in the process that
        recorded it, or with the owner's signed approval.
        """
        bound = {"base": base, "head": head, "tree": tree, "patch": patch, "settings": settings}
        for name, value in bound.items():
            check_filled(name, value)
        chosen = parse_enum(ReviewVerdict, verdict, "verdict")
        whose = {"run_id": run_id, "task_id": task_id, "feedback_id": feedback_id}
        details = {"reasons": reasons or [], "passes": passes or [], "findings": findings or [], "confidence": confidence}
        given: dict[str, Any] = {**bound, **whose, **details, "verdict": chosen}

        def add() -> Review:
            note = f"{chosen} on {tree[:12]}"
            return self._add(Review, note=note, id=self._ids.new("review"), created_at=self._now(), **given)

        return self._remembered(within_lease(self._db, add))

    def keep_pass(self, run_id: str, counts_for: str, number: int, result: object, *, task_id: str | None = None) -> ReviewPass:
        """Store the result of a stage, for a gate that continues after a kill. As for verdicts, no interface offers it."""

        def add() -> ReviewPass:
            return self._add(
                ReviewPass,
                note=f"pass {number}",
                id=self._ids.new("pass"),
                run_id=run_id,
                task_id=task_id,
                counts_for=counts_for,
                number=number,
                result=result,
                created_at=self._now(),
            )

        return self._remembered(within_lease(self._db, add))

    def _remembered(self, made: R) -> R:
        self._made[made.id] = _digest(made)
        return made

    def can_rely_on(self, record: Review | ReviewPass) -> bool:
        """Return whether a result is certainly the gate's: this process recorded it, or no owner is registered.

        Results are not signed, so another process may have written anything.
        """
        is_own = self._made.get(record.id) == _digest(record)
        return is_own or not self._db.read(lambda: self._proofs().is_needed)

    @reads
    def passes(self, run_id: str, counts_for: str) -> list[ReviewPass]:
        """List what the passes of a review came to, newest first; with an owner bound, those that this process recorded."""
        found = self._select_by(ReviewPass, order=_NEWEST, run_id=run_id, counts_for=counts_for)
        return [one for one in found if self.can_rely_on(one)]

    @reads
    def latest(self, tree: str, patch: str) -> Review | None:
        """Get the newest review of exactly this tree and this patch, in any run, or null."""
        return self._seek_by(Review, order=_NEWEST, tree=tree, patch=patch)

    @reads
    def is_overridden(self, review_id: str) -> bool:
        """Check whether a person approved exactly this change and verdict, with a reason.

        Where an owner is bound, only what the owner proved counts.
        """
        review = self._fetch(Review, review_id)
        digest = hashlib.sha256(to_json(review.about).encode()).hexdigest()
        granted = self._approvals().granted_for(review.run_id, digest)
        return granted is not None and bool((granted.rationale or "").strip())

    @reads
    def lets_pass(self, review_id: str) -> bool:
        """Check whether a review lets its change be published: the gate passed it, or a person approved exactly it.

        Where an owner is bound, the gate's word counts in the process that recorded it. Elsewhere the owner's signed yes does.
        """
        review = self._fetch(Review, review_id)
        return (not review.verdict.holds and self.can_rely_on(review)) or self.is_overridden(review_id)

    @reads
    def holding(self, feedback_id: str) -> Review | None:
        """Get the review that prevents publishing the answer to a piece of feedback, or null.

        The newest counts, unless a person let it pass.
        """
        found = self._seek_by(Review, order=_NEWEST, feedback_id=feedback_id)
        return found if found is not None and not self.lets_pass(found.id) else None

    @reads
    def get(self, review_id: str) -> Review:
        """Get a review."""
        return self._fetch(Review, review_id)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        tree: str | None = None,
        patch: str | None = None,
        verdict: ReviewVerdictLike | None = None,
        task_id: str | None = None,
        feedback_id: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Review]:
        """List reviews, newest first."""
        where = Where(Review, run_id=run_id, tree=tree, patch=patch, verdict=verdict, task_id=task_id, feedback_id=feedback_id)
        return self._page(Review, where, order=("created_at", "id"), limit=limit, after=after, descending=True)
