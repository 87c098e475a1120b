"""Eight processes on PostgreSQL: their rate when each writes to its own run, compared with all writing to one run."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from benchmarks.children import Crew, work_as_child
from benchmarks.figures import Figure
from benchmarks.measure import Row, row, write
from benchmarks.task_postgres import SETTINGS, Scratch
from benchmarks.transfer import server
from decklog import Decklog

PROCESSES = 8
TURNS = 5
TURN_SECONDS = float(os.environ.get("DECKLOG_BENCH_TURN", "2"))
# Above what eight processes finish in all turns on the fastest server seen; a run that is drained would end a turn early.
TASKS = int(os.environ.get("DECKLOG_BENCH_TASKS", "16000"))
SLOW_COMMIT = ("alter system set commit_delay = 3000", "alter system set commit_siblings = 0")
NOTES = (
    "Server and processes share two cores. The median of five turns of two seconds, on one run and on eight alternately.",
    "A slowed commit sleeps 3 ms before its flush (commit_delay 3000, commit_siblings 0), as a disk or a network would make it.",
    "On one run the entries have one order, so their commits follow each other; on eight runs nothing is shared but the server.",
)


def appends(log: Decklog, run_id: str, _: str) -> Iterator[None]:
    while True:
        log.journal.append(run_id, "Ran the tests: 41 passed", agent="developer")
        yield


def claims(log: Decklog, run_id: str, worker: str) -> Iterator[None]:
    while (claim := log.tasks.claim(run_id, worker=worker)) is not None:
        log.tasks.finish(claim.task.id, fence=claim.task.fence)
        yield
    raise RuntimeError(f"{run_id} has no task left: give the measurement more of them")


WAYS = {"appends": appends, "claim and finish": claims}


def filled(url: str) -> list[str]:
    """Make the run that all share, then one for each process; give their ids."""
    with Decklog.open(url, migrate=True) as log:
        runs = [log.runs.start(f"run {number}").id for number in range(PROCESSES + 1)]
        for place, run_id in enumerate(runs):
            wanted = TASKS if place == 0 else TASKS // 4
            log.tasks.add_many(run_id, [{"title": f"task {number}", "objective": "x" * 150} for number in range(wanted)])
    return runs


def measured(url: str, label: str, target: str) -> list[Row]:
    """Let eight processes take turns on one run and on eight, for each way of writing."""
    rows = []
    with Scratch(url) as fresh:
        shared, *own = filled(fresh)
        with Crew("benchmarks.streams", [(fresh, shared, mine, f"w{place}") for place, mine in enumerate(own)]) as crew:
            for way in WAYS:
                rates: dict[str, list[float]] = {"one": [], "eight": []}
                for where in [*rates] * TURNS:
                    counts = crew.ask(f"{way}|{where}|{TURN_SECONDS}")[1]
                    rates[where].append(sum(counts_of["done"] for counts_of in counts) / TURN_SECONDS)
                one, eight = (Figure(rates[where]) for where in rates)
                rows.append(row(f"{label}, {way}: eight runs compared with one", eight, "per s", floor=one, target=target))
    return rows


def main() -> list[Row]:
    """Measure with commits as they are and with slowed ones; write benchmarks/results/streams.md."""
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name, server(Path(name)) as url:
        rows = measured(url, "commits as they are", ">= 1.5")
        with psycopg.connect(url, autocommit=True) as connection:
            settings = [f"{name} {connection.execute(f'show {name}').fetchone()[0]}" for name in SETTINGS]  # type: ignore
            for words in (*SLOW_COMMIT, "select pg_reload_conf()"):
                connection.execute(words)
        rows += measured(url, "commits of 3 ms", ">= 4")
    notes = [*NOTES, f"PostgreSQL as its wheel sets it up ({', '.join(settings)})."]
    write("streams", "Eight processes on eight runs compared with eight on one, on PostgreSQL", rows, notes)
    return rows


def child(url: str, shared: str, own: str, worker: str) -> None:
    """Be one of the eight: write to the shared run or to one's own for some seconds, and report how often it was done."""
    log = Decklog.open(url)
    log.tasks.claim(shared, worker=worker, group_id="nobody's")

    def turn(word: str) -> dict[str, int]:
        way, where, seconds = word.split("|")
        done, until = 0, time.monotonic() + float(seconds)
        for _ in WAYS[way](log, shared if where == "one" else own, worker):
            if time.monotonic() > until:
                break
            done += 1
        return {"done": done}

    work_as_child(turn)


if __name__ == "__main__":
    if sys.argv[1:]:
        child(*sys.argv[1:])
    else:
        main()
