"""Self-edits: one record for each pull request in which an agent changed its own source code."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from decklog.core.errors import Invalid
from decklog.db.where import Where, parse_enum
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.approvals.feedback import FixClass, FixClassLike
from decklog.stores.base import Store
from decklog.stores.checks import check_boolean, check_filled, check_integer, check_texts, check_time

PASSES = ("static", "functional", "arch", "security", "prose", "adversarial", "feedback_binding")


@dataclass(frozen=True, kw_only=True)
class SelfEdit(Record):
    """A change that an agent proposed to its own code."""

    table = "self_edits"
    home = "@desk"

    id: str
    edited_at: datetime
    pr: str
    fix_class: FixClass
    files: list[str]
    before_sha: str
    after_sha: str
    review_passes: dict[str, str]
    confidence: int
    em_review: str
    auto_merged: bool
    feedback_id: str | None = None


class SelfEdits(Store):
    """Records self-edits and lists them. A record is never changed."""

    records = (SelfEdit,)

    @writes
    def record(
        self,
        pr: str,
        fix_class: FixClassLike,
        files: list[str],
        before_sha: str,
        after_sha: str,
        review_passes: dict[str, object],
        confidence: int,
        em_review: str,
        *,
        auto_merged: bool = False,
        feedback_id: str | None = None,
        edited_at: datetime | None = None,
    ) -> SelfEdit:
        """Record a self-edit, with the verdict of each of the seven review passes.

        A known pull request at the same commit returns its record unchanged.
        """
        fields: dict[str, Any] = {
            "pr": check_filled("pr", pr).strip(),
            "fix_class": parse_enum(FixClass, fix_class, "fix_class"),
            "files": check_texts("files", files),
            "before_sha": check_filled("before_sha", before_sha).strip(),
            "after_sha": check_filled("after_sha", after_sha).strip(),
            "review_passes": _passes(review_passes),
            "confidence": check_integer("confidence", confidence, high=100),
            "em_review": check_filled("em_review", em_review).strip(),
            "auto_merged": auto_merged,
            "feedback_id": feedback_id,
            "edited_at": edited_at or self._now(),
        }
        if not fields["files"]:
            raise Invalid("files is a list of at least one path", field="files")
        return self._find_or_add(
            lambda: self._seek_by(SelfEdit, pr=fields["pr"], after_sha=fields["after_sha"]),
            lambda: self._add(SelfEdit, note=f"{fields['fix_class']}: {pr}", id=self._ids.new("edit"), **fields),
        )

    @writes
    def record_document(self, document: dict[str, object]) -> SelfEdit:
        """Record a self-edit from one JSON object, as a line of a self-edit log holds it; unknown keys are refused."""
        required = {"ts", *(field for field in SelfEdit.columns() if field not in ("id", "feedback_id", "edited_at"))}
        unknown = sorted(document.keys() - required - {"feedback_id"})
        missing = sorted(required - document.keys())
        if unknown or missing:
            raise Invalid(
                f"a self-edit has exactly the fields {', '.join(sorted(required))} and maybe feedback_id",
                unknown=unknown,
                missing=missing,
            )
        given: dict[str, Any] = {**document, "edited_at": check_time("ts", document["ts"])}
        del given["ts"]
        check_boolean("auto_merged", given["auto_merged"])
        if not isinstance(given.get("feedback_id"), str | None):
            raise Invalid("feedback_id is a text or null", field="feedback_id")
        return self.record(**given)

    @reads
    def get(self, edit_id: str) -> SelfEdit:
        """Get one self-edit."""
        return self._fetch(SelfEdit, edit_id)

    @reads
    def find(
        self,
        *,
        fix_class: FixClassLike | None = None,
        feedback_id: str | None = None,
        pr: str | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[SelfEdit]:
        """List self-edits, newest first."""
        where = Where(SelfEdit, fix_class=fix_class, feedback_id=feedback_id, pr=pr)
        return self._page(SelfEdit, where, order=("edited_at", "id"), limit=limit, after=after, descending=not oldest_first)


def _passes(value: object) -> dict[str, str]:
    """Check that exactly the seven stages are given, each with a verdict in words."""
    if not isinstance(value, dict) or value.keys() != set(PASSES):
        raise Invalid(f"review_passes holds exactly {', '.join(PASSES)}", field="review_passes", passes=list(PASSES))
    return {name: check_filled(f"review_passes.{name}", value[name]).strip() for name in PASSES}
