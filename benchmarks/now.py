"""Whether an overview of a log stays as fast when the log is large: statements and time of `now` and `top`, on both engines.

    python -m benchmarks.now [--entries 1000000] [--runs 1000] [--going-on 5,1000] [--engines sqlite,postgres]

PostgreSQL is the one that the tests use. The small log has 1,000 entries in 10 runs, 5 of them under way; of the
large ones the first has as many under way and all others ended, the second has all of them under way. They are asked in turns,
with their marks moved to their ends. Figures of a million entries are written to benchmarks/results.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.statements import statements

from benchmarks.figures import Figure
from benchmarks.measure import Row, row, write
from benchmarks.task_narrowed import places
from decklog import Decklog, ManualClock
from decklog.cli.screens.now import summary_screen
from decklog.cli.screens.top import SHOWN, overview_page
from decklog.core.clock import to_text
from decklog.journal.rows import HEAD, STREAM_SIZE

FEW, FEW_RUNS, GOING_ON = 1_000, 10, 5
WHOLE = 1_000_000
TIMES = 50
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
WIDTH = 120


def printed(log: Decklog) -> object:
    """Read and lay out what `decklog now` prints."""
    summary = log.overview.now(limit=12)
    return summary_screen(summary, WIDTH, log.overview.activity([run.id for run in summary.runs]))


def redrawn(log: Decklog) -> object:
    """Read and lay out what `decklog top` draws anew every two seconds."""
    summary = log.overview.now(limit=SHOWN)
    return overview_page(summary, log.overview.activity([run.id for run in summary.runs]), "", WIDTH)


VIEWS: dict[str, Callable[[Decklog], object]] = {
    "decklog now": printed,
    "decklog now --brief": lambda log: log.overview.now(limit=12),
    "decklog top, each time": redrawn,
    "ten runs": lambda log: log.overview.runs(limit=10),
    "what waits": lambda log: log.overview.waiting(),
    "thirty days": lambda log: log.overview.days(by="model"),  # type: ignore[arg-type]
}


def fill(log: Decklog, clock: ManualClock, entries: int, runs: int, going_on: int) -> None:
    """Make runs of as many entries each: a tenth changes of tasks, a fifth charges; then let some things wait."""
    for number in range(runs):
        run_id = f"r{number}"
        log.runs.start(f"goal {number}", run_id=run_id)
        _fill_run(log, run_id, entries // runs, number)
        if number >= going_on:
            log.runs.finish(run_id)
    log.budgets.set("all", period="day", limit_microdollars=50_000_000)  # type: ignore[arg-type]
    clock.advance(minutes=1)
    for number in range(GOING_ON):
        log.tasks.claim(f"r{number}", worker=f"w{number}")
        log.approvals.ask(f"r{number}", "Push?", by=f"w{number}", about="x")
    if log.db.engine == "postgres":
        log.db.write(lambda: log.db.rows("analyze", {}))


def _fill_run(log: Decklog, run_id: str, each: int, first_day: int) -> None:
    """Write one task, one charge and one entry by their verbs, and as many more of their shape as bulk inserts."""
    task = log.tasks.add(run_id, "model", task_id=f"{run_id}-model")
    charge = log.ledger.charge("model-a", cost_microdollars=1000, run_id=run_id, agent="dev")
    thought = log.journal.append(run_id, "thinking")
    days = [to_text(NOW - timedelta(days=day)) for day in range(30)]
    copies = _Copies(log, run_id)
    copies.of_record("tasks", task.id, [{} for _ in range(each // 10)])
    copies.of_record("charges", charge.id, [{"occurred_at": days[(first_day + place) % 30]} for place in range(each // 5)])
    copies.of_entry(f"where seq = {thought.seq}", each - each // 10 - each // 5 - 4)
    copies.write()


class _Copies:
    """Rows and entries like those that verbs wrote. The chain is not valid: nothing here walks it."""

    def __init__(self, log: Decklog, run_id: str) -> None:
        self._log, self._run_id = log, run_id
        number = self._asked("select no from streams where name = :id", {"id": run_id})[0]["no"]
        self._start = number * STREAM_SIZE
        (last,) = self._asked(HEAD, {"start": self._start, "end": self._start + STREAM_SIZE})
        self._seq = next(iter(last.values())) % STREAM_SIZE
        self._made: dict[str, list[dict[str, Any]]] = {}

    def _asked(self, sql: str, bound: dict[str, Any]) -> list[dict[str, Any]]:
        names, rows = self._log.db.read(lambda: self._log.db.rows(sql, bound))
        return [dict(zip(names, one, strict=True)) for one in rows]

    def of_record(self, table: str, record_id: str, changes: Sequence[dict[str, Any]]) -> None:
        """Copy a record and its entry, each time with changes and its own id."""
        (model,) = self._asked(f"select * from {table} where id = :id", {"id": record_id})
        ids = [f"{self._run_id}-{table}-{place}" for place in range(len(changes))]
        self._made[table] = [{**model, **more, "id": one, "key": None} for one, more in zip(ids, changes, strict=True)]
        source = f"where record_table = '{table}' and record_id = '{record_id}'"
        self.of_entry(source, len(ids), ids)

    def of_entry(self, source: str, count: int, ids: Sequence[str] | None = None) -> None:
        """Copy an entry of the run `count` times, to the end of its stream."""
        (entry,) = self._asked(
            f"select * from entries {source} and pos between :start and :end",
            {"start": self._start, "end": self._start + STREAM_SIZE},
        )
        for place in range(max(0, count)):
            self._seq += 1
            record = {} if ids is None else {"record_id": ids[place]}
            self._made.setdefault("entries", []).append({**entry, "pos": self._start + self._seq, "seq": self._seq, **record})

    def write(self) -> None:
        db = self._log.db

        def insert() -> None:
            for table, rows in self._made.items():
                if rows:
                    db.insert(table, tuple(rows[0]), [tuple(one.values()) for one in rows])

        db.write(insert)
        # The head is remembered; it moved past the process that remembers it.
        db.memo.clear()


def counted(log: Decklog, view: Callable[[Decklog], object]) -> int:
    """Count the statements of a view."""
    with statements(log) as seen:
        view(log)
    return len(seen)


def measured(logs: Sequence[Decklog], view: Callable[[Decklog], object]) -> list[float]:
    """Ask in turns, so that what disturbs one disturbs all; give the median of each log, in milliseconds."""
    passed: list[list[float]] = [[] for _ in logs]
    for log in logs:
        view(log)
    for _ in range(TIMES):
        for log, times in zip(logs, passed, strict=True):
            begin = time.perf_counter()
            view(log)
            times.append(time.perf_counter() - begin)
    return [Figure(times) * 1e3 for times in passed]


def main() -> list[Row]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=WHOLE)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--going-on", default=None, help="how many runs of each large log are under way")
    parser.add_argument("--engines", default="sqlite,postgres")
    given = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    under_way = [int(part) for part in (given.going_on or f"{GOING_ON},{given.runs}").split(",")]
    found: list[Row] = []
    with places(None, ["few", *(f"many_{place}" for place in range(len(under_way)))]) as targets:
        for engine in given.engines.split(","):
            with made(targets[engine], given.entries, given.runs, under_way) as logs:
                found += compared(engine, logs, given.entries, under_way)
    if given.entries >= WHOLE:
        write("now", "An overview of a large log", found, notes(given.runs))
    return found


@contextmanager
def made(targets: Sequence[str], entries: int, runs: int, under_way: Sequence[int]) -> Iterator[list[Decklog]]:
    """Make the small log and the large ones; say how long it took."""
    clock = ManualClock(NOW)
    with ExitStack() as stack:
        logs = []
        for place, going_on in enumerate((GOING_ON, *under_way)):
            begin = time.perf_counter()
            log = stack.enter_context(Decklog.open(targets[place], clock=clock, migrate=True, durability="relaxed"))
            fill(log, clock, *((entries, runs) if place else (FEW, FEW_RUNS)), going_on)
            first = time.perf_counter()
            log.overview.now()
            said = (
                f"made in {first - begin:.0f} s; the first look, which moves all marks, took {time.perf_counter() - first:.2f} s"
            )
            sys.stdout.write(f"{log.db.engine}, {going_on} runs under way: {said}\n")
            sys.stdout.flush()
            # A look adds up the few entries of a small log after its marks each time; here the marks of all are at their ends.
            log.overview.derive()
            logs.append(log)
        yield logs


def compared(engine: str, logs: Sequence[Decklog], entries: int, under_way: Sequence[int]) -> list[Row]:
    """Hold every view of the large logs against the same view of the small one."""
    found = []
    for name, view in VIEWS.items():
        small, *large = measured(logs, view)
        for log, going_on, passed in zip(logs[1:], under_way, large, strict=True):
            few, many = counted(logs[0], view), counted(log, view)
            source = f"{name}: {engine}, {entries:,} entries, {going_on} runs under way, {many} statements ({few})"
            # With more runs under way there is more to show. The target: a larger past costs nothing.
            found.append(row(source, passed, "ms", floor=small, target="<= 1.3" if going_on == GOING_ON else ""))
    return found


def notes(runs: int) -> list[str]:
    return [
        f"The floor is the same view of a log with {FEW:,} entries in {FEW_RUNS} runs, {GOING_ON} of them under way. "
        f"The large logs have {runs:,} runs: in one as many are under way as in the small one, in the other all of them.",
        "In brackets is how many statements the view of the small log takes.",
        f"Medians of {TIMES} times, in turns, within one process, on PostgreSQL over a local socket. `decklog now` as a command "
        "also starts Python and opens the log, at any size the same.",
        "A tenth of the entries are changes of tasks and a fifth charges, on thirty days; five approvals wait.",
    ]


if __name__ == "__main__":
    main()
