"""The BazingaDB class, which combines all parts."""

from typing import Any

from decklog.core.errors import Damaged, DecklogError
from decklog.plugins.importers.bazinga.rows import group_row
from decklog.plugins.legacy.bazinga.base import (
    answers,
    error_text,
    filled,
    json_text,
    validate_scope_global_or_group,
    validate_task_group_id,
)
from decklog.plugins.legacy.bazinga.knowledge import BazingaKnowledge
from decklog.plugins.legacy.bazinga.query import ask, ask_file, faults_of
from decklog.plugins.legacy.bazinga.sessions import BazingaSessions, groups_of
from decklog.stores.workflow.router import TestingMode

# The router's established order; new names follow.
_NAMED = {
    "agent": "current_agent",
    "status": "response_status",
    "next_agent": "next_agent",
    "action": "action",
    "group_id": "group_id",
    "run_id": "session_id",
    "include_context": "include_context",
}


def _refused(problem: DecklogError) -> dict[str, Any]:
    refused: dict[str, Any] = {"success": False, "error": error_text(problem)}
    if problem.hint:
        refused["suggestion"] = problem.hint
    if "fallback_action" in problem.details:
        refused["error"] = problem.message
        refused["fallback_action"] = problem.details["fallback_action"]
    return refused


_MOST_ISSUES = 100
# bazinga's names of the tables that have group ids, each with its Decklog source.
_GROUP_ID_SOURCES = {
    "task_groups": "select distinct group_id, run_id from groups",
    "orchestration_logs": "select distinct group_id, stream from entries where group_id is not null and kind <> 'change'",
    "state_snapshots": "select distinct group_id, run_id from states",
    "skill_outputs": "select distinct group_id, run_id from outputs where group_id is not null",
    "context_packages": "select distinct group_id, run_id from packages where group_id is not null",
    "consumption_scope": "select distinct group_id, run_id from context_consumptions",
}
_FIX_ERROR = "the journal keeps what was written; write new records under a valid id"


class BazingaDB(BazingaSessions, BazingaKnowledge):
    """A bazinga database that is a Decklog log: `BazingaDB(db_path, quiet=False)`.

    Refused calls raise ValueError; the methods that always answered `{"success": False, …}` still do.
    """

    # Error texts that mean a damaged file, and those that never do.
    CORRUPTION_ERRORS = ("database disk image is malformed", "malformed database schema", "file is not a database")
    QUERY_ERRORS = ("no such column", "no such table", "syntax error", "constraint failed")
    # Tables in the order of their foreign keys.
    SALVAGE_TABLE_ORDER = (
        *("sessions", "task_groups", "orchestration_logs", "state_snapshots", "token_usage", "skill_outputs"),
        *("development_plans", "success_criteria", "context_packages", "context_package_consumers", "consumption_scope"),
        *("error_patterns", "strategies"),
    )

    @answers
    def route(
        self, current_agent: str, status: str, session_id: str, group_id: str | None = None, testing_mode: str = "full"
    ) -> dict[str, Any]:
        """Return the next agent; for a report that the workflow does not know, return a fallback."""
        filled("current_agent", current_agent)
        filled("status", status)
        mode = TestingMode(testing_mode)
        try:
            decided = self.log.db.read(lambda: self._decide(current_agent, status, session_id, group_id, mode))
        except DecklogError as problem:
            return _refused(problem)
        answer = {"success": True, **{new: decided.pop(old) for old, new in _NAMED.items()}, **decided}
        return {**answer, "group_id": group_id}

    def _decide(self, agent: str, status: str, session_id: str, group_id: str | None, mode: TestingMode) -> dict[str, Any]:
        self.expect_session(session_id)
        groups = [
            group_row(group, json_text) | {"security_sensitive": group.security_sensitive}
            for group in groups_of(self, session_id)
        ]
        return {**self.log.workflow.route(agent, status, run_id=session_id, group_id=group_id, testing_mode=mode, groups=groups)}

    @answers
    def query(self, sql: str, params: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
        """Run one read-only SQL query, within two seconds and ten thousand rows."""
        filled("sql", sql)
        return ask_file(self.db_path, sql, params) if self.follow() else ask(self.log.db, sql, params)

    @answers
    def check_integrity(self) -> dict[str, Any]:
        """Return whether the file is intact, the hash chains link, and every row equals its newest entry."""
        try:
            faults = faults_of(self.log.db) or [problem.what for problem in self.log.journal.verify().problems]
        except Damaged as problem:
            faults = [problem.message]
        return {"ok": not faults, "details": "; ".join(faults) or "ok", "status": "damaged" if faults else "ok"}

    @answers
    def diagnose_group_ids(self, fix: bool = False) -> dict[str, Any]:
        """Report invalid group ids in all tables.

        Nothing is renamed: entries never change, and renaming only the records would leave dangling references.
        """
        issues = self.log.db.read(self._issues)
        if fix:
            issues = [{**issue, "fix_error": _FIX_ERROR} for issue in issues]
        return {"success": True, "issues_found": len(issues), "fixes_applied": 0, "issues": issues, "fixes": []}

    def _issues(self) -> list[dict[str, Any]]:
        issues: list[dict[str, Any]] = []
        for table, sql in _GROUP_ID_SOURCES.items():
            is_group = table == "task_groups"
            validate, key = (validate_task_group_id, "id") if is_group else (validate_scope_global_or_group, "group_id")
            found = [(group_id, session_id, validate(group_id)) for group_id, session_id in self.log.db.rows(sql, {})[1]]
            issues += [
                {"table": table, key: group_id, "session_id": session_id, "issue": problem}
                for group_id, session_id, problem in found
                if problem is not None
            ][:_MOST_ISSUES]
        return issues
