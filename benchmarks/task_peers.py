"""Queues that keep their tasks in SQLite, each made as durable as ours: WAL, and a sync with every commit."""

import sqlite3
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

FULL = 2


def durable(connection: sqlite3.Connection) -> str:
    """Make a peer's connection sync every commit, as ours does; say what it had been set to and what it is now."""
    before = settings(connection)
    connection.execute("pragma journal_mode = wal")
    connection.execute(f"pragma synchronous = {FULL}")
    after = settings(connection)
    if after != ("wal", FULL):
        raise RuntimeError(f"a peer runs with journal_mode {after[0]} and synchronous {after[1]}")
    if before == after:
        return "came with journal_mode wal and synchronous full"
    return f"came with journal_mode {before[0]} and synchronous {before[1]}, set to wal and full on its connection"


def settings(connection: sqlite3.Connection) -> tuple[str, int]:
    return (
        connection.execute("pragma journal_mode").fetchone()[0],
        connection.execute("pragma synchronous").fetchone()[0],
    )


class PersistQueue:
    """persist-queue's ack queue: get marks an item as taken, ack as done."""

    label = "persist-queue's ack queue"

    def __init__(self, folder: Path, *, resume: bool = True) -> None:
        import persistqueue

        self._empty = persistqueue.Empty
        # A process that opens the queue must not take back what others have, so only the first one resumes.
        self._queue = persistqueue.SQLiteAckQueue(str(folder), auto_commit=True, auto_resume=resume, timeout=30)
        self.note = f"persist-queue {version('persist-queue')} {durable(self._queue._conn)}"

    def fill(self, count: int) -> None:
        self._queue._conn.execute("pragma synchronous = off")
        for number in range(count):
            self._queue.put({"title": f"task {number}", "objective": "x" * 150})
        durable(self._queue._conn)

    def grow_old(self, count: int) -> None:
        """Add tasks that were done long ago; the queue keeps them until someone clears it."""
        from persistqueue.sqlackqueue import AckStatus

        self.fill(count)
        with self._queue._conn as connection:
            connection.execute(f"update {self._queue._table_name} set status = ?", (AckStatus.acked,))

    def claim(self) -> "dict[str, Any] | None":
        try:
            item: dict[str, Any] = self._queue.get(block=False, raw=True)
        except self._empty:
            return None
        return item

    def finish(self, item: "dict[str, Any]") -> None:
        self._queue.ack(item)

    def drain(self) -> Iterator[object]:
        while (item := self.claim()) is not None:
            self.finish(item)
            yield item

    def close(self) -> None:
        self._queue.close()


class LiteQueue:
    """litequeue: pop locks a message, done ends it."""

    label = "litequeue"

    def __init__(self, folder: Path) -> None:
        import litequeue

        folder.mkdir(parents=True, exist_ok=True)
        self._queue = litequeue.LiteQueue(folder / "litequeue.db")
        self.note = f"litequeue {version('litequeue')} {durable(self._queue.conn)}"

    def fill(self, count: int) -> None:
        for number in range(count):
            self._queue.put(f"task {number} " + "x" * 150)

    def drain(self) -> Iterator[object]:
        while (message := self._queue.pop()) is not None:
            self._queue.done(message.message_id)
            yield message

    def close(self) -> None:
        self._queue.close()


class Huey:
    """huey: a task is popped, and with that it is gone: no lease, no attempt, no record."""

    label = "huey, which pops without lease, attempt or record"

    def __init__(self, folder: Path) -> None:
        from huey import SqliteHuey

        folder.mkdir(parents=True, exist_ok=True)
        self._huey = SqliteHuey(filename=str(folder / "huey.db"), fsync=True)
        self.note = f"huey {version('huey')} with its option fsync=True {durable(self._huey.storage.conn)}"

        @self._huey.task()  # type: ignore[untyped-decorator,unused-ignore]
        def work(number: int, body: str) -> int:
            return number + len(body)

        self._work = work

    def fill(self, count: int) -> None:
        for number in range(count):
            self._work(number, "x" * 150)

    def drain(self) -> Iterator[object]:
        while (task := self._huey.dequeue()) is not None:
            yield task

    def close(self) -> None:
        self._huey.storage.close()


PEERS = (PersistQueue, LiteQueue, Huey)
