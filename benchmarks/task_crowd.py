"""Eight processes at one queue: how fast they drain it, whether a task goes to two of them, and who has to wait."""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.children import together, work_as_child
from benchmarks.measure import Row, row
from benchmarks.task_floor import Floor
from benchmarks.task_peers import PersistQueue
from decklog import Decklog

PROCESSES = 8


@dataclass
class Crowd:
    """What several rounds of one way came to: the usual rate, and the worst of everything else."""

    rates: list[float] = field(default_factory=list)
    worst: float = 0.0
    share: float = 1.0
    doubles: int = 0
    lost: int = 0

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    def add(self, count: int, went: float, results: list[dict[str, Any]]) -> None:
        claimed = [task for result in results for task in result["tasks"]]
        counts = [len(result["tasks"]) for result in results]
        self.rates.append(len(set(claimed)) / (max(result["ended"] for result in results) - went))
        self.worst = max(self.worst, *(result["worst"] for result in results))
        self.share = min(self.share, min(counts) / statistics.mean(counts))
        self.doubles += len(claimed) - len(set(claimed))
        self.lost += count - len(set(claimed))


class Watch:
    """Remembers the longest that any call took."""

    def __init__(self) -> None:
        self.worst = 0.0

    def __call__(self, call: Callable[..., Any], *arguments: object, **named: object) -> Any:
        begin = time.perf_counter()
        result = call(*arguments, **named)
        self.worst = max(self.worst, time.perf_counter() - begin)
        return result


# How a process of each kind drains; every call is watched.


def drain_raw(path: str, worker: str, watch: Watch) -> Callable[[], list[Any]]:
    floor = Floor(path, worker)

    def work() -> list[Any]:
        tasks = []
        while (number := watch(floor.claim)) is not None:
            watch(floor.finish, number)
            tasks.append(number)
        return tasks

    return work


def opened(target: str, worker: str) -> tuple[Decklog, str]:
    """Open a log, and have everything that a claim needs loaded and connected, as the peers have before they begin."""
    log = Decklog.open(target)
    run_id = log.runs.find(limit=1)[0].id
    log.tasks.claim(run_id, worker=worker, group_id="nobody's")
    return log, run_id


def drain_ours(target: str, worker: str, watch: Watch) -> Callable[[], list[Any]]:
    log, run_id = opened(target, worker)

    def work() -> list[Any]:
        tasks = []
        while (claim := watch(log.tasks.claim, run_id, worker=worker)) is not None:
            watch(log.tasks.finish, claim.task.id, fence=claim.task.fence)
            tasks.append(claim.task.id)
        return tasks

    return work


def drain_fused(target: str, worker: str, watch: Watch) -> Callable[[], list[Any]]:
    log, run_id = opened(target, worker)

    def work() -> list[Any]:
        tasks = []
        claim = watch(log.tasks.claim, run_id, worker=worker)
        while claim is not None:
            tasks.append(claim.task.id)
            claim = watch(log.tasks.finish_and_claim, claim.task.id, fence=claim.task.fence)
        return tasks

    return work


def drain_persist(path: str, _: str, watch: Watch) -> Callable[[], list[Any]]:
    queue = PersistQueue(Path(path), resume=False)

    def work() -> list[Any]:
        tasks = []
        while (item := watch(queue.claim)) is not None:
            watch(queue.finish, item)
            tasks.append(item["pqid"])
        return tasks

    return work


WAYS = {"raw": drain_raw, "ours": drain_ours, "fused": drain_fused, "persist": drain_persist}


def fill(way: str, target: str, count: int) -> None:
    """Make a queue with so many tasks for one way of draining it."""
    if way == "raw":
        queue: Floor | PersistQueue = Floor(target)
        queue.fill(count)
        queue.close()
    elif way == "persist":
        queue = PersistQueue(Path(target))
        queue.fill(count)
        queue.close()
    else:
        with Decklog.open(target, migrate=True) as log:
            run_id = log.runs.start("crowd").id
            log.tasks.add_many(run_id, [{"title": f"task {number}", "objective": "x" * 150} for number in range(count)])


def crowd(way: str, target: str, count: int, into: Crowd, *, processes: int = PROCESSES) -> None:
    """Fill a queue and let so many processes drain it."""
    fill(way, target, count)
    into.add(count, *together("benchmarks.task_crowd", [(way, target, f"w{number}") for number in range(processes)]))


def crowds(folder: Path, count: int, rounds: int) -> list[Row]:
    """Let crowds of each kind have their turns."""
    found = {way: Crowd() for way in WAYS}
    for number in range(rounds):
        for way in WAYS:
            crowd(way, str(folder / f"crowd-{way}-{number}.db"), count, found[way])
    raw, ours, fused, persist = (found[way] for way in WAYS)
    return [
        row("8 processes, claim and finish, beside 8 raw ones", ours.rate, "per s", floor=raw.rate, target=">= 0.5"),
        row("8 processes, finish and claim fused, beside 8 raw ones", fused.rate, "per s", floor=raw.rate, target=">= 0.8"),
        *judged("8 processes, claim and finish", ours),
        *judged("8 processes, fused", fused),
        *told("8 raw processes", raw),
        row("8 processes, claim and finish, beside persist-queue", ours.rate, "per s", floor=persist.rate, target=">= 1"),
        *told("8 processes of persist-queue", persist),
    ]


def judged(label: str, crowd: Crowd) -> list[Row]:
    return [
        row(f"{label}: claimed twice", float(crowd.doubles), "tasks", target="<= 0"),
        row(f"{label}: lost", float(crowd.lost), "tasks", target="<= 0"),
        row(f"{label}: least-served, share of the mean", crowd.share, "", target=">= 0.5"),
        row(f"{label}: worst wait", crowd.worst, "s", target="<= 1"),
    ]


def told(label: str, crowd: Crowd) -> list[Row]:
    """What came of a crowd that has no targets to meet."""
    return [
        row(f"{label}: claimed twice", float(crowd.doubles), "tasks"),
        row(f"{label}: least-served, share of the mean", crowd.share, ""),
        row(f"{label}: worst wait", crowd.worst, "s"),
    ]


def main(way: str, target: str, worker: str) -> None:
    """Be one process of a crowd."""
    watch = Watch()

    def prepare() -> Callable[[], Any]:
        drain = WAYS[way](target, worker, watch)
        return lambda: {"tasks": drain(), "worst": watch.worst, "ended": time.time()}

    work_as_child(prepare)


if __name__ == "__main__":
    main(*sys.argv[1:])
