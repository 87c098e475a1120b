"""Events of agent sessions, independent of the program and of the source: a hook, a transcript or an editor.

Every event carries the program's own id, so that an event reported by two sources is recorded once.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

# Start source and end reason of a session that is imported from the program's files.
IMPORTED = "import"


class CallOutcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    DENIED = "denied"
    INTERRUPTED = "interrupted"
    # The session ended or restarted without a reported result of the call.
    LOST = "lost"


# Error names of a turn that a person or the program stopped: these are no failures.
INTERRUPTED = "interrupted"
STOPPED = frozenset([INTERRUPTED, "replaced", "review_ended"])


@dataclass(frozen=True, kw_only=True)
class SessionEvent:
    """Event in a session or in one of its sub-agents."""

    # Key of this kind of event in the summary of an import.
    summary_key: ClassVar[str]
    session_id: str
    at: datetime | None = None
    # Id of the sub-agent; None means the session itself.
    agent_id: str | None = None
    # The source of the event, if its ids differ from those of the program's hooks and files.
    way: str | None = None


@dataclass(frozen=True, kw_only=True)
class SessionStarted(SessionEvent):
    """Start of a session, or its continuation after a pause, a compaction or a fork."""

    summary_key: ClassVar[str] = "sessions_started"
    source: str = "startup"
    cwd: str | None = None
    branch: str | None = None
    model: str | None = None
    transcript: str | None = None
    version: str | None = None
    # The goal, if one was given; otherwise the first prompt sets it.
    goal: str | None = None
    # The recording process, if the session can't outlive it.
    process: str | None = None


@dataclass(frozen=True, kw_only=True)
class PromptSubmitted(SessionEvent):
    """Prompt to the agent by a person or a program."""

    summary_key: ClassVar[str] = "prompts"
    prompt_id: str | None
    text: str
    by: str = "person"


@dataclass(frozen=True, kw_only=True)
class ToolCalled(SessionEvent):
    """Tool call by the agent."""

    summary_key: ClassVar[str] = "calls"
    call_id: str
    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ToolReturned(SessionEvent):
    """End of a tool call."""

    summary_key: ClassVar[str] = "results"
    call_id: str
    outcome: CallOutcome
    tool: str | None = None
    output: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    # The content of the changed file before the call: empty for a new file, None if unknown. It is not recorded.
    original: str | None = None


@dataclass(frozen=True, kw_only=True)
class MessageSent(SessionEvent):
    """Message of the agent to its user."""

    summary_key: ClassVar[str] = "messages"
    text: str
    message_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReasoningShown(SessionEvent):
    """Reasoning that the agent shows."""

    summary_key: ClassVar[str] = "thoughts"
    text: str
    message_id: str


@dataclass(frozen=True, kw_only=True)
class TokensUsed(SessionEvent):
    """Model answer with its token usage."""

    summary_key: ClassVar[str] = "answers"
    answer_id: str
    model: str
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_create_tokens: int = 0
    output_tokens: int = 0
    # Cost of the answer, or of the session so far, if the program reports it.
    microdollars: int | None = None
    session_microdollars: int | None = None


@dataclass(frozen=True, kw_only=True)
class SubagentStarted(SessionEvent):
    """Start of a sub-agent; `agent_id` is its id."""

    summary_key: ClassVar[str] = "subagents_started"
    role: str = ""
    task: str | None = None


@dataclass(frozen=True, kw_only=True)
class SubagentEnded(SessionEvent):
    """End of a sub-agent; `agent_id` is its id."""

    summary_key: ClassVar[str] = "subagents_ended"
    text: str | None = None
    outcome: CallOutcome = CallOutcome.OK


@dataclass(frozen=True, kw_only=True)
class ConversationCompacted(SessionEvent):
    """Compaction of the conversation to a summary, finished or about to start."""

    summary_key: ClassVar[str] = "compactions"
    trigger: str
    summary: str | None = None
    is_over: bool = True
    # Read from the program's file. Hooks report it too, but without a shared id.
    is_read: bool = False


@dataclass(frozen=True, kw_only=True)
class TurnEnded(SessionEvent):
    """End of a turn; the agent waits for input."""

    summary_key: ClassVar[str] = "turns"
    text: str | None = None
    error: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    # Same meaning as in ConversationCompacted.
    is_read: bool = False


@dataclass(frozen=True, kw_only=True)
class SessionEnded(SessionEvent):
    """End of the session."""

    summary_key: ClassVar[str] = "sessions_ended"
    reason: str | None = None
    # The editor connection that ended. A session that continues in a later connection has not ended.
    connection: str | None = None
    text: str | None = None
    outcome: CallOutcome = CallOutcome.OK


@dataclass(frozen=True, kw_only=True)
class OtherEvent(SessionEvent):
    """Any other event that the program reports."""

    summary_key: ClassVar[str] = "other"
    name: str
    text: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    note_id: str | None = None
