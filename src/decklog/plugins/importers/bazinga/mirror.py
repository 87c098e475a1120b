"""The file that bazinga's readers open: its tables in its own schema, brought up to date from the log after every call.

A mark in each stream says how far the file has got, in the transaction that got it there. Whoever comes next goes on from the
marks, so a call that died between the log and the file leaves nothing to repair.
"""

import os
from typing import TYPE_CHECKING

from decklog.core.errors import Conflict, Damaged, NotADatabase
from decklog.db.sqlite.foreign import FileBeside
from decklog.journal.rows import STREAM_SIZE
from decklog.plugins.importers.bazinga.mirrored import (
    APPLICATION_ID,
    ENTRIES,
    MARKS,
    MOVED,
    add_logs,
    set_marks,
    set_moved,
    take_change,
)

if TYPE_CHECKING:
    from decklog.log import Decklog

_NEWEST = f"(select max(pos) from log.entries where pos >= no * {STREAM_SIZE} and pos < (no + 1) * {STREAM_SIZE})"
_BEHIND = f"""
    select s.no, coalesce(m.seq, 0), s.newest % {STREAM_SIZE}
      from (select no, {_NEWEST} as newest from log.streams) s
      left join main.{MARKS} m on m.stream_no = s.no
     where s.newest % {STREAM_SIZE} > coalesce(m.seq, 0)
"""
_OTHER_HISTORY = f"""
    select 1
      from main.{MARKS} m
      left join log.entries e on e.pos = m.stream_no * {STREAM_SIZE} + m.seq
     where e.hash is not m.hash
     limit 1
"""
_WHAT_CHANGED = f"select e.record_table, e.record_id from {MOVED} where e.kind = 'change' group by 1, 2 order by min(e.pos)"
_TEXTS_DROPPED = f"select 1 from {MOVED} where e.kind = 'event' and e.subtype = 'pruned' limit 1"


class Mirror:
    """One log's file for readers, made when it is missing, damaged, or tells of another history."""

    def __init__(self, path: str, log: "Decklog") -> None:
        self.path = path
        self._log = log
        self._file: FileBeside | None = None
        self._seen: int | None = None

    def follow(self) -> None:
        """Bring the file up to date with the log; refuse one that is not ours."""
        file = self._opened()
        version = file.value("pragma log.data_version")
        if version == self._seen:
            return
        try:
            is_current = not file.rows(_BEHIND) or self._catch_up(file)
        except Damaged:
            self._make_anew(is_damaged=True)
            return
        if is_current:
            self._seen = version
        else:
            self._make_anew()

    def number_of(self, stream: str, seq: int) -> int | None:
        """Return the id that an entry has in the table of logs."""
        self.follow()
        sql = f"select id from main.{ENTRIES} where pos = (select no from log.streams where name = ?) * {STREAM_SIZE} + ?"
        found = self._opened().value(sql, (stream, seq))
        return None if found is None else int(found)

    def is_redacted(self, number: int) -> bool:
        """Return whether the older system took secrets out of a log's text, where the log has it from there."""
        return bool(self._opened().value("select redacted from main.orchestration_logs where id = ?", (number,)))

    def id_where(self, table: str, **key: object) -> int | None:
        """Return the id of the row of a table that has these values."""
        self.follow()
        condition = " and ".join(f"{name} = ?" for name in key)
        found = self._opened().value(f"select id from main.{table} where {condition}", tuple(key.values()))
        return None if found is None else int(found)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> FileBeside:
        if self._file is not None and self._file.is_in_place:
            return self._file
        self.close()
        self._seen = None
        if not is_there(self.path):
            self._make_anew()
        try:
            self._file = self._checked()
        except (Damaged, NotADatabase):
            self._make_anew()
            self._file = self._checked()
        return self._file

    def _checked(self) -> FileBeside:
        """Open the file, and make sure that it is ours and tells of this log."""
        file = FileBeside(self.path, self._log.db.target)
        try:
            if file.value("pragma main.application_id") != APPLICATION_ID:
                raise Conflict(
                    f"{self.path} is not the file that Decklog keeps for readers of {self._log.db.target}, and was left as it is",
                    hint="Move one of the two away.",
                    path=self.path,
                )
            if file.value(_OTHER_HISTORY) is not None:
                raise Damaged(f"{self.path} tells of another history than {self._log.db.target}", path=self.path)
        except BaseException:
            file.close()
            raise
        return file

    def _make_anew(self, *, is_damaged: bool = False) -> None:
        from decklog.plugins.importers.bazinga.mirror_making import make

        self.close()
        # One process at a time; whoever waited may find it made.
        with self._log.transaction():
            if is_damaged or self._needs_making():
                make(self._log, self.path)

    def _needs_making(self) -> bool:
        if not is_there(self.path):
            return True
        try:
            file = self._checked()
        except (Damaged, NotADatabase):
            return True
        try:
            set_moved(file, file.rows(_BEHIND))
            return file.value(_TEXTS_DROPPED) is not None
        finally:
            file.close()

    def _catch_up(self, file: FileBeside) -> bool:
        """Take what is new in the log; say no when texts were dropped from it, which the file may still have."""
        with file.writing():
            set_moved(file, file.rows(_BEHIND))
            if file.value(_TEXTS_DROPPED) is not None:
                return False
            add_logs(file)
            for table, record_id in file.rows(_WHAT_CHANGED):
                take_change(file, table, record_id)
            set_marks(file)
        return True


def log_beside(path: str) -> str:
    """Name the log whose readers open the file at a path."""
    return "{}.decklog{}".format(*os.path.splitext(path))


def is_there(path: str) -> bool:
    """Return whether there is a file with something in it; bazinga begins an empty one anew."""
    return os.path.exists(path) and os.path.getsize(path) > 0
