"""The inbox: messages from people to agents, acknowledged at once and read at the next break of the work."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

from decklog.core.errors import Conflict, NotFound
from decklog.db.where import Where, parse_enum
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.approvals.feedback import Feedback, FeedbackSeverity, FixClass, FixClassLike
from decklog.stores.base import Store, StoreParts
from decklog.stores.checks import check_filled, check_integer


class Pauses(Protocol):
    """Pauses tasks; implemented by the tasks store."""

    def pause(self, task_id: str, *, reason: str) -> object: ...


class Senders(Protocol):
    """Recognizes authorized senders; implemented by the trust store."""

    def recognises(self, handle: str) -> bool: ...


class MessageChannel(StrEnum):
    CLI = "cli"
    TUI = "tui"
    GH_COMMENT = "gh-comment"
    EMAIL = "email"
    DAILY_STANDUP_REPLY = "daily-standup-reply"


MessageChannelLike = MessageChannel | Literal["cli", "tui", "gh-comment", "email", "daily-standup-reply"]


class MessageSeverity(StrEnum):
    INFO = "info"
    QUESTION = "question"
    CRITICAL = "critical"


MessageSeverityLike = MessageSeverity | Literal["info", "question", "critical"]


class MessageState(StrEnum):
    PENDING = "pending"
    SEEN = "seen"
    ANSWERED = "answered"
    ESCALATED = "escalated"
    CLOSED = "closed"


MessageStateLike = MessageState | Literal["pending", "seen", "answered", "escalated", "closed"]


@dataclass(frozen=True, kw_only=True)
class Message(Record):
    """What a person wrote to the agents."""

    table = "messages"
    home = "@desk"

    id: str
    from_handle: str
    is_authorised: bool
    channel: MessageChannel
    severity: MessageSeverity
    body: str
    ack: str
    ack_sent_at: datetime
    received_at: datetime
    state: MessageState = MessageState.PENDING
    agent: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    context_url: str | None = None
    paused_task_id: str | None = None
    pause_problem: str | None = None
    seen_by: str | None = None
    seen_at: datetime | None = None
    answer: str | None = None
    answered_by: str | None = None
    answered_at: datetime | None = None
    escalated_to: str | None = None
    escalated_at: datetime | None = None
    closed_at: datetime | None = None
    key: str | None = None


_FEEDBACK_SEVERITY = {
    MessageSeverity.INFO: FeedbackSeverity.LOW,
    MessageSeverity.QUESTION: FeedbackSeverity.MED,
    MessageSeverity.CRITICAL: FeedbackSeverity.CRITICAL,
}
# When an answer is due: information within a day, a question within 30 minutes, a critical message within 5.
_ETA_MINUTES = {MessageSeverity.INFO: 24 * 60, MessageSeverity.QUESTION: 30, MessageSeverity.CRITICAL: 5}
_ACK = "Got your message ({severity}). It is read and answered at the next natural break in the work. ETA: ~{eta} min"
_ACK_STRANGER = "Got your message. It does not direct the work: only the bound owner and the reviewers do. ETA: ~{eta} min"


class Inbox(Store):
    """Receives messages, gives them to agents at a break in their work, and keeps the outcome of each.

    A message is pending, seen, answered or escalated, and in the end closed. Answering or escalating a pending message marks
    it as seen. A seen message may be closed without an answer, a pending one may not.
    """

    records = (Message,)

    def __init__(self, parts: StoreParts, *, tasks: Callable[[], Pauses], trust: Callable[[], Senders]) -> None:
        super().__init__(parts)
        self._tasks = tasks
        self._trust = trust

    @writes
    def post(
        self,
        from_handle: str,
        body: str,
        *,
        severity: MessageSeverityLike = MessageSeverity.INFO,
        channel: MessageChannelLike = MessageChannel.CLI,
        agent: str | None = None,
        run_id: str | None = None,
        task_id: str | None = None,
        context_url: str | None = None,
        eta_seconds: int | None = None,
        message_id: str | None = None,
        received_at: datetime | None = None,
        key: str | None = None,
    ) -> Message:
        """Receive a message and acknowledge it at once; `ack` is the reply to the sender.

        It is for everybody, or for the agent, run or task it names. A critical one pauses its task, if the sender is the
        owner or a reviewer. A known id or key returns that message unchanged.
        """
        now = self._now()
        severity = parse_enum(MessageSeverity, severity, "severity")
        is_authorised = self._trust().recognises(from_handle)
        about = {"agent": agent, "run_id": run_id, "task_id": task_id, "context_url": context_url}
        fields = {
            "id": message_id or self._ids.new("msg"),
            "from_handle": check_filled("from_handle", from_handle).strip(),
            "is_authorised": is_authorised,
            "channel": parse_enum(MessageChannel, channel, "channel"),
            "severity": severity,
            "body": check_filled("body", body),
            **about,
            "ack": _ack(severity, eta_seconds, is_authorised),
            "ack_sent_at": now,
            "received_at": received_at or now,
            "key": key,
        }
        return self._find_or_add(lambda: self._seek_known(Message, message_id, key=key), lambda: self._post(fields))

    def _post(self, fields: dict[str, Any]) -> Message:
        if fields["severity"] is MessageSeverity.CRITICAL and fields["is_authorised"] and fields["task_id"] is not None:
            fields = {**fields, **self._pause(fields)}
        return self._add(Message, note=fields["body"], **fields)

    def _pause(self, fields: dict[str, Any]) -> dict[str, str]:
        """Pause the task. If that fails, the message is still stored, with the reason."""
        task_id = fields["task_id"]
        reason = f"critical message {fields['id']} from {fields['from_handle']}"
        try:
            self._tasks().pause(task_id, reason=reason)
        except (Conflict, NotFound) as problem:
            if problem.retryable:
                raise
            return {"pause_problem": problem.message}
        return {"paused_task_id": task_id}

    @reads
    def get(self, message_id: str) -> Message:
        """Get a message."""
        return self._fetch(Message, message_id)

    @reads
    def pending_for(
        self,
        agent: str,
        *,
        run_id: str | None = None,
        task_id: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Message]:
        """List what an agent should read at a break in its work, oldest first.

        A message is left out when it names another agent, or another run or task than those given here.
        """
        where = Where(Message, state=MessageState.PENDING)
        for name, value in (("agent", agent), ("run_id", run_id), ("task_id", task_id)):
            if value is not None:
                where.add(f"({name} is null or {name} = :{name})", **{name: value})
        return self._page(Message, where, order=("received_at", "id"), limit=limit, after=after)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        state: MessageStateLike | None = None,
        severity: MessageSeverityLike | None = None,
        from_handle: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Message]:
        """List messages, newest first."""
        where = Where(Message, state=state, severity=severity, run_id=run_id, from_handle=from_handle)
        return self._page(Message, where, order=("received_at", "id"), limit=limit, after=after, descending=True)

    @writes
    def mark_seen(self, message_id: str, *, by: str | None = None) -> Message:
        """Mark a pending message as read; one in a later state is returned unchanged."""
        known = self._fetch_for_update(Message, message_id)
        if known.state is not MessageState.PENDING:
            return known.mark_already()
        return self._update(
            Message,
            message_id,
            {"state": "seen", "seen_by": by, "seen_at": self._now()},
            condition="state = 'pending'",
            note="seen",
        )

    @writes
    def answer(self, message_id: str, answer: str, *, by: str | None = None) -> Message:
        """Answer a message that is pending or seen; the same answer again changes nothing."""
        known = self._fetch_for_update(Message, message_id)
        if known.state is MessageState.ANSWERED and known.answer == self._stored("answer", answer):
            return known.mark_already()
        changes = {"state": "answered", "answer": answer, "answered_by": by, "answered_at": self._now()}
        return self._move_on(known, changes, by, check_filled("answer", answer))

    def _move_on(self, known: Message, changes: dict[str, Any], by: str | None, note: str) -> Message:
        """Change a pending or seen message, which is seen afterwards."""
        seen_by = by if known.seen_by is None else known.seen_by
        changes |= {"seen_by": seen_by, "seen_at": known.seen_at or self._now()}
        return self._update(Message, known.id, changes, condition="state in ('pending', 'seen')", note=note)

    def settle(self, key: str, answer: str, *, by: str) -> None:
        """Answer the open message of a key, if any: its question was answered elsewhere."""
        known = self._seek_by(Message, key=key)
        if known is not None and self._fetch_for_update(Message, known.id).state in (MessageState.PENDING, MessageState.SEEN):
            self.answer(known.id, answer, by=by)

    @writes
    def escalate(
        self,
        message_id: str,
        *,
        fix_class: FixClassLike | None = None,
        context_url: str | None = None,
        by: str | None = None,
    ) -> Feedback:
        """Turn a message into feedback, in its sender's words; a repeated call returns the same feedback."""
        known = self._fetch_for_update(Message, message_id)
        if known.escalated_to is not None:
            return self._fetch(Feedback, known.escalated_to).mark_already()
        if known.state not in (MessageState.PENDING, MessageState.SEEN):
            raise self._refusal(Message, message_id)
        now = self._now()
        feedback = self._add(
            Feedback,
            note=known.body,
            id=self._ids.new("fb"),
            message_id=known.id,
            from_handle=known.from_handle,
            channel=known.channel.value,
            severity=_FEEDBACK_SEVERITY[known.severity],
            body=known.body,
            fix_class=fix_class and parse_enum(FixClass, fix_class, "fix_class"),
            context_url=context_url or known.context_url,
            received_at=known.received_at,
            updated_at=now,
        )
        changes = {"state": "escalated", "escalated_to": feedback.id, "escalated_at": now}
        self._move_on(known, changes, by, f"escalated to {feedback.id}")
        return feedback

    @writes
    def close(self, message_id: str) -> Message:
        """Close a message that was seen, answered or escalated."""
        known = self._fetch_for_update(Message, message_id)
        if known.state is MessageState.CLOSED:
            return known.mark_already()
        return self._update(
            Message,
            message_id,
            {"state": "closed", "closed_at": self._now()},
            condition="state in ('seen', 'answered', 'escalated')",
            note="closed",
        )


def _ack(severity: MessageSeverity, eta_seconds: int | None, is_authorised: bool) -> str:
    """Build the acknowledgement from a template: without a model call it is never late."""
    eta = _ETA_MINUTES[severity] if eta_seconds is None else (check_integer("eta_seconds", eta_seconds, low=1) + 59) // 60
    return (_ACK if is_authorised else _ACK_STRANGER).format(severity=severity.value, eta=eta)
