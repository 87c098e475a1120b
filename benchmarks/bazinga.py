"""What a bazinga call costs on a log of a million rows, compared with the same call on one of a thousand.

bazinga's own program is in no registry, so it can't be installed and measured. What each of its calls begins with is
known: an interpreter, the modules it imports, and a check of the whole file. That much of it is measured, as the least it takes.
"""

import os
import sys
import tempfile
from pathlib import Path

from benchmarks import importing
from benchmarks.calls import cpu
from benchmarks.measure import Row, row, write
from decklog import Decklog

ROUNDS = 9
# A check of a million rows takes seconds.
CHECKS = 3
BATCH = 5_000
FEW = 1_000
SESSION = "bazinga_1"
CALLS = {
    "get-session": [SESSION],
    "list-sessions": [],
    "update-session-status": [SESSION, "active"],
    "log-interaction": [SESSION, "developer", "Ran the tests", "3", "dev-1"],
    "stream-logs": [SESSION],
    "get-logs": [SESSION, "--limit", "50"],
    "save-event": [SESSION, "tl_issues", '{"blocking_count": 0}', "--group-id", "G7"],
    "get-events": [SESSION, "tl_issues", "20"],
    "save-reasoning": [SESSION, "G7", "developer", "approach", "Split the lexer"],
    "get-reasoning": [SESSION, "--group_id", "G7", "--limit", "5"],
    "check-mandatory-phases": [SESSION, "G7", "developer"],
    "save-state": [SESSION, "pm", '{"phase": 1}'],
    "get-state": [SESSION, "pm"],
    "update-task-group": ["G7", SESSION, "--status", "in_progress"],
    "get-task-groups": [SESSION],
    "log-tokens": [SESSION, "developer", "100"],
    "save-skill-output": [SESSION, "lint", '{"errors": 0}'],
    "get-skill-output": [SESSION, "lint"],
    "dashboard-snapshot": [SESSION],
    "query": ["select count(*) as n from task_groups"],
}
BEGINNING = """
import argparse, datetime, json, os, pathlib, random, re, subprocess, sqlite3, sys, time, typing
db = sqlite3.connect(sys.argv[1])
assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
assert db.execute("select * from sessions where session_id = ?", (sys.argv[2],)).fetchone()
"""
_PHASES = ("understanding", "approach", "completion")


def fill(path: Path, count: int) -> None:
    """Make a log with one session and `count` rows in it: interactions mostly, a tenth events, a tenth reasoning."""
    with Decklog.open(path, durability="relaxed") as log:
        log.runs.start("Grow", run_id=SESSION)
        log.groups.add(SESSION, "G7", name="Lexer")
        log.states.save(SESSION, "pm", {"phase": 0})
        log.outputs.save(SESSION, "lint", {"errors": 1})
        for start in range(0, count, BATCH):
            log.journal.append_many([_entry(number, count) for number in range(start, min(start + BATCH, count))])


def _entry(number: int, count: int) -> dict[str, object]:
    entry: dict[str, object] = {"stream": SESSION, "agent": "developer", "body": f"step {number}: looked at the lexer"}
    # However long the log is, one group has about ten rows of a kind, as it would have in a real one.
    group = f"G{number % max(count // 100, 10)}"
    match number % 10:
        case 7:
            entry |= {"kind": "reasoning", "phase": _PHASES[number // 10 % 3], "group_id": group}
        case 8:
            entry |= {"kind": "event", "subtype": "tl_issues", "group_id": group, "payload": {"n": number}}
    return entry


def best(commands: dict[str, list[str]]) -> dict[str, float]:
    """Run all commands in turns; give each one's least CPU time, which other programs disturb least."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(ROUNDS + 1):
        for name, command in commands.items():
            took = cpu(command)
            if turn:  # the first one writes byte code
                times[name].append(took)
    return {name: min(values) for name, values in times.items()}


def beginnings(folder: Path, sizes: tuple[int, ...]) -> dict[int, float]:
    """Measure what bazinga's own calls begin with, in its own files with `count` rows."""
    found = {}
    for size in sizes:
        path = folder / f"bazinga-{size}.db"
        importing.fill(path, size)
        command = [sys.executable, "-c", BEGINNING, str(path), "session_0"]
        found[size] = min(cpu(command) for _ in range(CHECKS))
    return found


def main() -> list[Row]:
    """Measure every kind of call on a small and on a large log; write benchmarks/results/bazinga.md."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    count = int(os.environ.get("DECKLOG_BENCH_ENTRIES", "1000000"))
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        small, large = Path(name) / "small.db", Path(name) / "large.db"
        fill(small, FEW)
        fill(large, count)
        commands: dict[str, list[str]] = {}
        for call, words in CALLS.items():
            for size, path in (("", small), (" large", large)):
                commands[call + size] = [sys.executable, "-m", "decklog", "bazinga", "--db", str(path), "--quiet", call, *words]
        found = best(commands)
        own = beginnings(Path(name), (1_000, count))
    rows = [
        row(f"{call}, {count:,} rows compared with {FEW:,}", found[f"{call} large"], "ms", floor=found[call], target="<= 1.1")
        for call in CALLS
    ]
    baseline = "compared with the first steps of bazinga's"
    rows += [
        row(f"get-session, 1,000 rows, {baseline}", found["get-session"], "ms", floor=own[1_000]),
        row(f"get-session, {count:,} rows, {baseline}", found["get-session large"], "ms", floor=own[count], target="<= 0.0125"),
    ]
    write("bazinga", "Processor time of a bazinga call on a large log", rows)
    return rows


if __name__ == "__main__":
    main()
