"""Appending to the journal: compared with raw inserts of the same text, and with peers."""

import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import apsw

from benchmarks.measure import Row, in_turns, rate, row, write
from benchmarks.scale import verifying
from decklog import Decklog

BODY = (
    "Ran the tests after the change: 41 passed, one still fails in the ledger module because the rounding of the last line "
    "differs from the invoice. Next I will look at how the totals are made and compare them with the rows they come from."
)
COUNT = 1500
RUN = "run_06fq2v8k3c9d4e5f6g7h8j9kam"


def raw_connection(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table if not exists t (id integer primary key, body text)")
    return connection


def raw_appends(connection: apsw.Connection) -> int:
    for _ in range(COUNT):
        connection.execute("begin immediate")
        connection.execute("insert into t (body) values (?)", (BODY,))
        connection.execute("commit")
    return COUNT


class Ours:
    """Appends with redaction, hash chain and idempotency key."""

    def __init__(self, folder: Path) -> None:
        self.log = Decklog.open(folder / "ours.db")
        self.log.runs.start("measure", run_id=RUN)
        self._number = 0

    def _key(self) -> str:
        self._number += 1
        return f"key-{self._number}"

    def one_thread(self) -> int:
        for _ in range(COUNT):
            self.log.journal.append(RUN, BODY, agent="developer", key=self._key())
        return COUNT

    def new_texts(self) -> int:
        """Append what was never said before, so that nothing about it is known."""
        for _ in range(COUNT):
            key = self._key()
            self.log.journal.append(RUN, f"{BODY} ({key})", agent="developer", key=key)
        return COUNT

    def threads(self) -> int:
        def work() -> None:
            for _ in range(COUNT // 4):
                self.log.journal.append(RUN, BODY, agent="developer")

        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return COUNT // 4 * 8

    def in_flight(self) -> int:
        def work() -> None:
            for _ in range(COUNT // 32):
                futures = [self.log.submit(self.log.journal.append, RUN, BODY, agent="developer") for _ in range(8)]
                for future in futures:
                    future.result()

        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return COUNT // 32 * 8 * 8

    def many(self) -> int:
        for _ in range(4):
            self.log.journal.append_many([{"stream": RUN, "body": BODY, "agent": "developer"} for _ in range(1000)])
        return 4000


def raw_many(connection: apsw.Connection) -> int:
    for _ in range(4):
        connection.execute("begin immediate")
        connection.executemany("insert into t (body) values (?)", [(BODY,)] * 1000)
        connection.execute("commit")
    return 4000


def stdlib_per_call(path: Path) -> int:
    """What a script does that opens the database for each fact."""
    for _ in range(COUNT // 4):
        connection = sqlite3.connect(path)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute("create table if not exists t (id integer primary key, body text)")
        connection.execute("insert into t (body) values (?)", (BODY,))
        connection.commit()
        connection.close()
    return COUNT // 4


def langgraph(folder: Path) -> Callable[[], int] | None:
    """LangGraph's checkpointer, putting a checkpoint with the same text."""
    try:
        from langgraph.checkpoint.base import empty_checkpoint
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError:
        return None
    connection = sqlite3.connect(folder / "langgraph.db", check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute("pragma synchronous = full")

    def work() -> int:
        for number in range(COUNT):
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = {"body": BODY}
            config = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": str(number)}}
            saver.put(config, checkpoint, {}, {})  # type: ignore[arg-type]
        return COUNT

    return work


def dbos(folder: Path) -> float | None:
    """A DBOS step on SQLite, in its own process: it can be launched only once."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peer_dbos", str(folder)], capture_output=True, text=True, check=False
    )
    last = done.stdout.strip().splitlines()[-1:] or [""]
    return float(last[0]) if done.returncode == 0 and last[0] else None


def main() -> list[Row]:
    """Measure appends; write benchmarks/results/journal.md."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        raw, ours = raw_connection(folder / "raw.db"), Ours(folder)
        raw_appends(raw), ours.one_thread()
        floor, one, eight, flight = in_turns(
            5,
            lambda: rate(lambda: raw_appends(raw)),
            lambda: rate(ours.one_thread),
            lambda: rate(ours.threads),
            lambda: rate(ours.in_flight),
        )
        rows.append(row("append, one thread, durable, keyed", one, "per s", floor=floor, target=">= 0.6"))
        rows.append(row("8 threads, each waiting, compared with one thread", eight, "per s", floor=one, target=">= 1.4"))
        rows.append(row("8 threads with 8 in flight, compared with one thread", flight, "per s", floor=one, target=">= 3"))
        batch_floor, batch = in_turns(5, lambda: rate(lambda: raw_many(raw)), lambda: rate(ours.many))
        rows.append(row("append_many of 1,000", batch, "per s", target=">= 100000"))
        rows.append(row("append_many of 1,000, compared with raw batches", batch, "per s", floor=batch_floor, target=">= 0.25"))
        rows.append(
            row(
                "peer: stdlib sqlite3, a connection per call",
                rate(lambda: stdlib_per_call(folder / "std.db")),
                "per s",
                floor=floor,
            )
        )
        if (peer := langgraph(folder)) is not None:
            put, again = in_turns(5, lambda: rate(peer), lambda: rate(ours.one_thread))
            rows.append(
                row(
                    "append, one thread, durable, keyed, compared with LangGraph's SqliteSaver.put",
                    again,
                    "per s",
                    floor=put,
                    target=">= 1",
                )
            )
        new_floor, new = in_turns(3, lambda: rate(lambda: raw_appends(raw)), lambda: rate(ours.new_texts))
        rows.append(row("append, one thread, durable, keyed, each with a new text", new, "per s", floor=new_floor))
        if (steps := dbos(folder)) is not None:
            rows.append(row("peer: DBOS step on SQLite", steps, "per s", floor=floor))
        rows += verifying(ours.log)
        ours.log.close()
    write("journal", "Appending to the journal", rows)
    return rows


if __name__ == "__main__":
    main()
