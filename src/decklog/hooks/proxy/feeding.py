"""A client of an agent that takes prompts as lines of JSON: gives it the brief, and what people write while it works.

The conductor starts it in an agent's place, within the agent's own sandbox. It prints what the agent prints, and a line
of its own for each message that it has handed on. Messages lie in a folder that only the conductor writes to: so neither
needs the other to be alive.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from decklog.hooks.proxy.messages import Mailbox
from decklog.hooks.proxy.pipes import Outlet, lines

if TYPE_CHECKING:
    from typing import Any

_LOOK_SECONDS = 0.2
_STDOUT = 1


class Feeder:
    """Runs one agent until its turn is over and nobody has written anything more."""

    def __init__(self, order: "dict[str, Any]") -> None:
        self._mailbox = Mailbox(order["answers"])
        with open(order["prompt_file"], encoding="utf-8") as file:
            self._brief = file.read()
        self._out = Outlet(_STDOUT)
        self._lock = threading.Lock()
        self._child = subprocess.Popen(order["command"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        # The descriptor is ours from here on: what the object would close at its end may be another's by then.
        self._inlet = Outlet(os.dup(self._child.stdin.fileno()))
        self._child.stdin.close()

    def run(self) -> int:
        """See the agent through; return its exit code."""
        # The agent gets the same signals, and decides. Handlers, unlike ignored signals, are not inherited.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        self._inlet.write(_prompt(self._brief))
        threading.Thread(target=self._look_for_messages, daemon=True).start()
        assert self._child.stdout is not None
        for line in lines(self._child.stdout.fileno()):
            self._out.write(line if line.endswith(b"\n") else line + b"\n")
            if _is_end_of_turn(line):
                self._end_of_turn()
        code = self._child.wait()
        return code if code >= 0 else 128 - code

    def _look_for_messages(self) -> None:
        while not self._inlet.is_gone:
            time.sleep(_LOOK_SECONDS)
            with self._lock:
                self._hand_on()

    def _end_of_turn(self) -> None:
        """Let the agent end, unless a message begins another turn."""
        with self._lock:
            if not self._hand_on():
                self._inlet.close()

    def _hand_on(self) -> bool:
        """Hand new messages to the agent; return whether there were any."""
        found = [] if self._inlet.is_gone else list(self._mailbox.new())
        for message_id, text in found:
            self._inlet.write(_prompt(text))
            self._out.write(json.dumps({"type": "delivered", "message": message_id, "text": text}).encode() + b"\n")
        return bool(found)


def _prompt(text: str) -> bytes:
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": "user", "message": message}).encode() + b"\n"


def _is_end_of_turn(line: bytes) -> bool:
    if b'"result"' not in line:
        return False
    try:
        told = json.loads(line)
    except ValueError:
        return False
    return isinstance(told, dict) and told.get("type") == "result"


def main() -> None:
    """Do what the last argument orders."""
    order = json.loads(sys.argv[-1])
    try:
        feeder = Feeder(order)
    except OSError as problem:
        os.write(2, f"{order['command'][0]} can't be started: {problem.strerror}\n".encode())
        sys.exit(127 if isinstance(problem, FileNotFoundError) else 126)
    sys.exit(feeder.run())
