"""Eight processes at one queue: how fast they drain it, whether a task goes to two of them, and who has to wait."""

import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.children import Crew, work_as_child
from benchmarks.figures import Figure
from benchmarks.measure import Row, row
from benchmarks.task_floor import Floor
from benchmarks.task_peers import PersistQueue
from decklog import Decklog

PROCESSES = 8
TURNS = 10
TURN_SECONDS = 0.5
ALL = "250"
# The floor is fast and its tasks cost little to make; it should not run dry long before the others.
RAW_SHARE = 5


class Crowd:
    """What the processes of one kind came to: the usual rate of a turn, and the worst of everything else."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.worst = 0.0
        self.claimed: Counter[object] = Counter()
        self.counts: Counter[int] = Counter()
        self.wanted = 0

    @property
    def rate(self) -> float:
        return Figure(self.rates)

    @property
    def share(self) -> float:
        """The least-served process, as a share of the mean."""
        return min(self.counts.values()) / statistics.mean(self.counts.values())

    @property
    def doubles(self) -> int:
        return self.claimed.total() - len(self.claimed)

    @property
    def lost(self) -> int:
        return self.wanted - len(self.claimed)

    def add(self, went: float, results: list[dict[str, Any]], *, queue: str = "", seconds: float | None = None) -> None:
        """Add a turn, which ended after its seconds or when the queue was drained. Other queues may have the same tasks."""
        claimed = [(queue, task) for result in results for task in result["tasks"]]
        fresh = len(set(claimed) - self.claimed.keys())
        self.claimed.update(claimed)
        for place, result in enumerate(results):
            self.counts[place] += len(result["tasks"])
            self.worst = max(self.worst, result["worst"])
        if seconds is None and fresh:
            self.rates.append(fresh / (max(result["ended"] for result in results) - went))
        elif seconds and claimed and not any(result["dry"] for result in results):
            # Only what was done in time: who still waits when the turn ends would make it longer for all.
            self.rates.append(sum(result["in_time"] for result in results) * fresh / len(claimed) / seconds)


class Watch:
    """Remembers the longest that any call took."""

    def __init__(self) -> None:
        self.worst = 0.0

    def __call__(self, call: Callable[..., Any], *arguments: object, **named: object) -> Any:
        begin = time.perf_counter()
        result = call(*arguments, **named)
        self.worst = max(self.worst, time.perf_counter() - begin)
        return result


# How a process of each kind drains, task by task; every call is watched.


def drain_raw(path: str, worker: str, watch: Watch) -> Iterator[object]:
    floor = Floor(path, worker)
    yield None
    while (number := watch(floor.claim)) is not None:
        watch(floor.finish, number)
        yield number


def opened(target: str, worker: str) -> tuple[Decklog, str]:
    """Open a log, and have everything that a claim needs loaded and connected, as the peers have before they begin."""
    log = Decklog.open(target)
    run_id = log.runs.find(limit=1)[0].id
    log.tasks.claim(run_id, worker=worker, group_id="nobody's")
    return log, run_id


def drain_ours(target: str, worker: str, watch: Watch) -> Iterator[object]:
    log, run_id = opened(target, worker)
    yield None
    while (claim := watch(log.tasks.claim, run_id, worker=worker)) is not None:
        watch(log.tasks.finish, claim.task.id, fence=claim.task.fence)
        yield claim.task.id


def drain_fused(target: str, worker: str, watch: Watch) -> Iterator[object]:
    log, run_id = opened(target, worker)
    yield None
    claim = watch(log.tasks.claim, run_id, worker=worker)
    while claim is not None:
        task = claim.task
        claim = watch(log.tasks.finish_and_claim, task.id, fence=task.fence)
        yield task.id


def drain_persist(path: str, _: str, watch: Watch) -> Iterator[object]:
    queue = PersistQueue(Path(path), resume=False)
    yield None
    while (item := watch(queue.claim)) is not None:
        watch(queue.finish, item)
        yield item["pqid"]


WAYS = {"raw": drain_raw, "ours": drain_ours, "fused": drain_fused, "persist": drain_persist}


def fill(way: str, target: str, count: int) -> None:
    """Create a queue of `count` tasks for one way of draining it."""
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


def crew(way: str, target: str, count: int, into: Crowd, *, processes: int = PROCESSES) -> Crew:
    """Fill a queue and start the processes that will drain it."""
    fill(way, target, count)
    into.wanted += count
    return Crew("benchmarks.task_crowd", [(way, target, f"w{number}") for number in range(processes)])


def crowd(way: str, target: str, count: int, into: Crowd, *, processes: int = PROCESSES) -> None:
    """Let processes drain a queue in one go."""
    with crew(way, target, count, into, processes=processes) as workers:
        into.add(*workers.ask(ALL), queue=str(len(into.rates)))


def crowds(folder: Path, count: int) -> list[Row]:
    """Let eight processes of each kind have short turns, one kind after the other."""
    found = {way: Crowd() for way in WAYS}
    with ExitStack() as stack:
        crews = {}
        for way in WAYS:
            wanted = count * RAW_SHARE if way == "raw" else count
            crews[way] = stack.enter_context(crew(way, str(folder / f"crowd-{way}.db"), wanted, found[way]))
        for way in [*WAYS] * TURNS:
            found[way].add(*crews[way].ask(str(TURN_SECONDS)), seconds=TURN_SECONDS)
        # What the floor has left is of no interest, and may be much.
        for way in list(WAYS)[1:]:
            found[way].add(*crews[way].ask(ALL), seconds=0)
    raw, ours, fused, persist = (found[way] for way in WAYS)
    return [
        row("8 processes, claim and finish, compared with 8 raw ones", ours.rate, "per s", floor=raw.rate, target=">= 0.5"),
        row(
            "8 processes, finish and claim fused, compared with 8 raw ones", fused.rate, "per s", floor=raw.rate, target=">= 0.8"
        ),
        *judged("8 processes, claim and finish", ours),
        *judged("8 processes, fused", fused),
        *crowd_rows("8 raw processes", raw),
        row("8 processes, claim and finish, compared with persist-queue", ours.rate, "per s", floor=persist.rate, target=">= 1"),
        *crowd_rows("8 processes of persist-queue", persist),
    ]


def judged(label: str, crowd: Crowd) -> list[Row]:
    return [
        row(f"{label}: claimed twice", float(crowd.doubles), "tasks", target="<= 0"),
        row(f"{label}: lost", float(crowd.lost), "tasks", target="<= 0"),
        row(f"{label}: least-served, share of the mean", crowd.share, "", target=">= 0.5"),
        row(f"{label}: worst wait", crowd.worst, "s", target="<= 1"),
    ]


def crowd_rows(label: str, crowd: Crowd) -> list[Row]:
    """What came of a crowd that has no targets to meet."""
    return [
        row(f"{label}: claimed twice", float(crowd.doubles), "tasks"),
        row(f"{label}: least-served, share of the mean", crowd.share, ""),
        row(f"{label}: worst wait", crowd.worst, "s"),
    ]


def main(way: str, target: str, worker: str) -> None:
    """Be one process of a crowd; a word is how many seconds to go on."""
    watch = Watch()
    drain = WAYS[way](target, worker, watch)
    next(drain)

    def turn(seconds: str) -> dict[str, Any]:
        until = time.monotonic() + float(seconds)
        tasks, in_time, dry = [], 0, True
        for task in drain:
            tasks.append(task)
            dry = time.monotonic() < until
            if not dry:
                break
            in_time += 1
        return {"tasks": tasks, "in_time": in_time, "dry": dry, "worst": watch.worst, "ended": time.time()}

    work_as_child(turn)


if __name__ == "__main__":
    main(*sys.argv[1:])
