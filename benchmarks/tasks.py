"""Claiming and finishing tasks: compared with two raw conditional updates, and with other queues.

`python -m benchmarks.tasks` measures all of it and writes the page; `python -m benchmarks.tasks postgres crowds` measures these
parts alone, whose figures take the places of the old ones in the page.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import apsw

from benchmarks.children import alone
from benchmarks.measure import Row, in_slices, in_turns, rate, renew, row, write
from benchmarks.task_crowd import crowds
from benchmarks.task_floor import Floor
from benchmarks.task_peers import PEERS, Huey, PersistQueue
from benchmarks.task_postgres import beside_procrastinate
from benchmarks.task_scale import NOTE, claims, snapshots
from decklog import Decklog

TITLE = "Claiming and finishing tasks"
COUNT = int(os.environ.get("DECKLOG_BENCH_TASK_COUNT", "1000"))
SLICE = 20
CROWD_COUNT = 4 * COUNT
ROUNDS = 3
DBOS_COUNT = COUNT // 4
DONE_BEFORE = 20 * COUNT


class Ours:
    """A log with one run, drained by one process."""

    def __init__(self, path: Path) -> None:
        self.log = Decklog.open(path)
        self._run_id = self.log.runs.start("be drained").id

    def fill(self, count: int) -> None:
        self.log.tasks.add_many(self._run_id, [{"title": f"task {n}", "objective": "x" * 150} for n in range(count)])

    def drain(self) -> Iterator[object]:
        while (claim := self.log.tasks.claim(self._run_id, worker="w")) is not None:
            self.log.tasks.finish(claim.task.id, fence=claim.task.fence)
            yield claim

    def drain_fused(self) -> Iterator[object]:
        claim = self.log.tasks.claim(self._run_id, worker="w")
        while claim is not None:
            claim = self.log.tasks.finish_and_claim(claim.task.id, fence=claim.task.fence)
            yield claim

    def grow_old(self, count: int) -> None:
        """Do `count` tasks."""
        self.fill(count)
        with self.log.transaction():
            for _ in self.drain_fused():
                pass

    def close(self) -> None:
        self.log.close()


def one_process(folder: Path) -> tuple[list[Row], list[str]]:
    """Let the floor, us and every peer drain as many tasks, in short turns."""
    floor, ours, fused = Floor(folder / "floor.db"), Ours(folder / "ours.db"), Ours(folder / "fused.db")
    peers = [kind(folder / kind.__name__) for kind in PEERS]
    for queue in (floor, ours, fused, *peers):
        queue.fill(COUNT)
    drains = [floor.drain(), ours.drain(), fused.drain_fused(), *(peer.drain() for peer in peers)]
    raw, two, one, *others = in_slices(SLICE, *drains)
    for queue in (floor, ours, fused, *peers):
        queue.close()
    rows = [
        row("claim and finish, one process", two, "per s", floor=raw, target=">= 0.5"),
        row("finish and claim the next in one transaction", one, "per s", floor=raw, target=">= 0.8"),
    ]
    for peer, figure in zip(peers, others, strict=True):
        # huey gives no guarantee to be compared with: it shows what the guarantees cost.
        target = "" if isinstance(peer, Huey) else ">= 1"
        rows.append(row(f"claim and finish, compared with {peer.label}", two, "per s", floor=figure, target=target))
        rows.append(row(f"finish and claim fused, compared with {peer.label}", one, "per s", floor=figure, target=target))
    return rows, [f"{peer.note}." for peer in peers]


def after_many(folder: Path) -> list[Row]:
    """Let us and persist-queue go on with a queue in which many tasks were done before."""
    peer, ours, fused = PersistQueue(folder / "old"), Ours(folder / "old.db"), Ours(folder / "old-fused.db")
    peer.grow_old(DONE_BEFORE)
    for log in (ours, fused):
        log.grow_old(DONE_BEFORE)
    for queue in (peer, ours, fused):
        queue.fill(COUNT // 2)
    other, two, one = in_slices(SLICE, peer.drain(), ours.drain(), fused.drain_fused())
    for queue in (peer, ours, fused):
        queue.close()
    name = f"after {DONE_BEFORE:,} done ones, compared with persist-queue's ack queue"
    return [
        row(f"claim and finish, {name}", two, "per s", floor=other, target=">= 1"),
        row(f"finish and claim fused, {name}", one, "per s", floor=other, target=">= 1"),
    ]


def compared_with_dbos(folder: Path) -> tuple[list[Row], str]:
    """Let DBOS drain its queue with its own worker, one workflow at a time and as many as it takes, in turns with us."""
    ours, settings = Ours(folder / "dbos.db"), []

    def peer(at_once: int) -> float:
        place = tempfile.mkdtemp(dir=folder)
        found = alone("benchmarks.peer_dbos_queue", place, str(DBOS_COUNT), str(at_once))
        settings.append(found["before"])
        return float(found["rate"])

    def drained(drain: Callable[[], Iterator[object]]) -> float:
        ours.fill(DBOS_COUNT)
        return rate(lambda: sum(1 for _ in drain()))

    single, two, many, one = in_turns(
        ROUNDS, lambda: peer(1), lambda: drained(ours.drain), lambda: peer(0), lambda: drained(ours.drain_fused)
    )
    ours.close()
    name, more = (
        "compared with DBOS's queue, one workflow at a time",
        "compared with DBOS's queue, as many workflows at once as it takes",
    )
    return [
        row(f"claim and finish, {name}", two, "per s", floor=single, target=">= 1"),
        row(f"claim and finish, {more}", two, "per s", floor=many, target=">= 1"),
        row(f"finish and claim fused, {more}", one, "per s", floor=many, target=">= 1"),
    ], (
        f"DBOS {version('dbos')} came with journal_mode {settings[0][0]} and synchronous {settings[0][1]}; its connections were "
        f"set to wal and full. Its queue polls every millisecond; {DBOS_COUNT:,} workflows are enqueued before its worker "
        "may begin. It and Decklog take turns; the medians count."
    )


def main() -> list[Row]:
    """Measure claims; write benchmarks/results/tasks.md."""
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        rows, notes = one_process(folder)
        rows += after_many(folder)
        dbos_rows, dbos_note = compared_with_dbos(folder)
        rows += [*dbos_rows, *crowds(folder, CROWD_COUNT)]
        more, note = beside_procrastinate(folder, COUNT, ROUNDS)
        rows += [*more, *claims(folder), *snapshots(folder)]
    sqlite = f"SQLite {apsw.sqlite_lib_version()} for the floor and Decklog, in WAL mode with synchronous=full, as are all peers."
    notes = [
        sqlite,
        f"Every queue gets its tasks first; what is timed is draining it. In one process all take turns of {SLICE} "
        "tasks, as the disk may be faster or slower a second later.",
        *notes,
        dbos_note,
        "Eight processes of each kind take turns of half a second, all eight at once; the rates are medians of the "
        "turns, the rest is the worst or the sum of all, after they have drained what was left.",
        note,
        NOTE,
    ]
    write("tasks", TITLE, rows, notes)
    return rows


PARTS: dict[str, Callable[[Path], list[Row]]] = {
    "one": lambda folder: one_process(folder)[0],
    "old": after_many,
    "dbos": lambda folder: compared_with_dbos(folder)[0],
    "crowds": lambda folder: crowds(folder, CROWD_COUNT),
    "postgres": lambda folder: beside_procrastinate(folder, COUNT, ROUNDS)[0],
    "claims": claims,
    "snapshots": snapshots,
}


def some(names: list[str]) -> None:
    """Measure parts, and renew their figures in the page; each part is in the page as soon as it is over."""
    if unknown := [name for name in names if name not in PARTS]:
        raise SystemExit(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for name in names:
        with tempfile.TemporaryDirectory(prefix="decklog-bench-") as folder:
            renew("tasks", TITLE, PARTS[name](Path(folder)))


if __name__ == "__main__":
    some(sys.argv[1:]) if sys.argv[1:] else main()
