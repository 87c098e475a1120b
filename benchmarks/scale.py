"""Whether things stay as fast when the log grows: a thousand entries compared with a million."""

import os
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.measure import Row, in_turns, row, write
from decklog import Decklog

RUN = "run_06fq2v8k3c9d4e5f6g7h8j9kam"
WORDS = [
    "lexer",
    "parser",
    "ledger",
    "budget",
    "lease",
    "commit",
    "branch",
    "review",
    "fixture",
    "socket",
    "cache",
    "index",
    "retry",
    "timeout",
    "merge",
    "token",
    "plan",
    "phase",
]
BATCH = 5_000


def fill(path: Path, count: int) -> None:
    """Create a log with `count` entries in one run: mostly tool calls, some events and reasoning."""
    with Decklog.open(path, durability="relaxed") as log:
        log.runs.start("Grow", run_id=RUN)
        for start in range(0, count, BATCH):
            log.journal.append_many([_entry(number) for number in range(start, min(start + BATCH, count))])
            if start % 100_000 == 0:
                log.runs.update(RUN, summary=f"at {start}")
        log.journal.index()


def _entry(number: int) -> dict[str, object]:
    entry: dict[str, object] = {
        "stream": RUN,
        "body": f"step {number}: looked at the {WORDS[number % 18]}, changed the {WORDS[number * 7 % 18]} near {number % 997}",
        "kind": ("tool", "interaction", "event", "tool", "reasoning")[number % 5],
        "agent": f"agent-{number % 7}",
    }
    if number % 50 == 0:
        entry |= {"task_id": "task-50", "group_id": f"group-{number % 20}"}
    if number % 5 == 2:
        entry["subtype"] = f"subtype-{number % 90}"
    return entry


def microseconds(work: Callable[[], object], rounds: int = 60) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return Figure(times) * 1e6


def works(log: Decklog) -> dict[str, Callable[[], object]]:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    return {
        "find, newest 20": lambda: log.journal.find(RUN),
        "find by kind": lambda: log.journal.find(RUN, kind="reasoning"),  # type: ignore[arg-type]
        "find by task": lambda: log.journal.find(RUN, task_id="task-50"),
        "find by subtype": lambda: log.journal.find(RUN, subtype="subtype-2"),
        "find by agent": lambda: log.journal.find(RUN, agent="agent-3"),
        "find since a time": lambda: log.journal.find(RUN, since=since),
        "at": lambda: log.journal.at("runs", RUN, "5"),
        "history": lambda: log.journal.history("runs", RUN),
        "append": lambda: log.journal.append(RUN, "one more"),
    }


def opening(path: Path) -> float:
    return microseconds(lambda: Decklog.open(path).close(), 20)


def main() -> list[Row]:
    """Measure a small and a large log; write benchmarks/results/scale.md."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        small, large = Path(name) / "small.db", Path(name) / "large.db"
        fill(small, 1_000)
        fill(large, int(os.environ.get("DECKLOG_BENCH_ENTRIES", "1000000")))
        rows.append(row("open", opening(large), "µs", floor=opening(small), target="<= 1.5"))
        with Decklog.open(small) as little, Decklog.open(large) as big:
            few, many = works(little), works(big)
            for label in few:
                rows.append(row(label, microseconds(many[label]), "µs", floor=microseconds(few[label]), target="<= 2"))
            rows += _searching(big)
            rows += verifying(big)
        rows += _picture(Path(name) / "tasks.db")
    write("scale", "A million entries compared with a thousand", rows)
    return rows


def verifying(log: Decklog) -> list[Row]:
    """Verify a log, compared with reading every entry by hand and hashing its text and itself, which takes one core."""
    import apsw

    connection = apsw.Connection(log.db.target)

    def raw() -> float:
        begin = time.perf_counter()
        for entry in connection.execute("select * from entries order by pos"):
            sha256(str(entry[20]).encode()).hexdigest()
            sha256(str(entry).encode()).hexdigest()
        return time.perf_counter() - begin

    def ours() -> float:
        begin = time.perf_counter()
        assert log.journal.verify().ok
        return time.perf_counter() - begin

    [count] = next(connection.execute("select count(*) from entries"))
    floor, seconds = in_turns(3, raw, ours)
    return [
        row(f"verify of {count:,} entries", count / seconds, "entries/s", target=">= 150000"),
        row("the same, compared with reading and hashing by hand", count / seconds, "entries/s", floor=count / floor),
    ]


def _picture(path: Path) -> list[Row]:
    """Take the picture of a run of 100,000 entries that tell of 20,000 tasks, in CPU time."""
    tasks = int(os.environ.get("DECKLOG_BENCH_TASKS", "20000"))
    with Decklog.open(path, durability="relaxed") as log:
        log.runs.start("Grow", run_id=RUN)
        for start in range(0, tasks, 1_000):
            log.tasks.add_many(RUN, [{"title": f"task {start + number}", "objective": "x" * 120} for number in range(1_000)])
        while (claim := log.tasks.claim(RUN, worker="w")) is not None:
            log.tasks.finish(claim.task.id, fence=claim.task.fence)
        for start in range(0, 2 * tasks, 1_000):
            log.journal.append_many([_entry(start + number) for number in range(1_000)])
        times, whole = [], []
        for _ in range(5):
            begin = time.process_time()
            picture = log.runs.snapshot(RUN)
            times.append(time.process_time() - begin)
            picture.as_dict()
            whole.append(time.process_time() - begin)
    name = f"snapshot of a run of {picture.seq:,} entries"
    return [
        row(name, Figure(times), "s", target="<= 0.5"),
        row(f"{name}, with all of its records and attempts as JSON", Figure(whole), "s"),
    ]


def _searching(log: Decklog) -> list[Row]:
    """Search, compared with the same FTS5 query, made by hand."""
    import apsw

    connection = apsw.Connection(log.db.target)
    sql = """
        select entries.* from entries join entry_text on entry_text.rowid = entries.pos
         where entry_text match ? order by entry_text.rowid desc limit 21
    """

    def raw() -> None:
        connection.execute(sql, ("lexer",)).fetchall()

    return [
        row(
            "search, compared with a raw FTS5 query",
            microseconds(lambda: log.journal.search("lexer")),
            "µs",
            floor=microseconds(raw),
            target="<= 1.4",
        )
    ]


if __name__ == "__main__":
    main()
