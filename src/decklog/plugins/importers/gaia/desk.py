"""Gaia-coder's messages, feedback and memory, which belong to no run."""

from typing import TYPE_CHECKING

from decklog.core.clock import to_text
from decklog.core.errors import DecklogError, Invalid
from decklog.importing.landing import RowWriter
from decklog.importing.report import Fate, Report
from decklog.importing.row import EPOCH, Row
from decklog.importing.source import SqliteSource
from decklog.importing.versions import NOTE
from decklog.records.values import to_json
from decklog.stores.approvals.feedback import Feedback, FeedbackSeverity, FeedbackState, FixClass
from decklog.stores.approvals.inbox import Message, MessageChannel, MessageSeverity, MessageState
from decklog.stores.memory import similarity
from decklog.stores.memory.lesson import Lesson

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from decklog.log import Decklog

_SAYS = ("body", "preference", "decision", "error_signature", "test_fqn", "diff_signature", "heuristic", "lesson", "summary")
_LONGEST_BODY = 4000
NO_ACK = "imported"
VECTOR = "embedding"


class DeskTables:
    """Mappings of what people said and what was learned."""

    log: "Decklog"
    landing: RowWriter
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
        fields: dict[str, Any] = {
            "topic": row.text("topic", ""),
            "body": body_of(payload),
            "created_at": row.time("created_at", EPOCH),
            "payload": payload,
            "confidence": confidence,
            "source_kind": row.text("source_kind", "import"),
            "source_id": row.text("source_id"),
        }
        adopted = self.log.memory.adopt(row.text("id"), **fields, recall_count=recalls, last_recalled_at=recalled)
        return self._changed_lesson(adopted, fields, recalls, recalled) if adopted.already else Fate.NEW

    def _changed_lesson(self, lesson: Lesson, fields: "dict[str, Any]", recalls: int, recalled: "datetime | None") -> Fate:
        """Bring what changed there. How often it was recalled here is not known there, so the greater number counts."""
        if lesson.last_seen_at == lesson.created_at:
            fields["last_seen_at"] = fields["created_at"]
        body, _ = self.log.db.values.text("body", fields["body"])
        fields["fingerprint"] = similarity.fingerprint(body)
        self.landing.vouch(fields["fingerprint"])
        fates = {self.landing.merge(lesson, fields)}
        if Fate.CHANGED in fates and body != lesson.body:
            # The vector is that of the old text; the embedder makes another.
            self.log.db.count("delete from lesson_vectors where lesson_id = :id", {"id": lesson.id})
        times = [moment for moment in (recalled, lesson.last_recalled_at) if moment is not None]
        counts: dict[str, Any] = {"recall_count": max(recalls, lesson.recall_count), "last_recalled_at": max(times, default=None)}
        if any(getattr(lesson, name) != value for name, value in counts.items()):
            fates.add(self.landing.change(Lesson, id=lesson.id, **counts))
        return Fate.CHANGED if Fate.CHANGED in fates else Fate.ALREADY

    def supersede_all(self, source: SqliteSource) -> None:
        """Mark every lesson with what replaced it there; a successor that is not here is reported."""
        for columns in source.rows("memory"):
            with self.log.transaction():
                self._mark_superseded(str(columns.get("id")), columns.get("superseded_by"))

    def _mark_superseded(self, lesson_id: str, by: object) -> None:
        lesson = self.landing.intake.seek(Lesson, lesson_id)
        if lesson is None or lesson.superseded_by == by:
            return
        if lesson.superseded_by is None:
            self._supersede(lesson_id, str(by))
        elif by is None or self.landing.intake.seek(Lesson, str(by)) is not None:
            self.landing.merge(lesson, {"superseded_by": by})
        else:
            self.report.note(f"memory {lesson_id} is not marked as superseded by {by}: it is not here")

    def _supersede(self, lesson_id: str, by: str) -> None:
        try:
            with self.log.transaction():
                self.log.memory.supersede(lesson_id, by, reason=NOTE)
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
