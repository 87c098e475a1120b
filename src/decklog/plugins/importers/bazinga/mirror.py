"""Maintain the SQLite file that readers of a bazinga database open."""

import json
import os
import re
import shutil
import tempfile
from functools import lru_cache
from typing import Any, NamedTuple

from decklog.core.errors import Conflict, Damaged, NotADatabase
from decklog.db.sqlite.foreign import ForeignFile, put_in_place
from decklog.journal.rows import STREAM_SIZE, find_stream_number
from decklog.log import Decklog
from decklog.plugins.importers.bazinga.export import BazingaExport
from decklog.plugins.importers.bazinga.importer import TABLES

_TIME = r"\btime\((\w+\.\w+)\)"
_SPELLED = r"replace(replace(substr(\1, 1, 26), 'T', ' '), '.000000', '')"


@lru_cache
def _texts() -> dict[str, str]:
    with open(os.path.join(os.path.dirname(__file__), "tables.sqlite.sql"), encoding="utf-8") as file:
        text = file.read()
    found = {}
    for part in text.split("\n\n-- ")[1:]:
        name, _, select = part.partition("\n")
        found[name] = select.strip().rstrip(";")
    return found


def question(table: str, schema: str) -> str:
    """Return the select for one table from a log that is attached under `schema`."""
    return re.sub(_TIME, _SPELLED, _texts()[table]).replace(" log.", f" {schema}.")


def questions(schema: str) -> dict[str, str]:
    """Return each table's name and its select."""
    return {table: question(table, schema) for table in _texts()}


class MirroredRows(NamedTuple):
    """The rows of a table that belong to one record."""

    table: str
    # The condition for the rows; the parts of the record's identity are bound in their order.
    which: str
    # The columns that identify a row for updates; empty for rows that never change.
    known_by: str = ""
    # Columns that keep their first value.
    fixed: str = ""
    # Deletes the rows that are no longer in the log.
    gone: str = ""


# Distinguishes the mirror from a database made by bazinga.
APPLICATION_ID = 0x424D4952
MARKS = "decklog_marks"
ENTRIES = "decklog_entries"
MOVED = "temp.moved m cross join log.entries e on e.pos between m.first and m.last"
_PLAN = MirroredRows("development_plans", "p.run_id = ?1", "session_id", "created_at")
_RECORDS = {
    "runs": MirroredRows("sessions", "r.id = ?1", "session_id", "start_time created_at"),
    "groups": MirroredRows("task_groups", "g.run_id = ?1 and g.group_id = ?2", "id, session_id", "created_at"),
    "states": MirroredRows(
        "state_snapshots", "s.run_id = ?1 and s.group_id = ?2 and s.name = ?3", "session_id, state_type, group_id"
    ),
    "charges": MirroredRows("token_usage", "c.id = ?1"),
    "outputs": MirroredRows("skill_outputs", "o.id = ?1"),
    "plans": _PLAN,
    "phases": _PLAN,
    "criteria": MirroredRows(
        *("success_criteria", "c.run_id = ?1", "session_id, criterion", "created_at"),
        """
        delete from main.success_criteria
         where session_id = ?1 and criterion not in (select criterion from log.criteria where run_id = ?1)
        """,
    ),
    "packages": MirroredRows("context_packages", "p.id = ?1", "id", "created_at"),
    "context_consumptions": MirroredRows("consumption_scope", "c.id = ?1", "scope_id"),
    "patterns": MirroredRows(
        *("error_patterns", "e.pattern_hash = ?1 and e.project = ?2", "pattern_hash, project_id", "created_at"),
        """
        delete from main.error_patterns
         where pattern_hash = ?1 and project_id = ?2
           and not exists (select 1 from log.patterns where pattern_hash = ?1 and project = ?2)
        """,
    ),
    "strategies": MirroredRows("strategies", "s.id = ?1", "strategy_id", "created_at"),
}
_WORKFLOW = {
    "workflow_transitions": "workflow_transitions",
    "workflow_markers": "agent_markers",
    "workflow_rules": "workflow_special_rules",
}
# Tables whose ids the mirror assigns; a package has the same number as in the log.
_NUMBERED = frozenset(
    {"token_usage", "skill_outputs", "state_snapshots", "development_plans", "success_criteria", "context_package_consumers"}
)


def take_change(file: ForeignFile, table: str, record_id: str) -> None:
    """Rewrite the rows of one record from the log."""
    if table in _WORKFLOW:
        fill_workflow(file, _WORKFLOW[table])
    elif table == "context_consumers":
        _take_consumer(file, *json.loads(record_id))
    elif table in _RECORDS:
        parts = json.loads(record_id) if record_id.startswith("[") else [record_id]
        rows = _RECORDS[table]
        # A condition may use only some parts of the identity.
        bound = parts[: max(rows.which.count("?"), 1)]
        if rows.gone:
            file.rows(rows.gone, bound)
        file.rows(_put(table), bound)


@lru_cache
def _put(source: str) -> str:
    rows = _RECORDS[source]
    names = [name for name in TABLES[rows.table] if name != "id" or rows.table not in _NUMBERED]
    text = _add_condition(question(rows.table, "log"), rows.which)
    # SQLite needs `where` between a select and an `on conflict` clause.
    text = f"insert into main.{rows.table} ({', '.join(names)}) select {', '.join(names)} from ({text}) where true"
    if not rows.known_by:
        return text
    kept = {*rows.known_by.split(", "), *rows.fixed.split()}
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in kept)
    return f"{text} on conflict ({rows.known_by}) do update set {changes}"


def _add_condition(asked: str, which: str) -> str:
    last = asked.rpartition("\n  from ")[2]
    return f"{asked} {'and' if ' where ' in last else 'where'} {which}"


def _take_consumer(file: ForeignFile, package_id: str, agent: str) -> None:
    """Fill the row of a package's recipient that has not read it yet; insert a row if there is none."""
    found = _add_condition(question("context_package_consumers", "log"), "c.package_id = ?1 and c.agent = ?2")
    waiting = """
        select min(w.id) from main.context_package_consumers w join log.packages p on p.number = w.package_id
         where p.id = ?1 and w.agent_type = ?2
    """
    update = f"""
        update main.context_package_consumers set (consumed_at, iteration) = (select consumed_at, iteration from ({found}))
         where id = coalesce(({waiting} and w.consumed_at is null), ({waiting}))
    """
    if not file.changed(update, (package_id, agent)):
        names = "package_id, agent_type, consumed_at, iteration"
        file.rows(f"insert into main.context_package_consumers ({names}) select {names} from ({found})", (package_id, agent))


def fill_workflow(file: ForeignFile, table: str) -> None:
    """Rewrite a whole workflow table."""
    names = ", ".join(name for name in TABLES[table] if name != "id")
    file.rows(f"delete from main.{table}")
    file.rows(f"insert into main.{table} ({names}) select {names} from ({question(table, 'log')}) order by id")


def add_logs(file: ForeignFile) -> None:
    """Insert the moved entries that are missing here, for all sessions together, ordered by time."""
    last = file.value(
        f"select max(coalesce((select max(id) from main.orchestration_logs), 0), coalesce(max(id), 0)) from {ENTRIES}"
    )
    asked = question("orchestration_logs", "log")
    condition = asked.rpartition("\n where ")[2]
    added = file.changed(
        f"""
        insert into main.{ENTRIES} (id, pos)
        select ?1 + row_number() over (order by e.at, e.pos), e.pos from {MOVED}
         where {condition} and not exists (select 1 from main.{ENTRIES} known where known.pos = e.pos)
        """,
        (last,),
    )
    if added:
        names = ", ".join(TABLES["orchestration_logs"])
        numbered = asked.replace("e.seq as id", "known.id as id", 1).replace(
            "from log.entries e", f"from main.{ENTRIES} known cross join log.entries e on e.pos = known.pos", 1
        )
        sql = f"insert into main.orchestration_logs ({names}) select {names} from ({numbered} and known.id > ?1) order by id"
        file.rows(sql, (last,))


def set_moved(file: ForeignFile, streams: list[tuple[int, int, int]]) -> None:
    """Store the entry range to copy from each stream."""
    file.rows("create temp table if not exists moved (stream_no integer primary key, first integer, last integer)")
    file.rows("delete from temp.moved")
    for no, seen, newest in streams:
        file.rows("insert into temp.moved values (?, ?, ?)", (no, no * STREAM_SIZE + seen + 1, no * STREAM_SIZE + newest))


def set_marks(file: ForeignFile) -> None:
    """Store the last copied position of each stream."""
    file.rows(
        f"""
        insert or replace into main.{MARKS} (stream_no, seq, hash)
        select m.stream_no, e.seq, e.hash from temp.moved m join log.entries e on e.pos = m.last
        """
    )


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
    """Exports a log, records the entry of each log row, and defers log rows without an original number."""

    def __init__(self, log: Decklog, path: str) -> None:
        super().__init__(log, path, wal=True)
        self._numbers: dict[str, int] = {}

    def _begin(self) -> None:
        super()._begin()
        for statement in _OWN:
            self.db.execute(statement)

    def _place_log(self, entry: Any, row: dict[str, Any], number: int | None) -> None:
        if number is None or self.has("orchestration_logs", number):
            return
        stream = entry.stream
        if stream not in self._numbers:
            self._numbers[stream] = find_stream_number(self.log.db, stream) or 0
        if self.insert("orchestration_logs", {**row, "id": number}):
            position = self._numbers[stream] * STREAM_SIZE + entry.seq
            self.db.execute(f"insert into {ENTRIES} values (?, ?)", (number, position))


def make(log: Decklog, path: str) -> None:
    """Create the file; replace an existing one and copy its permissions."""
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o600
    folder = tempfile.mkdtemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".decklog-mirror-")
    try:
        made = os.path.join(folder, "made.db")
        streams = log.db.read(lambda: _export(log, made))
        _finish_file(made, log.db.target, streams)
        os.chmod(made, mode)
        put_in_place(made, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _export(log: Decklog, path: str) -> list[tuple[int, int, int]]:
    """Export a consistent snapshot; return the position of each stream in it."""
    MirrorExport(log, path).run()
    _, rows = log.db.rows(_HEADS, {})
    return [(no, seen, newest) for no, seen, newest in rows]


def _finish_file(path: str, log_path: str, streams: list[tuple[int, int, int]]) -> None:
    file = ForeignFile(path, log_path)
    try:
        with file.writing():
            set_moved(file, streams)
            add_logs(file)
            for table in ("workflow_transitions", "agent_markers", "workflow_special_rules"):
                # A switched project shows its previous workflow until another one is loaded.
                if file.value(f"select 1 from main.{table} limit 1") is None:
                    fill_workflow(file, table)
            set_marks(file)
            _add_write_guards(file)
            file.rows(f"pragma main.application_id = {APPLICATION_ID}")
        file.rows("pragma main.wal_checkpoint(truncate)")
    finally:
        file.close()


def _add_write_guards(file: ForeignFile) -> None:
    """Add triggers that refuse writes by other programs, which the next update would not see."""
    for (table,) in file.rows(
        "select name from main.sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'"
    ):
        for act in ("insert", "update", "delete"):
            name = f"decklog_keeps_{table}_{act}".replace('"', "")
            file.rows(f"""create trigger main."{name}" before {act} on "{table}" begin select raise(abort, '{_REFUSAL}'); end""")


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
    """One log's file for readers, created when it is missing, damaged, or belongs to another history."""

    def __init__(self, path: str, log: Decklog) -> None:
        self.path = path
        self._log = log
        self._file: ForeignFile | None = None
        self._seen: int | None = None

    def follow(self) -> None:
        """Update the file from the log; raise Conflict for a file that is not this log's mirror."""
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
        """Return the id of an entry in the table of logs."""
        self.follow()
        sql = f"select id from main.{ENTRIES} where pos = (select no from log.streams where name = ?) * {STREAM_SIZE} + ?"
        found = self._opened().value(sql, (stream, seq))
        return None if found is None else int(found)

    def is_redacted(self, number: int) -> bool:
        """Return whether the older system redacted an entry that was imported from it."""
        return bool(self._opened().value("select redacted from main.orchestration_logs where id = ?", (number,)))

    def id_where(self, table: str, **key: object) -> int | None:
        """Return the id of the table row with these values."""
        self.follow()
        condition = " and ".join(f"{name} = ?" for name in key)
        found = self._opened().value(f"select id from main.{table} where {condition}", tuple(key.values()))
        return None if found is None else int(found)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> ForeignFile:
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

    def _checked(self) -> ForeignFile:
        """Open the file, and check that it is a mirror of this log."""
        file = ForeignFile(self.path, self._log.db.target)
        try:
            if file.value("pragma main.application_id") != APPLICATION_ID:
                raise Conflict(
                    f"{self.path} is not the file that Decklog keeps for readers of {self._log.db.target}, and was left as it is",
                    hint="Move one of the two away.",
                    path=self.path,
                )
            if file.value(_OTHER_HISTORY) is not None:
                raise Damaged(f"{self.path} belongs to another history than {self._log.db.target}", path=self.path)
        except BaseException:
            file.close()
            raise
        return file

    def _make_anew(self, *, is_damaged: bool = False) -> None:
        self.close()
        # One process at a time; after waiting, the file may exist.
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

    def _catch_up(self, file: ForeignFile) -> bool:
        """Copy what is new in the log; return False if texts were dropped from the log, because the file may still have them."""
        with file.writing():
            set_moved(file, file.rows(_BEHIND))
            if file.value(_TEXTS_DROPPED) is not None:
                return False
            add_logs(file)
            for table, record_id in file.rows(_WHAT_CHANGED):
                take_change(file, table, record_id)
            set_marks(file)
        return True


def is_there(path: str) -> bool:
    """Return whether a file exists and is not empty; bazinga initializes an empty one again."""
    return os.path.exists(path) and os.path.getsize(path) > 0
