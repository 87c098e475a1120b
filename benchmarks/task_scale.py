"""Whether a claim and a snapshot stay as fast when there is much else: a million tasks, twenty other runs."""

import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Row, in_turns, row
from decklog import Decklog
from decklog.core.clock import to_text
from decklog.journal import chain
from decklog.journal.replication import Replication

TASKS = int(os.environ.get("DECKLOG_BENCH_TASKS", "1000000"))
DEPENDENCIES = min(10_000, TASKS // 100)
FEW = 1_000
CLAIMS = 200
RUN_TASKS = min(10_000, TASKS // 10)
OTHERS = 20
BATCH = 5_000
MOST_VERIFIED = 10_000
NOTE = (
    "The large log is filled by entries made after one that `tasks.add` wrote, with an id, a title, a time and an urgency of "
    "their own, and taken in by `journal.receive`, which checks each hash and makes the row from its image, as a move does. "
    "The logs of up to 10,000 tasks, made in the same way, are verified, chain and rows; a test holds that a row made so is the "
    "one that the verb writes. The dependencies are added by "
    "`tasks.add_many`: tasks more urgent than all others, each waiting for one, so that a claim has to get past them. "
    "Claims at both sizes are timed in turns, with `durability=relaxed`: a disk's sync would hide the difference."
)


class Model:
    """Adds tasks to a run quickly: the first by its verb, the others as entries made after it."""

    def __init__(self, log: Decklog, run_id: str) -> None:
        self._log = log
        self._run_id = run_id
        task_id = log.tasks.add(run_id, "task 0").id
        head = self._head()
        (self._entry,) = Replication.of(log).export_entries(run_id, after=head["seq"] - 1)
        self._image = json.loads(self._entry["payload"])
        assert self._image["id"] == task_id

    def _head(self) -> "dict[str, Any]":
        return next(head for head in self._log.journal.heads() if head["stream"] == self._run_id)

    def grow(self, count: int) -> None:
        """Add tasks to a run up to a number."""
        for start in range(1, count, BATCH):
            Replication.of(self._log).receive(list(self.entries(range(start, min(start + BATCH, count)))))

    def entries(self, numbers: range) -> "Iterator[dict[str, Any]]":
        head = self._head()
        seq, previous = head["seq"], head["hash"]
        for number in numbers:
            seq += 1
            entry = self._like(seq, number)
            previous = entry["hash"] = chain.hash_entry(previous, entry)
            yield entry

    def _like(self, seq: int, number: int) -> "dict[str, Any]":
        task_id, at, title = self._log.parts.ids.new("task"), to_text(self._log.clock.now()), f"task {number}"
        own = {"id": task_id, "title": title, "priority": number % 100, "created_at": at, "updated_at": at}
        payload = json.dumps({**self._image, **own}, ensure_ascii=False, separators=(",", ":"))
        return self._entry | {
            "seq": seq,
            "at": at,
            "record_id": task_id,
            "task_id": task_id,
            "body": title,
            "payload": payload,
        }


def must_verify(log: Decklog, tasks: int) -> None:
    """Make sure that a log is what the verbs would have written; a large one is made in the same way, and takes minutes."""
    if tasks > MOST_VERIFIED:
        return
    found = log.journal.verify()
    if not found.ok:
        raise RuntimeError(f"the log is not what the verbs would have written: {found.first}")


def make(path: Path, count: int, dependencies: int) -> str:
    """Create a log with one run of `count` tasks, some of which wait for others; return the run's id."""
    with Decklog.open(path, durability="relaxed") as log:
        run_id = log.runs.start("scale").id
        Model(log, run_id).grow(count - dependencies)
        needed = [task.id for task in log.tasks.find(run_id, limit=200)]
        for start in range(0, dependencies, 1_000):
            waiting = [
                {"title": f"waiting {n}", "priority": 100, "depends_on": [needed[n % len(needed)]]}
                for n in range(start, min(start + 1_000, dependencies))
            ]
            log.tasks.add_many(run_id, waiting)
        must_verify(log, count)
    return run_id


def claims(folder: Path) -> list[Row]:
    """Time a claim among a million tasks and a claim among a thousand, in turns."""
    paths = folder / "few.db", folder / "many.db"
    begin = time.perf_counter()
    runs = make(paths[0], FEW, 0), make(paths[1], TASKS, DEPENDENCIES)
    filled = time.perf_counter() - begin
    times: tuple[list[float], list[float]] = [], []
    with Decklog.open(paths[0], durability="relaxed") as few, Decklog.open(paths[1], durability="relaxed") as many:
        for _ in range(CLAIMS):
            for log, run_id, seen in zip((few, many), runs, times, strict=True):
                begin = time.perf_counter()
                claim = log.tasks.claim(run_id, worker="w")
                seen.append((time.perf_counter() - begin) * 1e6)
                assert claim is not None
                assert claim.task.priority < 100
    small, large = map(statistics.median, times)
    label = f"a claim among {TASKS:,} tasks with {DEPENDENCIES:,} dependencies, compared with {FEW:,}"
    return [row(label, large, "µs", floor=small, target="<= 1.5"), row("making these two logs", filled, "s")]


def crowded(path: Path, sizes: list[int]) -> list[str]:
    """Make a log with a run of each size, written side by side; give their ids."""
    with Decklog.open(path, durability="relaxed") as log:
        runs = [log.runs.start("snapshot").id for _ in sizes]
        models = [Model(log, run_id) for run_id in runs]
        for start in range(1, max(sizes), 1_000):
            for model, size in zip(models, sizes, strict=True):
                Replication.of(log).receive(list(model.entries(range(start, min(start + 1_000, size)))))
        must_verify(log, sum(sizes))
    return runs


def snapshots(folder: Path) -> list[Row]:
    """Time a snapshot of a run that is alone, of one among twenty others of its size, and of one of a tenth the size."""
    small = RUN_TASKS // 10
    (alone,) = crowded(folder / "alone.db", [RUN_TASKS])
    among, *_ = crowded(folder / "among.db", [RUN_TASKS] * (OTHERS + 1))
    (little,) = crowded(folder / "little.db", [small])
    with (
        Decklog.open(folder / "alone.db") as one,
        Decklog.open(folder / "among.db") as many,
        Decklog.open(folder / "little.db") as tenth,
    ):
        alone_ms, in_company, short = in_turns(
            7, lambda: photographed(one, alone), lambda: photographed(many, among), lambda: photographed(tenth, little)
        )
    label = f"snapshot of a run with {RUN_TASKS:,} tasks"
    return [
        row(f"{label}, {OTHERS} others of its size in the log", in_company, "ms", floor=alone_ms, target="<= 1.25"),
        row(
            f"{label}, per task, vs {small:,}",
            alone_ms / RUN_TASKS * 1e3,
            "µs",
            floor=short / small * 1e3,
            target="<= 1.25",
        ),
    ]


def photographed(log: Decklog, run_id: str) -> float:
    begin = time.perf_counter()
    snapshot = log.runs.snapshot(run_id)
    taken = (time.perf_counter() - begin) * 1e3
    assert len(snapshot.records["tasks"]) >= RUN_TASKS // 10
    return taken
