"""Gemini CLI: conversion of its hook payloads, and reader of its chat files."""

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from decklog.agents.events import (
    IMPORTED,
    CallOutcome,
    ConversationCompacted,
    MessageSent,
    PromptSubmitted,
    ReasoningShown,
    SessionEvent,
    SessionStarted,
    SubagentEnded,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from decklog.agents.programs import claude
from decklog.agents.programs.base import (
    Common,
    Payload,
    TranscriptInput,
    TranscriptReader,
    add_tokens,
    arguments_of,
    common_fields,
    usage_events,
)
from decklog.agents.texts import as_name, as_text, as_time, dict_of, list_of, text_or_none, whole

# Hook payloads

# Tool calls and prompts are read from the chat file, because payloads lack their ids.
_IN_THE_CHAT = frozenset(["BeforeAgent", "BeforeTool", "AfterTool"])
_READ_AFTER = frozenset(["SessionStart", "AfterTool", "AfterAgent", "PreCompress", "SessionEnd"])


def events_of(payload: Payload, at: datetime | None) -> list[SessionEvent]:
    """Return the events of a payload. If the chat file exists, its events are left out here."""
    event, common = str(payload.get("hook_event_name") or ""), common_fields(payload, at)
    if common is None or (event in _IN_THE_CHAT and _chat_files(payload)):
        return []
    match event:
        case "BeforeAgent":
            return [PromptSubmitted(**common, prompt_id=None, text=as_text(payload.get("prompt")))]
        case "AfterAgent":
            return [*_joined(payload, common), TurnEnded(**common)]
        case "SessionEnd":
            return [*_joined(payload, common), *claude.events_of(payload, at)]
        case "PreCompress":
            # Automatic triggers occur before every request, even if nothing is compressed.
            return (
                [ConversationCompacted(**common, trigger="manual", is_over=False)] if payload.get("trigger") == "manual" else []
            )
        case "BeforeTool" | "AfterTool":
            return [_call_event(event, payload, common)]
        case _:
            return claude.events_of(payload, at)


def _joined(payload: Payload, common: Common) -> list[SessionEvent]:
    """Return the ends of the sub-agents: all have ended when a turn ends, and nothing else reports it."""
    return [SubagentEnded(**{**common, "agent_id": agent}) for _, agent in _chat_files(payload) if agent is not None]


def _call_event(event: str, payload: Payload, common: Common) -> SessionEvent:
    """Return a tool event; its call id is made of the tool name and the time."""
    name, moment = str(payload.get("tool_name") or "tool"), payload.get("timestamp") or common["at"]
    if event == "BeforeTool":
        return ToolCalled(**common, call_id=f"{name}:{moment}", tool=name, arguments=arguments_of(payload.get("tool_input")))
    response = payload.get("tool_response")
    error = dict_of(response).get("error")
    outcome = CallOutcome.FAILED if error else CallOutcome.OK
    return ToolReturned(**common, call_id=f"{name}:{moment}", tool=name, outcome=outcome, output=as_text(error or response))


def _chat_files(payload: Payload) -> list[tuple[str, str | None]]:
    """Return the session's chat file, if it exists, and those of its sub-agents."""
    path, session = payload.get("transcript_path"), as_name(str(payload.get("session_id")))
    if not isinstance(path, str) or not os.path.isfile(path):
        return []
    below = os.path.join(os.path.dirname(path), session)
    names = sorted(os.listdir(below)) if os.path.isdir(below) else []
    agents = (name.removesuffix(".jsonl") for name in names if name.endswith(".jsonl"))
    return [(path, None), *((os.path.join(below, f"{agent}.jsonl"), agent) for agent in agents)]


def transcripts_of(payload: Payload) -> list[tuple[str, str | None]]:
    """Return the chat files that have grown by this event."""
    return _chat_files(payload) if payload.get("hook_event_name") in _READ_AFTER else []


# Chat files

Line = dict[str, Any]

# A message grows while its tools run; after this number of later messages it is complete.
_MOST_HELD = 100
_DENIED = frozenset(["cancelled", "denied"])
# Prefix of the result that the model gets for a tool blocked by a hook.
_HELD = "Tool execution blocked: "
# Prefix of a message that the program sends to the model in the user's role.
_OWN = "System: Potential loop detected"
_LONGEST_PATH = 4096
# Markers around untrusted text, and labels of a command's output and its trailing lines.
_AROUND = ("<untrusted_context>\n", "\n</untrusted_context>")
_PRINTED, _NOTHING = "Output: ", "(empty)"
_BEHIND = frozenset(["Exit Code", "Signal", "Background PIDs", "Process Group PGID"])


class Chat(TranscriptReader):
    """Reader of one chat. A message is written again whenever it grows; the last version counts."""

    def __init__(self, reading: TranscriptInput) -> None:
        super().__init__(reading)
        self.state["session"] = reading.session_id or self.state.get("session")
        self.state["agent"] = reading.agent_id or self.state.get("agent")
        self._has_begun = reading.is_backstop or bool(reading.stored_state)
        self._held: dict[str, Line] = {}

    def events(self, line: Line) -> Iterator[SessionEvent]:
        """Yield the events of a line; unknown kinds of lines have none."""
        name = line.get("id")
        if isinstance(name, str) and line.get("type") in ("user", "gemini"):
            self._held[name] = line
            if len(self._held) > _MOST_HELD:
                yield from self._message(self._held.pop(next(iter(self._held))))
        elif isinstance(session := line.get("sessionId"), str):
            if line.get("kind") == "subagent" and self.reading.path:
                # The folder of a sub-agent's file has the session's name.
                self.state["agent"] = session
                session = os.path.basename(os.path.dirname(self.reading.path))
            self.state["session"] = self.state["session"] or session
            yield from self._begun(line, as_time(line.get("startTime")))

    def pending_events(self) -> Iterator[SessionEvent]:
        """Yield the messages that could still have grown."""
        held, self._held = self._held, {}
        for line in held.values():
            yield from self._message(line)

    def _begun(self, line: Line, at: datetime | None) -> Iterator[SessionEvent]:
        if self._has_begun:
            return
        self._has_begun = True
        folders = line.get("directories")
        cwd = text_or_none(folders[0]) if isinstance(folders, list) and folders else None
        yield SessionStarted(**self._common(at), source=IMPORTED, cwd=cwd or _project_of(self.reading.path))

    def _common(self, at: datetime | None) -> Common:
        return {"session_id": self.state["session"], "agent_id": self.state["agent"], "at": at}

    def _message(self, line: Line) -> Iterator[SessionEvent]:
        if self.state["session"] is None:
            return
        common = self._common(as_time(line.get("timestamp")))
        name, text = str(line["id"]), _texts_of(line.get("content"))
        if line["type"] == "user":
            if text.strip():
                by = "program" if self.state["agent"] or text.startswith(_OWN) else "person"
                yield PromptSubmitted(**common, prompt_id=name, text=text, by=by)
            return
        pairs = ((as_text(one.get("subject")), as_text(one.get("description"))) for one in list_of(line.get("thoughts")))
        if thoughts := "\n".join(filter(None, (": ".join(filter(None, pair)) for pair in pairs))):
            yield ReasoningShown(**common, text=thoughts, message_id=name)
        if text.strip():
            yield MessageSent(**common, text=text, message_id=name)
        yield from self._spent(line, common)
        for call in list_of(line.get("toolCalls")):
            if isinstance(call.get("id"), str):
                yield from _call_events(call, common)

    def _spent(self, line: Line, common: Common) -> Iterator[SessionEvent]:
        """Yield the usage of an answer. Input counts include cached tokens; thoughts are charged as output."""
        tokens = dict_of(line.get("tokens"))
        cached = whole(tokens.get("cached"))
        given = max(0, whole(tokens.get("input")) - cached) + whole(tokens.get("tool"))
        output = whole(tokens.get("output")) + whole(tokens.get("thoughts"))
        if given or cached or output:
            model, spent = str(line.get("model") or "gemini"), [given, cached, 0, output]
            add_tokens(self.answers, model, spent)
            yield from usage_events(common, str(line["id"]), model, spent)


reader = Chat


def _project_of(path: str | None) -> str | None:
    """Return the project folder of a chat, read from `.project_root` next to the chats folder."""
    if path is None:
        return None
    try:
        with open(os.path.join(os.path.dirname(os.path.dirname(path)), ".project_root"), encoding="utf-8") as file:
            return file.read(_LONGEST_PATH).strip() or None
    except (OSError, ValueError):
        return None


def _texts_of(content: Any) -> str:
    """Return the texts of a message. Tool results, which have the user's role, have no texts."""
    if not isinstance(content, list):
        return as_text(content)
    return "\n".join(text for part in list_of(content) if isinstance(text := part.get("text"), str))


def _call_events(call: dict[str, Any], common: Common) -> Iterator[SessionEvent]:
    """Yield a tool call, and its end if there is one."""
    name, tool = str(call["id"]), str(call.get("name") or "tool")
    at = as_time(call.get("timestamp")) or common["at"]
    common = {**common, "at": at}
    yield ToolCalled(**common, call_id=name, tool=_TOOLS.get(tool, tool), arguments=arguments_of(call.get("args")))
    status = call.get("status")
    if status in ("success", "error", *_DENIED):
        output, facts = _printed(_output(call)) if tool in _TOOLS else (_output(call), {})
        outcome = _outcome(str(status), output, facts)
        yield ToolReturned(**common, call_id=name, tool=_TOOLS.get(tool, tool), outcome=outcome, output=output, facts=facts)


def _outcome(status: str, output: str, facts: dict[str, Any]) -> CallOutcome:
    if status in _DENIED or (status == "error" and output.startswith(_HELD)):
        return CallOutcome.DENIED
    # Gemini CLI reports a failed command as a success, because the command did run.
    return CallOutcome.FAILED if status == "error" or facts else CallOutcome.OK


def _printed(text: str) -> tuple[str, dict[str, Any]]:
    """Split a shell result into the command's output and the facts of its failure."""
    if not text.startswith(_PRINTED):
        return text, {}
    lines, behind = text.rsplit("\n", len(_BEHIND)), dict[str, str]()
    while len(lines) > 1 and (name := lines[-1].partition(": ")[0]) in _BEHIND and name not in behind:
        behind[name] = lines.pop().partition(": ")[2]
    output = "\n".join(lines).removeprefix(_PRINTED)
    code, signal = behind.get("Exit Code", ""), behind.get("Signal")
    facts = {"exit_code": int(code) if code.isdecimal() else None, "signal": signal}
    return "" if output == _NOTHING else output, {name: value for name, value in facts.items() if value is not None}


# Tool names, mapped to those of other programs.
_TOOLS = {"run_shell_command": "Bash"}


def _output(call: dict[str, Any]) -> str:
    """Return the output of a tool: its response to the model, or else the text that was shown."""
    parts = call.get("result")
    responses = list_of([each.get("functionResponse") for each in list_of(parts)])
    answers = list_of([each.get("response") for each in responses])
    shown = (as_text(each.get("output") or each.get("error") or each) for each in answers)
    texts = [each.removeprefix(_AROUND[0]).removesuffix(_AROUND[1]) for each in shown]
    return "\n".join(filter(None, texts)) or as_text(call.get("resultDisplay") or (parts if not responses else None))
