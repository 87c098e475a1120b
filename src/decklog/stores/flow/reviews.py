"""Reviews: what the gate said of a change, bound to its tree and its patch."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from decklog.db.where import Where, enum_of
from decklog.errors import Invalid
from decklog.operations import reads, within_lease
from decklog.records import Page, Record
from decklog.stores.base import Store


class ReviewVerdict(StrEnum):
    """What the gate says. `block` and `unproven` keep a change from being published."""

    PASS = "pass"
    REQUEST_CHANGES = "request-changes"
    BLOCK = "block"
    UNPROVEN = "unproven"

    @property
    def holds(self) -> bool:
        """Whether nothing may be published."""
        return self in (ReviewVerdict.BLOCK, ReviewVerdict.UNPROVEN)


@dataclass(frozen=True, kw_only=True)
class Review(Record):
    """What the gate said of one change. `patch` is git's stable id of what it changes, `settings` the digest of the rules.

    `passes` has the seven results in their order; `reasons` say how the confidence came about.
    """

    table = "reviews"
    references = (("task_id", "tasks"),)

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


class Reviews(Store):
    """Keeps what the gate said of changes; `decklog review` has it say so."""

    records = (Review,)

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
        """Record what the gate said. No surface offers this: a verdict comes from running the gate, and from nobody's word."""
        given: dict[str, Any] = {"base": base, "head": head, "tree": tree, "patch": patch, "settings": settings}
        for name, value in given.items():
            if not value.strip():
                raise Invalid(f"a review needs its {name}", field=name)
        said = enum_of(ReviewVerdict, verdict, "verdict")
        lists: dict[str, Any] = {"reasons": reasons or [], "passes": passes or [], "findings": findings or []}

        def add() -> Review:
            return self._add(
                Review,
                note=f"{said} on {tree[:12]}",
                id=self._ids.new("review"),
                run_id=run_id,
                task_id=task_id,
                verdict=said,
                confidence=confidence,
                feedback_id=feedback_id,
                created_at=self._now(),
                **given,
                **lists,
            )

        return within_lease(self._db, add)

    @reads
    def latest(self, tree: str, patch: str) -> Review | None:
        """Get the newest review of exactly this tree and this patch, in whatever run; none is null."""
        found = self._select(
            Review,
            "select * from reviews where tree = :tree and patch = :patch order by created_at desc, id desc limit 1",
            tree=tree,
            patch=patch,
        )
        return found[0] if found else None

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
        verdict: ReviewVerdict | None = None,
        task_id: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Review]:
        """List reviews, newest first."""
        where = Where(Review)
        said = verdict and enum_of(ReviewVerdict, verdict, "verdict")
        where.equal(run_id=run_id, tree=tree, patch=patch, verdict=said, task_id=task_id)
        return self._page(Review, where, order=("created_at", "id"), limit=limit, after=after, descending=True)
