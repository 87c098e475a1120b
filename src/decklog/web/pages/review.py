"""One review: the review gate's result for a change, stage by stage, and each finding with its location and fix."""

from typing import Any

from decklog.web.site import PageView, SiteRequest, command

# The most severe first; an unknown severity is last.
SEVERITIES = ("blocking", "significant", "question", "minor", "info")
_PASS: dict[str, Any] = {"name": "", "status": "", "why": "", "score": None, "by": [], "findings": []}
_FINDING: dict[str, Any] = {"pass": None, "severity": "", "kind": "", "text": "", "file": None, "line": None, "remedy": ""}


def read(asked: SiteRequest) -> PageView:
    """Load a review with all findings of its stages."""
    review = asked.log.reviews.get(asked.path["review_id"])
    passes = [_all_fields(_PASS, one) for one in review.passes]
    findings = sorted((_all_fields(_FINDING, one) for one in review.findings), key=lambda one: _rank(one["severity"]))
    names = asked.log.overview.names(run_ids=[review.run_id], task_ids=[review.task_id] if review.task_id else [])
    shown = {"review": review, "passes": passes, "findings": findings, "names": names}
    said = command("reviews", "show", review.id)
    return PageView("review.html", f"Review: {review.verdict.value}", said, review, shown, place="runs")


def _all_fields(fields: dict[str, Any], kept: object) -> dict[str, Any]:
    """Return a stored item with all fields. An item that is no object becomes a text."""
    if not isinstance(kept, dict):
        return {**fields, "text": str(kept)}
    return {name: kept.get(name, default) for name, default in fields.items()}


def _rank(severity: object) -> int:
    return SEVERITIES.index(severity) if isinstance(severity, str) and severity in SEVERITIES else len(SEVERITIES)
