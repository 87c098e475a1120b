"""Reader that turns the messages of one session into events: partial messages are joined, and repeats are dropped.

A message is recorded only when complete, so its parts are stored between reads. A message without an id is identified by its
connection and line number, so reading a line again changes nothing.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from decklog.agents.acp import tool_calls
from decklog.agents.acp.exchange import (
    AGENT,
    CLOSING,
    OPENING,
    OURS,
    PERMISSION,
    PROMPT,
    RUN_COMMAND,
    SETTING,
    UPDATE,
    WRITE_FILE,
    Message,
    call_of,
    params_of,
    result_of,
)
from decklog.agents.events import (
    CallOutcome,
    MessageSent,
    OtherEvent,
    PromptSubmitted,
    ReasoningShown,
    SessionEnded,
    SessionEvent,
    SessionStarted,
    TokensUsed,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from decklog.agents.spool import Spool
from decklog.agents.texts import as_text, dict_of, list_of, text_or_none, whole
from decklog.agents.transcripts import find_session_transcripts
from decklog.core.display import DOLLAR

WAY = "acp"
# A longer message is recorded in parts.
_MAX_PART_LENGTH = 150_000
_MOST_REMEMBERED = 200
_SHOWN = 2000


class AcpReader:
    """Reader of one session in one connection; `kept` is its stored state."""

    def __init__(self, program: str, session_id: str, kept: dict[str, Any] | None = None) -> None:
        self.program = program
        self.session = session_id
        self._kept: dict[str, Any] = json.loads(json.dumps(kept)) if kept else {}
        self._facts: dict[str, Any] = {}
        self._at: datetime | None = None
        self._line = ""
        # Continues to read the program's own session files, if there are any.
        self.own_files: Callable[[], Iterator[SessionEvent]] = lambda: iter(())
        # Whether the last line ended a turn, and whether it ended the connection.
        self.is_at_rest = False
        self.is_over = False

    def kept(self) -> dict[str, Any]:
        """Return the state needed to continue reading from here."""
        found: dict[str, Any] = json.loads(json.dumps(self._kept))
        return found

    def events(self, facts: dict[str, Any], message: Message, at: datetime | None) -> Iterator[SessionEvent]:
        """Yield the events of a line, unless the line was read before."""
        self.is_at_rest, self._facts = False, facts
        number = int(facts.get("n") or 0)
        if number <= int(self._kept.get("n") or 0):
            return
        self._kept["n"] = number
        self.is_over = bool(facts.get("end"))
        self._at, self._line = at, f"{facts.get('c')}:{number}"
        if self.is_over:
            yield from self._closing_events("closed")
        elif reason := facts.get("held"):
            yield from self._refusal_events(facts, message, str(reason))
        elif facts.get("re"):
            yield from self._answered(str(facts["re"]), facts, message)
        else:
            yield from self._request_events(str(message.get("method")), facts, message)

    def _has_files(self) -> bool:
        """Return whether the program keeps files of the session. They supply sub-agent events and charges."""
        return bool(find_session_transcripts(self.program, self.session, self._facts))

    def _place(self) -> dict[str, Any]:
        return {"session_id": self.session, "at": self._at, "way": WAY}

    def _note(self, name: str, text: str | None, **facts: Any) -> OtherEvent:
        return OtherEvent(**self._place(), name=name, text=text, facts=facts, note_id=f"{name}:{self._line}")

    # Requests and answers

    def _request_events(self, method: str, facts: dict[str, Any], message: Message) -> Iterator[SessionEvent]:
        params = params_of(message)
        if method == PROMPT:
            yield from self._flush()
            self._kept["prompted"] = True
            yield PromptSubmitted(**self._place(), prompt_id=self._line, text=as_text(params.get("prompt")))
        elif method == UPDATE:
            yield from self._update(dict_of(params.get("update")) or params)
        elif method == PERMISSION and facts.get("from") == AGENT:
            yield from self._permission_events(message)
        elif method == "session/cancel":
            yield self._note("cancel", "the turn was cancelled")
        elif method == WRITE_FILE:
            yield self._note("file", as_text(params.get("path")), bytes=len(as_text(params.get("content"))))
        elif method == RUN_COMMAND:
            words = [as_text(params.get("command")), *map(str, params.get("args") or ())]
            yield self._note("terminal", " ".join(words), cwd=params.get("cwd"))

    def _answered(self, method: str, facts: dict[str, Any], message: Message) -> Iterator[SessionEvent]:
        error = dict_of(message.get("error"))
        if method in OPENING and not error:
            yield from self._begun(method, facts, result_of(message))
        elif method == PROMPT:
            yield from self._turn_answer_events(message, error)
        elif method == PERMISSION:
            yield from self._decision_events(message, "person", None)
        elif method in CLOSING and not error:
            yield from self._closing_events(method.rpartition("/")[2])
        elif method in SETTING:
            yield self._set(dict_of(facts.get("asked")), error)

    def _begun(self, method: str, facts: dict[str, Any], result: dict[str, Any]) -> Iterator[SessionEvent]:
        asked, about = dict_of(facts.get("asked")), dict_of(facts.get("about"))
        self._kept["model"] = _model_of(result)
        if method == "session/load":
            self._kept["replayed"] = True
        yield SessionStarted(
            **self._place(),
            source=OPENING[method],
            cwd=text_or_none(asked.get("cwd")),
            model=text_or_none(self._kept["model"]),
            version=text_or_none(about.get("version")),
        )
        servers = {"servers": asked["servers"]} if asked.get("servers") else {}
        forked = {"of": asked["of"]} if method == "session/fork" and asked.get("of") else {}
        known = {**about, **servers, **forked, "connection": facts.get("c")}
        yield self._note("editor", str(about.get("client") or "an editor"), **known)
        if made := facts.get("enforced"):
            yield self._note("guard", "The agent is made to ask: " + "; ".join(map(str, made)))

    def _set(self, asked: dict[str, Any], error: dict[str, Any]) -> SessionEvent:
        what = asked.get("configId") or ("model" if "modelId" in asked else "mode")
        value = asked.get("modeId") or asked.get("modelId") or asked.get("value")
        if what == "model" and not error:
            self._kept["model"] = str(value)
        failed = {"error": as_text(error.get("message"))} if error else {}
        return self._note(str(what), f"{what}: {as_text(value)}", **failed)

    # Turns

    def _turn_answer_events(self, message: Message, error: dict[str, Any]) -> Iterator[SessionEvent]:
        result = result_of(message)
        if "messageId" in result and "stopReason" not in result:
            # Protocol version 2 answers at once; an update ends the turn later.
            return
        yield from self._turn_end_events(result, as_text(error.get("message")) or None)

    def _turn_end_events(self, result: dict[str, Any], error: str | None) -> Iterator[SessionEvent]:
        self.is_at_rest = True
        yield from self._flush()
        reason = text_or_none(result.get("stopReason"))
        yield from self._close_calls(reason)
        usage, cost = _usage_of(result), self._kept.get("cost")
        # The session's files supply the charges, if there are any.
        if (usage or cost) and not self._has_files():
            model = str(self._kept.get("model") or self.program)
            charge: dict[str, Any] = {**self._place(), **usage, "model": model, "session_microdollars": cost}
            yield TokensUsed(**charge, answer_id=self._line)
        stopped = reason if reason not in (None, "end_turn") else None
        yield TurnEnded(**self._place(), error=error or stopped, facts={"usage": usage} if usage else {})

    def _close_calls(self, reason: str | None) -> Iterator[SessionEvent]:
        """Close the calls that the agent left open at the end of its turn."""
        calls: dict[str, Any] = self._kept.get("calls") or {}
        for call_id, call in list(calls.items()):
            if call.get("rejected") or reason == "cancelled":
                outcome = CallOutcome.DENIED if call.get("rejected") else CallOutcome.INTERRUPTED
                yield from self._result_events(call_id, call, outcome)

    def _closing_events(self, reason: str) -> Iterator[SessionEvent]:
        yield from self._flush()
        for call_id, call in list((self._kept.get("calls") or {}).items()):
            if call.get("rejected"):
                yield from self._result_events(call_id, call, CallOutcome.DENIED)
            else:
                yield from self._call_events(call_id, call)
        yield SessionEnded(**self._place(), reason=reason, connection=str(self._facts.get("c")))
        self._kept = {"n": self._kept.get("n")}

    # Updates

    def _update(self, update: dict[str, Any]) -> Iterator[SessionEvent]:
        kind = str(update.get("sessionUpdate") or update.get("type") or "")
        read = _UPDATES.get(kind)
        if read is not None:
            yield from read(self, update)
        elif kind and kind not in _REPEATED:
            shown = {name: value for name, value in update.items() if name != "sessionUpdate"}
            yield self._note(kind, None, told=json.dumps(shown, ensure_ascii=False)[:_SHOWN])

    def _chunk(self, kind: str, update: dict[str, Any]) -> Iterator[SessionEvent]:
        content = update.get("content")
        text = as_text([content] if isinstance(content, dict) else content)
        message_id = text_or_none(update.get("messageId"))
        parent = dict_of(dict_of(update.get("_meta")).get("claudeCode")).get("parentToolUseId")
        # Replay of an earlier connection: chunks with an id are recognised by that id.
        is_replay = message_id is None and self._kept.get("replayed") and not self._kept.get("prompted")
        if is_replay or (parent and self._has_files()):
            return
        piece = self._kept.get("piece")
        if piece is not None and (piece["kind"], piece["id"]) != (kind, message_id):
            yield from self._flush()
            piece = None
        if piece is None:
            at = self._at.isoformat() if self._at else None
            piece = self._kept["piece"] = {"kind": kind, "id": message_id, "line": self._line, "text": "", "at": at}
        piece["text"] += text
        if len(piece["text"]) > _MAX_PART_LENGTH:
            yield from self._flush()

    def _flush(self) -> Iterator[SessionEvent]:
        """Yield the collected message, now that it is complete."""
        piece = self._kept.pop("piece", None)
        if piece is None or not piece["text"].strip():
            return
        name = piece["id"] or piece["line"]
        counts: dict[str, int] = self._kept.setdefault("pieces", {})
        place = f"{piece['kind']}:{name}"
        count = counts[place] = counts.pop(place, 0) + 1
        while len(counts) > _MOST_REMEMBERED:
            counts.pop(next(iter(counts)))
        said = MessageSent if piece["kind"] == "said" else ReasoningShown
        at = {"at": datetime.fromisoformat(piece["at"])} if piece["at"] else {}
        yield said(**{**self._place(), **at}, text=piece["text"], message_id=name if count == 1 else f"{name}:{count}")

    def _call(self, update: dict[str, Any]) -> Iterator[SessionEvent]:
        call_id = text_or_none(update.get("toolCallId"))
        if call_id is None or call_id in self._kept.get("ended", ()):
            return
        calls: dict[str, Any] = self._kept.setdefault("calls", {})
        if call_id not in calls:
            yield from self._flush()
        call = calls[call_id] = tool_calls.merged(calls.get(call_id), update)
        if len(calls) > _MOST_REMEMBERED:
            # Some calls never end.
            yield from self._call_events(first := next(iter(calls)), calls[first])
            del calls[first]
        if call.get("parent") and self._has_files():
            del calls[call_id]
            return
        if tool_calls.is_described(call):
            yield from self._call_events(call_id, call)
        if call.get("status") in tool_calls.ENDED:
            outcome = tool_calls.outcome_of(call, is_rejected=bool(call.get("rejected")))
            yield from self._result_events(call_id, call, outcome)

    def _call_events(self, call_id: str, call: dict[str, Any]) -> Iterator[SessionEvent]:
        if call.get("told"):
            return
        call["told"] = True
        if not call.get("rawInput"):
            # The messages lack the arguments; read the session's files first, which may have them.
            yield from self.own_files()
        tool, arguments = tool_calls.tool_of(call_id, call), tool_calls.arguments_of(call)
        yield ToolCalled(**self._place(), call_id=call_id, tool=tool, arguments=arguments)

    def _result_events(self, call_id: str, call: dict[str, Any], outcome: CallOutcome) -> Iterator[SessionEvent]:
        yield from self._call_events(call_id, call)
        self._kept["calls"].pop(call_id, None)
        self._kept["ended"] = [*self._kept.get("ended", ()), call_id][-_MOST_REMEMBERED:]
        if outcome in (CallOutcome.OK, CallOutcome.FAILED):
            yield from tool_calls.changed(self._place(), call_id, call)
        if outcome in (CallOutcome.OK, CallOutcome.FAILED) and not tool_calls.output_of_call(call):
            # The messages lack the output, too.
            yield from self.own_files()
        code = tool_calls.exit_code_of(call)
        output = (
            str(call["rejected"]) if outcome is CallOutcome.DENIED and call.get("rejected") else tool_calls.output_of_call(call)
        )
        tool = tool_calls.tool_of(call_id, call)
        facts = {"exit_code": code} if code is not None else {}
        yield ToolReturned(**self._place(), call_id=call_id, tool=tool, outcome=outcome, output=output, facts=facts)

    def _terminal(self, update: dict[str, Any]) -> Iterator[SessionEvent]:
        """Merge a terminal's output into the call that shows it."""
        name = update.get("terminalId")
        for call_id, call in (self._kept.get("calls") or {}).items():
            if any(part.get("terminalId") == name for part in list_of(call.get("content"))):
                self._kept["calls"][call_id] = tool_calls.with_terminal(call, update)
        yield from ()

    def _plan(self, update: dict[str, Any]) -> Iterator[SessionEvent]:
        entries = list_of(update.get("entries")) or list_of(dict_of(update.get("plan")).get("entries"))
        text = "\n".join(f"[{entry.get('status') or 'pending'}] {as_text(entry.get('content'))}" for entry in entries)
        if text and text != self._kept.get("plan"):
            self._kept["plan"] = text
            yield self._note("plan", text)

    def _mode(self, update: dict[str, Any]) -> Iterator[SessionEvent]:
        mode = update.get("currentModeId") or update.get("modeId")
        if mode != self._kept.get("mode"):
            self._kept["mode"] = mode
            yield self._note("mode", f"mode: {as_text(mode)}")

    def _options(self, update: dict[str, Any]) -> Iterator[SessionEvent]:
        options = list_of(update.get("configOptions")) or list_of(update.get("options"))
        found = {str(each.get("id") or each.get("configId")): each.get("currentValue") for each in options}
        before, self._kept["options"] = self._kept.get("options") or {}, found
        if isinstance(model := found.get("model"), str):
            self._kept["model"] = model
        for name, value in found.items():
            if before and before.get(name) != value:
                yield self._note(name, f"{name}: {as_text(value)}")

    def _commands(self, update: dict[str, Any]) -> Iterator[SessionEvent]:
        """Yield the number of commands that an agent offers; keep only the digest of their texts."""
        commands = list_of(update.get("availableCommands"))
        digest = hashlib.sha256(json.dumps(commands, sort_keys=True).encode()).hexdigest()
        facts = {"commands": len(commands), "sha256": digest}
        yield OtherEvent(
            **self._place(), name="commands", text=f"{len(commands)} commands", facts=facts, note_id=f"commands:{digest}"
        )

    def _used(self, update: dict[str, Any]) -> Iterator[SessionEvent]:
        """Store the session's cost so far."""
        cost = dict_of(update.get("cost"))
        amount = cost.get("amount")
        if isinstance(amount, int | float) and not isinstance(amount, bool) and cost.get("currency", "USD") == "USD":
            self._kept["cost"] = round(amount * DOLLAR)
        yield from ()

    def _state(self, update: dict[str, Any]) -> Iterator[SessionEvent]:
        if update.get("state") == "idle":
            yield from self._turn_end_events(update, None)

    def _title(self, update: dict[str, Any]) -> Iterator[SessionEvent]:
        title = text_or_none(update.get("title"))
        if title and title != self._kept.get("title"):
            self._kept["title"] = title
            yield self._note("title", title)

    # Permissions

    def _permission_events(self, request: Message) -> Iterator[SessionEvent]:
        """Yield the permission request and its call; the request may contain only the call's id."""
        reported = call_of(request)
        call_id = text_or_none(reported.get("toolCallId"))
        if call_id is not None:
            yield from self._call({name: value for name, value in reported.items() if name != "status"})
        call = (self._kept.get("calls") or {}).get(call_id) or tool_calls.merged(None, reported)
        if call_id is not None and call_id in (self._kept.get("calls") or {}):
            yield from self._call_events(call_id, call)
        offered = list_of(params_of(request).get("options"))
        options = [f"{each.get('kind')}: {each.get('optionId')}" for each in offered]
        asked: dict[str, Any] = self._kept.setdefault("asked", {})
        kinds = {str(each.get("optionId")): str(each.get("kind")) for each in offered}
        asked[str(request.get("id"))] = {"call": call_id, "options": kinds}
        title = text_or_none(call.get("title")) or text_or_none(params_of(request).get("title")) or "a tool"
        yield self._note("permission", f"asked: {title}", call=call_id, options=options)

    def _decision_events(self, message: Message, by: str, reason: str | None) -> Iterator[SessionEvent]:
        asked = (self._kept.get("asked") or {}).pop(str(message.get("id")), {})
        outcome = dict_of(result_of(message).get("outcome"))
        option = outcome.get("optionId")
        kind = dict_of(asked.get("options")).get(str(option)) or str(outcome.get("outcome") or "refused")
        is_rejected = not kind.startswith("allow")
        if is_rejected and (call := (self._kept.get("calls") or {}).get(asked.get("call"))) is not None:
            call["rejected"] = reason or f"{by}: {kind}"
        text = f"{kind} by {by}" + (f": {reason}" if reason else "")
        yield self._note("permission", text, call=asked.get("call"), by=by, decision=kind, option=option, reason=reason)

    def _refusal_events(self, facts: dict[str, Any], message: Message, reason: str) -> Iterator[SessionEvent]:
        if facts.get("from") == OURS and facts.get("re") == PERMISSION:
            yield from self._decision_events(message, "policy", reason)
        else:
            what = facts.get("re") or "a request"
            yield self._note("denied", f"{what} denied by policy: {reason}", by="policy", reason=reason, asked=facts.get("asked"))


_UPDATES: dict[str, Callable[[AcpReader, dict[str, Any]], Iterator[SessionEvent]]] = {
    "agent_message_chunk": lambda reader, update: reader._chunk("said", update),
    "agent_message": lambda reader, update: reader._chunk("said", update),
    "agent_thought_chunk": lambda reader, update: reader._chunk("thought", update),
    "agent_thought": lambda reader, update: reader._chunk("thought", update),
    "tool_call": AcpReader._call,
    "tool_call_update": AcpReader._call,
    "terminal_update": AcpReader._terminal,
    "plan": AcpReader._plan,
    "plan_update": AcpReader._plan,
    "current_mode_update": AcpReader._mode,
    "config_option_update": AcpReader._options,
    "available_commands_update": AcpReader._commands,
    "usage_update": AcpReader._used,
    "state_update": AcpReader._state,
    "session_info_update": AcpReader._title,
}
# Repeats of a prompt that the request has already supplied.
_REPEATED = frozenset(["user_message_chunk", "user_message"])


# Usage: tokens at the end of each turn, cost as a session total. Not used if the session has files, which supply the charges.


def _usage_of(result: dict[str, Any]) -> dict[str, int]:
    """Return the token counts at the end of a turn by kind; empty if there are none."""
    usage = dict_of(result.get("usage"))
    quota = dict_of(dict_of(dict_of(result.get("_meta")).get("quota")).get("token_count"))
    found = {
        "input_tokens": whole(usage.get("inputTokens")) or whole(quota.get("input_tokens")),
        "cache_read_tokens": whole(usage.get("cachedReadTokens")),
        "cache_create_tokens": whole(usage.get("cachedWriteTokens")),
        "output_tokens": whole(usage.get("outputTokens")) or whole(quota.get("output_tokens")),
    }
    return {name: count for name, count in found.items() if count}


def _model_of(result: dict[str, Any]) -> str | None:
    """Return the model of a new session."""
    for option in list_of(result.get("configOptions")):
        if "model" in (option.get("id"), option.get("configId"), option.get("category")):
            return text_or_none(option.get("currentValue"))
    return text_or_none(dict_of(result.get("models")).get("currentModelId"))


class AcpReaders:
    """Readers by session and connection; their state is stored in the spool."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._open: dict[str, AcpReader] = {}

    def of(self, program: str, session: str, connection: str) -> AcpReader:
        """Return the reader of a session, restored from its stored state."""
        place = os.path.join("acp", connection, f"{program}-{session}")
        if place not in self._open:
            self._open[place] = AcpReader(program, session, self._spool.mark(place))
        return self._open[place]

    def copied(self) -> "AcpReaders":
        """Return a copy of all readers, to restore after a failed transaction."""
        copy = AcpReaders(self._spool)
        copy._open = {place: AcpReader(reader.program, reader.session, reader.kept()) for place, reader in self._open.items()}
        return copy

    def keep(self) -> None:
        """Store the state of all readers."""
        for place, reader in self._open.items():
            self._spool.set_mark(place, reader.kept(), is_synced=True)

    def forget_ended(self) -> None:
        """Remove the stored state of ended connections."""
        for place, reader in self._open.items():
            if reader.is_over:
                self._spool.forget_mark(place)
