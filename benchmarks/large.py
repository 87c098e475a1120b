"""Upkeep of a large log on SQLite: verify what is new, doctor, prune, and the first search.

DECKLOG_BENCH_ENTRIES sets the number of entries (3,000,000).
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path

from benchmarks.measure import Row, row, write
from benchmarks.scale import RUN, WORDS
from decklog import Decklog
from decklog.transfer.prune import Prune

BATCH = 5_000
NEW_ENTRIES = 10_000
OUTPUT = "error: expected an expression near line {} while reading the {} of the {}\n"


def build(path: Path, count: int) -> None:
    """Make a log in which every second entry is a tool call with about 2 kB of output."""
    with Decklog.open(path, durability="relaxed") as log:
        log.runs.start("Grow", run_id=RUN)
        for start in range(0, count, BATCH):
            log.journal.append_many([_entry(number) for number in range(start, min(start + BATCH, count))])


def _entry(number: int) -> dict[str, object]:
    one, other = WORDS[number % 18], WORDS[number * 7 % 18]
    if number % 2 == 0:
        return {"stream": RUN, "body": f"step {number}: looked at the {one}", "kind": "reasoning", "agent": "agent-1"}
    output = "".join(OUTPUT.format(number + line, one, other) for line in range(28))
    return {"stream": RUN, "body": f"ran the tests of the {one}", "kind": "tool", "payload": {"output": output}}


def main() -> list[Row]:
    """Measure; write docs/benchmarks/large.md."""
    count = int(os.environ.get("DECKLOG_BENCH_ENTRIES", "3000000"))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        path, anchor = Path(name) / "large.db", Path(name) / "heads.jsonl"
        os.environ["XDG_STATE_HOME"] = name
        build(path, count)
        rows.append(row(f"verify of {count:,} entries", _command(path, "verify", "--anchor", str(anchor)), "s"))
        build_more(path)
        rows.append(
            row(
                f"verify --since-anchor, {NEW_ENTRIES:,} new entries",
                _command(path, "verify", "--anchor", str(anchor), "--since-anchor"),
                "s",
                target="<= 2",
            )
        )
        rows.append(row("doctor", _command(path, "doctor"), "s", target="<= 5"))
        rows.append(row("first search", _command(path, "journal", "search", "lexer"), "s"))
        rows += _pruning(path)
    write("large", f"Upkeep of a log of {count:,} entries", rows)
    return rows


def build_more(path: Path) -> None:
    with Decklog.open(path, durability="relaxed") as log:
        log.journal.append_many([_entry(number) for number in range(NEW_ENTRIES)])


def _command(path: Path, *words: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "decklog", "--db", str(path), *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def _pruning(path: Path) -> list[Row]:
    """Prune all tool calls, half of the entries, while another thread appends."""
    before = os.path.getsize(path)
    waits: list[float] = []
    done = threading.Event()

    def append() -> None:
        with Decklog.open(path) as log:
            while not done.is_set():
                begin = time.perf_counter()
                log.journal.append(RUN, "meanwhile")
                waits.append(time.perf_counter() - begin)
                time.sleep(0.02)

    with Decklog.open(path) as log:
        writer = threading.Thread(target=append)
        writer.start()
        begin = time.perf_counter()
        Prune(log, timedelta(0), kind="tool").run(apply=True)
        seconds = time.perf_counter() - begin
        done.set()
        writer.join()
    slow = sorted(waits)[int(len(waits) * 0.99)]
    return [
        row("prune --apply of half the texts", seconds, "s"),
        row("the file afterwards, of its size before", os.path.getsize(path) / before, "", target="<= 0.99"),
        row("append meanwhile, p99", 1000 * slow, "ms", target="<= 100"),
        row("append meanwhile, slowest", 1000 * max(waits), "ms"),
    ]


if __name__ == "__main__":
    for one in main():
        print(one)
