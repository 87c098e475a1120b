"""Makes the file that bazinga's readers open from the whole log: beside its place, and put there when it is complete."""

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from decklog.db.sqlite.foreign import FileBeside, put_in_place
from decklog.journal.rows import STREAM_SIZE, number_of
from decklog.plugins.importers.bazinga.export import BazingaExport
from decklog.plugins.importers.bazinga.mirrored import (
    APPLICATION_ID,
    ENTRIES,
    MARKS,
    add_logs,
    fill_workflow,
    set_marks,
    set_moved,
)

if TYPE_CHECKING:
    from typing import Any

    from decklog.log import Decklog

_OWN = (
    f"create table {MARKS} (stream_no integer primary key, seq integer not null, hash text not null)",
    f"create table {ENTRIES} (id integer primary key, pos integer not null unique)",
)
_HEADS = f"""
    select no, 0, max(pos) % {STREAM_SIZE}
      from streams join entries on pos >= no * {STREAM_SIZE} and pos < (no + 1) * {STREAM_SIZE}
     group by no
"""
_REFUSAL = "Decklog keeps this file from its log; what is written here would be lost. Write with bazinga-db."


class MirrorExport(BazingaExport):
    """An export that knows which entry each row of the logs is, and leaves those that had no number there for later."""

    def __init__(self, log: "Decklog", path: str) -> None:
        super().__init__(log, path, wal=True)
        self._numbers: dict[str, int] = {}

    def _begin(self) -> None:
        super()._begin()
        for statement in _OWN:
            self.out.db.execute(statement)

    def _place_log(self, entry: "Any", row: "dict[str, Any]", number: int | None) -> None:
        if number is None or self.out.has("orchestration_logs", number):
            return
        stream = entry.stream
        if stream not in self._numbers:
            self._numbers[stream] = number_of(self.log.db, stream) or 0
        if self.out.insert("orchestration_logs", {**row, "id": number}):
            position = self._numbers[stream] * STREAM_SIZE + entry.seq
            self.out.db.execute(f"insert into {ENTRIES} values (?, ?)", (number, position))


def make(log: "Decklog", path: str) -> None:
    """Make the file; one that was there is replaced, and passes on who may read it."""
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o600
    folder = tempfile.mkdtemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".decklog-mirror-")
    try:
        made = os.path.join(folder, "made.db")
        streams = log.db.read(lambda: _export(log, made))
        _complete(made, log.db.target, streams)
        os.chmod(made, mode)
        put_in_place(made, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _export(log: "Decklog", path: str) -> "list[tuple[int, int, int]]":
    """Write what the log has at one moment; say how far each stream was then."""
    MirrorExport(log, path).run()
    _, rows = log.db.rows(_HEADS, {})
    return [(no, seen, newest) for no, seen, newest in rows]


def _complete(path: str, log_path: str, streams: "list[tuple[int, int, int]]") -> None:
    file = FileBeside(path, log_path)
    try:
        with file.writing():
            set_moved(file, streams)
            add_logs(file)
            for table in ("workflow_transitions", "agent_markers", "workflow_special_rules"):
                # A project that was taken over shows the workflow it had, until another one is loaded.
                if file.value(f"select 1 from main.{table} limit 1") is None:
                    fill_workflow(file, table)
            set_marks(file)
            _guard(file)
            file.rows(f"pragma main.application_id = {APPLICATION_ID}")
        file.rows("pragma main.wal_checkpoint(truncate)")
    finally:
        file.close()


def _guard(file: FileBeside) -> None:
    """Refuse the writes of others, which the next call would not know of."""
    for (table,) in file.rows(
        "select name from main.sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'"
    ):
        for act in ("insert", "update", "delete"):
            name = f"decklog_keeps_{table}_{act}".replace('"', "")
            file.rows(f"""create trigger main."{name}" before {act} on "{table}" begin select raise(abort, '{_REFUSAL}'); end""")
