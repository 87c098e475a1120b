"""Claiming and finishing tasks: beside two raw conditional updates, and beside queues that do the like."""

import os
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import apsw

from benchmarks.children import alone
from benchmarks.measure import Row, in_turns, rate, row, write
from benchmarks.task_crowd import crowds
from benchmarks.task_floor import Floor
from benchmarks.task_peers import PEERS, Huey, LiteQueue, PersistQueue
from benchmarks.task_postgres import beside_procrastinate
from benchmarks.task_scale import NOTE, claims, snapshots
from decklog import Decklog

COUNT = int(os.environ.get("DECKLOG_BENCH_TASK_COUNT", "1000"))
ROUNDS = 5
# A crowd's round starts eight processes; fewer rounds of more tasks show the same.
CROWD_COUNT, CROWD_ROUNDS = 4 * COUNT, 3
DBOS_COUNT = COUNT // 2


class Ours:
    """A log whose runs are drained by one process, one run a round."""

    def __init__(self, path: Path) -> None:
        self.log = Decklog.open(path)
        self.run_id = ""

    def fill(self, count: int) -> None:
        self.run_id = self.log.runs.start("one more round").id
        self.log.tasks.add_many(self.run_id, [{"title": f"task {n}", "objective": "x" * 150} for n in range(count)])

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


def filled(queue: "Floor | Ours | PersistQueue | LiteQueue | Huey", drain: Callable[[], int]) -> Callable[[], float]:
    """Make a round: fill the queue, then time its draining alone."""

    def one() -> float:
        queue.fill(COUNT)
        return rate(drain)

    return one


def one_process(folder: Path) -> tuple[list[Row], list[str]]:
    """Let the floor, us and every peer drain as many tasks, in turns."""
    floor, ours = Floor(folder / "floor.db"), Ours(folder / "ours.db")
    peers = [kind(folder / kind.__name__) for kind in PEERS]
    rounds = [filled(floor, floor.drain), filled(ours, ours.drain), filled(ours, ours.drain_fused)]
    raw, two, one, *others = in_turns(ROUNDS, *rounds, *(filled(peer, peer.drain) for peer in peers))
    rows = [
        row("claim and finish, one process", two, "per s", floor=raw, target=">= 0.5"),
        row("finish and claim the next in one transaction", one, "per s", floor=raw, target=">= 0.8"),
    ]
    for peer, figure in zip(peers, others, strict=True):
        # huey gives no guarantee to be compared with: it shows what the guarantees cost.
        target = "" if isinstance(peer, Huey) else ">= 1"
        rows.append(row(f"claim and finish, beside {peer.label}", two, "per s", floor=figure, target=target))
    more, note = beside_dbos(folder, two)
    ours.log.close()
    for queue in (floor, *peers):
        queue.close()
    return rows + more, [*(f"{peer.note}." for peer in peers), note]


def beside_dbos(folder: Path, ours: float) -> tuple[list[Row], str]:
    """Let DBOS drain its queue with its own worker, one workflow at a time and as many as it takes."""
    rows = []
    for at_once, label in ((1, "one workflow at a time"), (0, "as many workflows at once as it takes")):
        found = alone("benchmarks.peer_dbos_queue", str(folder), str(DBOS_COUNT), str(at_once))
        rows.append(row(f"claim and finish, beside DBOS's queue, {label}", ours, "per s", floor=found["rate"], target=">= 1"))
    journal_mode, synchronous = found["before"]
    return rows, (
        f"DBOS {version('dbos')} came with journal_mode {journal_mode} and synchronous {synchronous}; its connections were set "
        f"to wal and full. Its queue polls every millisecond; {DBOS_COUNT:,} workflows are enqueued before its worker may begin."
    )


def main() -> list[Row]:
    """Measure claims; write docs/benchmarks/tasks.md."""
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        rows, notes = one_process(folder)
        rows += crowds(folder, CROWD_COUNT, CROWD_ROUNDS)
        more, note = beside_procrastinate(folder, COUNT, CROWD_ROUNDS)
        rows += [*more, *claims(folder), *snapshots(folder)]
    sqlite = f"SQLite {apsw.sqlite_lib_version()} for the floor and Decklog, in WAL mode with synchronous=full, as are all peers."
    notes = [
        sqlite,
        "Every queue gets its tasks first; what is timed is draining it. In one process all take turns, and the medians count.",
        *notes,
        "Eight processes: all are started before they may begin; the rates are medians, the rest is the worst of all rounds.",
        note,
        NOTE,
    ]
    write("tasks", "Claiming and finishing tasks", rows, notes)
    return rows


if __name__ == "__main__":
    main()
