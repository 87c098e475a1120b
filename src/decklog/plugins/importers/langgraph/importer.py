"""Takes over LangGraph's checkpoints, from a file of its SQLite saver or from its tables in PostgreSQL. Each thread is a run."""

from typing import TYPE_CHECKING, ClassVar

from decklog.core.errors import Invalid
from decklog.importing.importer import Import
from decklog.importing.row import EPOCH, Row, parsed_json, plain
from decklog.importing.source import SqliteSource
from decklog.importing.writer import Draft, RecordDraft, describes, run_id_of
from decklog.journal.entry import EntryKind
from decklog.plugins.importers.langgraph.keeping import Keeping
from decklog.plugins.importers.langgraph.msgpack import decoded
from decklog.stores.artifacts.checkpoints import Checkpoint
from decklog.stores.runs.run import Run, RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from typing import Any

    from decklog.importing.writer import Mapping

SERVERS = ("postgres://", "postgresql://")
_PLACE = ("thread_id", "checkpoint_ns", "checkpoint_id")


class LangGraphImport(Import):
    """Two tables, both in the order of their checkpoints' ids, which is that of time."""

    system = "langgraph"
    tables: ClassVar = {
        "checkpoints": (*_PLACE, "parent_checkpoint_id", "type", "checkpoint", "metadata"),
        "writes": (*_PLACE, "task_id", "task_path", "idx", "channel", "type", "value"),
    }
    keys: ClassVar = {"checkpoints": _PLACE, "writes": (*_PLACE, "task_id", "idx")}

    def __init__(self, *words: "Any", shown: str | None = None, **settings: "Any") -> None:
        super().__init__(*words, **settings)
        # An address may hold a password.
        self.report.path = shown or self.path
        self.landing.adders[Checkpoint] = self._add_checkpoints

    def source(self) -> SqliteSource:
        """Open a file, or the tables on a server."""
        if not self.path.startswith(SERVERS):
            return super().source()
        from decklog.plugins.importers.langgraph.server import ServerCheckpoints

        return ServerCheckpoints(self.path, self.report.path, seconds=self.seconds)

    def mappings(self) -> "dict[str, Mapping]":
        """Name the tables with their mappings."""
        return {"checkpoints": self.checkpoint, "writes": self.write}

    def check(self, source: SqliteSource) -> None:
        """Refuse what is no file of the saver."""
        missing = [table for table in self.tables if table not in source]
        if missing:
            raise Invalid(f"{source.path} holds no checkpoints of LangGraph's: it has no {', '.join(missing)}", path=source.path)

    def in_order(self, source: SqliteSource, table: str) -> "Iterable[dict[str, Any]]":
        """Give rows by their keys, whatever order they were written in."""
        return source.rows(table, (*_PLACE, "task_id", "idx"))

    def take(self, source: SqliteSource) -> None:
        """Take the tables over; beside what anybody can read of them, what a graph goes on from."""
        self._name_unknown(source)
        keeping = Keeping(self.landing)
        after = {"checkpoints": keeping.checkpoints, "writes": keeping.writes}
        for table, mapping in self.mappings().items():
            rows = self.rows_of(table, self.in_order(source, table))
            self.landing.take_all(rows, mapping, source.count(table), after[table])

    def _add_checkpoints(self, told: "list[dict[str, Any]]") -> list[bool]:
        """Add checkpoints; the run of a thread begins with its first one."""
        for run_id, first in {one["run_id"]: one for one in reversed(told)}.items():
            if self.landing.intake.seek(Run, run_id) is None:
                goal = f"Thread {first['thread']} of LangGraph"
                times: dict[str, Any] = {"started_at": first["created_at"], "updated_at": first["created_at"]}
                facts = {"langgraph": {"thread_id": first["thread"]}}
                self.landing.record(Run, new_stream=True, id=run_id, goal=goal, status=RunStatus.ACTIVE, metadata=facts, **times)
        return self.log.states.import_checkpoints(told)

    @describes
    def checkpoint(self, row: Row) -> RecordDraft:
        """Describe a checkpoint: its channels, versions and metadata as one document."""
        document = _value(row, "checkpoint")
        row.take("whole")
        thread = str(row.take("thread_id"))
        run_id = row.stream = run_id_of(thread)
        name, metadata = self._name(row, run_id), _metadata(row)
        payload = {"checkpoint": document, "metadata": metadata, "parent": row.take("parent_checkpoint_id")}
        step = metadata.get("step") if isinstance(metadata, dict) else None
        status = f"step {step}" if isinstance(step, int) else None
        told = {"id": name, "run_id": run_id, "thread": thread, "status": status, "payload": payload}
        return RecordDraft(row, Checkpoint, {**told, "created_at": _time_of(document)})

    @describes
    def write(self, row: Row) -> Draft:
        """Describe what a node wrote to a channel."""
        row.stream = run_id_of(str(row.take("thread_id")))
        row.take("idx")
        payload = {"checkpoint": self._name(row, row.stream), "value": _value(row, "value"), "task_path": row.take("task_path")}
        entry = {
            "body": row.text("channel", ""),
            "kind": EntryKind.EVENT,
            "subtype": "write",
            "agent_id": row.text("task_id"),
            "payload": payload,
        }
        return self.landing.entry(row, entry)

    def _name(self, row: Row, run_id: str) -> str:
        """Name a checkpoint: a copy of a thread has the same ids, and so have graphs within graphs."""
        below, name = str(row.take("checkpoint_ns", "")), str(row.take("checkpoint_id"))
        return "/".join(filter(None, (run_id, below, name)))


def _value(row: Row, column: str) -> "Any":
    """Read a value by the way it was written; what is none that can be read safely is kept in bytes."""
    kind, data = row.take("type"), row.take(column)
    if kind == "msgpack" and isinstance(data, bytes):
        return _plain(decoded(data))
    if kind == "json" and (found := parsed_json(_text(data))) is not NotImplemented:
        return found
    return None if kind == "null" else {"kind": kind, "value": _plain(data)}


def _metadata(row: Row) -> "Any":
    """Read a checkpoint's metadata, which is JSON whatever the rest is."""
    data = row.take("metadata")
    found = parsed_json(_text(data))
    return _plain(data) if found is NotImplemented else found


def _text(data: object) -> object:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data


def _plain(value: "Any") -> "Any":
    return {str(name): _plain(item) for name, item in value.items()} if isinstance(value, dict) else plain(value)


def _time_of(document: object) -> "datetime":
    """Return when a checkpoint was made, as it tells itself."""
    at: datetime = Row("checkpoints", "", document if isinstance(document, dict) else {}).time("ts", EPOCH)
    return at
