"""Relay between an editor and an agent: every line is spooled and passed on unchanged, unless the policy blocks it.

Errors here never stop the conversation. When one side ends, the other receives everything that was written.
"""

import json
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from decklog.agents.acp import asking
from decklog.agents.acp.exchange import (
    AGENT,
    CLOSING,
    EDITOR,
    OPENING,
    OURS,
    PERMISSION,
    PROMPT,
    RUN_COMMAND,
    SETTING,
    UPDATE,
    WRITE_FILE,
    AcpMessage,
    Exchange,
    Message,
    is_unreadable,
    parse,
    refusal,
    written,
)
from decklog.core.processes import Identity
from decklog.hooks.proxy.capturing import ProxyCapture
from decklog.hooks.proxy.guarding import JUDGED, ProxyGuard, denial
from decklog.hooks.proxy.recording import ErrorReporter, Recording

_CHUNK = 1 << 18


def read_lines(descriptor: int) -> Iterator[bytes]:
    """Yield lines of any length with their line ends; at the end, an incomplete line."""
    parts: list[bytes] = []
    while chunk := os.read(descriptor, _CHUNK):
        start = 0
        while end := chunk.find(b"\n", start) + 1:
            parts.append(chunk[start:end])
            yield parts[0] if len(parts) == 1 else b"".join(parts)
            parts.clear()
            start = end
        if start < len(chunk):
            parts.append(chunk[start:])
    if parts:
        yield b"".join(parts)


class Outlet:
    """Output for lines from several threads: each line is written whole, and a write waits for a slow reader."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._own: deque[bytes] = deque()
        self.is_gone = False
        # Whether a write waits for the reader.
        self.is_busy = False

    def write(self, line: bytes) -> None:
        """Write a line, waiting for the reader if necessary; do nothing if the reader is gone."""
        with self._lock:
            self._write(line)

    def write_async(self, line: bytes) -> None:
        """Queue our own line without waiting: a thread that reads from a side must never block on writing to it."""
        self._own.append(line)
        threading.Thread(target=self._write_own, daemon=True).start()

    def _write_own(self) -> None:
        with self._lock:
            while self._own:
                self._write(self._own.popleft())

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        self.is_busy = True
        try:
            while rest and not self.is_gone:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self.is_gone = True
        self.is_busy = False

    def close(self) -> None:
        """Close the output."""
        with self._lock:
            if not self.is_gone:
                self.is_gone = True
                os.close(self._descriptor)


def start(command: list[str], environment: Mapping[str, str] | None = None) -> tuple["subprocess.Popen[bytes]", Outlet, int]:
    """Start a program; return it with its input and the descriptor of its output."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert child.stdin is not None
    assert child.stdout is not None
    # Use a duplicate descriptor: the object may close its own after the number is reused.
    outlet = Outlet(os.dup(child.stdin.fileno()))
    child.stdin.close()
    return child, outlet, child.stdout.fileno()


def ending_text(code: int) -> str:
    """Return how a process ended, as text."""
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def report_start_failure(program: str, problem: OSError) -> int:
    """Report a program that can't be started; return the exit code that a shell would."""
    os.write(2, f"{program} can't be started: {problem.strerror}\n".encode())
    return 127 if isinstance(problem, FileNotFoundError) else 126


# Requests to record, and requests whose answers are recorded.
_RECORDED = frozenset([PROMPT, UPDATE, PERMISSION, "session/cancel", WRITE_FILE, RUN_COMMAND])
_ANSWERS_RECORDED = frozenset([PROMPT, PERMISSION, *OPENING, *CLOSING, *SETTING])
_RECEIVER = {EDITOR: AGENT, AGENT: EDITOR}
# An agent exits when its editor is gone, but some do not while an MCP server is attached.
_GRACE_SECONDS = 10.0
# An orphan of the agent may keep its output open: stop after this number of checks without progress.
_CHECK_SECONDS, _MOST_IDLE_CHECKS = 0.25, 4
_INTERNAL = -32603
_FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Relay:
    """One connection, from the start of the agent to its end."""

    def __init__(self, command: list[str], environment: Mapping[str, str], *, db: str | None, is_enforced: bool) -> None:
        self._is_enforced = is_enforced
        self._exchange = Exchange(command[0])
        self._guard = ProxyGuard()
        self._errors = ErrorReporter()
        self._lock = threading.Lock()
        # Number of the agent's lines that were passed on.
        self._passed_count = 0
        self._recording = Recording(environment, db)
        more = asking.build_environment(environment) if is_enforced else {}
        self._child, inlet, self._agent_output = start(command, {**environment, **more})
        self._outlets = {EDITOR: Outlet(1), AGENT: inlet}
        process = Identity.of(self._child.pid)
        agent = None if process is None else process.as_text()
        self._capture = ProxyCapture(self._put_captured, self._recording.has_log, agent)

    def run(self) -> int:
        """Relay all lines until the agent has ended; return its exit code."""
        # Block signals in every thread, after the agent started. One thread waits for them: a handler could run too early.
        signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED_SIGNALS)
        self._capture.start()
        threading.Thread(target=self._pass_signals, daemon=True).start()
        threading.Thread(target=self._from_editor, daemon=True).start()
        agent = threading.Thread(target=self._pump, args=(AGENT, self._agent_output), daemon=True)
        agent.start()
        code = self._child.wait()
        self._drain(agent)
        self._capture.close()
        self._answer_open_requests(code)
        return code if code >= 0 else 128 - code

    def _drain(self, agent: threading.Thread) -> None:
        """Wait until all output of the agent was passed on, even to a slow editor."""
        idle_checks, before = 0, -1
        while agent.is_alive() and idle_checks < _MOST_IDLE_CHECKS:
            agent.join(_CHECK_SECONDS)
            is_moving = self._passed_count != before or self._outlets[EDITOR].is_busy
            idle_checks, before = 0 if is_moving else idle_checks + 1, self._passed_count

    def _pass_signals(self) -> None:
        while True:
            number = signal.sigwait(_FORWARDED_SIGNALS)
            # A terminal sends SIGINT to the whole process group.
            if number != signal.SIGINT or not os.isatty(0):
                self._child.send_signal(number)

    def _from_editor(self) -> None:
        self._pump(EDITOR, 0)
        self._outlets[AGENT].close()
        for wait, end in ((_GRACE_SECONDS, self._child.terminate), (2 * _GRACE_SECONDS, self._child.kill)):
            timer = threading.Timer(wait, end)
            timer.daemon = True
            timer.start()

    def _pump(self, sender: str, descriptor: int) -> None:
        receiver = self._outlets[_RECEIVER[sender]]
        for line in read_lines(descriptor):
            output: bytes | None = line
            try:
                output = self._process_line(sender, line)
            except Exception as problem:  # noqa: BLE001
                # An agent's request must be judged; an editor's message passes even if it can't be recorded.
                output = None if sender == AGENT else line
                self._errors.report(problem)
            if output is not None:
                receiver.write(output)
            self._passed_count += sender == AGENT

    def _process_line(self, sender: str, line: bytes) -> bytes | None:
        """Record a line and return the line to pass on: unchanged, changed, or None."""
        parsed = parse(line)
        if parsed is None:
            if sender == AGENT and is_unreadable(line):
                # The editor may accept JSON that we can't parse, such as deep nesting: it could be a request.
                raise ValueError("a message of the agent can't be read, so it was not passed on")
            return line
        if isinstance(parsed, dict):
            return self._process_message(sender, parsed, line)
        output = [self._process_message(sender, message, written(message)) for message in parsed]
        if output == [written(message) for message in parsed]:
            return line
        # Blocked requests were answered; pass on the rest of the batch.
        rest = [kept for kept in map(parse, filter(None, output)) if isinstance(kept, dict)]
        return written(rest) if rest else None

    def _process_message(self, sender: str, message: Message, line: bytes) -> bytes | None:
        with self._lock:
            seen = self._exchange.see(sender, message)
        if seen is None:
            return line
        is_request = sender == AGENT and not seen.is_answer
        if is_request:
            self._guard.see(message)
        self._record(sender, seen, line)
        if is_request and seen.method in JUDGED and (reason := self._guard.block_reason(message, self._root(seen))) is not None:
            self._block(AGENT, message, seen, reason)
            return None
        try:
            # Store the files that the message may change.
            self._capture.see(sender, message, seen, self._exchange.program, self._root(seen))
        except Exception as problem:  # noqa: BLE001
            self._errors.report(problem)
        if not self._is_enforced or seen.is_answer:
            return line
        if sender == AGENT:
            changed = asking.without_allow_always(message) if seen.method == PERMISSION else None
        elif (reason := asking.mode_refusal(self._exchange.program, message)) is not None:
            self._block(EDITOR, message, seen, reason)
            return None
        else:
            changed = asking.require_permissions(self._exchange.program, message)
        return line if changed is None else written(changed)

    def _root(self, seen: AcpMessage) -> str:
        return self._exchange.folders.get(seen.session or "") or os.getcwd()

    def _block(self, sender: str, message: Message, seen: AcpMessage, reason: str) -> None:
        """Answer a request in place of its receiver, and record the reason."""
        answered = denial(message, reason) if sender == AGENT else refusal(message, reason)
        with self._lock:
            self._exchange.forget(sender, message)
        if seen.session is not None:
            self._put(seen.session, {"from": OURS, "re": seen.method, "held": reason, "asked": seen.asked}, written(answered))
        self._outlets[sender].write_async(written(answered))

    # Recording

    def _record(self, sender: str, seen: AcpMessage, line: bytes) -> None:
        if seen.session is None or seen.method not in (_ANSWERS_RECORDED if seen.is_answer else _RECORDED):
            return
        facts: dict[str, Any] = {"from": sender}
        if seen.is_answer:
            facts |= {"re": seen.method, "asked": seen.asked}
            if seen.method in OPENING:
                facts["about"] = self._exchange.about
                if self._is_enforced:
                    facts["enforced"] = asking.enforcement_notes(self._exchange.program)
        self._put(seen.session, facts, line)

    def _put(self, session: str, facts: dict[str, Any], line: bytes, captured: dict[str, Any] | None = None) -> None:
        try:
            folder = self._exchange.folders.get(session) or os.getcwd()
            self._recording.put(self._exchange.program, session, folder, facts, line, captured=captured)
        except Exception as problem:  # noqa: BLE001
            # The policy still decides, and the conversation continues.
            self._errors.report(problem)

    def _put_captured(self, session: str, captured: dict[str, Any], call: str | None) -> None:
        line = written({"session_id": session, "tool_use_id": call})
        self._put(session, {"from": OURS, "re": "capture"}, line, captured)

    def _answer_open_requests(self, code: int) -> None:
        """Answer requests that the agent left open when it ended; the editor would wait for ever."""
        for number in self._exchange.unanswered(EDITOR):
            message = refusal({"id": number}, f"the agent ended ({ending_text(code)})", _INTERNAL)
            self._outlets[EDITOR].write(written(message))


def run(command: list[str], *, db: str | None = None, is_enforced: bool = False) -> int:
    """Relay between an editor and the agent that a command starts."""
    try:
        relay = Relay(command, os.environ, db=db, is_enforced=is_enforced)
    except OSError as problem:
        return report_start_failure(f"decklog acp: {command[0]}", problem)
    return relay.run()


_BEGINNING, _END = "message-", ".json"


class Mailbox:
    """Reader of a folder's messages: each once, in the order in which they were written."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._read: set[str] = set()

    def new(self) -> Iterator[tuple[str, str]]:
        """Yield the id and text of each new message."""
        for name in sorted(os.listdir(self._folder)):
            if name.startswith(_BEGINNING) and name.endswith(_END) and name not in self._read:
                self._read.add(name)
                with open(os.path.join(self._folder, name), encoding="utf-8") as file:
                    message = json.load(file)
                yield str(message["id"]), str(message["text"])
