"""Takes over a bazinga database of any version: sessions become runs, logs entries, and all else its own kind of record."""

from decklog.importers import bazinga_schema as schema
from decklog.importers.bazinga_context import ContextTables
from decklog.importers.bazinga_memory import MemoryTables
from decklog.importers.bazinga_work import WorkTables
from decklog.importers.landing import Landing
from decklog.importers.report import Fate, Report
from decklog.importers.row import Row
from decklog.importers.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from decklog.app import Decklog

SYSTEM = "bazinga"
_CONFIGURATION = "configuration of the old system; a workflow is loaded with decklog workflow load"


class BazingaImport(WorkTables, ContextTables, MemoryTables):
    """One file, table by table, in the order in which rows refer to each other."""

    def __init__(
        self,
        log: "Decklog",
        path: str,
        *,
        dry_run: bool = False,
        progress: "Callable[[str, int, int], None] | None" = None,
        seconds: float = 600,
    ) -> None:
        self.log = log
        self.path = path
        self.seconds = seconds
        self.report = Report(SYSTEM, path, dry_run)
        self.landing = Landing(log, self.report, progress)
        self.packages: dict[str, str] = {}
        self.mappings: dict[str, Callable[[Row], Fate]] = {
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

    def run(self) -> Report:
        """Take the file over, or only say what would become of it."""
        with Source(self.path, seconds=self.seconds) as source:
            self.report.version = schema.version_of(source)
            self._name_unknown(source)
            with self.landing.open():
                for table, mapping in self.mappings.items():
                    self.landing.take_all(self._rows(source, table), mapping, source.count(table))
        return self.report

    def _rows(self, source: Source, table: str) -> "Iterator[Row]":
        for columns in _in_order(source, table):
            yield Row(table, schema.key_of(table, columns), columns)

    def _name_unknown(self, source: Source) -> None:
        """Report what no version of the system has: unknown columns are kept with their rows, unknown tables are not taken."""
        for table, columns in source.columns.items():
            if table in schema.TABLES:
                self.report.unknown += [f"{table}.{name}" for name in columns if name not in schema.TABLES[table]]
            elif table != "schema_version":
                self.report.unknown.append(table)
                self.report.note(f"table {table} is unknown and was not taken ({source.count(table)} rows)")

    def configuration(self, row: Row) -> Fate:
        """Keep a row that configured the old system, and means nothing here."""
        return self.landing.keep(row, _CONFIGURATION)

    def decision(self, row: Row) -> Fate:
        """Keep a decision of the oldest files as an event of its run."""
        self.in_run(row)
        return self.landing.keep(row, "a decision, as the oldest files have them", row.time("timestamp"))


def _in_order(source: Source, table: str) -> "Iterator[dict[str, object]]":
    """Give rows as they were written; states by time, because old files hold every version of them."""
    if table != "state_snapshots":
        return source.rows(table)
    return iter(sorted(source.rows(table), key=lambda row: (str(row.get("timestamp") or ""), row.get("id") or 0)))
