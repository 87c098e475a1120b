"""Messages, feedback and lessons as gaia-coder's databases have them."""

from typing import TYPE_CHECKING

from decklog.core.errors import Invalid
from decklog.importing.exports.rows import Export, each
from decklog.importing.row import EPOCH
from decklog.plugins.importers.gaia.desk import NO_ACK, VECTOR, body_of
from decklog.plugins.importers.gaia.spelling import json_or_none, json_text
from decklog.stores.approvals.feedback import Feedback
from decklog.stores.approvals.inbox import Message
from decklog.stores.memory.lesson import Lesson
from decklog.stores.memory.topics import TOPICS

if TYPE_CHECKING:
    from typing import Any

    from decklog.log import Decklog

    Columns = dict[str, Any]

_MESSAGE = (
    *("id", "received_at", "from_handle", "channel", "severity", "body", "state", "answer", "escalated_to", "ack_sent_at"),
    # What that system can't hold, and what the other columns say as well.
    *("answered_at", "closed_at", "ack", "is_authorised", "seen_at", "escalated_at"),
)
_FEEDBACK = (
    *("id", "received_at", "from_handle", "channel", "severity", "body", "context_url", "fix_class", "state", "fix_pr_url"),
    *("regression_test_path", "root_cause", "success_criterion", "notes", "message_id", "updated_at", "closed_at"),
)
_LESSON = (
    *("id", "topic", "body", "payload", "confidence", "source_kind", "source_id", "recall_count", "superseded_by"),
    *("created_at", "last_seen_at", "last_recalled_at", "fingerprint"),
)


class DeskRows:
    """Writes the tables of what people said and of what was learned."""

    log: "Decklog"

    def em_inbox(self, out: Export) -> None:
        """Write every message; whether its sender may give orders is not known there, and is counted."""
        for message in each(self.log, Message, "received_at, id"):
            row: Columns = {
                "id": message.id,
                "received_at": _known(message.received_at),
                "from_handle": message.from_handle,
                "channel": message.channel.value,
                "severity": message.severity.value,
                "body": message.body,
                "state": message.state.value,
                "answer": message.answer,
                "escalated_to": message.escalated_to,
                "ack_sent_at": message.ack_sent_at,
                "answered_at": message.answered_at,
                "closed_at": message.closed_at,
            }
            out.write("em_inbox", f"em_inbox {message.id}", row, {"received_at": EPOCH})
            out.report.leave_out_fields("messages", message, _MESSAGE)
            # Nobody there can tell such a message from the manager's; of an imported one nobody here can either.
            out.report.leave_out("messages of senders not authorised", int(not message.is_authorised and message.ack != NO_ACK))

    def feedback(self, out: Export) -> None:
        """Write every piece of feedback as it stands."""
        for feedback in each(self.log, Feedback, "received_at, id"):
            row: Columns = {
                "id": feedback.id,
                "received_at": _known(feedback.received_at),
                "from_handle": feedback.from_handle,
                "channel": feedback.channel,
                "severity": feedback.severity.value,
                "body": feedback.body,
                "context_url": feedback.context_url,
                "fix_class": feedback.fix_class and feedback.fix_class.value,
                "state": feedback.state.value,
                "fix_pr_url": feedback.fix_pr_url,
                "regression_test_path": feedback.regression_test_path,
                "root_cause": feedback.root_cause,
                "success_criterion": feedback.success_criterion,
                "notes_json": json_or_none(feedback.notes),
            }
            out.write("feedback", f"feedback {feedback.id}", row, {"received_at": EPOCH, "notes_json": "[]"})
            out.report.leave_out_fields("feedback", feedback, _FEEDBACK)

    def memory(self, out: Export) -> None:
        """Write every lesson of the eight topics; a lesson that was not imported gets its id as the key of its vector."""
        for lesson in each(self.log, Lesson, "created_at, id"):
            if lesson.topic not in TOPICS:
                out.report.leave_out(f"lessons of topic {lesson.topic}")
                continue
            row: Columns = {
                "id": lesson.id,
                "topic": lesson.topic,
                "created_at": _known(lesson.created_at),
                "source_kind": lesson.source_kind,
                "source_id": lesson.source_id,
                "payload_json": json_or_none(_said(lesson)),
                "confidence": lesson.confidence,
                "last_recalled_at": lesson.last_recalled_at,
                "recall_count": lesson.recall_count,
                "superseded_by": lesson.superseded_by,
            }
            row = out.kept.restored(f"memory {lesson.id}", row, {"created_at": EPOCH, "payload_json": json_text({})})
            row["embedding_key"] = row.pop(VECTOR, None) or lesson.id
            out.insert("memory", row)
            placed = (*_LESSON, "sightings") if lesson.sightings == 1 else _LESSON
            out.report.leave_out_fields("lessons", lesson, placed)


def _said(lesson: Lesson) -> "dict[str, Any]":
    """Return a lesson's payload, with its words inside where the payload does not say them."""
    try:
        is_said = body_of(lesson.payload) == lesson.body
    except Invalid:
        is_said = False
    return lesson.payload if is_said else {"body": lesson.body, **lesson.payload}


def _known(moment: "Any") -> "Any":
    """Give nothing for the time that stands in the place of an unknown one."""
    return None if moment == EPOCH else moment
