"""Switch a bazinga project over to a Decklog log."""

import glob
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

from decklog.core.disk import sync
from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.db.sqlite.foreign import held, put_in_place
from decklog.db.sqlite.query import tables_of
from decklog.importing.report import Report
from decklog.importing.source import SqliteSource
from decklog.log import Decklog
from decklog.plugins.bazinga_project import log_path_for
from decklog.plugins.importers.bazinga.importer import BazingaImport
from decklog.plugins.importers.bazinga.mirror import MARKS, make
from decklog.stores.workflow import bazinga_workflow
from decklog.stores.workflow.records import completed, records_of, shipped

_SKILLS = os.path.join(".claude", "skills")
# Where projects have the scripts, and the command that replaces each one.
SCRIPTS = {
    os.path.join("bazinga-db", "scripts", "bazinga_db.py"): "",
    os.path.join("bazinga-db", "scripts", "init_db.py"): "init-db",
    os.path.join("bazinga-db", "scripts", "init_session.py"): "init-session",
    os.path.join("bazinga-db", "scripts", "auto_logger.py"): "auto-logger",
    os.path.join("config-seeder", "scripts", "seed_configs.py"): "seed-configs",
    os.path.join("workflow-router", "scripts", "workflow_router.py"): "route",
}
_MARK = "Answered by Decklog."
_TEXT = '''#!/usr/bin/env python3
"""{mark} The original script is next to it, as {name}{aside}."""

import os
import sys

PYTHON = {python!r}
COMMAND = {command!r}

if __name__ == "__main__":
    # The project is the one that this file lies in, wherever it is called from.
    os.environ.setdefault("DECKLOG_BAZINGA_SCRIPT_ROOT", os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 4)))
    words = ["bazinga", *COMMAND, *sys.argv[1:]]
    try:
        from decklog.cli import main
    except ImportError:
        # Decklog lives with the Python that took this project over.
        os.execv(PYTHON, [PYTHON, "-P", "-m", "decklog", *words])
    main(words)
else:
    from decklog.plugins.legacy.bazinga import *  # noqa: F403
'''


def stand_in(root: str, python: str, aside: str) -> list[str]:
    """Replace the scripts of a project; return the names of those that call Decklog now."""
    found = []
    for place, command in SCRIPTS.items():
        path = os.path.join(root, _SKILLS, place)
        if os.path.isfile(path):
            _replace(path, python, [command] if command else [], aside)
            found.append(os.path.relpath(path, root))
    return found


def _replace(path: str, python: str, command: list[str], aside: str) -> None:
    with open(path, encoding="utf-8", errors="replace") as file:
        is_ours = _MARK in file.read(1000)
    if not is_ours and not os.path.lexists(path + aside):
        os.link(path, path + aside)
    text = _TEXT.format(mark=_MARK, name=os.path.basename(path), aside=aside, python=python, command=command)
    opened, made = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".decklog-")
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(made, os.stat(path).st_mode & 0o777)
    os.replace(made, path)


MODELS = os.path.join("bazinga", "model_selection.json")
_NAME = "bazinga"
_FLAGS = ("escalation_check", "bypass_qa")
_COLUMNS = (
    *("next_agent", "action", "include_context", "escalation_check", "model_override", "fallback_agent", "bypass_qa"),
    *("max_parallel", "then_action"),
)


def workflow_of(database: str, root: str) -> dict[str, Any] | None:
    """Return a project's validated workflow, or None if it routes by the default."""
    found: dict[str, Any] = {}
    with SqliteSource(database) as source:
        for section, table, read in _SECTIONS:
            if rows := list(source.rows(table)):
                found[section] = read(rows)
    if models := _models(os.path.join(root, MODELS)):
        found["models"] = models
    if not found:
        return None
    document = completed(bazinga_workflow.completed({"name": _NAME, **found}, shipped()))
    ours, default = records_of(document), records_of(shipped())
    return None if all(record in default for record in ours) and len(ours) == len(default) else document


def _transitions(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in rows:
        step = {name: row[name] for name in _COLUMNS if row.get(name) is not None}
        step |= {name: bool(step[name]) for name in _FLAGS if name in step}
        if "include_context" in step:
            step["include_context"] = _json(step["include_context"], row)
        found.setdefault(str(row["current_agent"]), {})[str(row["response_status"])] = {"next_agent": None, **step}
    return found


def _markers(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {
        str(row["agent_type"]): {
            "required": _json(row["required_markers"], row),
            "workflow": _json(row.get("workflow_markers") or "[]", row),
        }
        for row in rows
    }


def _rules(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Read the rules that the router uses; rows for other programs stay in the journal."""
    known, found = shipped()["rules"], {}
    for row in rows:
        name, config = str(row["rule_name"]), _json(row["config"], row)
        if name in known and isinstance(config, dict):
            settings = {key: value for key, value in config.items() if key in known[name]["config"]}
            found[name] = {"description": row.get("description"), "config": settings}
    return found


_SECTIONS: tuple[tuple[str, str, Callable[[Iterable[dict[str, Any]]], dict[str, Any]]], ...] = (
    ("transitions", "workflow_transitions", _transitions),
    ("markers", "agent_markers", _markers),
    ("rules", "workflow_special_rules", _rules),
)


def _models(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise Invalid(f"{path} can't be read: {problem}") from None
    if not isinstance(document, dict):
        raise Invalid(f"{path} is not a JSON object")
    return bazinga_workflow.from_models_file(document)


def _json(text: object, row: dict[str, Any]) -> Any:
    try:
        return json.loads(str(text))
    except ValueError:
        named = row.get("current_agent") or row.get("agent_type") or row.get("rule_name")
        raise Invalid(f"the configuration of {named} holds {text!r}, which is not JSON") from None


DATABASE = os.path.join("bazinga", "bazinga.db")
_ASIDE = ".before-decklog"
# The contents of a log, and those of the file for readers.
_OURS = ({"entries", "streams", "schema_steps"}, {MARKS})
_PROGRAM = "bazinga-db"
_TRIES = 3


class TakeOver:
    """Switches one project. Nothing changes before everything is imported, and no existing file is removed."""

    def __init__(
        self,
        project: str,
        *,
        accept_losses: bool = False,
        python: str = sys.executable,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.root = os.path.abspath(project)
        self.path = os.path.join(self.root, DATABASE)
        self.log = log_path_for(self.path)
        self._accept_losses = accept_losses
        self._python = python
        self._progress = progress

    def run(self) -> dict[str, Any]:
        """Replace the database and the scripts; only update a project that is switched already."""
        if not os.path.isfile(self.path):
            hint = "Name the folder that has both .claude/ and bazinga/."
            raise NotFound(f"there is no {self.path}", hint=hint, path=self.path)
        tables = tables_of(self.path)
        already = any(tables >= ours for ours in _OURS) or self._is_half_done()
        report, aside = (None, None) if already else self._database()
        scripts = stand_in(self.root, self._python, _ASIDE)
        taken = {"project": self.root, "database": self.path, "already": already, "kept": aside, "scripts": scripts}
        return {**taken, "log": self.log, "report": report and report.as_dict()}

    def _is_half_done(self) -> bool:
        """Return whether a switch stopped between the log and the file; raise for an unrelated log."""
        if not os.path.exists(self.log):
            return False
        start, ending = os.path.splitext(self.path)
        kept = glob.glob(f"{glob.escape(start + _ASIDE)}*{glob.escape(ending)}")
        if not any(os.path.samefile(self.path, path) for path in kept):
            hint = f"Move it away, or put the file that belongs to it back to {self.path}."
            raise Conflict(f"{self.log} is there already, and {self.path} is bazinga's own", hint=hint, path=self.log)
        with Decklog.open(self.log) as log:
            make(log, self.path)
        return True

    def _database(self) -> tuple[Report, str]:
        folder = tempfile.mkdtemp(dir=os.path.dirname(self.path), prefix=".decklog-take-over-")
        try:
            with held(self.path):
                # The checkpointed file now has all data, so one file is enough.
                aside = _find_free_path(self.path)
            return self._import_and_swap(os.path.join(folder, "log.db"), os.path.join(folder, "readers.db"), aside), aside
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _import_and_swap(self, made: str, for_readers: str, aside: str) -> Report:
        """Import, then swap in the log and the file; repeat the import if the source changed meanwhile."""
        for _ in range(_TRIES):
            before = _state(self.path)
            report = self._import_database(made, for_readers)
            with held(self.path):
                if _state(self.path) == before:
                    self._replace(made, for_readers, aside)
                    return report
        hint = "Stop the agents that write to it, and try again."
        raise Conflict(f"{self.path} is being written to, and was left as it is", hint=hint, path=self.path)

    def _import_database(self, made: str, for_readers: str) -> Report:
        with Decklog.open(made) as log:
            report, workflow = BazingaImport(log, self.path, progress=self._progress).run(), None
            try:
                workflow = workflow_of(self.path, self.root)
            except Invalid as problem:
                report.lose(f"the project's own workflow was not loaded: {problem.message}")
            if report.losses and not self._accept_losses:
                raise Conflict(
                    f"{self.path} was left as it is, because not all of it can be taken: {report.losses[0]}",
                    hint="decklog import bazinga FILE --dry-run lists every row; --accept-losses goes on without them.",
                    losses=report.losses,
                )
            log.workflow.load(workflow, by=_PROGRAM)
            make(log, for_readers)
        return report

    def _replace(self, made: str, for_readers: str, aside: str) -> None:
        """Put the log next to the file, and replace the file; a database exists at every moment."""
        os.chmod(for_readers, os.stat(self.path).st_mode & 0o777)
        os.link(self.path, aside)
        os.replace(made, self.log)
        put_in_place(for_readers, self.path)
        sync(os.path.dirname(self.path))


def _find_free_path(path: str) -> str:
    """Return an unused path for the old file."""
    start, ending = os.path.splitext(path)
    number, name = 1, f"{start}{_ASIDE}{ending}"
    while os.path.lexists(name):
        number += 1
        name = f"{start}{_ASIDE}-{number}{ending}"
    return name


def _state(path: str) -> tuple[int, int, int, bool]:
    found = os.stat(path)
    has_log = os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal") > 0
    return found.st_size, found.st_mtime_ns, found.st_ino, has_log
