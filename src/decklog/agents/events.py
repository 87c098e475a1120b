"""What can happen in an agent's session, whichever program runs it and whoever tells of it: a hook, a transcript, an editor.

Every event names what it is about by the program's own id, so that two who tell the same thing are heard once.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any


# How a session begins and ends that is read from the program's own files.
IMPORTED = "import"


class CallOutcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    DENIED = "denied"
    INTERRUPTED = "interrupted"
    # The session ended, or began anew, and nobody told what became of the call.
    LOST = "lost"


# What a turn's error is called when a person, or the program itself, stopped the turn: nothing has failed.
INTERRUPTED = "interrupted"
STOPPED = frozenset([INTERRUPTED, "replaced", "review_ended"])


@dataclass(frozen=True, kw_only=True)
class SessionEvent:
    """Something that happened in a session, or in a sub-agent of one."""

    session_id: str
    at: "datetime | None" = None
    # Of the sub-agent that it happened in; none is the session itself.
    agent_id: str | None = None
    # Who tells it, where that one has other ids than the program's hooks and files.
    way: str | None = None


@dataclass(frozen=True, kw_only=True)
class Begun(SessionEvent):
    """A session began, or goes on: after a pause, a compaction, or as a fork of another one."""

    source: str = "startup"
    cwd: str | None = None
    branch: str | None = None
    model: str | None = None
    transcript: str | None = None
    version: str | None = None
    # What it is for, where somebody has said so; otherwise the first prompt tells.
    goal: str | None = None
    # The process that records it, where the session can't outlive that.
    process: str | None = None


@dataclass(frozen=True, kw_only=True)
class Prompted(SessionEvent):
    """The agent was told something, by a person or by a program."""

    prompt_id: str | None
    text: str
    by: str = "person"


@dataclass(frozen=True, kw_only=True)
class Called(SessionEvent):
    """The agent wants to use a tool."""

    call_id: str
    tool: str
    arguments: "dict[str, Any]" = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Returned(SessionEvent):
    """A tool's use came to an end."""

    call_id: str
    outcome: CallOutcome
    tool: str | None = None
    output: str = ""
    facts: "dict[str, Any]" = field(default_factory=dict)
    # What the file held that the tool changed, empty for a new file; None where that is not known. It is not recorded.
    original: str | None = None


@dataclass(frozen=True, kw_only=True)
class Said(SessionEvent):
    """The agent said something to whoever prompted it."""

    text: str
    message_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Thought(SessionEvent):
    """The agent thought, as far as it shows that."""

    text: str
    message_id: str


@dataclass(frozen=True, kw_only=True)
class Answered(SessionEvent):
    """A model answered, and its tokens are to be paid for."""

    answer_id: str
    model: str
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_create_tokens: int = 0
    output_tokens: int = 0
    # What it cost, or what the whole session has cost up to here, where the program says so.
    microdollars: int | None = None
    session_microdollars: int | None = None


@dataclass(frozen=True, kw_only=True)
class Spawned(SessionEvent):
    """A sub-agent began; `agent_id` is its own."""

    role: str = ""
    task: str | None = None


@dataclass(frozen=True, kw_only=True)
class Joined(SessionEvent):
    """A sub-agent ended; `agent_id` is its own."""

    text: str | None = None
    outcome: CallOutcome = CallOutcome.OK


@dataclass(frozen=True, kw_only=True)
class Compacted(SessionEvent):
    """The conversation was cut down to a summary, or is about to be."""

    trigger: str
    summary: str | None = None
    is_over: bool = True
    # From the program's own file: hooks tell it too, by no id that both have.
    is_read: bool = False


@dataclass(frozen=True, kw_only=True)
class Rested(SessionEvent):
    """A turn ended, and the agent waits."""

    text: str | None = None
    error: str | None = None
    facts: "dict[str, Any]" = field(default_factory=dict)
    # As of a compaction.
    is_read: bool = False


@dataclass(frozen=True, kw_only=True)
class Ended(SessionEvent):
    """The session ended."""

    reason: str | None = None
    # The editor's connection that it ended with, if it was one; a session that goes on in a later one has not ended.
    connection: str | None = None
    text: str | None = None
    outcome: CallOutcome = CallOutcome.OK


@dataclass(frozen=True, kw_only=True)
class Noted(SessionEvent):
    """Something else that the program told."""

    name: str
    text: str | None = None
    facts: "dict[str, Any]" = field(default_factory=dict)
    note_id: str | None = None
