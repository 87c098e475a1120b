"""The record of one message from a person."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from decklog.records import Record


class MessageChannel(StrEnum):
    CLI = "cli"
    TUI = "tui"
    GH_COMMENT = "gh-comment"
    EMAIL = "email"
    DAILY_STANDUP_REPLY = "daily-standup-reply"


class MessageSeverity(StrEnum):
    INFO = "info"
    QUESTION = "question"
    CRITICAL = "critical"


class MessageState(StrEnum):
    PENDING = "pending"
    SEEN = "seen"
    ANSWERED = "answered"
    ESCALATED = "escalated"
    CLOSED = "closed"


@dataclass(frozen=True, kw_only=True)
class Message(Record):
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
