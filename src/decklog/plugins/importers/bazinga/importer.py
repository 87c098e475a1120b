"""Takes over a bazinga database of any version: sessions become runs, logs entries, and all else its own kind of record."""

from typing import TYPE_CHECKING

from decklog.importing.importing import Import
from decklog.importing.report import Fate
from decklog.importing.row import Row
from decklog.importing.source import SqliteSource
from decklog.plugins.importers.bazinga import schema
from decklog.plugins.importers.bazinga.context import ContextTables
from decklog.plugins.importers.bazinga.memory import MemoryTables
from decklog.plugins.importers.bazinga.work import WorkTables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from decklog.importing.landing import Mapping
    from decklog.log import Decklog

_CONFIGURATION = "configuration of the old system; decklog workflow load bazinga/config/transitions.json routes by it"


class BazingaImport(Import, WorkTables, ContextTables, MemoryTables):
    """One file, table by table, in the order in which rows refer to each other."""

    system = "bazinga"
    tables = schema.TABLES
    keys = schema.KEYS
    ignored = ("schema_version",)

    def __init__(self, log: "Decklog", path: str, **settings: "Any") -> None:
        super().__init__(log, path, **settings)
        self.sessions: dict[str, str] = {}
        self.packages: dict[str, str] = {}

    def mappings(self) -> "dict[str, Mapping]":
        """Name the tables with their mappings; what configured the old system means nothing here, and is kept."""
        return {
            "sessions": self.session,
            "task_groups": self.group,
            "orchestration_logs": self.log_entry,
            "state_snapshots": self.state,
            "token_usage": self.tokens,
            "skill_outputs": self.output,
            "development_plans": self.plan,
            "success_criteria": self.criterion,
            "context_packages": self.package,
            "context_package_consumers": self.consumer,
            "consumption_scope": self.consumption,
            "error_patterns": self.pattern,
            "strategies": self.strategy,
            "workflow_transitions": self.configuration,
            "agent_markers": self.configuration,
            "workflow_special_rules": self.configuration,
            "configuration": self.configuration,
            "decisions": self.decision,
        }

    def check(self, source: SqliteSource) -> None:
        """Refuse what is no bazinga database, or a newer one than is known."""
        self.report.version = schema.version_of(source)

    def in_order(self, source: SqliteSource, table: str) -> "Iterable[dict[str, Any]]":
        """Give rows as they were written; states by time, because old files hold every version of them."""
        return source.rows(table, by=("timestamp", "id") if table == "state_snapshots" else ())

    def configuration(self, row: Row) -> Fate:
        """Keep a row that configured the old system."""
        return self.landing.keep(row, _CONFIGURATION)

    def decision(self, row: Row) -> Fate:
        """Keep a decision of the oldest files as an event of its run."""
        self.in_run(row)
        return self.landing.keep(row, "a decision, as the oldest files have them", row.time("timestamp"))
