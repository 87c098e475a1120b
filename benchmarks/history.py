"""Taking over sessions from transcripts and rollouts: lines a second, memory that does not grow, and the same files again.

A line has some thousand characters, as those of real sessions do: what tools printed is code, logs and prose, and is redacted;
half of a transcript's bytes are lines that tell nothing of the session.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.measure import Row, row, write

ROOT = Path(__file__).parent.parent
# About a gigabyte.
LINES = int(os.environ.get("DECKLOG_BENCH_LINES", "330000"))
SESSION_LINES = 2000
START = datetime(2026, 9, 1, tzinfo=UTC)
# In its own process, so that its peak memory is that of the work alone.
IMPORT = """
import resource, sys, time
from decklog import Decklog
from decklog.agents.history import HistoryImport
from decklog.agents.spool import Spool
program, folder, place = sys.argv[1:]
with Decklog.open(place + "/log.db") as log:
    wall = time.perf_counter()
    new = HistoryImport(log, program, folder, Spool(place + "/spool")).run().new
    wall = time.perf_counter() - wall
own, other = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
print(new, wall, own.ru_utime + own.ru_stime, other.ru_utime + other.ru_stime, own.ru_maxrss + other.ru_maxrss)
"""
FLOOR = """
import json, sys, time
from pathlib import Path
wall = time.perf_counter()
for path in sorted(Path(sys.argv[1]).rglob("*.jsonl")):
    with open(path, "rb") as file:
        for line in file:
            json.loads(line)
print(time.perf_counter() - wall)
"""


class Words:
    """Texts as tools print them."""

    def __init__(self) -> None:
        self.chance = random.Random(7)
        self._code = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
        self._prose = "".join(path.read_text() for path in sorted((ROOT / "docs").rglob("*.md")))

    def prose(self, size: int) -> str:
        return self._part(self._prose, size)

    def printed(self) -> str:
        size, kind = self.chance.choice((120, 300, 800, 2000, 2000, 4000, 9000)), self.chance.random()
        if kind < 0.5:
            return self._part(self._code, size)
        return self._part(self._prose, size) if kind < 0.7 else "".join(self._log_lines(size))

    def name(self, start: str) -> str:
        return start + "".join(self.chance.choices("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789", k=22))

    def number(self) -> str:
        return str(UUID(int=self.chance.getrandbits(128), version=4))

    def _part(self, text: str, size: int) -> str:
        start = self.chance.randrange(len(text) - size)
        return text[start : start + size]

    def _log_lines(self, size: int) -> Iterator[str]:
        while size > 0:
            number = self.chance.randrange(10_000)
            line = f"2026-09-02T10:{number % 60:02}:11.120Z INFO server request id={number:x} path=/items/{number} status=200\n"
            size -= len(line)
            yield line


def claude(words: Words, session: str, turns: int) -> Iterator[dict[str, Any]]:
    """Write a session of Claude Code: in each turn an answer, a call, its result, and lines that tell nothing of it."""
    model, second = "claude-sonnet-4-5", 0

    def line(kind: str, **fields: Any) -> dict[str, Any]:
        nonlocal second
        second += 3
        own = {"sessionId": session, "uuid": words.name("u"), "cwd": "/srv/app", "version": "2.1.325", "isSidechain": False}
        return {"type": kind, **own, "timestamp": (START + timedelta(seconds=second)).isoformat(), **fields}

    for turn in range(turns):
        if turn % 10 == 0:
            yield line("user", promptId=words.number(), message={"role": "user", "content": words.prose(250)})
        usage = {"input_tokens": 9, "cache_read_input_tokens": 18_000 + turn, "output_tokens": 210}
        answer, request, call = words.name("msg_"), words.name("req_"), words.name("toolu_")
        said = [{"type": "text", "text": words.prose(300)}] if turn % 2 else []
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "pytest -q", "description": words.prose(50)}}
        for block in (*said, use):
            message = {"id": answer, "model": model, "content": [block], "usage": usage}
            yield line("assistant", requestId=request, message=message)
        output = words.printed()
        result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": False}
        yield line("user", message={"content": [result]}, toolUseResult={"stdout": output, "stderr": "", "interrupted": False})
        if turn % 2 == 0:
            yield line("attachment", attachment={"type": "hook_success", "content": words.prose(1500)})
        if turn % 5 == 0:
            yield line("api-request-blob", blob=words.prose(9000))


def codex(words: Words, session: str, turns: int) -> Iterator[dict[str, Any]]:
    """Write a thread of Codex: in each turn a call, its end reported twice, what was said and what was spent."""
    second = 0

    def line(kind: str, **payload: Any) -> dict[str, Any]:
        nonlocal second
        second += 3
        return {"timestamp": (START + timedelta(seconds=second)).isoformat(), "type": kind, "payload": payload}

    yield line("session_meta", id=session, session_id=session, cwd="/srv/app", cli_version="0.166.0")
    yield line("turn_context", model="gpt-5.5")
    for _ in range(turns):
        call, output = words.name("call_"), words.printed()
        given = json.dumps({"cmd": "pytest -q"})
        yield line("response_item", type="function_call", name="exec_command", call_id=call, arguments=given)
        yield line("response_item", type="function_call_output", call_id=call, output=output)
        ended = {"type": "CommandExecution", "id": call, "status": "completed", "exit_code": 0, "aggregated_output": output}
        yield line("event_msg", type="item_completed", item=ended)
        said = {"type": "Said", "id": words.name("msg_"), "content": words.prose(300)}
        yield line("event_msg", type="item_completed", item=said)
        usage = {"input_tokens": 18_000, "cached_input_tokens": 17_000, "output_tokens": 210}
        yield line("token_usage_record", response_id=words.name("resp_"), usage=usage)


Session = Callable[[Words, str, int], Iterator[dict[str, Any]]]


def fill(folder: Path, session: Session, count: int) -> tuple[int, int]:
    """Write `count` lines, in files of some thousand; return their number and bytes."""
    words, lines, size = Words(), 0, 0
    while lines < count:
        name = words.name("s")
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f"rollout-{name}.jsonl", "w", encoding="utf-8") as file:
            for line in session(words, name, SESSION_LINES // 4):
                size += file.write(json.dumps(line) + "\n")
                lines += 1
    return lines, size


def measured(script: str, *arguments: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, cwd=ROOT)
    return [float(figure) for figure in done.stdout.split()]


def imports(folder: Path, program: str, session: Session) -> list[Row]:
    """Import a long and a shorter history, and the long one again."""
    long, short = folder / f"{program}-long", folder / f"{program}-short"
    lines, size = fill(long, session, LINES)
    fill(short, session, LINES // 10)
    (floor,) = measured(FLOOR, str(long))
    new, wall, writing, reading, most = measured(IMPORT, program, str(long), _place(folder, f"{program}-1"))
    none, again, *_ = measured(IMPORT, program, str(long), str(folder / f"{program}-1"))
    *_, least = measured(IMPORT, program, str(short), _place(folder, f"{program}-2"))
    assert new > 0
    assert none == 0, "something was taken twice"
    name = f"import {program}"
    return [
        row(f"{name}, {lines:,} lines of {size // lines:,} bytes", lines / wall, "per s", target=">= 2000"),
        row(f"{name}, megabytes", size / wall / 1e6, "per s"),
        row(f"{name}, compared with reading each line as JSON", wall, "s", floor=floor),
        row(f"{name}, CPU time of reading and redacting a line", reading / lines * 1e6, "µs"),
        row(f"{name}, CPU time of writing a line", writing / lines * 1e6, "µs"),
        row(f"{name}, the same files again, compared with the first time", again, "s", floor=wall, target="<= 0.05"),
        row(
            f"{name}, peak memory of both processes, compared with a tenth",
            most / 1024,
            "MiB",
            floor=least / 1024,
            target="<= 1.3",
        ),
    ]


def _place(folder: Path, name: str) -> str:
    (folder / name).mkdir()
    return str(folder / name)


def main() -> list[Row]:
    """Measure imports of histories; write benchmarks/results/history.md."""
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        rows = [*imports(Path(name), "claude", claude), *imports(Path(name), "codex", codex)]
    write("history", "Taking over sessions from before", rows)
    return rows


if __name__ == "__main__":
    main()
