"""Readiness: what a session needs before it begins, which is a log, a workflow written down in it, and a folder for artifacts."""

import os
import re
import sys
from typing import TYPE_CHECKING

from decklog.plugins.legacy.bazinga import configuration
from decklog.plugins.legacy.bazinga.base import PROGRAM, SHIPPED, CallRefused, DatabaseInitError, Desk
from decklog.plugins.legacy.bazinga.places import log_of
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply

if TYPE_CHECKING:
    from typing import Any, Self

    from decklog.core.clock import Clock
    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

COUNTS = ("transitions_count", "markers_count", "rules_count")
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


class Readiness:
    """A project, whose log is opened when it is needed: asking whether it is ready makes none."""

    def __init__(
        self,
        db_path: str | os.PathLike[str],
        quiet: bool = False,
        *,
        project_root: str | os.PathLike[str] | None = None,
        clock: "Clock | None" = None,
    ) -> None:
        self.db_path = os.fspath(db_path)
        self.quiet = quiet
        self._settings: dict[str, Any] = {"project_root": project_root, "clock": clock}
        self._desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        """The log, opened or made, with the folder it lies in."""
        if self._desk is None:
            if "://" not in self.db_path:
                os.makedirs(os.path.dirname(os.path.abspath(self.db_path)), exist_ok=True)
            self._desk = Desk(self.db_path, self.quiet, **self._settings)
        return self._desk

    def check(self) -> "dict[str, Any]":
        """Return whether a session could begin, and change nothing."""
        exists = "://" in self.db_path or os.path.exists(log_of(self.db_path)[0])
        if not exists:
            return _not_ready(f"there is no database at {self.db_path}", exists=False)
        try:
            found: dict[str, Any] = {**self.desk.log.workflow.ready()}
        except DatabaseInitError as problem:
            return _not_ready(str(problem), exists=True)
        return {"db_exists": True, **{name: found[name] for name in COUNTS}, "ready": found["ready"]}

    def seed(self) -> "dict[str, Any]":
        """Write the workflow that is in use down where none was loaded. Which one that is, only a manager changes."""
        workflow = self.desk.log.workflow
        # Where a manager is bound only the manager loads one; the shipped one is in use all the same.
        if workflow.ready()["source"] == SHIPPED and not self.desk.log.trust.show()["is_bound"]:
            workflow.load(by=PROGRAM)
        found: dict[str, Any] = {**workflow.ready()}
        return {"success": True, "name": found["name"], **{name: found[name] for name in COUNTS}}

    def init_session(self, session_id: str | None = None) -> str:
        """Make the log, and the session's folder for what skills put out; give the session's id. `create_session` begins it."""
        if session_id is not None and not _SESSION_ID.fullmatch(session_id):
            raise CallRefused(f"session_id {session_id!r} can't name a folder; use letters, digits, _ . and -")
        self.seed()
        named = session_id or f"bazinga_{self.desk.log.clock.now():%Y%m%d_%H%M%S}"
        os.makedirs(os.path.join(self.desk.project_root, "bazinga", "artifacts", named, "skills"), exist_ok=True)
        return named

    def compare(self, sections: tuple[str, ...]) -> list[str]:
        """Name what the project's own files say differently from the workflow in use."""
        document = configuration.document_of(self.desk.project_root, sections)
        return configuration.differences(self.desk.log.workflow, document) if document else []

    @property
    def behind(self) -> str | None:
        """Why the file that readers open is behind the log, where it is."""
        return None if self._desk is None else self._desk.behind

    def close(self) -> None:
        if self._desk is not None:
            self._desk.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _not_ready(error: str, *, exists: bool) -> "dict[str, Any]":
    return {"db_exists": exists, **dict.fromkeys(COUNTS, 0), "ready": False, "error": error}


# Commands

DESK = Readiness


def init_db(desk: Readiness, _: "UsageValues") -> ProgramReply:
    return ProgramReply(desk.seed(), said=f"{desk.db_path} is ready")


def init_session(desk: Readiness, given: "UsageValues") -> ProgramReply:
    if given.has("check-only"):
        return _checked(desk, given)
    session_id = desk.init_session(given.get("session-id"))
    found = desk.check()
    _say(desk, f"{desk.db_path} has {found['transitions_count']} transitions, {found['markers_count']} markers")
    return ProgramReply({"session_id": session_id, **found}) if given.has("json") else ProgramReply(text=session_id)


def _checked(desk: Readiness, given: "UsageValues") -> ProgramReply:
    found = desk.check()
    code = 0 if found["ready"] else 1
    if given.has("json"):
        return ProgramReply(found, code=code)
    _say(desk, "ready" if found["ready"] else f"not ready: {found.get('error', 'the workflow is empty')}")
    return ProgramReply(code=code)


def seed_configs(desk: Readiness, given: "UsageValues") -> ProgramReply:
    sections = tuple(name for name in configuration.SECTIONS if given.has(name) and not given.has("all"))
    if not given.has("auto-init-db") and not desk.check()["db_exists"]:
        raise CallRefused(f"there is no database at {desk.db_path}; make it with init-db, or give --auto-init-db")
    different = desk.compare(sections or configuration.SECTIONS)
    if different:
        _say(desk, f"bazinga/config differs from the workflow in use in {len(different)} places, such as {different[0]}.")
        _say(
            desk,
            "Nothing was changed. The owner loads the file with: decklog workflow load bazinga/config/transitions.json",
        )
    return ProgramReply({**desk.seed(), "differences": different}, said="Workflow written down")


def _say(desk: Readiness, text: str) -> None:
    if not desk.quiet:
        sys.stderr.write(text + "\n")
