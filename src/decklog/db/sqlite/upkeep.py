"""What a SQLite file needs now and then: search, migration, backup, pruning, and a look at its health."""

from abc import abstractmethod

import apsw

from decklog.db.base import Database
from decklog.db.sqlite import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from decklog.db.base import Row
    from decklog.db.sqlite.fair_lock import FairLock


class SqliteUpkeep(Database):
    """The verbs of a SQLite database that stand beside reading and writing."""

    read_only: bool

    @abstractmethod
    def connect(self) -> apsw.Connection: ...

    @property
    @abstractmethod
    def lock(self) -> "FairLock": ...

    @abstractmethod
    def _writing(self) -> apsw.Connection: ...

    @property
    def _itself(self) -> "Any":
        """The whole database, as the modules behind these verbs take it."""
        return self

    def insert(self, table: str, names: "tuple[str, ...]", rows: "list[Row]") -> None:
        places = ", ".join("?" * len(names))
        try:
            self._writing().executemany(f"insert into {table} ({', '.join(names)}) values ({places})", rows)
        except apsw.Error as problem:
            raise errors.translate(problem, self.target) from problem

    def prepare_search(self, stream_no: int | None) -> None:
        from decklog.db.sqlite import search
        from decklog.db.text import marks

        if not self.read_only:
            marks.catch_up(self, stream_no, search.INDEX)

    def search(self, select: str, words: str, **narrowing: "Any") -> "tuple[tuple[str, ...], list[Row]]":
        from decklog.db.sqlite import search

        return search.search(self._itself, select, words, **narrowing)

    def migrate(self) -> list[str]:
        from decklog.db.sqlite import migrate

        return migrate.migrate(self._itself)

    def facts(self) -> "dict[str, Any]":
        from decklog.db.sqlite import migrate

        return migrate.facts(self._itself)

    def back_up(self, path: str, progress: "Callable[[int, int], None]") -> None:
        from decklog.db.sqlite import backup

        connection = self.connect()
        try:
            backup.copy(connection, path, progress)
        finally:
            connection.close()

    def forget_text(self, positions: "list[int]") -> None:
        from decklog.db.sqlite import search

        search.forget(self._itself, positions)

    def compact(self) -> None:
        self.write(lambda: self.count("insert into entry_text (entry_text) values ('optimize')", {}))
        connection = self.connect()
        self.lock.acquire()
        try:
            connection.execute("vacuum")
            connection.execute("pragma wal_checkpoint(truncate)")
        except apsw.Error as problem:
            raise errors.translate(problem, self.target) from problem
        finally:
            self.lock.release()
            connection.close()

    def wal_frames(self) -> int:
        row = self.read(lambda: self.one("pragma wal_checkpoint(noop)", {}))
        return int(row[1]) if row else 0

    def check_pages(self, most: int) -> list[str]:
        _, rows = self.read(lambda: self.rows(f"pragma quick_check({most})", {}))
        return [row[0] for row in rows if row[0] != "ok"]
