"""Headless client of the Agent Client Protocol: prompts an agent and prints its events.

The conductor starts it in place of the agent, inside the agent's sandbox. Every printed line is an event as JSON. A decision that
the policy leaves to a person is printed as a question. Its answer is a file in a folder that only the conductor writes, so
neither process depends on the other.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import count
from types import FrameType
from typing import Any

from decklog.agents.acp import asking
from decklog.agents.acp.exchange import (
    AGENT,
    EDITOR,
    OPENING,
    OURS,
    PERMISSION,
    PROMPT,
    UPDATE,
    Exchange,
    Message,
    answer,
    params_of,
    parse,
    refusal,
    result_of,
    written,
)
from decklog.agents.acp.tool_calls import arguments_of, tool_of
from decklog.agents.acp.wire import AcpReader
from decklog.agents.entries import MOST_CHARACTERS
from decklog.agents.events import (
    MessageSent,
    OtherEvent,
    ReasoningShown,
    SessionEvent,
    SessionStarted,
    TokensUsed,
    ToolCalled,
    ToolReturned,
)
from decklog.agents.texts import dict_of, list_of
from decklog.core.display import DOLLAR
from decklog.hooks.proxy.guarding import ProxyGuard, denial
from decklog.hooks.proxy.relay import Mailbox, ending_text, read_lines, report_start_failure, start

_NO_SUCH_METHOD = -32601
_LOOK_SECONDS = 0.1
_GRACE_SECONDS = 2.0
_CANCELLED = 130
_SHOWN = 4000


@dataclass(frozen=True, kw_only=True)
class DriveRequest:
    """Parameters of a run: the agent's command, the prompt file, and who answers open permission requests."""

    command: list[str]
    prompt_file: str
    answers: str
    permissions: str = "person"
    model: str | None = None
    # Whether the agent runs inside Decklog's sandbox.
    is_sandboxed: bool = False


class AgentEnded(Exception):
    """The agent closed its output."""


class Driver:
    """Client that sends one agent its prompt, and later messages of people."""

    def __init__(self, order: DriveRequest) -> None:
        self._order = order
        self._root = os.getcwd()
        self._exchange = Exchange(order.command[0])
        self._guard = ProxyGuard()
        self._wire: AcpReader | None = None
        self._session = ""
        self._numbers, self._lines, self._questions = count(1), count(1), count(1)
        self._lock = threading.RLock()
        self._waiting: dict[int, Message] = {}
        self._is_cancelled = False
        self._print_text = ""
        environment = {**os.environ, **asking.build_environment(os.environ, is_sandboxed=order.is_sandboxed)}
        self._child, self._outlet, output = start(order.command, environment)
        self._heard = self._messages(output)

    # Course of a run

    def run(self) -> int:
        """Prompt the agent and run it to its end; return the exit code, 0 if it completed its turn."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._cancel)
        threading.Thread(target=self._look_for_answers, daemon=True).start()
        try:
            return self._run_turns()
        except AgentEnded:
            code = self._child.wait()
            emit("error", text=f"the agent ended in the midst of it, with {ending_text(code)}")
            return _CANCELLED if self._is_cancelled else code if code > 0 else 1
        finally:
            self._close()

    def _run_turns(self) -> int:
        client = {"name": "decklog", "version": "1"}
        # The agent accesses files and terminals directly; its sandbox limits it.
        self._call("initialize", protocolVersion=1, clientCapabilities={}, clientInfo=client)
        opened = self._call("session/new", cwd=self._root, mcpServers=[])
        if "error" in opened:
            return self._report_end(opened)
        self._choose_model(result_of(opened))
        with open(self._order.prompt_file, encoding="utf-8") as file:
            text = file.read()
        answered = self._prompt(text)
        mailbox = Mailbox(self._order.answers)
        while result_of(answered).get("stopReason") == "end_turn" and (new := list(mailbox.new())):
            # Each turn sends the messages written during the previous one.
            for message_id, written_text in new:
                emit("delivered", message=message_id, text=written_text)
            answered = self._prompt("\n\n".join(written_text for _, written_text in new))
        return self._report_end(answered)

    def _prompt(self, text: str) -> Message:
        return self._call(PROMPT, sessionId=self._session, prompt=[{"type": "text", "text": text}])

    def _choose_model(self, opened: dict[str, Any]) -> None:
        model = self._order.model
        if model is None:
            return
        options = [str(option.get("id")) for option in list_of(opened.get("configOptions"))]
        if "model" in options:
            chosen = self._call("session/set_config_option", sessionId=self._session, configId="model", value=model)
        else:
            chosen = self._call("session/set_model", sessionId=self._session, modelId=model)
        if error := dict_of(chosen.get("error")):
            emit("note", text=f"the model {model} was not taken: {error.get('message')}")

    def _report_end(self, message: Message) -> int:
        """Return the exit code of a turn; a turn that the agent did not complete is an error."""
        error, reason = dict_of(message.get("error")), result_of(message).get("stopReason")
        if error:
            data = error.get("data")
            text = f"{error.get('message')} {json.dumps(data) if data else ''}".strip()
            emit("error", text=text[:_SHOWN], status=error.get("code"))
        elif reason != "end_turn":
            emit("error", text=f"the turn ended with {reason}", reason=reason)
        elif "usage" in (result := result_of(message)) and result["usage"] is None:
            # No model has answered. Some agents only mention the reason, and report the turn as completed.
            emit("error", text=self._print_text[:_SHOWN] or "no model has answered")
        else:
            emit("end", reason=reason)
            return 0
        return _CANCELLED if self._is_cancelled else 1

    def _cancel(self, _number: int, _frame: FrameType | None) -> None:
        """Ask the agent to stop; a second signal exits at once."""
        if self._is_cancelled or not self._session:
            os._exit(_CANCELLED)
        self._is_cancelled = True
        self._outlet.write_async(written({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self._session}}))

    def _close(self) -> None:
        self._outlet.close()
        for end in (self._child.terminate, self._child.kill):
            try:
                self._child.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                end()

    # Messages

    def _call(self, method: str, **params: Any) -> Message:
        """Send a request to the agent and handle its messages until it has answered."""
        number = next(self._numbers)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        request = asking.require_permissions(self._exchange.program, request) or request
        self._exchange.see(EDITOR, request)
        if method == PROMPT:
            self._take({"from": EDITOR}, request)
        self._outlet.write(written(request))
        for message in self._heard:
            self._receive(message)
            if "method" not in message and message.get("id") == number:
                return message
        raise AgentEnded

    def _messages(self, descriptor: int) -> Iterator[Message]:
        for line in read_lines(descriptor):
            parsed = parse(line)
            yield from parsed if isinstance(parsed, list) else () if parsed is None else (parsed,)

    def _receive(self, message: Message) -> None:
        seen = self._exchange.see(AGENT, message)
        if seen is None:
            return
        if seen.is_answer:
            self._receive_answer(seen.method, seen.asked, message)
        else:
            self._guard.see(message)
            self._take({"from": AGENT}, message)
            if seen.method == PERMISSION:
                self._decide(message)
            elif "id" in message:
                self._outlet.write(written(refusal(message, f"{seen.method} is not offered", _NO_SUCH_METHOD)))

    def _receive_answer(self, method: str, asked: dict[str, Any], message: Message) -> None:
        if method in OPENING and "error" not in message:
            self._session = str(result_of(message).get("sessionId"))
            self._wire = AcpReader(self._exchange.program, self._session)
            for done in asking.enforcement_notes(self._exchange.program, is_sandboxed=self._order.is_sandboxed):
                emit("note", text=f"made to ask: {done}" if not done.startswith("not ") else done)
        self._take({"from": AGENT, "re": method, "asked": asked, "about": self._exchange.about}, message)

    def _take(self, facts: dict[str, Any], message: Message) -> None:
        """Print the events of a message."""
        with self._lock:
            if self._wire is None:
                return
            own = {"c": "driven", "n": next(self._lines), "cwd": self._root}
            for event in self._wire.events({**own, **facts}, message, None):
                show(event)
                self._print_text = event.text if isinstance(event, MessageSent) else self._print_text
            update = dict_of(params_of(message).get("update"))
            cost = dict_of(update.get("cost"))
            if message.get("method") == UPDATE and cost.get("currency") == "USD":
                emit("usage", cost_usd=cost.get("amount"))

    # Permissions

    def _decide(self, request: Message) -> None:
        decision, why, cause = self._guard.decision(request, self._root)
        if decision == "ask" and self._order.permissions == "person":
            self._ask(request, why, cause)
        elif decision == "allow" or (decision == "ask" and self._order.permissions == "allow"):
            self._answer(request, None, "policy")
        else:
            self._answer(request, why or "it is not allowed here", "policy")

    def _ask(self, request: Message, why: str, cause: dict[str, str]) -> None:
        call = self._guard.call(request)
        tool, arguments = tool_of(str(call.get("toolCallId", "")), call), self._hide_workspace_path(arguments_of(call))
        number = next(self._questions)
        with self._lock:
            self._waiting[number] = request
        shown = arguments.get("command") or arguments.get("path") or call.get("title") or json.dumps(arguments)
        about = {"tool": tool, "arguments": arguments}
        emit("ask", number=number, text=f"{tool}: {shown} {why}".strip(), about=about, cause=cause or None)

    def _hide_workspace_path(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Replace the agent's folder by `.`: the next attempt has another folder but asks the same question."""
        text = json.dumps(arguments).replace(json.dumps(self._root)[1:-1], ".")
        return dict_of(json.loads(text))

    def _look_for_answers(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            with self._lock:
                waiting = list(self._waiting.items())
            for number, request in waiting:
                reply = _read(os.path.join(self._order.answers, f"{number}.json"))
                if reply is not None:
                    with self._lock:
                        del self._waiting[number]
                    self._answer(request, None if reply.get("allow") is True else str(reply.get("reason") or "no"), "person")

    def _answer(self, request: Message, denied: str | None, by: str) -> None:
        """Answer a permission request for a single call, and print who decided."""
        options = [one for one in list_of(params_of(request).get("options")) if one.get("kind") == "allow_once"]
        if denied is None and not options:
            denied = "the agent asks for more than this one call"
        if denied is None:
            answered = answer(request, {"outcome": {"outcome": "selected", "optionId": options[0].get("optionId")}})
            self._take({"from": EDITOR, "re": PERMISSION} if by == "person" else {"from": OURS, "re": "allowed"}, answered)
        else:
            answered = denial(request, denied)
            self._take({"from": OURS, "re": PERMISSION, "held": denied}, answered)
        self._exchange.forget(AGENT, request)
        emit("note", text=f"permission {'denied' if denied else 'given'} by {by}{f': {denied}' if denied else ''}")
        self._outlet.write_async(written(answered))


# Output

_printing = threading.Lock()


def emit(kind: str, **facts: Any) -> None:
    """Print an event as JSON."""
    line = json.dumps({"type": kind, **{name: value for name, value in facts.items() if value is not None}})
    with _printing:
        os.write(1, line.encode(errors="replace") + b"\n")


def show(event: SessionEvent) -> None:
    """Print an event of the session. Prompts and the ends of turns are not printed: requests and their answers report them."""
    match event:
        case SessionStarted():
            emit("start", session=event.session_id, model=event.model, agent=f"version {event.version or 'unknown'}")
        case MessageSent():
            emit("text", text=event.text[:MOST_CHARACTERS])
        case ReasoningShown():
            emit("thought", text=event.text[:MOST_CHARACTERS])
        case ToolCalled():
            emit("tool", call=event.call_id, tool=event.tool, input=event.arguments)
        case ToolReturned():
            output, code = event.output[:MOST_CHARACTERS], event.facts.get("exit_code")
            emit("result", call=event.call_id, tool=event.tool, outcome=event.outcome.value, exit_code=code, output=output)
        case OtherEvent() if event.name not in ("commands", "permission", "editor"):
            emit("note", text=f"{event.name}: {event.text or ''}"[:_SHOWN])
        case TokensUsed():
            kinds = ("input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens")
            cost = None if event.session_microdollars is None else event.session_microdollars / DOLLAR
            emit("usage", model=event.model, cost_usd=cost, **{kind: getattr(event, kind) or None for kind in kinds})


def _read(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            return dict_of(json.load(file))
    except FileNotFoundError:
        return None


def main() -> None:
    """Run the request in the last argument."""
    given = json.loads(sys.argv[-1])
    order = DriveRequest(**{field.name: given[field.name] for field in fields(DriveRequest) if field.name in given})
    try:
        driver = Driver(order)
    except OSError as problem:
        sys.exit(report_start_failure(order.command[0], problem))
    sys.exit(driver.run())
