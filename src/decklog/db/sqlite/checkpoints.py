"""Keeps the write-ahead log of a SQLite file small.

SQLite copies pages back by itself, but begins its log anew only at a moment when nobody reads it, and a log that has grown once
keeps its size. Where readers follow each other without a gap, somebody has to wait for that moment.
"""

import os

import apsw

_BYTES_KEPT = 32 * 1024 * 1024
_MANY_BYTES = 48 * 1024 * 1024
# Looking at the file after each commit would cost some hundredths of a small one.
_COMMITS_BETWEEN_LOOKS = 64
# Long enough for a read that is under way to end, and short enough for whoever is writing. In several tries: SQLite waits for the
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
        if self._commits % _COMMITS_BETWEEN_LOOKS == 0:
            self._look()

    def _look(self) -> None:
        try:
            size = os.path.getsize(self._wal)
            if size >= self._next_try:
                self._begin_anew()
                self._next_try = _MANY_BYTES
        except apsw.Error:
            # Somebody reads for long. The commit stands, and waiting for them at each one would help nobody.
            self._next_try = size + size // 4
        except FileNotFoundError:
            return

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
