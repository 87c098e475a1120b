"""Whether what a person looks at stays as fast when the log is large: every read verb of the dashboard, on both engines.

    python -m benchmarks.views [--size 100000] [--engines sqlite,postgres] [--postgres URL] [--times 20]

Without an address, PostgreSQL is the one that the tests use. The small log has 1,000 entries, the large one as many as given;
both are made by `decklog demo --big`, a tenth of their entries in one run. They are asked in turns, after each view was looked at
once; one more entry is written before each look, so that nothing is answered from memory alone. What the views cost writers is
counted in pages of the write-ahead log, in a log with the indexes and tables of the views and in one without.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import apsw
from tests.statements import statements

from benchmarks.pages import Frames
from benchmarks.task_narrowed import places
from decklog import Decklog, RunStatus
from decklog.core.clock import to_text
from decklog.demo.big import Big, MovedClock, opened
from decklog.records.values import to_json

END = datetime(2026, 11, 15, 14, 2, 52, tzinfo=UTC)
SMALL = 1_000
# As many runs as a page lists, in the small log too: a page with few rows has a better ratio.
LEAST_RUNS = 60
_TABLES = ("run_marks", "run_attempts", "run_moments", "record_firsts")
_INDEXES = ("tasks_held", "tasks_dependent", "tasks_waiting", "tasks_paused", "runs_by_repo", "runs_by_parent")


@dataclass
class Sample:
    """A log with the places in it that views look at: its longest run, an entry in the middle, and a far page."""

    log: Decklog
    run_id: str
    middle: str
    far: str | None
    older: str | None
    task_id: str
    cursor: str
    entries: int
    # Behind this are the first runs that there were; None where there are no others.
    first_runs: str | None = None


View = Callable[[Sample], object]
VIEWS: dict[str, View] = {
    "now": lambda s: s.log.overview.now(),
    "runs": lambda s: s.log.overview.runs(limit=10),
    "runs by goal": lambda s: s.log.overview.runs(text="parser", limit=5),
    "run": lambda s: s.log.overview.run(s.run_id),
    "page of a run": lambda s: s.log.overview.run_view(s.run_id, buckets=90, lanes=4),
    "page, middle": lambda s: s.log.overview.run_view(s.run_id, at=s.middle, buckets=90, lanes=4),
    "waiting": lambda s: s.log.overview.waiting(limit=50),
    "days": lambda s: s.log.overview.days(by="model"),  # type: ignore[arg-type]
    "board": lambda s: s.log.overview.board(s.run_id, per_column=5),
    "why": lambda s: s.log.tasks.why(s.task_id),
    "running tasks": lambda s: s.log.tasks.find(state="running"),  # type: ignore[arg-type]
    "counts": lambda s: s.log.runs.totals(s.run_id),
    "counts, middle": lambda s: s.log.runs.totals(s.run_id, at=s.middle),
    "tasks, middle": lambda s: s.log.runs.records_at(s.run_id, "tasks", s.middle, limit=5),
    "tasks, far page": lambda s: s.log.runs.records_at(s.run_id, "tasks", s.middle, limit=5, after=s.far),
    "strip": lambda s: s.log.runs.activity(s.run_id, buckets=90),
    "lanes": lambda s: s.log.runs.lanes(s.run_id, limit=4),
    "lanes, middle": lambda s: s.log.runs.lanes(s.run_id, until=s.middle, limit=4),
    "journal": lambda s: s.log.journal.find(s.run_id, limit=50),
    "journal, middle": lambda s: s.log.journal.find(s.run_id, limit=50, after=s.older),
    "search, rare": lambda s: s.log.overview.search("scheduler week"),
    "moved": lambda s: s.log.journal.since(s.cursor, going_on=True),
}


def sampled(target: str, size: int) -> Sample:
    """Make a log, or take the one that is there, and find its places."""
    log = Decklog.open(target, clock=MovedClock(END), migrate=True, durability="relaxed")
    if not log.journal.heads():
        log.close()
        log, clock = opened(target, END, 7)
        Big(log, clock, END, size, 7, lambda _done, _whole: None, LEAST_RUNS).run()
        if log.db.engine == "postgres":
            log.db.write(lambda: log.db.rows("analyze", {}))
    heads = log.journal.heads()
    # One that goes on: what is written to it concerns every page.
    going_on = {run.id for run in log.runs.find(status=RunStatus.ACTIVE, limit=200)}
    run_id, length = max(
        ((head["stream"], head["seq"]) for head in heads if head["stream"] in going_on), key=lambda pair: pair[1]
    )
    middle, after = str(length // 2), None
    for _ in range(20):
        page = log.runs.records_at(run_id, "tasks", middle, limit=5, after=after)
        if page.next is None:
            break
        after = page.next
    (task,) = log.tasks.find(run_id, limit=1)
    older = log.journal.find(run_id, limit=min(1000, length // 2)).next
    entries = sum(head["seq"] for head in heads)
    return Sample(log, run_id, middle, after, older, task.id, log.journal.now(), entries, _first_runs(log))


def _first_runs(log: Decklog) -> str | None:
    """Give where the list of runs goes on with its last ten."""
    ends = sorted((to_text(run.ended_at), run.id) for run in log.runs.find(oldest_first=True, limit=40) if run.ended_at)
    return to_json(["ended", *ends[10]]) if len(ends) > 10 else None


def counted(sample: Sample, view: View) -> int:
    """Count the statements of a view."""
    sample.log.journal.append(sample.run_id, "one more")
    with statements(sample.log) as seen:
        view(sample)
    return len(seen)


def measured(samples: tuple[Sample, Sample], view: View, times: int) -> list[tuple[float, float]]:
    """Ask in turns; give the median of the time and of our CPU time for each log, in milliseconds."""
    passed: tuple[list[float], list[float]] = ([], [])
    used: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for place, sample in enumerate(samples):
            sample.log.journal.append(sample.run_id, "one more")
            begin, before = time.perf_counter(), time.process_time()
            view(sample)
            passed[place].append(time.perf_counter() - begin)
            used[place].append(time.process_time() - before)
    return [(statistics.median(passed[place]) * 1e3, statistics.median(used[place]) * 1e3) for place in (0, 1)]


def report(engine: str, samples: tuple[Sample, Sample], times: int) -> None:
    few, many = samples
    for name, view in VIEWS.items():
        view(few), view(many)
        (small, small_cpu), (large, large_cpu) = measured(samples, view, times)
        sys.stdout.write(
            f"{engine:9} {name:16} {counted(few, view)} and {counted(many, view)} statements, "
            f"{few.entries:,} entries {small:6.2f} ms ({small_cpu:.2f} of our processor), "
            f"{many.entries:,} entries {large:6.2f} ms ({large_cpu:.2f}), "
            f"{large / small:5.2f} × ({large_cpu / small_cpu:.2f} ×)\n"
        )
        sys.stdout.flush()


# What they cost writers


def written(folder: Path, *, with_views: bool) -> dict[str, float]:
    """Count the pages that each step of a worker writes, with and without what the views have in the schema."""
    path = folder / f"{with_views}.db"
    Decklog.open(path).close()
    if not with_views:
        connection = apsw.Connection(str(path))
        for name in _TABLES:
            connection.execute(f"drop table {name}")
        for name in _INDEXES:
            connection.execute(f"drop index {name}")
        connection.close()
    with Decklog.open(path) as log:
        run_id, frames, claims = log.runs.start("count").id, Frames(path), []
        found = {
            "append": frames.per_step(lambda n: log.journal.append(run_id, "x" * 200, key=f"k{n}")),
            "add": frames.per_step(lambda n: log.tasks.add(run_id, f"task {n}")),
            "claim": frames.per_step(lambda _: claims.append(log.tasks.claim(run_id, worker="w"))),
            "finish": frames.per_step(lambda n: claims[n].finish()),  # type: ignore[union-attr]
            "charge": frames.per_step(lambda _: log.ledger.charge("m", cost_microdollars=1, run_id=run_id)),
        }
        frames.close()
    return found


def report_pages() -> None:
    with tempfile.TemporaryDirectory() as name:
        ours, bare = (written(Path(name), with_views=with_views) for with_views in (True, False))
    for step, pages in ours.items():
        sys.stdout.write(f"pages of {step:7} {pages:.2f} with what the views have in the schema, {bare[step]:.2f} without\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--postgres")
    parser.add_argument("--engines", default="sqlite,postgres")
    parser.add_argument("--times", type=int, default=20)
    given = parser.parse_args()
    report_pages()
    with places(given.postgres) as targets:
        for engine, (few_at, many_at) in targets.items():
            if engine not in given.engines.split(","):
                continue
            samples = sampled(few_at, SMALL), sampled(many_at, given.size)
            try:
                report(engine, samples, given.times)
            finally:
                for sample in samples:
                    sample.log.close()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
