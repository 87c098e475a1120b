"""Error patterns: errors that came back, and what solved them."""

from typing import TYPE_CHECKING

from decklog import redaction
from decklog.plugins.legacy.bazinga.base import MOST_ROWS, CallRefused, Desk, answers, filled, given, reports, stamp
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.stores.memory.patterns import ErrorPattern, PatternOutcome

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues


class BazingaPatterns(Desk):
    """Counts errors, and how sure their solutions are."""

    @answers
    def save_error_pattern(
        self,
        project_id: str,
        error_type: str,
        error_message: str,
        solution: str,
        lang: str | None = None,
        context_hints: list[str] | None = None,
        stack_pattern: list[str] | None = None,
    ) -> "dict[str, Any]":
        """Save an error and its solution; seen again, it is counted."""
        filled("project_id", project_id)
        filled("solution", solution)
        pattern = self.log.patterns.record(
            project_id,
            error_type,
            error_message,
            solution,
            lang=given(lang),
            context_hints=context_hints,
            stack_pattern=stack_pattern,
            classic=True,
        )
        texts = [error_type, error_message, solution, *(context_hints or []), *(stack_pattern or [])]
        return _saved(pattern, redacted=any(redaction.scan(text)[1] for text in texts))

    @answers
    def get_error_patterns(
        self,
        project_id: str,
        lang: str | None = None,
        min_confidence: float = 0.7,
        limit: int = 5,
        error_type: str | None = None,
    ) -> "list[dict[str, Any]]":
        """List a project's patterns, the surest first."""
        if limit < 1:
            raise CallRefused(f"limit must be 1 or more, got {limit}")
        wanted = MOST_ROWS if error_type is not None else min(limit, MOST_ROWS)
        found = self.log.patterns.find(
            project_id, lang=given(lang), min_confidence=min_confidence, include_expired=True, limit=wanted
        )
        fitting = [one for one in found if error_type in (None, one.signature.get("error_type"))]
        return [_row(pattern) for pattern in fitting[:limit]]

    @reports
    def update_error_pattern_confidence(self, pattern_hash: str, project_id: str, success: bool) -> "dict[str, Any]":
        """Return whether a pattern's solution worked."""
        with self.log.transaction():
            before = self.log.patterns.get(pattern_hash, project_id)
            after = self.log.patterns.judge(
                pattern_hash, project_id, PatternOutcome.SUCCESS if success else PatternOutcome.FAILURE
            )
        return {
            "success": True,
            "pattern_hash": pattern_hash,
            "previous_confidence": before.confidence,
            "new_confidence": after.confidence,
            "injectable": after.is_injectable,
        }

    @answers
    def cleanup_expired_patterns(self, project_id: str | None = None) -> int:
        """Remove the patterns that expired; say how many there were."""
        return self.log.patterns.cleanup(project=given(project_id))

    @answers
    def cleanup_older_patterns(self, days: int, project_id: str | None = None) -> int:
        """Remove the patterns that were not seen for so many days; say how many there were."""
        from datetime import timedelta

        from decklog.stores.intake import Intake

        oldest = self.log.clock.now() - timedelta(days=days)
        sql = "delete from patterns where last_seen_at < :oldest and (project = :project or :any_project = 1) returning *"
        intake, project = Intake(self.log.parts), given(project_id)
        removed = self.log.db.write(
            lambda: intake.remove(
                ErrorPattern,
                sql,
                note=f"not seen for {days} days",
                oldest=oldest,
                project=project or "",
                any_project=project is None,
            )
        )
        return len(removed)


def project_of(desk: Desk, session_id: str) -> str:
    """Name the project of a session: the one its metadata say, or the session itself."""
    from decklog.core.errors import NotFound

    try:
        return str(desk.log.runs.get(session_id).metadata.get("project_id") or session_id)
    except NotFound:
        return session_id


def _saved(pattern: ErrorPattern, *, redacted: bool) -> "dict[str, Any]":
    saved: dict[str, Any] = {"success": True, "pattern_hash": pattern.pattern_hash}
    if pattern.occurrences > 1:
        return {**saved, "operation": "updated", "occurrences": pattern.occurrences, "redacted": redacted}
    return {**saved, "operation": "created", "occurrences": 1, "confidence": pattern.confidence, "redacted": redacted}


def _row(pattern: ErrorPattern) -> "dict[str, Any]":
    return {
        "pattern_hash": pattern.pattern_hash,
        "solution": pattern.solution,
        "confidence": pattern.confidence,
        "occurrences": pattern.occurrences,
        "lang": pattern.lang,
        "last_seen": stamp(pattern.last_seen_at),
        "signature": pattern.signature,
    }


# Commands

DESK = BazingaPatterns


def save_error_pattern(desk: BazingaPatterns, words: "UsageValues") -> ProgramReply:
    project, kind, message, solution = words["project"], words["type"], words["message"], words["solution"]
    if words.get("fix") is not None:
        # SESSION GROUP TYPE SIGNATURE FIX
        project, kind, message, solution = project_of(desk, project), message, solution, words["fix"]
    hints, stack = words.texts("context-hints"), words.texts("stack-pattern")
    confidence = words.number("confidence")
    with desk.log.transaction():
        saved = desk.save_error_pattern(project, kind, message, solution, words.get("lang"), hints, stack)
        if confidence is not None:
            saved["confidence"] = _move(desk, saved["pattern_hash"], project, confidence)
    return ProgramReply(saved, said=f"Error pattern {saved['operation']}")


def _move(desk: BazingaPatterns, pattern_hash: str, project: str, wanted: float) -> float:
    """Judge a pattern until its confidence is the one wanted, as near as judging comes: in steps of 0.1 up and 0.2 down."""
    if not 0 <= wanted <= 1:
        raise CallRefused(f"confidence must be from 0 to 1, got {wanted}")
    present = desk.log.patterns.get(pattern_hash, project).confidence
    while present - wanted >= 0.1 and present > 0.1:
        present = desk.log.patterns.judge(pattern_hash, project, PatternOutcome.FAILURE).confidence
    while wanted - present >= 0.05 and present < 1:
        present = desk.log.patterns.judge(pattern_hash, project, PatternOutcome.SUCCESS).confidence
    return present


def get_error_patterns(desk: BazingaPatterns, words: "UsageValues") -> ProgramReply:
    least, limit = words.number("min-confidence"), words.whole("limit", low=1)
    found = desk.get_error_patterns(
        words["project"],
        words.get("lang"),
        0.7 if least is None else least,
        5 if limit is None else limit,
        words.get("error-type"),
    )
    return ProgramReply(found)


def update_error_confidence(desk: BazingaPatterns, words: "UsageValues") -> ProgramReply:
    updated = desk.update_error_pattern_confidence(words["hash"], words["project"], _worked(words["outcome"]))
    return ProgramReply(updated, said="Confidence updated")


def _worked(text: str) -> bool:
    """Read an outcome: success or failure, or a number above or below 0."""
    outcome = text.strip().lower()
    if outcome in ("success", "failure"):
        return outcome == "success"
    try:
        change = float(outcome)
    except ValueError:
        change = 0.0
    if not change:
        raise CallRefused(f"outcome must be success or failure, got {text!r}")
    return change > 0


def cleanup_error_patterns(desk: BazingaPatterns, words: "UsageValues") -> ProgramReply:
    project, days = words.get("project"), words.whole("max-age-days", low=1)
    if days is None:
        count = desk.cleanup_expired_patterns(project)
    else:
        count = desk.cleanup_older_patterns(days, project)
    return ProgramReply({"success": True, "deleted_count": count, "project_id": project}, said=f"Removed {count} patterns")
