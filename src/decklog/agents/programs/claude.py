"""Claude Code: conversion of its hook payloads, and reader of its transcripts."""

import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from decklog.agents.events import (
    IMPORTED,
    INTERRUPTED,
    CallOutcome,
    ConversationCompacted,
    MessageSent,
    OtherEvent,
    PromptSubmitted,
    ReasoningShown,
    SessionEnded,
    SessionEvent,
    SessionStarted,
    SubagentEnded,
    SubagentStarted,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from decklog.agents.programs.base import (
    PROGRAM_EXITED,
    Common,
    Payload,
    TokenSums,
    TranscriptInput,
    TranscriptReader,
    add_tokens,
    arguments_of,
    common_fields,
    number_id,
    outcome_of,
    usage_events,
)
from decklog.agents.texts import as_text, as_time, dict_of, list_of, text_or_none, whole
from decklog.core.display import DOLLAR

# Hook payloads

# Prefix of a prompt that the program wrote to report the result of a background task.
_NOTICE = "<task-notification>"
# Fields that every payload has, or that carry no information about the event.
_BASE = frozenset(
    (
        *("session_id", "transcript_path", "cwd", "hook_event_name", "prompt_id"),
        *("permission_mode", "effort", "agent_id", "agent_type"),
    )
)
_CALL_EVENTS = frozenset(["PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied"])
# Calls of a batch are reported one by one, and ProgramGone only triggers reading.
_WITHOUT_EVENTS = frozenset(["PostToolBatch", PROGRAM_EXITED])
# Events after which the transcript is read.
_READ_AFTER = ("SessionStart", "Stop", "StopFailure", "SubagentStop", "PreCompact", "SessionEnd", PROGRAM_EXITED)
# Name and fields of a result of the Claude Agent SDK.
RESULT = "Result"
_OF_RESULT = (
    "subtype",
    "is_error",
    "num_turns",
    "duration_ms",
    "total_cost_usd",
    "api_error_status",
    "terminal_reason",
    "errors",
)
# Names of the four token kinds in session totals, in our order.
_TOTALS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")


def events_of(payload: Payload, at: datetime | None) -> list[SessionEvent]:
    """Return the events of a payload; none without a session, or if other payloads report the same."""
    common, name = common_fields(payload, at), str(payload.get("hook_event_name") or "")
    if common is None or name in _WITHOUT_EVENTS:
        return []
    if name == RESULT:
        return list(_result_events(payload, common))
    event = _call_event(name, payload, common) if name in _CALL_EVENTS else _session_event(name, payload, common)
    return [] if event is None else [event]


def transcripts_of(payload: Payload) -> list[tuple[str, str | None]]:
    """Return the transcripts that have grown, each with the id of its sub-agent."""
    found: list[tuple[str, str | None]] = []
    if payload.get("hook_event_name") in _READ_AFTER and isinstance(path := payload.get("transcript_path"), str):
        found.append((path, None))
    own = payload.get("agent_transcript_path")
    if payload.get("hook_event_name") == "SubagentStop" and isinstance(own, str) and payload.get("agent_type"):
        found.append((own, str(payload.get("agent_id"))))
    return found


def transcripts_below(path: str) -> list[tuple[str, str]]:
    """Return the transcripts of a session's sub-agents, each with the sub-agent's id."""
    folder = os.path.join(path.removesuffix(".jsonl"), "subagents")
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    own = [name for name in names if name.startswith("agent-") and name.endswith(".jsonl")]
    return [(os.path.join(folder, name), name.removeprefix("agent-").removesuffix(".jsonl")) for name in own]


def _session_event(name: str, payload: Payload, common: Common) -> SessionEvent | None:
    agent_type, trigger = str(payload.get("agent_type") or ""), str(payload.get("trigger") or "auto")
    whole_session: Common = {**common, "agent_id": None}
    match name:
        case "SessionStart":
            return SessionStarted(
                **whole_session,
                source=str(payload.get("source") or "startup"),
                cwd=text_or_none(payload.get("cwd")),
                model=text_or_none(payload.get("model")),
                transcript=text_or_none(payload.get("transcript_path")),
                process=text_or_none(payload.get("process")),
            )
        case "UserPromptSubmit":
            text = as_text(payload.get("prompt"))
            is_written = text.startswith(_NOTICE) or payload.get("source") not in (None, "user", "sdk")
            by = "program" if is_written else "person"
            return PromptSubmitted(**common, prompt_id=text_or_none(payload.get("prompt_id")), text=text, by=by)
        case "SubagentStart":
            return SubagentStarted(**common, role=agent_type) if common["agent_id"] else None
        case "SubagentStop":
            # Claude Code reports a compaction as the end of a sub-agent without a type.
            is_agent = common["agent_id"] and agent_type
            return SubagentEnded(**common, text=as_text(payload.get("last_assistant_message")) or None) if is_agent else None
        case "PreCompact":
            return ConversationCompacted(**common, trigger=trigger, is_over=False)
        case "PostCompact":
            return ConversationCompacted(**common, trigger=trigger, summary=as_text(payload.get("compact_summary")) or None)
        case "Stop" | "StopFailure":
            # The transcript has the last message, with its id.
            return TurnEnded(**common, error=as_text(payload["error"]) if payload.get("error") else None)
        case "SessionEnd":
            reason, answer = text_or_none(payload.get("reason")), text_or_none(payload.get("text"))
            return SessionEnded(**whole_session, reason=reason, text=answer, outcome=outcome_of(payload))
        case _:
            facts = {key: value for key, value in payload.items() if key not in _BASE}
            return OtherEvent(**common, name=name or "unknown", text=as_text(payload.get("message")) or None, facts=facts)


def _call_event(name: str, payload: Payload, common: Common) -> SessionEvent | None:
    call, tool = payload.get("tool_use_id"), text_or_none(payload.get("tool_name"))
    if not isinstance(call, str):
        return None
    if name == "PreToolUse":
        return ToolCalled(**common, call_id=call, tool=tool or "tool", arguments=arguments_of(payload.get("tool_input")))
    if name == "PermissionDenied":
        output = as_text(payload.get("reason"))
        return ToolReturned(**common, call_id=call, tool=tool, outcome=CallOutcome.DENIED, output=output)
    response, error = payload.get("tool_response"), payload.get("error")
    outcome = CallOutcome.OK if error is None else CallOutcome.FAILED
    if (error is not None and payload.get("is_interrupt")) or (isinstance(response, dict) and response.get("interrupted")):
        outcome = CallOutcome.INTERRUPTED
    output = output_of(response) if error is None else as_text(error)
    facts = {"duration_ms": payload.get("duration_ms")}
    return ToolReturned(**common, call_id=call, tool=tool, outcome=outcome, output=output, facts=facts)


def output_of(response: Any) -> str:
    """Return a tool response as text: a command's output, a file's content, or the response itself."""
    if not isinstance(response, dict):
        return as_text(response)
    if "stdout" in response or "stderr" in response:
        return "\n".join(part for part in (as_text(response.get("stdout")), as_text(response.get("stderr"))) if part)
    file = response.get("file")
    if isinstance(file, dict) and isinstance(file.get("content"), str):
        return str(file["content"])
    # Omit the file's full text; the change itself is enough.
    return as_text({name: value for name, value in response.items() if name not in ("originalFile", "content")})


def _result_events(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    """Yield the result of a turn. Messages and usage are only included if the session has no transcript."""
    name = str(payload.get("uuid") or "")
    for message_id, text in payload.get("said") or ():
        yield MessageSent(**common, text=as_text(text), message_id=text_or_none(message_id))
    for model, used in (payload.get("spent") or {}).items():
        cost = used.get("costUSD")
        microdollars = round(cost * DOLLAR) if isinstance(cost, (int, float)) and cost > 0 else None
        tokens = [whole(used.get(kind)) for kind in _TOTALS]
        yield from usage_events(common, f"{common['session_id']}:result:{name}:{model}", model, tokens, microdollars)
    facts = {fact: payload.get(fact) for fact in _OF_RESULT}
    text = as_text(payload.get("result")) or as_text(payload.get("subtype"))
    yield OtherEvent(**common, name="turn.result", text=text, facts=facts, note_id=f"turn-result:{name}" if name else None)


# Transcripts

Line = dict[str, Any]
# Model name of an answer that the program wrote instead of a model.
_SYNTHETIC = "<synthetic>"
# Names of the four token kinds in answers, in our order.
_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_NOTHING = (0, 0, 0, 0)
_KINDS = ("user", "assistant", "system", "cost-state")
# Markers of the program's own commands typed by a person, and of their output.
_OWN_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_OWN_OUTPUT = "<local-command-stdout>"
# Texts that the program writes when a person stops it: a message, and results of the open call.
_STOPPED = "[Request interrupted by user"
_NOT_FINISHED = (_STOPPED, "The user doesn't want to take this action right now")
_NOT_ALLOWED = "The user doesn't want to proceed with this tool use"


class Transcript(TranscriptReader):
    """Reader of one transcript: events that hooks missed, and sessions from before hooks were installed.

    Several lines belong to one answer. Each has the usage so far, so an answer is charged after its last line.
    """

    # Skip lines of other kinds, which are most of a transcript's bytes.
    has_events = re.compile(rb'"type"\s*:\s*"(?:user|assistant|system|cost-state)"').search

    def __init__(self, reading: TranscriptInput) -> None:
        super().__init__(reading)
        self._has_begun = reading.is_backstop or bool(reading.stored_state)
        # Charge of the pending answer: the arguments of `usage_events`.
        self._pending: tuple[Common, str, str, list[int]] | None = None
        # A fork starts with the lines and totals of its original session, which are skipped.
        self.state["forked_at"] = reading.forked_at or self.state.get("forked_at")

    def events(self, line: Line) -> Iterator[SessionEvent]:
        """Yield the events of a line; unknown kinds of lines have none."""
        kind, session = line.get("type"), self.reading.session_id or line.get("sessionId")
        at = as_time(line.get("timestamp"))
        if kind not in _KINDS or not isinstance(session, str) or self._is_before_fork(at):
            return
        agent = self.reading.agent_id or (line.get("agentId") if line.get("isSidechain") else None)
        common: Common = {"session_id": session, "agent_id": agent, "at": at}
        if not self._has_begun:
            self._has_begun = True
            branch, version = line.get("gitBranch"), line.get("version")
            yield SessionStarted(**common, source=IMPORTED, cwd=line.get("cwd"), branch=branch, version=version)
        if kind == "assistant":
            yield from self._assistant(line, common)
            return
        yield from self.pending_events()
        if kind == "user":
            yield from self._user(line, common)
        elif kind == "cost-state":
            yield from self._finalize(line, common)
        elif line.get("subtype") == "compact_boundary" and not self.reading.is_backstop:
            trigger = str(dict_of(line.get("compactMetadata")).get("trigger", "auto"))
            yield ConversationCompacted(**common, trigger=trigger, is_read=True)

    def _is_before_fork(self, at: datetime | None) -> bool:
        """Return whether a line is older than the fork. After the fork's first line, all lines belong to it."""
        if self.state["forked_at"] is None or self.state.get("is_own") or at is None:
            return False
        self.state["is_own"] = at.timestamp() >= self.state["forked_at"]
        return not self.state["is_own"]

    def pending_events(self) -> Iterator[SessionEvent]:
        """Yield the usage of the pending answer. Call this at the end of the file and of a turn."""
        pending, self._pending = self._pending, None
        if pending is None or not any(pending[3]):
            return
        common, answer_id, model, tokens = pending
        # Later lines of the last answer read may only increase its counts.
        counted = self.state["last_tokens"] if self.state.get("last_answer") == answer_id else _NOTHING
        add_tokens(self.answers, model, _difference(tokens, counted))
        self.state |= {"last_answer": answer_id, "last_tokens": tokens}
        yield from usage_events(common, answer_id, model, tokens)

    def _finalize(self, line: Line, common: Common) -> Iterator[SessionEvent]:
        """Yield the usage that the session total has beyond the transcripts' answers.

        The total is written when a process ends. It is the only source for the cost of compactions.
        """
        usage = line.get("modelUsage")
        if not isinstance(usage, dict) or self.reading.agent_id is not None:
            return
        known: TokenSums = {model: list(tokens) for model, tokens in self.answers.items()}
        for found in self.reading.read_subagents() if self.reading.read_subagents else ():
            if isinstance(found, SessionEvent):
                yield found
            else:
                for model, tokens in found.items():
                    add_tokens(known, model, tokens)
        total = {model: [whole(used.get(name)) for name in _TOTALS] for model, used in usage.items() if isinstance(used, dict)}
        before, known_before = self.state.get("total"), self.state.get("known") or {}
        self.state |= {"total": total, "known": known}
        if before is None and (self.state["forked_at"] is not None or self.reading.is_fork):
            return
        for model, tokens in total.items():
            taken = _difference(tokens, (before or {}).get(model, _NOTHING))
            besides = _difference(taken, _difference(known.get(model, _NOTHING), known_before.get(model, _NOTHING)))
            name = f"{common['session_id']}:besides:{'-'.join(map(str, tokens))}"
            yield from usage_events(common, name, model, [max(0, count) for count in besides])

    def _assistant(self, line: Line, common: Common) -> Iterator[SessionEvent]:
        message = line.get("message")
        if not isinstance(message, dict):
            return
        if message.get("model") == _SYNTHETIC or line.get("isApiErrorMessage"):
            if line.get("isApiErrorMessage") and not self.reading.is_backstop:
                text = "\n".join(as_text(block.get("text")) for block in _blocks(message))
                yield TurnEnded(**common, error=text or "API error", is_read=True)
            return
        answer_id = f"{message.get('id')}:{line.get('requestId') or ''}"
        if self._pending is None or self._pending[1] != answer_id:
            yield from self.pending_events()
            self._pending = (common, answer_id, str(message.get("model") or "unknown"), [0, 0, 0, 0])
        if isinstance(usage := message.get("usage"), dict):
            tokens = self._pending[3]
            tokens[:] = [max(known, whole(usage.get(name))) for known, name in zip(tokens, _USAGE, strict=True)]
        for block in _blocks(message):
            kind = block.get("type")
            if kind == "tool_use" and isinstance(block.get("id"), str):
                tool = str(block.get("name") or "tool")
                yield ToolCalled(**common, call_id=str(block["id"]), tool=tool, arguments=arguments_of(block.get("input")))
            elif kind == "text" and (text := as_text(block.get("text"))).strip():
                yield MessageSent(**common, text=text, message_id=self._part_id("said", message, line))
            elif kind == "thinking" and (text := as_text(block.get("thinking"))).strip():
                yield ReasoningShown(**common, text=text, message_id=self._part_id("thoughts", message, line))

    def _part_id(self, kind: str, message: Line, line: Line) -> str:
        """Return the id of a text: its answer and its number in it. An editor connection has no other id for it."""
        name = str(message.get("id") or line.get("uuid") or "")
        count = int(self.state.get(kind) or 0) + 1 if self.state.get(f"{kind}_in") == name else 1
        self.state |= {f"{kind}_in": name, kind: count}
        return number_id(name, count)

    def _user(self, line: Line, common: Common) -> Iterator[SessionEvent]:
        message = line.get("message")
        if not isinstance(message, dict) or line.get("isMeta") or line.get("isCompactSummary"):
            return
        texts = []
        for block in _blocks(message):
            kind = block.get("type")
            if kind == "tool_result" and isinstance(block.get("tool_use_id"), str):
                yield _result(line, block, common)
            elif kind == "text":
                texts.append(as_text(block.get("text")))
        text = "\n".join(texts).strip()
        if text.startswith(_STOPPED):
            if not self.reading.is_backstop:
                yield TurnEnded(**common, error=INTERRUPTED, is_read=True)
            return
        if own := _OWN_COMMAND.match(text):
            text = own[1]
        if text and not text.startswith(_OWN_OUTPUT):
            by = "program" if line.get("promptSource") == "system" or line.get("isSidechain") else "person"
            # Hooks identify a prompt by promptId; older versions only have the uuid of the line.
            prompt_id = line.get("promptId") or line.get("uuid")
            yield PromptSubmitted(**common, prompt_id=prompt_id and str(prompt_id), text=text, by=by)


reader = Transcript


def _difference(more: Sequence[int], less: Sequence[int]) -> list[int]:
    return [one - other for one, other in zip(more, less, strict=True)]


def _blocks(message: Line) -> list[Line]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list_of(content)


def _result(line: Line, block: Line, common: Common) -> ToolReturned:
    result = line.get("toolUseResult")
    facts = dict_of(result)
    error = as_text(block.get("content")) if block.get("is_error") else ""
    if line.get("toolDenialKind") or error.startswith(_NOT_ALLOWED):
        outcome = CallOutcome.DENIED
    elif facts.get("interrupted") or error.startswith(_NOT_FINISHED):
        outcome = CallOutcome.INTERRUPTED
    else:
        outcome = CallOutcome.FAILED if block.get("is_error") else CallOutcome.OK
    output = output_of(facts) if isinstance(result, dict) and outcome is CallOutcome.OK else as_text(block.get("content"))
    # The file before the tool changed it.
    original = "" if facts.get("type") == "create" else facts.get("originalFile", facts.get("originalFileContents"))
    return ToolReturned(
        **common,
        call_id=str(block["tool_use_id"]),
        outcome=outcome,
        output=output,
        original=original if isinstance(original, str) else None,
    )
