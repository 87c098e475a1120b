"""What a command-line call costs in CPU time, compared with an interpreter that does nothing."""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.measure import Row, row, write
from benchmarks.scale import RUN, fill

ROUNDS = 15
HOT = {
    "journal append": ["journal", "append", RUN, "Ran the tests", "--agent", "developer"],
    "runs show": ["runs", "show", RUN],
}
OTHERS = {
    "journal find": ["journal", "find", RUN],
    "tasks ready": ["tasks", "ready", RUN],
    "search": ["search", "ledger"],
    "where": ["where"],
    "--help": ["--help"],
    "runs --help": ["runs", "--help"],
    "doctor": ["doctor"],
    "now": ["now"],
}


def cpu(command: list[str]) -> float:
    """Run a command; give the CPU time it took, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def medians(commands: dict[str, list[str]]) -> dict[str, float]:
    """Run all commands in turns; give each one's median."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            times[name].append(cpu(command))
    return {name: Figure(values) for name, values in times.items()}


def split() -> dict[str, float]:
    """Split a hot call's time: the interpreter, our imports, the work."""
    imports = """
import decklog.cli.call, decklog.cli.exits, decklog.cli.store_verbs, decklog.cli.show, decklog.log
import decklog.db.sqlite.database, decklog.journal.journal, decklog.journal.writer, decklog.stores.base
"""
    return medians({"interpreter": [sys.executable, "-c", "pass"], "imports": [sys.executable, "-c", imports]})


def main() -> list[Row]:
    """Measure calls on a small and on a large log; write benchmarks/results/calls.md."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        small, large = Path(name) / "small.db", Path(name) / "large.db"
        fill(small, 1_000)
        entries = int(os.environ.get("DECKLOG_BENCH_ENTRIES", "1000000"))
        fill(large, entries)
        program = [str(Path(sys.executable).with_name("decklog"))]
        if not Path(program[0]).exists():
            program = [sys.executable, "-m", "decklog"]
        commands = {"bare": [sys.executable, "-c", "pass"]}
        for label, words in {**HOT, **OTHERS}.items():
            commands[label] = [*program, "--db", str(small), *words]
            commands[f"{label}, large"] = [*program, "--db", str(large), *words]
        for command in commands.values():
            cpu(command)  # the first call writes byte code and catches the text index up
        found = medians(commands)
        for label in {**HOT, **OTHERS}:
            target = "<= 6"
            rows.append(row(f"{label}, compared with python -c pass", found[label], "ms", floor=found["bare"], target=target))
        for label in HOT:
            rows.append(
                row(
                    f"{label}, large log compared with small", found[f"{label}, large"], "ms", floor=found[label], target="<= 1.1"
                )
            )
        parts = split()
        rows.append(row("of a hot call: interpreter", parts["interpreter"], "ms"))
        rows.append(row("of a hot call: imports", parts["imports"] - parts["interpreter"], "ms"))
        rows.append(row("of a hot call: work", found["journal append"] - parts["imports"], "ms"))
    notes = [
        f"CPU time of the call and all it starts, medians of {ROUNDS}, in turns",
        f"the large log has {entries:,} entries",
    ]
    write("calls", "Processor time of a command-line call", rows, notes)
    return rows


if __name__ == "__main__":
    main()
