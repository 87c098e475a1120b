"""What becomes of a change of the log in the file that bazinga's readers open, statement by statement."""

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from decklog.journal.rows import STREAM_SIZE
from decklog.plugins.importers.bazinga.schema import TABLES
from decklog.plugins.importers.bazinga.tables import question

if TYPE_CHECKING:
    from decklog.db.sqlite.foreign import FileBeside


class MirroredRows:
    """The rows of a table that tell of one record.

    `which` says which of the question's rows; the parts of the record's identity are bound in their order. `known_by` is what a
    row is changed in its place by: one that never changes is known by nothing. What is `fixed` stays as it was first written,
    and `gone` removes what the log no longer has.
    """

    def __init__(self, table: str, which: str, known_by: str = "", fixed: str = "", gone: str = "") -> None:
        self.table = table
        self.which = which
        self.known_by = known_by
        self.fixed = fixed
        self.gone = gone


# What tells the file from one that bazinga itself made.
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
# Ids that are given out here; a package has the number that it has in the log.
_NUMBERED = frozenset(
    {"token_usage", "skill_outputs", "state_snapshots", "development_plans", "success_criteria", "context_package_consumers"}
)


def take_change(file: "FileBeside", table: str, record_id: str) -> None:
    """Write the rows of one record anew, as the log has it now."""
    if table in _WORKFLOW:
        fill_workflow(file, _WORKFLOW[table])
    elif table == "context_consumers":
        _take_consumer(file, *json.loads(record_id))
    elif table in _RECORDS:
        parts = json.loads(record_id) if record_id.startswith("[") else [record_id]
        rows = _RECORDS[table]
        # A condition may name fewer parts than there are.
        bound = parts[: max(rows.which.count("?"), 1)]
        if rows.gone:
            file.rows(rows.gone, bound)
        file.rows(_put(table), bound)


@lru_cache
def _put(source: str) -> str:
    rows = _RECORDS[source]
    names = [name for name in TABLES[rows.table] if name != "id" or rows.table not in _NUMBERED]
    text = _narrowed(question(rows.table, "log"), rows.which)
    # The word `where` tells the select's end from the clause on conflicts.
    text = f"insert into main.{rows.table} ({', '.join(names)}) select {', '.join(names)} from ({text}) where true"
    if not rows.known_by:
        return text
    kept = {*rows.known_by.split(", "), *rows.fixed.split()}
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in kept)
    return f"{text} on conflict ({rows.known_by}) do update set {changes}"


def _narrowed(asked: str, which: str) -> str:
    last = asked.rpartition("\n  from ")[2]
    return f"{asked} {'and' if ' where ' in last else 'where'} {which}"


def _take_consumer(file: "FileBeside", package_id: str, agent: str) -> None:
    """Fill the row of one for whom a package is and who has not read it; add it where there is none."""
    found = _narrowed(question("context_package_consumers", "log"), "c.package_id = ?1 and c.agent = ?2")
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


def fill_workflow(file: "FileBeside", table: str) -> None:
    """Write a table of the workflow anew, all of it."""
    names = ", ".join(name for name in TABLES[table] if name != "id")
    file.rows(f"delete from main.{table}")
    file.rows(f"insert into main.{table} ({names}) select {names} from ({question(table, 'log')}) order by id")


def add_logs(file: "FileBeside") -> None:
    """Add the entries that moved and are not here yet, all sessions together in the order of their times."""
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


def set_moved(file: "FileBeside", streams: "list[tuple[int, int, int]]") -> None:
    """Note down which entries are to be taken: of each stream those after a number, up to another."""
    file.rows("create temp table if not exists moved (stream_no integer primary key, first integer, last integer)")
    file.rows("delete from temp.moved")
    for no, seen, newest in streams:
        file.rows("insert into temp.moved values (?, ?, ?)", (no, no * STREAM_SIZE + seen + 1, no * STREAM_SIZE + newest))


def set_marks(file: "FileBeside") -> None:
    """Note down how far the file has got."""
    file.rows(
        f"""
        insert or replace into main.{MARKS} (stream_no, seq, hash)
        select m.stream_no, e.seq, e.hash from temp.moved m join log.entries e on e.pos = m.last
        """
    )
