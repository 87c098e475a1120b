"""Reading connections to a SQLite file: one for each thread, gone with its thread, and none alive across a fork."""

from contextlib import contextmanager
from threading import Lock, local
from typing import TYPE_CHECKING
from weakref import WeakSet

import apsw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ReadConnection:
    """One thread's reading connection, and the lock that keeps others from closing it in the middle of a read."""

    def __init__(self, connection: "apsw.Connection") -> None:
        self.connection = connection
        self.lock = Lock()
        self.reading = False
        # Nobody has read with it, but whoever looked the file over before it was opened.
        self.is_new = True
        self.is_closed = False
        self._seen: int | None = None
        # The version of the file in which all entries of a stream, or of all streams, were found to be in the text index.
        self.indexed: dict[int | None, int] = {}

    def notices_change(self) -> bool:
        """Return whether anything was committed since this was asked last; the first time it may have been."""
        row = self.connection.execute("pragma data_version").fetchone()
        before, self._seen = self._seen, row[0] if row else None
        return before != self._seen

    def close(self) -> None:
        with self.lock:
            self.is_closed = True
            self.connection.close()

    def leave(self) -> None:
        """Close it in the middle of a read, and leave the write-ahead log as it is."""
        self.is_closed = True
        self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.connection.close(True)


class Readers:
    def __init__(self, connect: "Callable[[], apsw.Connection]") -> None:
        self._connect = connect
        self._local = local()
        # Weak: a program may start any number of threads, and each connection has two open files.
        self._all: WeakSet[ReadConnection] = WeakSet()
        self._opening = Lock()

    def mine(self) -> ReadConnection:
        """Return this thread's reader, which another thread may close unless its lock is held."""
        reader: ReadConnection | None = getattr(self._local, "reader", None)
        if reader is None:
            with self._opening:
                reader = self._local.reader = ReadConnection(self._connect())
                self._all.add(reader)
        return reader

    def is_reading(self) -> bool:
        """Return whether this thread is in the middle of a read."""
        reader: ReadConnection | None = getattr(self._local, "reader", None)
        return reader is not None and reader.reading

    def taken(self) -> "apsw.Connection | None":
        """Return this thread's connection up to somebody, if nobody has read with it yet: each has the schema to read anew."""
        with self._opening:
            reader: ReadConnection | None = getattr(self._local, "reader", None)
            if reader is None or not reader.is_new or reader.is_closed:
                return None
            del self._local.reader
            self._all.discard(reader)
            return reader.connection

    @contextmanager
    def held(self) -> "Iterator[ReadConnection]":
        """Return this thread's reader and keep it open for the length of a block."""
        while True:
            reader = self.mine()
            with reader.lock:
                if not reader.is_closed:
                    reader.is_new = False
                    yield reader
                    return

    def close(self) -> None:
        with self._opening:
            self._close_all()

    def close_idle(self) -> None:
        """Close every reader except the one that this thread is reading with."""
        with self._opening:
            self._close_others()

    def freeze(self) -> None:
        """Close every reader except the one that this thread is reading with, and let none be opened until `thaw`."""
        self._opening.acquire()
        self._close_others()

    def _close_others(self) -> None:
        own: ReadConnection | None = getattr(self._local, "reader", None)
        self._close_all(but=own if own is not None and own.reading else None)

    def thaw(self) -> None:
        self._opening.release()

    def leave_to_parent(self) -> None:
        """Close in a forked child what its parent goes on reading with.

        Left open, it would make SQLite believe that this process has the locks of its parent: nobody would see this one at work,
        and whoever closed the file would take its write-ahead log away.
        """
        for reader in self._all:
            if not reader.is_closed:
                reader.leave()

    def _close_all(self, *, but: ReadConnection | None = None) -> None:
        for reader in list(self._all):
            if reader is not but:
                reader.close()
        self._all = WeakSet()
        self._local = local()
        if but is not None:
            self._all.add(but)
            self._local.reader = but
