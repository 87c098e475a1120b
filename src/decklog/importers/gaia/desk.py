"""Gaia-coder's messages, feedback and memory, which belong to no run."""

from decklog.clock import to_text
from decklog.errors import DecklogError, Invalid
from decklog.importers.engine.landing import Landing, told
from decklog.importers.engine.report import Fate, Report
from decklog.importers.engine.row import EPOCH, Row
from decklog.importers.engine.source import Source
from decklog.stores.desk.feedback import Feedback, FeedbackSeverity, FeedbackState, FixClass
from decklog.stores.desk.inbox import Message, MessageChannel, MessageSeverity, MessageState
from decklog.stores.memory.lesson import Lesson
from decklog.values import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from decklog.app import Decklog

_SAYS = ("body", "preference", "decision", "error_signature", "test_fqn", "diff_signature", "heuristic", "lesson", "summary")
_LONGEST_BODY = 4000
NO_ACK = "imported"
VECTOR = "embedding"


class DeskTables:
    """Mappings of what people said and what was learned."""

    log: "Decklog"
    landing: Landing
    report: Report

    def message(self, row: Row) -> Fate:
        """Take a message over. Nobody checked here who sent it, so it counts as not authorised."""
        received: datetime = row.time("received_at", EPOCH)
        state = row.one_of("state", MessageState, MessageState.PENDING)
        acknowledged = row.time("ack_sent_at") or received
        if row.columns.get("ack_sent_at") is None:
            row.replace("ack_sent_at", to_text(received))
        answered = row.time("answered_at")
        closed = row.time("closed_at")
        if state is MessageState.CLOSED and closed is None:
            closed = answered or acknowledged
            row.replace("closed_at", to_text(closed))
        return self.landing.record(
            Message,
            id=row.text("id"),
            from_handle=row.text("from_handle", ""),
            is_authorised=False,
            channel=row.needed("channel", MessageChannel),
            severity=row.needed("severity", MessageSeverity),
            body=row.text("body", ""),
            state=state,
            ack=NO_ACK,
            ack_sent_at=acknowledged,
            received_at=received,
            seen_at=None if state is MessageState.PENDING else acknowledged,
            answer=row.text("answer"),
            answered_at=answered,
            escalated_to=row.text("escalated_to"),
            closed_at=closed,
        )

    def feedback(self, row: Row) -> Fate:
        """Take feedback over as it stands."""
        received: datetime = row.time("received_at", EPOCH)
        state = row.one_of("state", FeedbackState, FeedbackState.PENDING)
        return self.landing.record(
            Feedback,
            id=row.text("id"),
            from_handle=row.text("from_handle", ""),
            channel=row.text("channel", ""),
            severity=row.needed("severity", FeedbackSeverity),
            body=row.text("body", ""),
            state=state,
            fix_class=row.one_of("fix_class", FixClass, None),
            context_url=row.text("context_url"),
            root_cause=row.text("root_cause"),
            success_criterion=row.text("success_criterion"),
            fix_pr_url=row.text("fix_pr_url"),
            regression_test_path=row.text("regression_test_path"),
            notes=row.json("notes_json", (list,), []),
            received_at=received,
            updated_at=received,
            closed_at=received if state is FeedbackState.CLOSED else None,
        )

    def lesson(self, row: Row) -> Fate:
        """Take a lesson over; the key of its vector is kept beside it, and what replaced it is told once all are here."""
        payload = row.json("payload_json", (dict,), {})
        row.take("superseded_by")
        if "embedding_key" in row.left:
            # Under its own name it would be taken for a secret.
            row.left[VECTOR] = row.left.pop("embedding_key")
        confidence = row.whole("confidence", 80, high=100)
        recalls, recalled = row.whole("recall_count", 0), row.time("last_recalled_at")
        adopted = self.log.memory.adopt(
            row.text("id"),
            row.text("topic", ""),
            body_of(payload),
            created_at=row.time("created_at", EPOCH),
            payload=payload,
            confidence=confidence,
            source_kind=row.text("source_kind", "import"),
            source_id=row.text("source_id"),
            recall_count=recalls,
            last_recalled_at=recalled,
        )
        if adopted.recall_count >= recalls:
            return told(adopted)
        # It was recalled there again; how often it was recalled here is not known there, so the greater number stands.
        return self.landing.change(Lesson, id=adopted.id, recall_count=recalls, last_recalled_at=recalled)

    def supersede_all(self, source: Source) -> None:
        """Say of every lesson what replaced it; a successor that is not here is reported."""
        for columns in source.rows("memory"):
            if columns.get("superseded_by") is not None:
                self._supersede(str(columns.get("id")), str(columns["superseded_by"]))

    def _supersede(self, lesson_id: str, by: str) -> None:
        try:
            with self.log.transaction():
                self.log.memory.supersede(lesson_id, by)
        except DecklogError as problem:
            if problem.retryable:
                raise
            self.report.note(f"memory {lesson_id} is not marked as superseded by {by}: {problem.message}")


def body_of(payload: "dict[str, Any]") -> str:
    """Say in words what a lesson is: its payload's own words, or all of it."""
    said = next((payload[name] for name in _SAYS if isinstance(payload.get(name), str) and payload[name].strip()), None)
    body = said or to_json(payload)
    if len(body) > _LONGEST_BODY:
        raise Invalid(f"it says {len(body)} characters, and a lesson has at most {_LONGEST_BODY}")
    return body
