"""Prepare a project for sessions, and log agents' responses."""

import json
import os
import re
import sys
from collections import Counter
from typing import Any, Self

from decklog.core.clock import Clock
from decklog.plugins.bazinga_project import log_of
from decklog.plugins.legacy.bazinga.base import PROGRAM, SHIPPED, BazingaBase, CallRefused, DatabaseInitError, answers
from decklog.plugins.legacy.bazinga.logs import BazingaLogs, newest
from decklog.stores.workflow.bazinga_workflow import from_markers_file, from_transitions_file
from decklog.stores.workflow.workflow import Workflow

SECTIONS = ("transitions", "markers", "rules")
TRANSITIONS_FILE = "transitions.json"
MARKERS_FILE = "agent-markers.json"


def document_of(root: str, sections: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Read the sections of a project's files as a workflow document; empty for a project without files."""
    folder = os.path.join(root, "bazinga", "config")
    steps = _read_file(os.path.join(folder, TRANSITIONS_FILE)) if {"transitions", "rules"} & {*sections} else None
    marks = _read_file(os.path.join(folder, MARKERS_FILE)) if "markers" in sections else None
    found: dict[str, dict[str, Any]] = {}
    if steps is not None:
        document = from_transitions_file(steps)
        if "transitions" in sections:
            found["transitions"] = {
                f"{agent} {status}": step for agent, words in document["transitions"].items() for status, step in words.items()
            }
        if "rules" in sections:
            found["rules"] = {name: rule["config"] for name, rule in document.get("rules", {}).items()}
    if marks is not None:
        found["markers"] = from_markers_file(marks)
    return found


def differences(workflow: Workflow, document: dict[str, dict[str, Any]]) -> list[str]:
    """Return how a document differs from the active workflow; ignore what only the workflow has."""
    used: dict[str, dict[str, dict[str, Any]]] = {
        "transitions": {f"{step.agent} {step.status}": step.values() for step in workflow.transitions()},
        "rules": {str(rule.name): rule.config for rule in workflow.rules()},
        "markers": {marker.agent: marker.values() for marker in workflow.markers()},
    }
    return [
        f"{section} {name}"
        for section, parts in document.items()
        for name, part in parts.items()
        if (step := used[section].get(name)) is None or any(step.get(field) != value for field, value in part.items())
    ]


def _read_file(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise CallRefused(f"{path} can't be read: {problem}") from None
    if not isinstance(found, dict):
        raise CallRefused(f"{os.path.basename(path)} is not a JSON object")
    return found


COUNTS = ("transitions_count", "markers_count", "rules_count")
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


class Readiness:
    """Prepares a project. It opens the log only when needed, so that a readiness check creates none."""

    def __init__(
        self,
        db_path: str | os.PathLike[str],
        quiet: bool = False,
        *,
        project_root: str | os.PathLike[str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.db_path = os.fspath(db_path)
        self.quiet = quiet
        self._settings: dict[str, Any] = {"project_root": project_root, "clock": clock}
        self._database: BazingaBase | None = None

    @property
    def database(self) -> BazingaBase:
        """The log; created with its folder if it is missing."""
        if self._database is None:
            if "://" not in self.db_path:
                os.makedirs(os.path.dirname(os.path.abspath(self.db_path)), exist_ok=True)
            self._database = BazingaBase(self.db_path, self.quiet, **self._settings)
        return self._database

    def check(self) -> dict[str, Any]:
        """Return whether a session could begin, without changes."""
        exists = "://" in self.db_path or os.path.exists(log_of(self.db_path)[0])
        not_ready = {"db_exists": exists, **dict.fromkeys(COUNTS, 0), "ready": False}
        if not exists:
            return {**not_ready, "error": f"there is no database at {self.db_path}"}
        try:
            found: dict[str, Any] = {**self.database.log.workflow.ready()}
        except DatabaseInitError as problem:
            return {**not_ready, "error": str(problem)}
        return {"db_exists": True, **{name: found[name] for name in (*COUNTS, "ready")}}

    def seed(self) -> dict[str, Any]:
        """Store the shipped workflow if none was loaded."""
        workflow = self.database.log.workflow
        # With a registered owner only the owner loads a workflow; the shipped one applies in any case.
        if workflow.ready()["source"] == SHIPPED and not self.database.log.trust.show()["is_bound"]:
            workflow.load(by=PROGRAM)
        found: dict[str, Any] = {**workflow.ready()}
        return {"success": True, "name": found["name"], **{name: found[name] for name in COUNTS}}

    def init_session(self, session_id: str | None = None) -> str:
        """Create the log and the folder for the session's skill outputs; return the session id. `create_session` begins it."""
        if session_id is not None and not _SESSION_ID.fullmatch(session_id):
            raise CallRefused(f"session_id {session_id!r} can't name a folder; use letters, digits, _ . and -")
        self.seed()
        named = session_id or f"bazinga_{self.database.log.clock.now():%Y%m%d_%H%M%S}"
        os.makedirs(os.path.join(self.database.project_root, "bazinga", "artifacts", named, "skills"), exist_ok=True)
        return named

    def compare(self, sections: tuple[str, ...]) -> list[str]:
        """Return the differences between the project's own files and the active workflow."""
        document = document_of(self.database.project_root, sections)
        return differences(self.database.log.workflow, document) if document else []

    def say(self, text: str) -> None:
        """Write a message to standard error."""
        if not self.quiet:
            sys.stderr.write(text + "\n")

    @property
    def behind(self) -> str | None:
        """Why the file for readers is behind the log; None if it is current."""
        return None if self._database is None else self._database.behind

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AutoLogger(BazingaLogs):
    """One session's logger. Failures are counted and returned, never raised."""

    def __init__(
        self,
        db_path: str | os.PathLike[str],
        session_id: str = "",
        quiet: bool = False,
        *,
        project_root: str | os.PathLike[str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(db_path, quiet, project_root=project_root, clock=clock)
        self.session_id = session_id
        self.last_error: str | None = None
        self._logged: Counter[str] = Counter()
        self._failed = 0

    def log_agent_response(
        self, agent_type: str, content: str, iteration: int | None = None, agent_id: str | None = None
    ) -> dict[str, Any]:
        """Log an answer, and read it back by its number; return `success: false` if the log refuses it."""
        try:
            answer = self.log_interaction(self.session_id, agent_type, content, iteration, agent_id)
            if answer["success"]:
                self.log.journal.get(self.session_id, self._last)
        except CallRefused as problem:
            answer = {"success": False, "error": str(problem)}
        if answer["success"]:
            self._logged[agent_type] += 1
        else:
            self._failed += 1
            self.last_error = answer["error"]
        return answer

    def get_stats(self) -> dict[str, Any]:
        """Count the successful and failed writes of this logger."""
        logged = sum(self._logged.values())
        return {
            "session_id": self.session_id,
            "attempts": logged + self._failed,
            "logged": logged,
            "failed": self._failed,
            "by_agent": dict(self._logged),
            "last_error": self.last_error,
        }

    @answers
    def verify_session_logs(self) -> dict[str, Any]:
        """Count the session's interactions by agent, and verify that none was changed or lost."""
        self.expect_session(self.session_id)
        found = newest(self, self.session_id, ("interaction",), -1)
        by_agent = Counter(entry.agent or "unknown" for entry in found)
        return {
            "session_id": self.session_id,
            "total_logs": len(found),
            "by_agent": {agent: by_agent[agent] for agent in sorted(by_agent)},
            "verified": self.log.journal.verify(self.session_id).ok,
        }
