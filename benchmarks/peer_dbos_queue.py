"""DBOS's queue on SQLite: workflows that do nothing are enqueued, then its own worker drains them.

In its own process, since it can be launched only once. Prints the rate and the settings of its connections.
"""

import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.children import work_as_child

POLL_SECONDS = 0.001
MOST_SECONDS = 200
QUEUE = "bench"


def watched_engines() -> list[tuple[str, int]]:
    """Make every connection sync its commits from now on; give a list that will tell what each had been set to."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    from benchmarks.task_peers import durable, settings

    seen: list[tuple[str, int]] = []

    @event.listens_for(Engine, "connect")
    def connected(connection: Any, _: Any) -> None:
        seen.append(settings(connection))
        durable(connection)

    return seen


class Drained:
    """Notices when the first workflow begins, and waits until the last one is on record as done."""

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        self._count = count
        self._begun = threading.Event()
        self._begin = 0.0

    def one_more(self) -> None:
        if not self._begun.is_set():
            self._begin = time.perf_counter()
            self._begun.set()

    def rate(self) -> float:
        end = time.monotonic() + MOST_SECONDS
        connection = sqlite3.connect(self._path, timeout=30)
        while time.monotonic() < end:
            (done,) = connection.execute("select count(*) from workflow_status where status = 'SUCCESS'").fetchone()
            if done == self._count:
                return self._count / (time.perf_counter() - self._begin)
            time.sleep(0.005)
        raise RuntimeError(f"DBOS did not drain its queue within {MOST_SECONDS} seconds")


def drain(folder: Path, count: int, at_once: int | None) -> "dict[str, Any]":
    """Enqueue, then let the worker have them: a number at once, or as many as it takes."""
    from dbos import DBOS, DBOSConfig

    before = watched_engines()
    path = folder / f"dbos-queue-{at_once}.sqlite"
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": f"sqlite:///{path}",
        "console_log_level": "ERROR",
    }
    DBOS(config=config)
    drained = Drained(path, count)

    @DBOS.workflow()
    def work(number: int, body: str) -> int:
        drained.one_more()
        return number + len(body)

    DBOS.launch()
    # Nobody may run anything before all of it is enqueued.
    queue = DBOS.register_queue(QUEUE, worker_concurrency=0, polling_interval_sec=POLL_SECONDS)
    for number in range(count):
        queue.enqueue(work, number, "x" * 150)
    queue.set_worker_concurrency(at_once)
    rate = drained.rate()
    DBOS.destroy()
    return {"rate": rate, "before": before[0]}


def main(folder: str, count: str, at_once: str) -> None:
    work_as_child(lambda _: drain(Path(folder), int(count), int(at_once) or None))


if __name__ == "__main__":
    main(*sys.argv[1:])
