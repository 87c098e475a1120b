"""Claiming and finishing tasks: beside two raw conditional updates, and beside queues that do the like."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from benchmarks.measure import Row, in_turns, rate, row, write
from decklog import Decklog

COUNT = 400
PROCESSES = 8


class Floor:
    """What can't be done with less: two transactions, each one conditional update."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = full")
        self._connection.execute("create table t (id integer primary key, state text, worker text, body text)")
        self._connection.execute("create index ready on t (id) where state = 'pending'")

    def fill(self) -> None:
        self._connection.execute("begin")
        self._connection.executemany("insert into t (state, body) values ('pending', ?)", [("x" * 200,)] * COUNT)
        self._connection.execute("commit")

    def drain(self) -> int:
        take = """
            update t set state = 'running', worker = 'w'
             where id = (select id from t where state = 'pending' order by id limit 1)
            returning id
        """
        end = "update t set state = 'done' where id = ? and state = 'running' returning id"
        for _ in range(COUNT):
            self._connection.execute("begin immediate")
            taken = self._connection.execute(take).fetchall()[0]
            self._connection.execute("commit")
            self._connection.execute("begin immediate")
            self._connection.execute(end, taken).fetchall()
            self._connection.execute("commit")
        return COUNT


class Ours:
    def __init__(self, target: "str | Path") -> None:
        self.log = Decklog.open(target, migrate=True)
        self._rounds = 0
        self.run_id = ""

    def fill(self) -> None:
        self._rounds += 1
        self.run_id = self.log.runs.start(f"round {self._rounds}").id
        self.log.tasks.add_many(self.run_id, [{"title": f"task {n}", "objective": "x" * 150} for n in range(COUNT)])

    def drain(self) -> int:
        done = 0
        while (claim := self.log.tasks.claim(self.run_id, worker="w")) is not None:
            self.log.tasks.finish(claim.task.id, fence=claim.task.fence)
            done += 1
        return done

    def drain_fused(self) -> int:
        done, claim = 0, self.log.tasks.claim(self.run_id, worker="w")
        while claim is not None:
            claim = self.log.tasks.finish_and_claim(claim.task.id, fence=claim.task.fence)
            done += 1
        return done


def filled(queue: "Floor | Ours", drain: Callable[[], int]) -> float:
    queue.fill()
    return rate(drain)


def crowd(folder: Path) -> dict[str, float]:
    """Eight processes drain one run; give the rate, the worst wait, the smallest share and double claims."""
    path = folder / "crowd.db"
    with Decklog.open(path) as log:
        run_id = log.runs.start("crowd").id
        log.tasks.add_many(run_id, [{"title": f"task {number}"} for number in range(COUNT * 4)])
    begin_at = time.time() + 4
    command = [sys.executable, "-m", "benchmarks.tasks", str(path), run_id]
    workers = [subprocess.Popen([*command, f"w{n}", str(begin_at)], stdout=subprocess.PIPE, text=True) for n in range(PROCESSES)]
    results = [json.loads(worker.communicate()[0]) for worker in workers]
    claimed = [task for result in results for task in result["tasks"]]
    counts = [len(result["tasks"]) for result in results]
    return {
        "rate": len(claimed) / (max(result["ended"] for result in results) - begin_at),
        "worst": max(result["worst"] for result in results),
        "share": min(counts) / (sum(counts) / len(counts)),
        "doubles": len(claimed) - len(set(claimed)),
        "missing": COUNT * 4 - len(set(claimed)),
    }


def drain_as_worker(path: str, run_id: str, name: str, begin_at: float) -> None:
    tasks, worst = [], 0.0
    with Decklog.open(path) as log:
        time.sleep(max(0.0, begin_at - time.time()))
        while True:
            begin = time.perf_counter()
            claim = log.tasks.claim(run_id, worker=name)
            worst = max(worst, time.perf_counter() - begin)
            if claim is None:
                break
            log.tasks.finish(claim.task.id, fence=claim.task.fence)
            tasks.append(claim.task.id)
    print(json.dumps({"tasks": tasks, "worst": worst, "ended": time.time()}))


def persist_queue(folder: Path) -> float | None:
    try:
        import persistqueue
    except ImportError:
        return None
    queue = persistqueue.SQLiteAckQueue(str(folder / "persist"), auto_commit=True)
    for number in range(COUNT):
        queue.put({"title": f"task {number}", "objective": "x" * 150})

    def drain() -> int:
        for _ in range(COUNT):
            queue.ack(queue.get())
        return COUNT

    return rate(drain)


def huey(folder: Path) -> float | None:
    try:
        from huey import SqliteHuey
    except ImportError:
        return None
    queue = SqliteHuey(filename=str(folder / "huey.db"), fsync=True)

    @queue.task()
    def work(number: int) -> int:
        return number

    for number in range(COUNT):
        work(number)

    def drain() -> int:
        for _ in range(COUNT):
            queue.dequeue()
        return COUNT

    return rate(drain)


def at_scale(folder: Path) -> Row:
    """A claim among a million tasks beside a claim among a thousand."""
    import statistics

    found = []
    for count in (1_000, int(os.environ.get("DECKLOG_BENCH_TASKS", "1000000"))):
        with Decklog.open(folder / f"scale-{count}.db", durability="relaxed") as log:
            run_id = log.runs.start("scale").id
            for start in range(0, count, 5_000):
                batch = [{"title": f"task {n}", "priority": n % 100} for n in range(start, min(start + 5_000, count))]
                log.tasks.add_many(run_id, batch)
            times = []
            for _ in range(200):
                begin = time.perf_counter()
                claim = log.tasks.claim(run_id, worker="w")
                times.append(time.perf_counter() - begin)
                assert claim is not None
            found.append(statistics.median(times) * 1e6)
    return row("a claim among a million tasks, beside a thousand", found[1], "µs", floor=found[0], target="<= 1.5")


def main() -> list[Row]:
    """Measure claims; write docs/benchmarks/tasks.md."""
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        floor, ours = Floor(folder / "floor.db"), Ours(folder / "ours.db")
        raw, two, one = in_turns(
            5, lambda: filled(floor, floor.drain), lambda: filled(ours, ours.drain), lambda: filled(ours, ours.drain_fused)
        )
        rows = [
            row("claim and finish, one process", two, "per s", floor=raw, target=">= 0.5"),
            row("finish and claim the next in one transaction", one, "per s", floor=raw, target=">= 0.8"),
        ]
        for label, peer in (("persist-queue, ack queue", persist_queue), ("huey: pops, no lease, attempt or record", huey)):
            if (figure := peer(folder)) is not None:
                rows.append(row(f"peer: {label}", figure, "per s", floor=raw))
        many = crowd(folder)
        rows += [
            row("8 processes, claim and finish", many["rate"], "per s", floor=raw, target=">= 0.5"),
            row("8 processes: worst wait for a claim", many["worst"], "s", target="<= 1"),
            row("8 processes: least-served, share of the mean", many["share"], "", target=">= 0.5"),
            row("8 processes: claimed twice or lost", many["doubles"] + many["missing"], "tasks", target="<= 0"),
            at_scale(folder),
        ]
        ours.log.close()
    write("tasks", "Claiming and finishing tasks", rows)
    return rows


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        drain_as_worker(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
