"""Self-edits: one record for each pull request in which an agent changed its own source code."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from decklog.core.clock import from_text
from decklog.core.errors import Invalid
from decklog.db.where import Where, enum_of
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.approvals.feedback import FixClass, FixClassLike
from decklog.stores.base import Store

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

        The same pull request at the same commit is one record, which comes back as it is.
        """
        fields: dict[str, Any] = {
            "pr": _words(pr, "pr"),
            "fix_class": enum_of(FixClass, fix_class, "fix_class"),
            "files": _files(files),
            "before_sha": _words(before_sha, "before_sha"),
            "after_sha": _words(after_sha, "after_sha"),
            "review_passes": _passes(review_passes),
            "confidence": _confidence(confidence),
            "em_review": _words(em_review, "em_review"),
            "auto_merged": auto_merged,
            "feedback_id": feedback_id,
            "edited_at": edited_at or self._now(),
        }
        return self._once(
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
        given: dict[str, Any] = {**document, "edited_at": _time(document["ts"])}
        del given["ts"]
        if not isinstance(given["auto_merged"], bool):
            raise Invalid("auto_merged is true or false", field="auto_merged")
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


def _words(value: object, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"a self-edit needs {field} as text", field=field)
    return value.strip()


def _files(value: object) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(path, str) and path.strip() for path in value):
        raise Invalid("files is a list of at least one path", field="files")
    return value


def _passes(value: object) -> dict[str, str]:
    """Check that exactly the seven stages are given, each with a verdict in words."""
    if not isinstance(value, dict) or value.keys() != set(PASSES):
        raise Invalid(f"review_passes holds exactly {', '.join(PASSES)}", field="review_passes", passes=list(PASSES))
    return {name: _words(value[name], f"review_passes.{name}") for name in PASSES}


def _confidence(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 100:
        raise Invalid(f"confidence is a whole number from 0 to 100, not {value!r}", field="confidence")
    return value


def _time(value: object) -> datetime:
    try:
        return from_text(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise Invalid(f"ts is a time such as 2026-11-15T08:30:00Z, not {value!r}", field="ts") from None
