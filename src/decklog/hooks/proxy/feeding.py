"""Client for an agent that reads prompts as JSON lines: sends the brief, then people's messages.

The conductor starts it in place of the agent, inside the agent's sandbox. It prints the agent's output, and a line for each
delivered message. Messages are files in a folder that only the conductor writes, so neither process depends on the other.
"""

import json
import signal
import sys
import threading
import time
from typing import Any

from decklog.hooks.proxy.relay import Mailbox, Outlet, read_lines, report_start_failure, start

_LOOK_SECONDS = 0.2
_STDOUT = 1


class Feeder:
    """Runner of one agent until its turn is over and no message is left."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._mailbox = Mailbox(order["answers"])
        with open(order["prompt_file"], encoding="utf-8") as file:
            self._brief = file.read()
        self._out = Outlet(_STDOUT)
        self._lock = threading.Lock()
        self._child, self._inlet, self._output = start(order["command"])

    def run(self) -> int:
        """Run the agent until it ends; return its exit code."""
        # The agent gets the same signals and decides. Handlers, unlike ignored signals, are not inherited.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        self._inlet.write(_prompt(self._brief))
        threading.Thread(target=self._look_for_messages, daemon=True).start()
        for line in read_lines(self._output):
            self._out.write(line if line.endswith(b"\n") else line + b"\n")
            if _is_end_of_turn(line):
                with self._lock:
                    # Let the agent end, unless a new message starts another turn.
                    if not self._hand_on():
                        self._inlet.close()
        code = self._child.wait()
        return code if code >= 0 else 128 - code

    def _look_for_messages(self) -> None:
        while not self._inlet.is_gone:
            time.sleep(_LOOK_SECONDS)
            with self._lock:
                self._hand_on()

    def _hand_on(self) -> bool:
        """Send new messages to the agent; return whether there were any."""
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
        parsed = json.loads(line)
    except ValueError:
        return False
    return isinstance(parsed, dict) and parsed.get("type") == "result"


def main() -> None:
    """Run the request in the last argument."""
    order = json.loads(sys.argv[-1])
    try:
        feeder = Feeder(order)
    except OSError as problem:
        sys.exit(report_start_failure(order["command"][0], problem))
    sys.exit(feeder.run())
