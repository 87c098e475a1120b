"""Many processes writing to one file: how long the unluckiest waits, and how even the shares are."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import apsw

from benchmarks.figures import Figure
from benchmarks.journal import BODY
from benchmarks.measure import Row, row, write
from decklog import Decklog

PROCESSES = 32
SECONDS = 6.0
TURNS = 3


def write_ours(path: str, name: str, until: float) -> list[float]:
    waits = []
    with Decklog.open(path) as log:
        while time.time() < until:
            begin = time.perf_counter()
            log.journal.append("shared", BODY, agent=name)
            waits.append(time.perf_counter() - begin)
    return waits


def write_plain(path: str, name: str, until: float) -> list[float]:
    """The usual way: `begin immediate` and a busy time-out."""
    waits = []
    connection = apsw.Connection(path)
    connection.set_busy_timeout(30_000)
    connection.execute("pragma synchronous = full")
    while time.time() < until:
        begin = time.perf_counter()
        connection.execute("begin immediate")
        connection.execute("insert into t (who, body) values (?, ?)", (name, BODY))
        connection.execute("commit")
        waits.append(time.perf_counter() - begin)
    return waits


def crowd(way: str, path: Path) -> dict[str, float]:
    """Let all processes write for some seconds; give the worst wait, the rate and the smallest share."""
    until = time.time() + 4 + SECONDS
    command = [sys.executable, "-m", "benchmarks.fairness", way, str(path)]
    workers = [
        subprocess.Popen([*command, f"w{number}", str(until)], stdout=subprocess.PIPE, text=True) for number in range(PROCESSES)
    ]
    outputs = [worker.communicate()[0] for worker in workers]
    if any(worker.returncode for worker in workers):
        raise RuntimeError(f"{sum(1 for worker in workers if worker.returncode)} of {PROCESSES} {way} writers failed")
    results = [json.loads(output) for output in outputs]
    counts = [result["count"] for result in results]
    return {
        "worst": max(result["worst"] for result in results),
        "rate": sum(counts) / SECONDS,
        "share": min(counts) / (sum(counts) / len(counts)),
    }


def main() -> list[Row]:
    """Measure 32 processes; write benchmarks/results/fairness.md."""
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        with Decklog.open(folder / "ours.db") as log:
            log.runs.start("share", run_id="shared")
        plain = apsw.Connection(str(folder / "plain.db"))
        plain.execute("pragma journal_mode = wal")
        plain.execute("create table t (id integer primary key, who text, body text)")
        plain.close()
        turns = [(crowd("ours", folder / "ours.db"), crowd("plain", folder / "plain.db")) for _ in range(TURNS)]
        ours, theirs = ({what: Figure(turn[side][what] for turn in turns) for what in turns[0][0]} for side in (0, 1))
        with Decklog.open(folder / "ours.db") as log:
            verified = log.journal.verify()
    rows = [
        row("32 processes: worst wait of all turns", max(ours["worst"].seen), "s", target="<= 1"),
        row("worst wait compared with plain begin immediate", ours["worst"], "s", floor=theirs["worst"], target="<= 0.1"),
        row("least-served writer, share of the mean, least of all turns", min(ours["share"].seen), "", target=">= 0.5"),
        row("least-served writer of plain begin immediate", theirs["share"], ""),
        row("throughput compared with plain begin immediate", ours["rate"], "per s", floor=theirs["rate"], target=">= 0.3"),
    ]
    if not verified.ok:
        raise RuntimeError(f"the log is not whole: {verified.first}")
    write("fairness", "32 processes writing to one file", rows)
    return rows


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        way, path, who, until_text = sys.argv[1:]
        waits = {"ours": write_ours, "plain": write_plain}[way](path, who, float(until_text))
        print(json.dumps({"count": len(waits), "worst": max(waits, default=0.0)}))
