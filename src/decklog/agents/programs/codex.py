"""Codex: conversion of its hook payloads, and reader of its rollouts."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from decklog.agents.events import (
    IMPORTED,
    INTERRUPTED,
    CallOutcome,
    ConversationCompacted,
    MessageSent,
    PromptSubmitted,
    ReasoningShown,
    SessionEvent,
    SessionStarted,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from decklog.agents.programs import claude
from decklog.agents.programs.base import (
    PROGRAM_EXITED,
    Common,
    Payload,
    TranscriptInput,
    TranscriptReader,
    add_tokens,
    arguments_of,
    common_fields,
    usage_events,
)
from decklog.agents.texts import as_text, as_time, dict_of, text_or_none, whole

# Hook payloads. They have Claude Code's form; this module handles the differences.

_READ_AFTER = frozenset(
    ["SessionStart", "PreToolUse", "PostToolUse", "PreCompact", "PostCompact", "Stop", "Interrupt", "SessionEnd", PROGRAM_EXITED]
)


def events_of(payload: Payload, at: datetime | None) -> list[SessionEvent]:
    """Return the events of a payload."""
    event, common = payload.get("hook_event_name"), common_fields(payload, at)
    # PostToolUse omits whether the call failed. The rollout has the result by then.
    if event == "PostToolUse" or common is None:
        return []
    if event == "UserPromptSubmit":
        turn = payload.get("turn_id")
        by = "program" if common["agent_id"] else "person"
        return [PromptSubmitted(**common, prompt_id=str(turn) if turn else None, text=as_text(payload.get("prompt")), by=by)]
    if event == "Interrupt":
        return [TurnEnded(**common, error=INTERRUPTED)]
    return claude.events_of(payload, at)


def transcripts_of(payload: Payload) -> list[tuple[str, str | None]]:
    """Return the rollouts that have grown. Within a sub-agent, a payload names the sub-agent's rollout."""
    event, agent = payload.get("hook_event_name"), text_or_none(payload.get("agent_id"))
    if event == "SubagentStop":
        own = payload.get("agent_transcript_path")
        return [(own, str(payload.get("agent_id")))] if isinstance(own, str) else []
    path = payload.get("transcript_path")
    return [(path, agent)] if event in _READ_AFTER and isinstance(path, str) else []


# Rollouts

# Shell tool names in different versions; hooks use the name Bash.
_SHELL = frozenset(["exec_command", "shell", "shell_command", "local_shell", "container.exec"])
_ABORTED = re.compile(r"(Wall time: [\d.]+ seconds\n)?aborted by user")
_DENIED = "Command blocked by PreToolUse hook"


class Rollout(TranscriptReader):
    """Reader of one rollout: messages, usage, call results, and sessions from before hooks were installed."""

    def __init__(self, reading: TranscriptInput) -> None:
        super().__init__(reading)
        self.state = {"model": "unknown", "total": [0, 0, 0, 0], **self.state}
        self.state["session"] = reading.session_id or self.state.get("session")
        self._agent_id = reading.agent_id
        self._calls: dict[str, str] = {}

    def events(self, line: dict[str, Any]) -> Iterator[SessionEvent]:
        """Yield the events of a line; unknown kinds of lines have none."""
        payload, kind = line.get("payload"), line.get("type")
        if not isinstance(payload, dict):
            return
        at = as_time(line.get("timestamp"))
        if kind == "session_meta":
            yield from self._begin(payload, at)
        elif kind == "turn_context":
            self.state["model"] = str(payload.get("model") or self.state["model"])
        if self.state["session"] is None:
            return
        common: Common = {"session_id": self.state["session"], "agent_id": self._agent_id, "at": at}
        if kind == "token_usage_record":
            yield from self._record(payload, common)
        elif kind == "response_item":
            yield from self._item(payload, common)
        elif kind == "event_msg":
            yield from self._message(payload, common)
        elif kind == "compacted" and not self.reading.is_backstop:
            yield ConversationCompacted(**common, trigger="auto", summary=as_text(payload.get("message")) or None, is_read=True)

    def _begin(self, payload: Payload, at: Any) -> Iterator[SessionEvent]:
        thread, session = payload.get("id"), payload.get("session_id") or payload.get("id")
        if not isinstance(session, str):
            return
        self.state["session"] = self.state["session"] or session
        self.state["is_fork"] = bool(self.state.get("is_fork") or payload.get("forked_from_id"))
        if self._agent_id is None and isinstance(thread, str) and payload.get("parent_thread_id") and thread != session:
            self._agent_id = thread
        if not self.reading.is_backstop:
            yield SessionStarted(
                session_id=self.state["session"],
                agent_id=self._agent_id,
                at=at,
                source=IMPORTED,
                cwd=payload.get("cwd"),
                branch=dict_of(payload.get("git")).get("branch"),
                version=payload.get("cli_version"),
            )

    # Usage

    def _record(self, payload: Payload, common: Common) -> Iterator[SessionEvent]:
        self.state["has_records"] = True
        response = payload.get("response_id")
        if isinstance(response, str):
            yield from self._answered(common, response, _tokens(payload.get("usage")))

    def _counted(self, payload: Payload, common: Common) -> Iterator[SessionEvent]:
        """Yield the usage of older versions, which only report a running total."""
        info = payload.get("info")
        if self.state.get("has_records") or not isinstance(info, dict):
            return
        total = _tokens(info.get("total_token_usage"))
        # A fork continues the totals of its original thread, which are already charged.
        is_first = self.state.get("is_fork") and not any(self.state["total"])
        taken = [max(0, now - before) for now, before in zip(total, self.state["total"], strict=True)]
        taken = _tokens(info.get("last_token_usage")) if is_first else taken
        self.state["total"] = total
        yield from self._answered(common, f"{self._agent_id or self.state['session']}:total:{'-'.join(map(str, total))}", taken)

    def _answered(self, common: Common, answer_id: str, tokens: list[int]) -> Iterator[SessionEvent]:
        if any(tokens):
            add_tokens(self.answers, self.state["model"], tokens)
            yield from usage_events(common, answer_id, self.state["model"], tokens)

    # Messages and calls

    def _item(self, payload: Payload, common: Common) -> Iterator[SessionEvent]:
        kind, call = payload.get("type"), payload.get("call_id")
        if kind == "reasoning":
            yield from _thought(common, payload.get("id"), payload.get("summary"))
        if not isinstance(call, str):
            return
        if kind in ("function_call", "custom_tool_call"):
            name, arguments = _call(payload)
            self._calls[call] = name
            yield ToolCalled(**common, call_id=call, tool=name, arguments=arguments)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            output = as_text(payload.get("output"))
            stopped = CallOutcome.INTERRUPTED if _ABORTED.match(output) else CallOutcome.OK
            outcome = CallOutcome.DENIED if output.startswith(_DENIED) else stopped
            yield ToolReturned(**common, call_id=call, tool=self._calls.get(call), outcome=outcome, output=output)

    def _message(self, payload: Payload, common: Common) -> Iterator[SessionEvent]:
        kind, item = payload.get("type"), payload.get("item")
        if kind == "token_count":
            yield from self._counted(payload, common)
        elif kind == "item_completed" and isinstance(item, dict):
            yield from self._completed(item, payload.get("turn_id"), common)
        elif kind in ("task_complete", "turn_aborted") and not self.reading.is_backstop:
            reason = as_text(dict_of(payload.get("error")).get("message")) or as_text(payload.get("reason"))
            yield TurnEnded(**common, error=reason or None, is_read=True)

    def _completed(self, item: dict[str, Any], turn: Any, common: Common) -> Iterator[SessionEvent]:
        name = str(item.get("id") or "")
        match item.get("type"):
            case "UserMessage":
                by = "program" if self._agent_id else "person"
                yield PromptSubmitted(**common, prompt_id=str(turn or name), text=as_text(item.get("content")), by=by)
            case "AgentMessage":
                yield MessageSent(**common, text=as_text(item.get("content")), message_id=name or None)
            case "Reasoning":
                yield from _thought(common, name, item.get("summary_text"))
            case "CommandExecution":
                facts = {"exit_code": item.get("exit_code")}
                output = as_text(item.get("aggregated_output"))
                yield ToolReturned(**common, call_id=name, tool="Bash", outcome=_outcome(item), output=output, facts=facts)
            case "FileChange":
                output = as_text(item.get("stdout")) or as_text(item.get("stderr"))
                yield ToolReturned(**common, call_id=name, tool="apply_patch", outcome=_outcome(item), output=output)
            case "McpToolCall":
                tool = f"mcp__{item.get('server')}__{item.get('tool')}"
                yield ToolReturned(**common, call_id=name, tool=tool, outcome=_outcome(item), output=as_text(item.get("result")))


reader = Rollout


def _thought(common: Common, name: Any, summary: Any) -> Iterator[SessionEvent]:
    """Yield the reasoning summary of the model; both kinds of lines that have it use the same id."""
    parts = summary if isinstance(summary, list) else []
    text = "\n\n".join(part for part in (one if isinstance(one, str) else as_text([one]) for one in parts) if part.strip())
    if text and isinstance(name, str) and name:
        yield ReasoningShown(**common, text=text, message_id=name)


def _tokens(usage: Any) -> list[int]:
    """Return the four token counts. Codex includes cached tokens in its input count."""
    usage = dict_of(usage)
    read, created = whole(usage.get("cached_input_tokens")), whole(usage.get("cache_write_input_tokens"))
    return [max(0, whole(usage.get("input_tokens")) - read - created), read, created, whole(usage.get("output_tokens"))]


def _call(payload: Payload) -> tuple[str, dict[str, Any]]:
    name, space = str(payload.get("name") or "tool"), payload.get("namespace")
    if payload.get("type") == "custom_tool_call":
        return name, {"command": as_text(payload.get("input"))}
    try:
        arguments = json.loads(payload.get("arguments") or "{}")
    except (TypeError, ValueError, RecursionError):
        arguments = {"input": as_text(payload.get("arguments"))}
    arguments = arguments_of(arguments)
    if name in _SHELL:
        return "Bash", {"command": as_text(arguments.get("cmd") or arguments.get("command")), **arguments}
    return (f"{space}__{name}" if isinstance(space, str) and space else name), arguments


def _outcome(item: dict[str, Any]) -> CallOutcome:
    return {"completed": CallOutcome.OK, "declined": CallOutcome.DENIED}.get(str(item.get("status")), CallOutcome.FAILED)
