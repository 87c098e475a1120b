"""Upkeep: questions in SQL, whether the log is whole, and ids that no command would accept."""

from typing import TYPE_CHECKING

from decklog.core.errors import Damaged
from decklog.plugins.legacy.bazinga.base import Desk, answers, filled
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.rules import validate_scope_global_or_group, validate_task_group_id

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

_MOST_ISSUES = 100
# bazinga's names of the tables that hold group ids, each with where Decklog keeps them.
_HOLDERS = {
    "task_groups": "select distinct group_id, run_id from groups",
    "orchestration_logs": "select distinct group_id, stream from entries where group_id is not null and kind <> 'change'",
    "state_snapshots": "select distinct group_id, run_id from states",
    "skill_outputs": "select distinct group_id, run_id from outputs where group_id is not null",
    "context_packages": "select distinct group_id, run_id from packages where group_id is not null",
    "consumption_scope": "select distinct group_id, run_id from context_consumptions",
}
_KEPT = "the journal keeps what was written; write new records under a valid id"


class Upkeep(Desk):
    """Looks after a log, and never changes what it finds."""

    @answers
    def query(self, sql: str, params: "tuple[Any, ...]" = ()) -> "list[dict[str, Any]]":
        """Answer one question in SQL, read-only, within two seconds and ten thousand rows."""
        from decklog.plugins.legacy.bazinga.query import ask, ask_file

        filled("sql", sql)
        return ask_file(self.db_path, sql, params) if self.follow() else ask(self.log.db, sql, params)

    @answers
    def check_integrity(self) -> "dict[str, Any]":
        """Return whether the file is sound, the hash chains link, and every row is what its newest entry says."""
        from decklog.plugins.legacy.bazinga.query import faults_of

        try:
            faults = faults_of(self.log.db) or [problem.what for problem in self.log.journal.verify().problems]
        except Damaged as problem:
            faults = [problem.message]
        return {"ok": not faults, "details": "; ".join(faults) or "ok", "status": "damaged" if faults else "ok"}

    @answers
    def diagnose_group_ids(self, fix: bool = False) -> "dict[str, Any]":
        """Report group ids that no command would accept, wherever one is kept.

        Nothing is renamed: entries are never changed, and half a rename would leave references to an id that is gone.
        """
        issues = self.log.db.read(self._issues)
        if fix:
            issues = [{**issue, "fix_error": _KEPT} for issue in issues]
        return {"success": True, "issues_found": len(issues), "fixes_applied": 0, "issues": issues, "fixes": []}

    def _issues(self) -> "list[dict[str, Any]]":
        issues: list[dict[str, Any]] = []
        for table, sql in _HOLDERS.items():
            _, rows = self.log.db.rows(sql, {})
            found = [_issue(table, group_id, session_id) for group_id, session_id in rows]
            issues += [issue for issue in found if issue is not None][:_MOST_ISSUES]
        return issues


def _issue(table: str, group_id: str, session_id: str) -> "dict[str, Any] | None":
    is_group = table == "task_groups"
    problem = validate_task_group_id(group_id) if is_group else validate_scope_global_or_group(group_id)
    if problem is None:
        return None
    return {"table": table, "id" if is_group else "group_id": group_id, "session_id": session_id, "issue": problem}


# Commands

DESK = Upkeep


def query(desk: Upkeep, given: "UsageValues") -> ProgramReply:
    return ProgramReply(desk.query(" ".join(given.words)))


def integrity_check(desk: Upkeep, _: "UsageValues") -> ProgramReply:
    found = desk.check_integrity()
    return ProgramReply(found, code=0 if found["ok"] else 1)


def recover_db(desk: Upkeep, _: "UsageValues") -> ProgramReply:
    found = desk.check_integrity()
    if found["ok"]:
        return ProgramReply({"success": True, "message": "The database is whole; there is nothing to recover."})
    advice = f"Nothing was changed. Take what can be read into a new file with: decklog recover {desk.db_path}"
    return ProgramReply({"success": False, "error": f"The database is damaged: {found['details']}", "message": advice})


def diagnose_group_ids(desk: Upkeep, given: "UsageValues") -> ProgramReply:
    found = desk.diagnose_group_ids(given.has("fix"))
    return ProgramReply(found, code=1 if found["issues_found"] else 0)


def detect_paths(_: "UsageValues") -> ProgramReply:
    from decklog.plugins.legacy.bazinga.places import described

    return ProgramReply(described())


def help(given: "UsageValues") -> ProgramReply:
    from decklog.plugins.legacy.bazinga.program.commands import COMMANDS
    from decklog.plugins.legacy.bazinga.program.usage import CommandUsage, Misuse

    wanted = given.get("command")
    if wanted is not None and wanted not in COMMANDS:
        raise Misuse(f"Unknown command: {wanted}")
    named = {wanted: COMMANDS[wanted]} if wanted is not None else COMMANDS
    lines = [f"  {name} {CommandUsage(usage).shown()}".rstrip() for name, (_, usage) in named.items()]
    head = [
        "usage: bazinga-db [--db PATH] [--project-root DIR] [--quiet] COMMAND [ARGS...]",
        "",
        "Flags may be spelled with - or _, and given as --flag VALUE or --flag=VALUE.",
        "",
        "Commands:",
    ]
    return ProgramReply(text="\n".join([*head, *lines]))
