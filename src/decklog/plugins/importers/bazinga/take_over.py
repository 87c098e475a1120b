"""Takes a project over in place: a log has its records, its readers and scripts go on, and what was there is kept aside."""

import glob
import os
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

from decklog.core.disk import sync
from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.db.sqlite.foreign import held, put_in_place
from decklog.db.sqlite.query import tables_of
from decklog.log import Decklog
from decklog.plugins.importers.bazinga.importer import BazingaImport
from decklog.plugins.importers.bazinga.mirror import log_beside
from decklog.plugins.importers.bazinga.mirror_making import make
from decklog.plugins.importers.bazinga.mirrored import MARKS
from decklog.plugins.importers.bazinga.scripts import stand_in
from decklog.plugins.importers.bazinga.workflow import workflow_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from decklog.importing.report import Report

DATABASE = os.path.join("bazinga", "bazinga.db")
_ASIDE = ".before-decklog"
# What a log has, and what the file for readers has.
_OURS = ({"entries", "streams", "schema_steps"}, {MARKS})
_PROGRAM = "bazinga-db"
_TRIES = 3


class TakeOver:
    """One project. Nothing is changed until everything has arrived, and nothing that was there is removed."""

    def __init__(
        self,
        project: str,
        *,
        accept_losses: bool = False,
        python: str = sys.executable,
        progress: "Callable[[str, int, int], None] | None" = None,
    ) -> None:
        self.root = os.path.abspath(project)
        self.path = os.path.join(self.root, DATABASE)
        self.log = log_beside(self.path)
        self._accept_losses = accept_losses
        self._python = python
        self._progress = progress

    def run(self) -> "dict[str, Any]":
        """Take the database and the scripts over; a project that was taken over is only brought up to date."""
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
        """Go on where a call ended between the log and the file; refuse a log that tells of something else."""
        if not os.path.exists(self.log):
            return False
        if not any(os.path.samefile(self.path, kept) for kept in _kept(self.path)):
            hint = f"Move it away, or put the file that belongs to it back to {self.path}."
            raise Conflict(f"{self.log} is there already, and {self.path} is bazinga's own", hint=hint, path=self.log)
        with Decklog.open(self.log) as log:
            make(log, self.path)
        return True

    def _database(self) -> "tuple[Report, str]":
        folder = tempfile.mkdtemp(dir=os.path.dirname(self.path), prefix=".decklog-take-over-")
        try:
            with held(self.path):
                # From here on all of it is in the one file.
                aside = _free(self.path)
            return self._swapped(os.path.join(folder, "log.db"), os.path.join(folder, "readers.db"), aside), aside
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _swapped(self, made: str, for_readers: str, aside: str) -> "Report":
        """Import, and put log and file in their places; what was written meanwhile is brought by another import."""
        for _ in range(_TRIES):
            before = _state(self.path)
            report = self._imported(made, for_readers)
            with held(self.path):
                if _state(self.path) == before:
                    self._replace(made, for_readers, aside)
                    return report
        hint = "Stop the agents that write to it, and try again."
        raise Conflict(f"{self.path} is being written to, and was left as it is", hint=hint, path=self.path)

    def _imported(self, made: str, for_readers: str) -> "Report":
        with Decklog.open(made) as log:
            report = BazingaImport(log, self.path, progress=self._progress).run()
            workflow = self._workflow(report)
            self._check(report)
            log.workflow.load(workflow, by=_PROGRAM)
            make(log, for_readers)
        return report

    def _workflow(self, report: "Report") -> "dict[str, Any] | None":
        """Return the project's own workflow; one that can't be routed by counts as lost."""
        try:
            return workflow_of(self.path, self.root)
        except Invalid as problem:
            report.lose(f"the project's own workflow was not loaded: {problem.message}")
            return None

    def _check(self, report: "Report") -> None:
        if report.losses and not self._accept_losses:
            raise Conflict(
                f"{self.path} was left as it is, because not all of it can be taken: {report.losses[0]}",
                hint="decklog import bazinga FILE --dry-run tells of every row; --accept-losses goes on without them.",
                losses=report.losses,
            )

    def _replace(self, made: str, for_readers: str, aside: str) -> None:
        """Put the log beside the file, and another in the file's place: there is never a moment without a database."""
        os.chmod(for_readers, os.stat(self.path).st_mode & 0o777)
        os.link(self.path, aside)
        os.replace(made, self.log)
        put_in_place(for_readers, self.path)
        sync(os.path.dirname(self.path))


def _free(path: str) -> str:
    """Name the place where the old file is kept: one that is not taken."""
    start, ending = os.path.splitext(path)
    number, name = 1, f"{start}{_ASIDE}{ending}"
    while os.path.lexists(name):
        number += 1
        name = f"{start}{_ASIDE}-{number}{ending}"
    return name


def _kept(path: str) -> "list[str]":
    start, ending = os.path.splitext(path)
    return glob.glob(f"{glob.escape(start + _ASIDE)}*{glob.escape(ending)}")


def _state(path: str) -> "tuple[int, int, int, bool]":
    found = os.stat(path)
    has_log = os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal") > 0
    return found.st_size, found.st_mtime_ns, found.st_ino, has_log
