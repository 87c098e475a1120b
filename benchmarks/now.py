"""Whether an overview of a log stays as fast when the log is large: statements, processor time and rows, on both engines.

    python -m benchmarks.now [--entries 1000000] [--runs 1000] [--postgres URL]

Without an address, PostgreSQL is the one that the tests use. The small log has 1,000 entries in 10 runs, 5 of them under way; the
large one has as many under way and all others ended. Both are asked in turns, after their marks were moved once. What a claim
writes is counted too: the overview must cost writers nothing.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from tests.statements import statements

from benchmarks.task_narrowed import places
from decklog import Decklog, ManualClock
from decklog.clock import to_text
from decklog.stores.journal.rows import HEAD, STREAM_SIZE

GOING_ON = 5
TIMES = 20
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
VIEWS: dict[str, Callable[[Decklog], object]] = {
    "now": lambda log: log.overview.now(),
    "runs": lambda log: log.overview.runs(limit=10),
    "waiting": lambda log: log.overview.waiting(),
    "tallies": lambda log: log.runs.tallies("r0"),
    "days, 30": lambda log: log.overview.days(by="model"),  # type: ignore[arg-type]
    "pulse, 5 runs": lambda log: log.overview.pulse([f"r{number}" for number in range(GOING_ON)]),
}


def fill(log: Decklog, clock: ManualClock, entries: int, runs: int) -> None:
    """Make runs of as many entries each: a tenth changes of tasks, a fifth charges; then let some things wait."""
    each = entries // runs
    for number in range(runs):
        run_id = f"r{number}"
        log.runs.start(f"goal {number}", run_id=run_id)
        _fill_run(log, run_id, each, number)
        if number >= GOING_ON:
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
    log.tasks.add(run_id, "model", task_id=f"{run_id}-model")
    log.ledger.charge("model-a", cost_microdollars=1000, run_id=run_id, agent="dev")
    log.journal.append(run_id, "thinking")
    for table, count in (("tasks", each // 10), ("charges", each // 5)):
        _copies(log, run_id, table, count, first_day)
    left = each - each // 10 - each // 5 - 4
    log.journal.append_many([{"stream": run_id, "body": f"entry {place}"} for place in range(max(0, left))])


def _copies(log: Decklog, run_id: str, table: str, count: int, first_day: int) -> None:
    """Insert rows and their entries; charges in turns on thirty days. The chain is not valid: nothing here walks it."""
    db = log.db
    names, rows = db.read(lambda: db.rows(f"select * from {table} where run_id = :id", {"id": run_id}))
    model = dict(zip(names, rows[0], strict=True))
    columns, told = db.read(
        lambda: db.rows("select * from entries where record_table = :t and record_id = :id", {"t": table, "id": model["id"]})
    )
    entry = dict(zip(columns, told[0], strict=True))
    number = entry["pos"] // STREAM_SIZE
    span = {"start": number * STREAM_SIZE, "end": (number + 1) * STREAM_SIZE}
    head = db.read(lambda: db.one(HEAD, span))
    assert head is not None
    ids = [f"{run_id}-{table}-{place}" for place in range(count)]
    days = [to_text(NOW - timedelta(days=day)) for day in range(30)]
    own = [{"occurred_at": days[(first_day + place) % 30]} if table == "charges" else {} for place in range(count)]
    made = [tuple({**model, **more, "id": one, "key": None}.values()) for one, more in zip(ids, own, strict=True)]
    entries = [
        tuple({**entry, "pos": number * STREAM_SIZE + seq, "seq": seq, "record_id": one}.values())
        for seq, one in enumerate(ids, head[0] % STREAM_SIZE + 1)
    ]
    db.write(lambda: (db.insert(table, names, made), db.insert("entries", columns, entries)))
    # The head is remembered; it moved past the process that remembers it.
    db.memo.clear()


def counted(log: Decklog, view: Callable[[Decklog], object]) -> int:
    """Count the statements of a view."""
    with statements(log) as seen:
        view(log)
    return len(seen)


def measured(logs: tuple[Decklog, Decklog], view: Callable[[Decklog], object]) -> list[tuple[float, float]]:
    """Ask in turns; give the median of the time and of our processor time for each log, in milliseconds."""
    passed: tuple[list[float], list[float]] = ([], [])
    used: tuple[list[float], list[float]] = ([], [])
    for _ in range(TIMES):
        for place, log in enumerate(logs):
            begin, before = time.perf_counter(), time.process_time()
            view(log)
            passed[place].append(time.perf_counter() - begin)
            used[place].append(time.process_time() - before)
    return [(statistics.median(passed[place]) * 1e3, statistics.median(used[place]) * 1e3) for place in (0, 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--postgres")
    parser.add_argument("--engines", default="sqlite,postgres")
    given = parser.parse_args()
    with places(given.postgres) as targets:
        for engine, (few_at, many_at) in targets.items():
            if engine not in given.engines.split(","):
                continue
            clock = ManualClock(NOW)
            with suppress(FileNotFoundError), opened(few_at, clock) as few, opened(many_at, clock) as many:
                fill(few, clock, 1_000, 10)
                fill(many, clock, given.entries, given.runs)
                report(engine, few, many, given.entries)


def report(engine: str, few: Decklog, many: Decklog, entries: int) -> None:
    begin = time.perf_counter()
    many.overview.now()
    sys.stdout.write(
        f"{engine:9} the first look at {entries:,} entries, which moves all marks: {time.perf_counter() - begin:.2f} s\n"
    )
    for name, view in VIEWS.items():
        view(few), view(many)
        (small, small_cpu), (large, large_cpu) = measured((few, many), view)
        sys.stdout.write(
            f"{engine:9} {name:14} {counted(few, view)} and {counted(many, view)} statements, "
            f"1,000 entries {small:6.2f} ms ({small_cpu:.2f} of our processor), "
            f"{entries:,} entries {large:6.2f} ms ({large_cpu:.2f}), {large / small:5.2f} × ({large_cpu / small_cpu:.2f} ×)\n"
        )
        sys.stdout.flush()


def opened(target: str, clock: ManualClock) -> Decklog:
    return Decklog.open(target, clock=clock, migrate=True, durability="relaxed")


if __name__ == "__main__":
    main()
