"""One review: what the gate said of a change, pass by pass, and each finding with where it is and what mends it."""

from typing import Any

from decklog.web.site import PageView, SiteRequest, command

# The worst first; what has another word comes last.
SEVERITIES = ("blocking", "significant", "question", "minor", "info")
_PASS: dict[str, Any] = {"name": "", "status": "", "why": "", "score": None, "by": [], "findings": []}
_FINDING: dict[str, Any] = {"pass": None, "severity": "", "kind": "", "text": "", "file": None, "line": None, "remedy": ""}


def read(asked: SiteRequest) -> PageView:
    """Read a review with everything that its passes found."""
    review = asked.log.reviews.get(asked.path["review_id"])
    passes = [_told(_PASS, one) for one in review.passes]
    findings = sorted((_told(_FINDING, one) for one in review.findings), key=lambda one: _rank(one["severity"]))
    names = asked.log.overview.names(run_ids=[review.run_id], task_ids=[review.task_id] if review.task_id else [])
    shown = {"review": review, "passes": passes, "findings": findings, "names": names}
    said = command("reviews", "show", review.id)
    return PageView("review.html", f"Review: {review.verdict.value}", said, review, shown, place="runs")


def _told(fields: dict[str, Any], kept: object) -> dict[str, Any]:
    """Return what was kept with all of its fields; whatever has another form is a text."""
    if not isinstance(kept, dict):
        return {**fields, "text": str(kept)}
    return {name: kept.get(name, default) for name, default in fields.items()}


def _rank(severity: object) -> int:
    return SEVERITIES.index(severity) if isinstance(severity, str) and severity in SEVERITIES else len(SEVERITIES)
