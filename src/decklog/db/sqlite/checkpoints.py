"""Keeps the write-ahead log of a SQLite file small.

SQLite by itself copies pages back after a thousand of them, but begins its log anew only at a moment when nobody reads it. Where
readers follow each other without a gap, there is no such moment, and a log that has grown once keeps its size.
"""

import apsw

_PAGES = 1_000
_MANY_PAGES = 8_192
_BYTES_KEPT = _MANY_PAGES * 4_096
# Long enough for a read that is under way to end, and short enough for whoever is writing.
_WAIT_MILLISECONDS = 100


class Checkpoints:
    """Watches the write-ahead log that one connection writes to."""

    def __init__(self, connection: apsw.Connection, busy_milliseconds: int) -> None:
        self._connection = connection
        self._busy_milliseconds = busy_milliseconds
        self._pages = 0
        self._next_try = _MANY_PAGES
        connection.execute(f"pragma journal_size_limit = {_BYTES_KEPT}")
        connection.set_wal_hook(self._note)

    def _note(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def after_commit(self) -> None:
        """Copy pages back when there are many; when there are very many, wait a moment for those who read them."""
        if self._pages < _PAGES:
            return
        try:
            if self._pages < self._next_try:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            else:
                self._begin_anew()
        except apsw.Error:
            # The commit stands whatever becomes of this, and the next one tries again.
            self._next_try = self._pages + self._pages // 4

    def _begin_anew(self) -> None:
        """Wait until nobody reads the log, so that the next writer starts it from its beginning."""
        self._connection.set_busy_timeout(_WAIT_MILLISECONDS)
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
            self._next_try = _MANY_PAGES
        finally:
            self._connection.set_busy_timeout(self._busy_milliseconds)
