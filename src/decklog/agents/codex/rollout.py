"""Reader of Codex's rollouts: messages, usage, call results, and sessions from before hooks were installed."""

import json
import re
from collections.abc import Iterator
from typing import Any

from decklog.agents.events import (
    IMPORTED,
    Begun,
    Called,
    CallOutcome,
    Compacted,
    Prompted,
    Rested,
    Returned,
    Said,
    SessionEvent,
    Thought,
)
from decklog.agents.reading import Reading, Sums, add, answered
from decklog.agents.texts import as_text, as_time, whole

# Shell tool names in different versions; hooks use the name Bash.
_SHELL = frozenset(["exec_command", "shell", "shell_command", "local_shell", "container.exec"])
_ABORTED = re.compile(r"(Wall time: [\d.]+ seconds\n)?aborted by user")
_DENIED = "Command blocked by PreToolUse hook"


class Rollout:
    """Reader of the lines of one rollout in order."""

    def __init__(self, reading: Reading) -> None:
        self._is_backstop = reading.is_backstop
        self._agent_id = reading.agent_id
        kept = reading.kept
        self._session_id: str | None = reading.session_id or kept.get("session")
        self._model: str = kept.get("model") or "unknown"
        self._has_records: bool = bool(kept.get("has_records"))
        self._total: list[int] = kept.get("total") or [0, 0, 0, 0]
        self._is_fork: bool = bool(kept.get("is_fork"))
        self.answers: Sums = kept.get("answers") or {}
        self._calls: dict[str, str] = {}

    def kept(self) -> dict[str, Any]:
        """Return the state that is needed to read on from here."""
        return {
            "session": self._session_id,
            "model": self._model,
            "has_records": self._has_records,
            "total": self._total,
            "is_fork": self._is_fork,
            "answers": self.answers,
        }

    def rest(self) -> Iterator[SessionEvent]:
        """Yield nothing: this reader holds no event back."""
        yield from ()

    def events(self, line: dict[str, Any]) -> Iterator[SessionEvent]:
        """Yield the events of a line; unknown kinds of lines have none."""
        payload, kind = line.get("payload"), line.get("type")
        if not isinstance(payload, dict):
            return
        at = as_time(line.get("timestamp"))
        if kind == "session_meta":
            yield from self._begin(payload, at)
        elif kind == "turn_context":
            self._model = str(payload.get("model") or self._model)
        if self._session_id is None:
            return
        place: dict[str, Any] = {"session_id": self._session_id, "agent_id": self._agent_id, "at": at}
        if kind == "token_usage_record":
            yield from self._record(payload, place)
        elif kind == "response_item":
            yield from self._item(payload, place)
        elif kind == "event_msg":
            yield from self._message(payload, place)
        elif kind == "compacted" and not self._is_backstop:
            yield Compacted(**place, trigger="auto", summary=as_text(payload.get("message")) or None, is_read=True)

    def _begin(self, payload: dict[str, Any], at: Any) -> Iterator[SessionEvent]:
        thread, session = payload.get("id"), payload.get("session_id") or payload.get("id")
        if not isinstance(session, str):
            return
        self._session_id = self._session_id or session
        self._is_fork = self._is_fork or bool(payload.get("forked_from_id"))
        if self._agent_id is None and isinstance(thread, str) and payload.get("parent_thread_id") and thread != session:
            self._agent_id = thread
        if not self._is_backstop:
            git = payload.get("git")
            yield Begun(
                session_id=self._session_id,
                agent_id=self._agent_id,
                at=at,
                source=IMPORTED,
                cwd=payload.get("cwd"),
                branch=git.get("branch") if isinstance(git, dict) else None,
                version=payload.get("cli_version"),
            )

    # Usage

    def _record(self, payload: dict[str, Any], place: dict[str, Any]) -> Iterator[SessionEvent]:
        self._has_records = True
        response = payload.get("response_id")
        if isinstance(response, str):
            yield from self._answered(place, response, _tokens(payload.get("usage")))

    def _counted(self, payload: dict[str, Any], place: dict[str, Any]) -> Iterator[SessionEvent]:
        """Yield the usage of older versions, which only report a running total."""
        info = payload.get("info")
        if self._has_records or not isinstance(info, dict):
            return
        total = _tokens(info.get("total_token_usage"))
        # A fork continues the totals of its original thread, which are already charged.
        is_first = self._is_fork and not any(self._total)
        taken = [max(0, now - before) for now, before in zip(total, self._total, strict=True)]
        taken = _tokens(info.get("last_token_usage")) if is_first else taken
        self._total = total
        yield from self._answered(place, f"{self._agent_id or self._session_id}:total:{'-'.join(map(str, total))}", taken)

    def _answered(self, place: dict[str, Any], answer_id: str, tokens: list[int]) -> Iterator[SessionEvent]:
        if any(tokens):
            add(self.answers, self._model, tokens)
            yield from answered(place, answer_id, self._model, tokens)

    # Messages and calls

    def _item(self, payload: dict[str, Any], place: dict[str, Any]) -> Iterator[SessionEvent]:
        kind, call = payload.get("type"), payload.get("call_id")
        if kind == "reasoning":
            yield from _thought(place, payload.get("id"), payload.get("summary"))
        if not isinstance(call, str):
            return
        if kind in ("function_call", "custom_tool_call"):
            name, arguments = _call(payload)
            self._calls[call] = name
            yield Called(**place, call_id=call, tool=name, arguments=arguments)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            output = as_text(payload.get("output"))
            stopped = CallOutcome.INTERRUPTED if _ABORTED.match(output) else CallOutcome.OK
            outcome = CallOutcome.DENIED if output.startswith(_DENIED) else stopped
            yield Returned(**place, call_id=call, tool=self._calls.get(call), outcome=outcome, output=output)

    def _message(self, payload: dict[str, Any], place: dict[str, Any]) -> Iterator[SessionEvent]:
        kind, item = payload.get("type"), payload.get("item")
        if kind == "token_count":
            yield from self._counted(payload, place)
        elif kind == "item_completed" and isinstance(item, dict):
            yield from self._completed(item, payload.get("turn_id"), place)
        elif kind in ("task_complete", "turn_aborted") and not self._is_backstop:
            error = payload.get("error")
            reason = as_text(error.get("message")) if isinstance(error, dict) else as_text(payload.get("reason"))
            yield Rested(**place, error=reason or None, is_read=True)

    def _completed(self, item: dict[str, Any], turn: Any, place: dict[str, Any]) -> Iterator[SessionEvent]:
        name = str(item.get("id") or "")
        match item.get("type"):
            case "UserMessage":
                by = "program" if self._agent_id else "person"
                yield Prompted(**place, prompt_id=str(turn or name), text=as_text(item.get("content")), by=by)
            case "AgentMessage":
                yield Said(**place, text=as_text(item.get("content")), message_id=name or None)
            case "Reasoning":
                yield from _thought(place, name, item.get("summary_text"))
            case "CommandExecution":
                facts = {"exit_code": item.get("exit_code")}
                output = as_text(item.get("aggregated_output"))
                yield Returned(**place, call_id=name, tool="Bash", outcome=_outcome(item), output=output, facts=facts)
            case "FileChange":
                output = as_text(item.get("stdout")) or as_text(item.get("stderr"))
                yield Returned(**place, call_id=name, tool="apply_patch", outcome=_outcome(item), output=output)
            case "McpToolCall":
                tool = f"mcp__{item.get('server')}__{item.get('tool')}"
                yield Returned(**place, call_id=name, tool=tool, outcome=_outcome(item), output=as_text(item.get("result")))


def _thought(place: dict[str, Any], name: Any, summary: Any) -> Iterator[SessionEvent]:
    """Yield the reasoning summary of the model; both kinds of lines that have it use the same id."""
    parts = summary if isinstance(summary, list) else []
    text = "\n\n".join(part for part in (one if isinstance(one, str) else as_text([one]) for one in parts) if part.strip())
    if text and isinstance(name, str) and name:
        yield Thought(**place, text=text, message_id=name)


def _tokens(usage: Any) -> list[int]:
    """Return the four token counts. Codex includes cached tokens in its input count."""
    if not isinstance(usage, dict):
        return [0, 0, 0, 0]
    read, created = whole(usage.get("cached_input_tokens")), whole(usage.get("cache_write_input_tokens"))
    return [max(0, whole(usage.get("input_tokens")) - read - created), read, created, whole(usage.get("output_tokens"))]


def _call(payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    name, space = str(payload.get("name") or "tool"), payload.get("namespace")
    if payload.get("type") == "custom_tool_call":
        return name, {"command": as_text(payload.get("input"))}
    try:
        arguments = json.loads(payload.get("arguments") or "{}")
    except (TypeError, ValueError, RecursionError):
        arguments = {"input": as_text(payload.get("arguments"))}
    if not isinstance(arguments, dict):
        arguments = {"input": arguments}
    if name in _SHELL:
        return "Bash", {"command": as_text(arguments.get("cmd") or arguments.get("command")), **arguments}
    return (f"{space}__{name}" if isinstance(space, str) and space else name), arguments


def _outcome(item: dict[str, Any]) -> CallOutcome:
    match item.get("status"):
        case "completed":
            return CallOutcome.OK
        case "declined":
            return CallOutcome.DENIED
        case _:
            return CallOutcome.FAILED
