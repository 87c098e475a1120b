"""Upkeep of a large log on SQLite: verify what is new, doctor, the first search, and prune while others write.

DECKLOG_BENCH_ENTRIES sets the number of entries (3,000,000), DECKLOG_BENCH_FOLDER where the log is built; 1,000 bytes of room
are needed for each entry.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from benchmarks.measure import Row, row, write
from benchmarks.scale import RUN, WORDS
from decklog import Decklog
from decklog.core.clock import to_text
from decklog.journal import chain
from decklog.journal.chain import EntryRange
from decklog.journal.replication import Replication
from decklog.journal.rows import COLUMNS
from decklog.transfer.prune import Prune

BATCH = 5_000
NEW_ENTRIES = 10_000
OUTPUT = "error: expected an expression near line {} while reading the {} of the {}\n"
LINES = 12
SEARCHES = 5
SECONDS_ALONE = 5.0
NOTES = (
    "Every second entry is a tool call with about 1 kB of output. Each is chained to the one before it and inserted as a row, "
    "without a search for secrets, which would take most of the time.",
    "Figures include the start of a process, except those of prune. `prune` drops the texts of all tool calls.",
    "Meanwhile another process appends every 20 ms, with `durability=full`.",
)


def build(path: Path, count: int) -> None:
    """Create a log in which every second entry is a tool call."""
    with Decklog.open(path, durability="relaxed") as log:
        log.runs.start("Grow", run_id=RUN)
        for start in range(0, count, BATCH):
            _append(log, start, min(BATCH, count - start))


def _append(log: Decklog, start: int, count: int) -> None:
    """Append entries as a move does: chained here, and inserted as they are."""
    [head] = [head for head in log.journal.heads() if head["stream"] == RUN]
    at, hash = to_text(log.clock.now()), head["hash"]
    rows = []
    for number in range(start, start + count):
        entry = {**_entry(number), "stream": RUN, "seq": head["seq"] + 1 + len(rows), "at": at}
        hash = chain.hash_entry(hash, entry)
        rows.append(tuple({**dict.fromkeys(COLUMNS), **entry, "redacted": 0, "hash": hash}.values()))
    Replication.of(log).take([EntryRange(RUN, head["hash"], rows, {})])


def _entry(number: int) -> dict[str, str]:
    one, other = WORDS[number % 18], WORDS[number * 7 % 18]
    if number % 2 == 0:
        return {"body": f"step {number}: looked at the {one}", "kind": "reasoning", "agent": "agent-1"}
    output = "".join(OUTPUT.format(number + line, one, other) for line in range(LINES)).replace("\n", "\\n")
    return {"body": f"ran the tests of the {one}", "kind": "tool", "payload": f'{{"output":"{output}"}}'}


def main() -> list[Row]:
    """Measure; write benchmarks/results/large.md."""
    count = int(os.environ.get("DECKLOG_BENCH_ENTRIES", "3000000"))
    with tempfile.TemporaryDirectory(prefix="decklog-bench-", dir=os.environ.get("DECKLOG_BENCH_FOLDER")) as name:
        path, anchor = Path(name) / "large.db", Path(name) / "heads.jsonl"
        os.environ["XDG_STATE_HOME"] = name
        begin = time.perf_counter()
        build(path, count)
        rows = [row("build", count / (time.perf_counter() - begin), "entries/s")]
        rows.append(row("first search", _command(path, "journal", "search", "lexer"), "s", target="<= 1"))
        rows.append(row("verify", _command(path, "verify", "--anchor", str(anchor)), "s"))
        with Decklog.open(path, durability="relaxed") as log:
            _append(log, count, NEW_ENTRIES)
        since = _command(path, "verify", "--anchor", str(anchor), "--since-anchor")
        rows.append(row(f"verify --since-anchor, {NEW_ENTRIES:,} new entries", since, "s", target="<= 2"))
        rows.append(row("doctor", _command(path, "doctor"), "s", target="<= 5"))
        rows += _prune(path)
        searches = [_command(path, "journal", "search", "lexer") for _ in range(SEARCHES)]
        rows.append(row(f"slowest of {SEARCHES} searches after prune", max(searches), "s", target="<= 1"))
    write("large", f"Upkeep of a log of {count:,} entries", rows, NOTES)
    return rows


def _command(path: Path, *words: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "decklog", "--db", str(path), *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def _prune(path: Path) -> list[Row]:
    """Prune all tool calls, half of the entries, while another process appends."""
    before = os.path.getsize(path)
    _, alone = _appends_during(path, lambda: time.sleep(SECONDS_ALONE))
    with Decklog.open(path) as log:
        seconds, waits = _appends_during(path, lambda: Prune(log, timedelta(0), kind="tool").run(apply=True))
    return [
        row("prune --apply of half the texts", seconds, "s"),
        row("size of the file after prune, of its size before", os.path.getsize(path) / before, "", target="<= 0.99"),
        row("append without prune, p99", 1000 * _p99(alone), "ms"),
        row("append during prune, median", 1000 * waits[len(waits) // 2], "ms"),
        row("append during prune, p99", 1000 * _p99(waits), "ms", target="<= 100"),
        row("append during prune, slowest", 1000 * waits[-1], "ms"),
    ]


def _p99(waits: list[float]) -> float:
    return waits[int(len(waits) * 0.99)]


def _appends_during(path: Path, work: Callable[[], object]) -> tuple[float, list[float]]:
    """Let another process append while some work is done; return how long the work and, sorted, the appends took."""
    command = [sys.executable, "-m", "benchmarks.large", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        begin = time.perf_counter()
        work()
        seconds = time.perf_counter() - begin
        return seconds, sorted(json.loads(writer.communicate()[0]))


def append_until_end(path: str) -> None:
    """Append every 20 ms until stdin ends; print how long each append took, in seconds."""
    waits = []
    with Decklog.open(path) as log:
        log.journal.append(RUN, "ready")
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0.02)[0]:
            begin = time.perf_counter()
            log.journal.append(RUN, "meanwhile")
            waits.append(time.perf_counter() - begin)
    print(json.dumps(waits))


if __name__ == "__main__":
    if sys.argv[1:]:
        append_until_end(sys.argv[1])
    else:
        main()
