"""The connections to one SQLite file: one that writes, one for each thread that reads, and the lock between processes."""

import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, local
from weakref import WeakSet

import apsw

from decklog.core.errors import Closed, Conflict, DiskFull, FileReplaced, ReadOnly
from decklog.db import packing
from decklog.db.sqlite import errors, file
from decklog.db.sqlite.damage import Cause, damage_of, damaged, looks_damaged
from decklog.db.sqlite.fair_lock import FairLock
from decklog.db.text_search import fts5_text


class ReadConnection:
    """One thread's reading connection, and the lock that keeps others from closing it in the middle of a read."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.lock = Lock()
        self.reading = False
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
    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._local = local()
        # Weak: a program may start any number of threads, and each connection has two open files.
        self._all: WeakSet[ReadConnection] = WeakSet()
        self._opening = Lock()

    def mine(self) -> ReadConnection:
        """Return this thread's reader. Another thread may close it unless the caller holds its lock."""
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

    def acquire(self) -> ReadConnection:
        """Return this thread's reader with its lock acquired, which keeps it open."""
        while True:
            reader = self.mine()
            reader.lock.acquire()
            if not reader.is_closed:
                return reader
            reader.lock.release()

    def notices_change(self) -> bool:
        """Return whether anything was committed since this thread asked last; the first time it may have been."""
        reader = self.acquire()
        try:
            return reader.notices_change()
        finally:
            reader.lock.release()

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
        and closing the file would remove its write-ahead log.
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


_BYTES_KEPT = 32 * 1024 * 1024
_MANY_BYTES = 48 * 1024 * 1024
# Looking at the file after each commit would cost some hundredths of a small one.
_COMMITS_BETWEEN_LOOKS = 64
# Long enough for a read that is under way to end, and short enough for a writer. In several tries: SQLite waits for the
# place at which a reader of an older state was, and who reads next may take that same place, and the next after that.
_TRIES = 5
_WAIT_MILLISECONDS = 20


class WalCheckpoints:
    """Watches the write-ahead log that one connection writes to."""

    def __init__(self, connection: apsw.Connection, path: str, busy_milliseconds: int) -> None:
        self._connection = connection
        self._wal = f"{path}-wal"
        self._busy_milliseconds = busy_milliseconds
        self._commits = 0
        self._next_try = _MANY_BYTES
        connection.execute(f"pragma journal_size_limit = {_BYTES_KEPT}")

    def after_commit(self) -> None:
        """Now and then, begin a log anew that has grown large."""
        self._commits += 1
        if self._commits % _COMMITS_BETWEEN_LOOKS:
            return
        try:
            size = os.path.getsize(self._wal)
            if size >= self._next_try:
                self._begin_anew()
                self._next_try = _MANY_BYTES
        except apsw.Error:
            # A read takes long. The commit is done, and waiting for the read at each one would not help.
            self._next_try = size + size // 4
        except FileNotFoundError:
            pass

    def _begin_anew(self) -> None:
        """Wait until nobody reads the log, so that the next writer starts it from its beginning and cuts it off."""
        self._connection.set_busy_timeout(_WAIT_MILLISECONDS)
        try:
            for tries_left in reversed(range(_TRIES)):
                try:
                    self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
                    return
                except apsw.BusyError:
                    if not tries_left:
                        raise
        finally:
            self._connection.set_busy_timeout(self._busy_milliseconds)


_STATEMENTS_KEPT = 300
_SECONDS_BETWEEN_LOOKS = 0.5
# Files in which a transaction was open when this process was forked, by device and inode. SQLite keeps its locks in one list for
# the whole process: in a child that list marks the file as being written for ever.
_held_by_parent: set[tuple[int, int]] = set()


class SqliteConnections:
    """Opens a file in one way only, and keeps what is open."""

    def __init__(self, path: str, *, durability: str = "full", read_only: bool = False, busy_seconds: float = 30.0) -> None:
        self.path = path
        self.lock_path = path + "-lock"
        self.read_only = read_only
        self.busy_seconds = busy_seconds
        self._synchronous = "full" if durability == "full" else "normal"
        self._is_closed = False
        self._identity: tuple[int, int] | None = None
        self._looked_at = 0.0
        # True where the write-ahead log holds what SQLite does not read: closing the file last would remove it.
        self.keeps_wal = False
        self._forgotten: list[object] = []
        self.reset()

    def reset(self) -> None:
        """Start with no connection at all, as a new process does."""
        self.writer: apsw.Connection | None = None
        # Shared by all statements that write: a new cursor costs as much as a small statement.
        self._cursor: apsw.Cursor | None = None
        self.readers = Readers(self._connect_reader)
        # True once a reader was opened on a full disk; a process that has such a reader can't write.
        self._reads_without_room = False
        self._open_lock: FairLock | None = None

    def connect(self, *, shared_memory: bool = True) -> apsw.Connection:
        """Open one more connection with our settings."""
        read_only = self.read_only or not shared_memory
        flags = apsw.SQLITE_OPEN_URI | (apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE)
        address = self.address() if shared_memory else file.address_of(self.path) + "?readonly_shm=1"
        lacks_index = self.read_only and file.lacks_wal_index(self.path)
        # Nobody can change a file on a read-only disk, so no locks are needed.
        is_unlocked = lacks_index and os.statvfs(self.path).f_flag & os.ST_RDONLY
        vfs = "unix-none" if is_unlocked else None
        try:
            connection = apsw.Connection(address, flags=flags, vfs=vfs, statementcachesize=_STATEMENTS_KEPT)
        except apsw.Error as problem:
            raise errors.translate(problem, self.path) from problem
        try:
            if is_unlocked:
                # SQLite then keeps the WAL index in memory, and creates no file for it.
                connection.execute("pragma locking_mode = exclusive")
            self._set_up(connection)
            self._identify()
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: apsw.Connection) -> None:
        """Apply our settings; these statements are also the first that need the shared memory file."""
        try:
            # Without this, SQLite plans a statement with an order anew for each value that is bound: four times the cost of
            # finding the task to claim.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            packing.add_decompress_function(connection)
            connection.create_scalar_function("entry_words", fts5_text, 2, deterministic=True)  # type: ignore[arg-type]
            connection.set_busy_timeout(int(self.busy_seconds * 1000))
            if self.keeps_wal:
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.execute("pragma foreign_keys = on")
            connection.execute(f"pragma synchronous = {self._synchronous}")
            if sys.platform == "darwin" and self._synchronous == "full":
                # On macOS, fsync only reaches the drive's cache.
                connection.execute("pragma fullfsync = on")
                connection.execute("pragma checkpoint_fullfsync = on")
            connection.execute("pragma cache_size = -16384")
        except apsw.CantOpenError as problem:
            if self.read_only and file.lacks_wal_index(self.path):
                raise file.no_wal_index(self.path) from problem
            raise errors.translate(problem, self.path) from problem
        except apsw.Error as problem:
            raise errors.translate(problem, self.path) from problem

    def _identify(self) -> None:
        """Remember which file was opened first; a connection to another one is of no use."""
        if self._identity is None:
            status = os.stat(self.path)
            self._identity = status.st_dev, status.st_ino
        self.check_in_place()
        if self._identity in _held_by_parent:
            raise Conflict(
                f"this process was forked inside of a transaction of {self.path}, and can't use the log",
                hint="Fork before the transaction begins, or start the work as a separate program.",
                path=self.path,
            )

    def check_in_place(self) -> None:
        """Refuse to go on with a file that is no longer the one at its path: what is written to it, nobody would find."""
        try:
            status = os.stat(self.path)
        except OSError:
            what = "was removed"
        else:
            if (status.st_dev, status.st_ino) == self._identity:
                return
            what = "was replaced by another file"
        raise FileReplaced(
            f"{self.path} {what} while this process had it open; nothing more is written to the old one",
            hint="Open the log again. What was in the old file is in the copy that was moved away, if there is one.",
            path=self.path,
        )

    def check_in_place_now_and_then(self) -> None:
        """Check the file at most twice a second: the check costs as much as a read."""
        if (now := time.monotonic()) - self._looked_at > _SECONDS_BETWEEN_LOOKS:
            self.check_in_place()
            self._looked_at = now

    def check_wal(self) -> None:
        """Refuse a write-ahead log with acknowledged commits that SQLite would pass over, and the next writer write over."""
        if not file.has_wal(self.path):
            return
        if not looks_damaged(self.path, self._frames()) or (damage := damage_of(self.path)) is None:
            return
        self.keeps_wal = True
        # Relaxed durability accepts that a power cut loses some commits.
        if damage.cause is Cause.DAMAGE and self._synchronous == "full":
            raise damaged(self.path, damage.what)

    def _frames(self) -> int:
        """Count the frames that SQLite sees in the write-ahead log."""
        try:
            row = self.readers.mine().connection.execute("pragma wal_checkpoint(noop)").fetchone()
        except apsw.ReadOnlyError:
            # A read-only process can't use the shared memory left by a writer. SQLite reads a private copy and counts no frames.
            row = None
        return max(0, row[1]) if row else 0

    def address(self) -> str:
        """Spell the file as SQLite wants it named."""
        # With an empty WAL there is nothing to coordinate, and a read-only folder can't hold the files that SQLite misses.
        is_complete = os.path.exists(self.path + "-wal") and os.path.exists(self.path + "-shm")
        still = self.read_only and not is_complete and not file.has_wal(self.path)
        return file.address_of(self.path, still=still and not os.access(os.path.dirname(self.path), os.W_OK))

    @property
    def lock(self) -> FairLock:
        """The turn of this process among all that write."""
        if self._open_lock is None:
            self._open_lock = FairLock(self.lock_path, self.busy_seconds)
        return self._open_lock

    def _connect_reader(self) -> apsw.Connection:
        self.check_open()
        try:
            return self.connect()
        except DiskFull:
            # SQLite then keeps the WAL index in memory instead of in the shared memory file, which it wants to exist. It must
            # not be opened here: closing it would drop this process's locks on it.
            with suppress(OSError):
                os.mknod(self.path + "-shm", stat.S_IFREG | 0o600)
            self._reads_without_room = True
            return self.connect(shared_memory=False)

    def writing(self) -> apsw.Connection:
        """Return the one connection that writes."""
        if self.writer is None:
            self.check_open()
            if self._reads_without_room:
                self.readers.close_idle()
                self._reads_without_room = False
            self.writer = self.connect()
            self._cursor = self.writer.cursor()
            self.checkpoints = WalCheckpoints(self.writer, self.path, int(self.busy_seconds * 1000))
        return self.writer

    def writing_cursor(self) -> apsw.Cursor:
        """Return the cursor of the connection that writes, for statements whose rows are not read."""
        if self._cursor is None:
            self.writing()
        assert self._cursor is not None
        return self._cursor

    def check_open(self) -> None:
        if self._is_closed:
            raise Closed(f"the log {self.path} is closed; open it again")

    def check_writable(self) -> None:
        self.check_open()
        if self.read_only:
            raise ReadOnly(f"the log {self.path} is open for reading only", hint="Open it without read_only.")

    def close(self) -> None:
        self._is_closed = True
        self.readers.close()
        self.close_writer()

    def close_writer(self) -> None:
        if self.writer is not None:
            self._cursor = None
            self.writer.close()
            self.writer = None
        if self._open_lock is not None:
            self._open_lock.close()
            self._open_lock = None

    def leave_to_parent(self) -> None:
        """Forget in a forked child what its parent has open."""
        if self._open_lock is not None:
            self._open_lock.close_in_child()
        # A transaction of the forking thread itself stays the parent's: closing its connection here would roll it back.
        if self.writer is not None:
            self._forgotten += [self.writer, self._cursor]
            if self._identity is not None:
                _held_by_parent.add(self._identity)
        self.readers.leave_to_parent()
        self.reset()
