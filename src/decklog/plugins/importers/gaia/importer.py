"""Imports a gaia-coder home: seven databases, three file stores and two settings files."""

import os
from functools import partial
from typing import TYPE_CHECKING

from decklog.core.clock import to_text
from decklog.core.errors import Invalid, NotFound
from decklog.importing.importing import Import
from decklog.importing.landing import told
from decklog.importing.report import Fate
from decklog.importing.row import EPOCH, Row
from decklog.importing.source import SqliteSource
from decklog.plugins.importers.gaia import files
from decklog.plugins.importers.gaia.desk import DeskTables
from decklog.plugins.importers.gaia.schema import DATABASES, KEYS, TABLES
from decklog.plugins.importers.gaia.trust_files import BINDING, EM, TrustProposals, parse_binding, parse_em
from decklog.plugins.importers.gaia.work import GaiaWorkTables
from decklog.stores.memory.learnings import BadLine, parse_line
from decklog.stores.runs.run import Run, RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from decklog.importing.landing import Mapping
    from decklog.importing.report import Report
    from decklog.log import Decklog

RUN_ID = "gaia-coder"


class GaiaImport(Import, GaiaWorkTables, DeskTables):
    """One folder. Tasks there belong to no run, so one run is made for all of them."""

    system = "gaia"
    tables = TABLES
    keys = KEYS

    def __init__(self, log: "Decklog", path: str, *, run_id: str = RUN_ID, **settings: "Any") -> None:
        super().__init__(log, path, **settings)
        self.run_id = run_id
        self.em: dict[str, Any] | None = None

    def mappings(self) -> "dict[str, Mapping]":
        """Name the tables with their mappings; feedback comes before the messages that became it."""
        return {
            "feedback": self.feedback,
            "em_inbox": self.message,
            "tasks": self.task,
            "audit": self.tool_call,
            "spend": self.spend,
            "ci_history": self.ci_run,
            "memory": self.lesson,
        }

    def run(self) -> "Report":
        """Take every store of the folder over; one that was never written is not there."""
        stores = [*DATABASES.values(), files.PAUSED, files.SELF_EDITS, files.LEARNINGS, EM, BINDING]
        if not any(os.path.exists(os.path.join(self.path, name)) for name in stores):
            raise Invalid(f"{self.path} is no home of gaia-coder: it has none of {', '.join(stores)}")
        with self.landing.open():
            self._make_run()
            for table, name in DATABASES.items():
                self._take_database(table, os.path.join(self.path, name))
            self._take_files()
        return self.report

    def _make_run(self) -> None:
        try:
            self.log.runs.get(self.run_id)
        except NotFound:
            now = self.log.clock.now()
            with self.log.transaction():
                self.landing.record(
                    Run,
                    new_stream=True,
                    id=self.run_id,
                    goal="What gaia-coder recorded",
                    status=RunStatus.ACTIVE,
                    started_at=now,
                    updated_at=now,
                )

    def _take_database(self, table: str, path: str) -> None:
        if not os.path.exists(path):
            return
        with SqliteSource(path, seconds=self.seconds) as source:
            self.check(source)
            self.take(source)
            if table == "memory":
                self.supersede_all(source)

    def check(self, source: SqliteSource) -> None:
        """Report a store that holds nothing we know."""
        if not any(table in source for table in self.tables):
            self.report.note(f"{source.path} has no table of gaia-coder's")

    def _take_files(self) -> None:
        for name, parse in ((EM, parse_em), (BINDING, parse_binding)):
            self.landing.take_all(files.whole(self.path, name, self.report), partial(self.trust_file, parse))
        if self.em is not None:
            with self.log.transaction():
                for remark in TrustProposals(self.log, self.run_id).propose(self.em):
                    self.report.note(remark)
        self.landing.take_all(files.snapshots(self.path, self.report), self.snapshot)
        self.landing.take_all(files.lines(self.path, files.SELF_EDITS, "self_edits_log", self.report), self.self_edit)
        self.landing.take_all(files.lines(self.path, files.LEARNINGS, "learnings_log", self.report), self.learning)

    def snapshot(self, row: Row) -> Fate:
        """Keep what a paused task needs to go on."""
        row.stream = self.run_id
        task_id, document = row.take("task_id"), row.take("document")
        if not isinstance(document, dict):
            raise Invalid("a snapshot is a JSON object")
        if not self.landing.first_time(row):
            return Fate.ALREADY
        # Older snapshots lack these.
        known = {"task_id": task_id, "paused_at": to_text(EPOCH), "reason": "paused"}
        self.log.states.save_snapshot(self.run_id, task_id, {**known, **document})
        return Fate.NEW

    def trust_file(self, parse: "Callable[[str], dict[str, Any]]", row: Row) -> Fate:
        """Keep `em.toml` or `repo_binding.toml` as a state of the run, which has every version of it."""
        row.stream = self.run_id
        document = parse(row.take("text"))
        saved = self.log.states.save(self.run_id, row.table, document)
        if row.table == EM:
            self.em = document
        if saved.already:
            return Fate.ALREADY
        return Fate.NEW if saved.version == 1 else Fate.CHANGED

    def self_edit(self, row: Row) -> Fate:
        """Record a self-edit; a line that repeats one, with other words, is kept."""
        document = files.parsed(row.take("line"))
        first = self.landing.first_time(row)
        recorded = self.log.self_edits.record_document(document)
        if not first or not recorded.already:
            return told(recorded)
        return self.landing.keep(row, "the same pull request at the same commit is recorded already")

    def learning(self, row: Row) -> Fate:
        """Note a learning; a day without an hour begins at midnight."""
        text = row.take("line")
        try:
            line = parse_line(text, tolerant=True)
        except BadLine as problem:
            return self.landing.keep(row, problem.message)
        if line is None:
            return Fate.ALREADY
        if len(line.timestamp) == len("2026-11-15"):
            row.left["line"] = text
        noted = self.log.learnings.note(
            line.task_id,
            line.observation,
            candidate=line.candidate,
            noted_at=files.time_of(line.timestamp),
            key=self.landing.key(row),
        )
        return told(noted)
