"""What standing between an editor and an agent adds to a message, compared with a pipe of plain Python that looks at nothing."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from benchmarks.figures import Figure
from benchmarks.measure import Row, row, write
from decklog import Decklog

ROUNDS = 5
SMALL_TURNS, LARGE_TURNS = 400, 10
SMALL, MIDDLE, LARGE = 200, 20_000, 2_000_000
# A turn is a prompt, an update and an answer.
MESSAGES = 3

_AGENT = """
import json, sys
def say(message):
    sys.stdout.write(json.dumps(message) + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        result = {"protocolVersion": 1, "agentInfo": {"name": "echo", "version": "1"}}
    elif request["method"] == "session/new":
        result = {"sessionId": "s1"}
    else:
        text = {"type": "text", "text": request["params"]["prompt"][0]["text"]}
        update = {"sessionUpdate": "agent_message_chunk", "messageId": str(request["id"]), "content": text}
        say({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update": update}})
        result = {"stopReason": "end_turn"}
    say({"jsonrpc": "2.0", "id": request["id"], "result": result})
"""
_PIPE = """
import os, subprocess, sys, threading
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def pump(source, target):
    while chunk := os.read(source, 1 << 18):
        while chunk:
            chunk = chunk[os.write(target, chunk):]
    os.close(target)
threading.Thread(target=pump, args=(0, child.stdin.fileno()), daemon=True).start()
pump(child.stdout.fileno(), 1)
os._exit(0)
"""


class Editor:
    """Talks to an agent, with or without a program between."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[bytes] = self._process.stdin
        self._out: IO[bytes] = self._process.stdout
        self._number = 0
        self.call("initialize", {"protocolVersion": 1})
        self.call("session/new", {"cwd": str(folder), "mcpServers": []})

    def call(self, method: str, params: dict[str, object]) -> None:
        self._number += 1
        self._in.write(json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}).encode() + b"\n")
        self._in.flush()
        while b'"result"' not in self._out.readline()[-200:]:
            pass

    def turn(self, text: str) -> float:
        begin = time.perf_counter()
        self.call("session/prompt", {"sessionId": "s1", "prompt": [{"type": "text", "text": text}]})
        return time.perf_counter() - begin

    def close(self) -> None:
        self._in.close()
        self._process.wait(60)
        self._out.close()


def medians(editors: dict[str, Editor], size: int, turns: int) -> dict[str, float]:
    """Take turns with all; give each one's median of a message, in microseconds."""
    times: dict[str, list[float]] = {name: [] for name in editors}
    for _ in range(ROUNDS):
        for name, editor in editors.items():
            times[name] += [editor.turn("x" * size) for _ in range(turns)]
    return {name: Figure(values) * (1e6 / MESSAGES) for name, values in times.items()}


def main() -> list[Row]:
    """Measure messages of three sizes; write benchmarks/results/acp.md."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        agent = [sys.executable, "-c", _AGENT]
        decklog = [sys.executable, "-m", "decklog", "--db", str(folder / "decklog.db")]
        Decklog.open(folder / "decklog.db").close()
        ways = {"bare": agent, "pipe": [sys.executable, "-c", _PIPE, *agent], "ours": [*decklog, "acp", "--", *agent]}
        editors = {way: Editor(words, folder) for way, words in ways.items()}
        for label, size, turns in (
            ("200 B", SMALL, SMALL_TURNS),
            ("20 kB", MIDDLE, SMALL_TURNS),
            ("2 MB", LARGE, LARGE_TURNS),
        ):
            found = medians(editors, size, turns)
            target = "<= 500" if size == SMALL else ""
            rows.append(row(f"a message of {label} takes longer by", found["ours"] - found["bare"], "µs", target=target))
            rows.append(row(f"a message of {label}, compared with a plain pipe", found["ours"], "µs", floor=found["pipe"]))
        for editor in editors.values():
            editor.close()
    notes = (
        "an agent that repeats each prompt; a turn is a prompt, an update and an answer, all of them on record",
        "`takes longer by`: compared with the same agent with nothing between; a plain pipe copies bytes and reads none of them",
        f"medians of {ROUNDS} rounds in turns",
    )
    write("acp", "A proxy between editor and agent", rows, notes)
    return rows


if __name__ == "__main__":
    main()
