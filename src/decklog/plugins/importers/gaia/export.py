"""Writes a log as a home of gaia-coder: seven databases and three file stores, which its own programs can read."""

import os
from contextlib import closing
from typing import TYPE_CHECKING

from decklog.importing.exports.report import ExportReport
from decklog.importing.exports.rows import Export, Folder
from decklog.importing.leftovers import LeftoverRows
from decklog.plugins.importers.gaia.ddl import STATEMENTS
from decklog.plugins.importers.gaia.export_desk import DeskRows
from decklog.plugins.importers.gaia.export_files import SYSTEM, GaiaHomeFiles
from decklog.plugins.importers.gaia.export_work import WorkRows
from decklog.plugins.importers.gaia.importer import RUN_ID
from decklog.plugins.importers.gaia.schema import DATABASES
from decklog.plugins.importers.gaia.spelling import time_text
from decklog.plugins.importers.gaia.trust_files import BINDING, EM, SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from decklog.log import Decklog

_PLACED = (
    *("tasks", "charges", "ci_runs", "messages", "feedback", "lessons", "sightings", "snapshots", "self_edits", "learnings"),
    *("runs", "effects", "trust_contract", "states", "state_versions", "approvals"),
)


class GaiaExport(WorkRows, DeskRows):
    """Everything that has a store there. Runs have none: their tasks, calls and charges come together in one home."""

    def __init__(self, log: "Decklog", path: str, progress: "Callable[[str, int, int], None] | None" = None) -> None:
        self.log = log
        self.folder = Folder(path)
        self.report = ExportReport(path, progress)

    def run(self) -> "dict[str, Any]":
        """Write everything as it is at one moment; say how many rows each store has, and what had no place."""
        with self.folder as made:
            self.log.db.read(lambda: self._write(made))
            self.folder.finish()
        return self.report.as_dict()

    def _write(self, made: str) -> None:
        with closing(LeftoverRows(self.log, SYSTEM)) as kept:
            for table, name in DATABASES.items():
                path = os.path.join(made, name)
                with Export(self.log, path, SYSTEM, report=self.report, kept=kept, spell=time_text, wal=True) as out:
                    self._table(table, out)
                    out.finish()
            GaiaHomeFiles(self.log, made, kept, self.report).write()
            self.report.leave_out_kept(kept.of_others)
        self._leave_out()

    def _table(self, table: str, out: Export) -> None:
        """Write the one table of a database: its records, the rows that were kept whole, then those without a number."""
        for statement in STATEMENTS[table]:
            out.db.execute(statement)
        getattr(self, table)(out)
        out.write_kept([table])
        out.insert_waiting(table)

    def _leave_out(self) -> None:
        """Count the runs, but not the one that an import makes for a home, and what else has no store."""
        sql = "select count(*) from runs where id <> :made"
        self.report.leave_out("runs", self.log.db.rows(sql, {"made": RUN_ID})[1][0][0])
        sql = """
            select kind, count(*) from entries
             where kind <> 'change' and kind <> 'tool' and coalesce(substr(subtype, 1, 8), '') <> 'imported'
             group by kind order by kind
            """
        for kind, count in self.log.db.rows(sql, {})[1]:
            self.report.leave_out(f"entries of kind {kind}", count)
        sql = "select count(*) from states where name <> :em and name <> :binding"
        self.report.leave_out("states", self.log.db.rows(sql, {"em": EM, "binding": BINDING})[1][0][0])
        sql = "select count(*) from approvals where source is distinct from :source"
        self.report.leave_out("approvals", self.log.db.rows(sql, {"source": SOURCE})[1][0][0])
        self.report.leave_out_tables(self.log, _PLACED)
