"""Import LangGraph's checkpoints from its SQLite saver or its PostgreSQL tables. Each thread is a run."""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar

from decklog import redaction
from decklog.core.errors import Invalid
from decklog.importing.importer import Import
from decklog.importing.report import Outcome
from decklog.importing.row import EPOCH, Row, parse_json, to_storable
from decklog.importing.source import SqliteSource
from decklog.importing.writer import Mapping, PendingEntry, PendingRecord, pure_mapping, run_id_of
from decklog.journal.entry import EntryKind
from decklog.plugins.langgraph_values import pack, readable, unpack
from decklog.stores.artifacts.checkpoints import Checkpoint
from decklog.stores.artifacts.graphs import Encoded

_LEFT = (Outcome.KEPT, Outcome.REFUSED)
# LangGraph's maps are unordered. Sort them, so that both savers give the same bytes.
_MAPS = ("channel_values", "channel_versions", "versions_seen")
_RAW_KINDS = ("null", "bytes", "bytearray")


def _write_of(row: Row) -> tuple[dict[str, Any], Encoded] | None:
    """Return the key of a write and its redacted bytes; None if it can't be unpacked safely."""
    kind, data = row.columns.get("type"), row.columns.get("value")
    if kind in _RAW_KINDS:
        return _place_of_write(row), Encoded(kind, data if isinstance(data, bytes) else b"", False)
    if kind != "msgpack" or not isinstance(data, bytes) or (value := _unpack_safely(data)) is NotImplemented:
        return None
    return _place_of_write(row), _encoded(value)


def _place_of_write(row: Row) -> dict[str, Any]:
    columns = row.columns
    named = {name: str(columns.get(name) or "") for name in ("task_id", "task_path")}
    return {**_place(row), **named, "number": int(columns["idx"]), "channel": str(columns["channel"])}


def _place(row: Row) -> dict[str, Any]:
    columns = row.columns
    return {
        "run_id": run_id_of(str(columns["thread_id"])),
        "namespace": str(columns.get("checkpoint_ns") or ""),
        "checkpoint_id": str(columns["checkpoint_id"]),
    }


def _document(columns: dict[str, Any]) -> Any:
    """Return a checkpoint as a document: decoded from a file's bytes, or as assembled from a server's tables."""
    if (whole := columns.get("whole")) is not None:
        return whole
    data = columns.get("checkpoint")
    return _unpack_safely(data) if columns.get("type") == "msgpack" and isinstance(data, bytes) else None


def _unpack_safely(data: bytes) -> Any:
    try:
        return unpack(data)
    except Invalid:
        return NotImplemented  # it is kept with its row


def _encoded(value: Any) -> Encoded:
    clean, changed = redaction.scan_json(value)
    return Encoded("msgpack", pack(clean), changed)


def _ordered(document: dict[str, Any]) -> dict[str, Any]:
    content = {name: document[name] for name in sorted(document, key=str)}
    for name in _MAPS:
        if isinstance(found := content.get(name), dict):
            content[name] = {channel: found[channel] for channel in sorted(found, key=str)}
    return content


def _text(data: object) -> object:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data


_COLUMNS = "select table_name, column_name from information_schema.columns where table_schema = any (current_schemas(false))"
_SAVED = {"checkpoints": "checkpoints", "writes": "checkpoint_writes"}
_PLACE_SQL = "c.thread_id, c.checkpoint_ns, c.checkpoint_id"
_CHECKPOINTS = f"""
select {_PLACE_SQL}, c.parent_checkpoint_id, c.checkpoint::text, c.metadata::text,
       (
       select json_agg(json_build_array(b.channel, b.type, encode(b.blob, 'base64')) order by b.channel)::text
         from jsonb_each_text(c.checkpoint -> 'channel_versions') v
         join checkpoint_blobs b
           on b.thread_id = c.thread_id and b.checkpoint_ns = c.checkpoint_ns and b.channel = v.key and b.version = v.value
       )
  from checkpoints c
 order by {_PLACE_SQL}
"""
_WRITES = f"""
select {_PLACE_SQL}, c.task_id, c.idx, c.channel, c.type, c.blob, {{task_path}}
  from checkpoint_writes c
 order by {_PLACE_SQL}, c.task_id, c.idx
"""
_OF_A_WRITE = ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value", "task_path")


class ServerCheckpoints(SqliteSource):
    """Presents the three tables of the PostgreSQL saver as the two of the SQLite saver."""

    def __init__(self, url: str, shown: str, *, seconds: float) -> None:
        self.path = shown
        # psycopg is an optional dependency.
        from decklog.db.postgres.query import OtherDatabase

        self._db: OtherDatabase = OtherDatabase(url, seconds=seconds)  # type: ignore[assignment]
        found: dict[str, list[str]] = {}
        for table, column in self._db.each(_COLUMNS):
            found.setdefault(table, []).append(column)
        self._has_paths = "task_path" in found.get("checkpoint_writes", ())
        self.columns = {name: [] for name, saved in _SAVED.items() if saved in found}
        if "checkpoint_blobs" not in found:
            self.columns = {}

    def count(self, table: str) -> int:
        ((count,),) = self._db.each(f"select count(*) from {_SAVED[table]}")
        return int(count)

    def rows(self, table: str, _by: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Yield a table's rows in the order of their keys."""
        if table == "checkpoints":
            yield from map(_checkpoint, self._db.each(_CHECKPOINTS))
            return
        writes = _WRITES.format(task_path="c.task_path" if self._has_paths else "''")
        for cells in self._db.each(writes):
            yield dict(zip(_OF_A_WRITE, cells, strict=True))

    def close(self) -> None:
        self._db.close()


def _checkpoint(cells: tuple[Any, ...]) -> dict[str, Any]:
    thread, below, name, parent, text, metadata, kept = cells
    document, whole = parse_json(text), None
    if isinstance(document, dict):
        values = document.get("channel_values")
        values = values if isinstance(values, dict) else {}
        blobs = [one for one in json.loads(kept or "[]") if one[1] != "empty"]
        channels = _opened_channels(blobs)
        whole = None if channels is None else {**document, "channel_values": {**values, **channels}}
        document["channel_values"] = {**values, **{channel: _channel_value(kind, blob) for channel, kind, blob in blobs}}
        text = json.dumps(document)
    place = {"thread_id": thread, "checkpoint_ns": below, "checkpoint_id": name, "parent_checkpoint_id": parent}
    return {**place, "type": "json", "checkpoint": text, "metadata": metadata, "whole": whole}


def _opened_channels(blobs: list[Any]) -> dict[str, Any] | None:
    """Decode all values by channel, as a graph reads them; None if one can't be read."""
    readers: dict[str, Callable[[bytes], Any]] = {"msgpack": unpack, "null": lambda _: None, "bytes": lambda data: data}
    try:
        return {channel: readers[kind](base64.b64decode(text or "")) for channel, kind, text in blobs}
    except (Invalid, KeyError):
        return None


def _channel_value(kind: str, text: str | None) -> Any:
    """Decode a channel's value; keep the bytes of one that can't be read safely or at all."""
    data = base64.b64decode(text or "")
    if kind == "null":
        return None
    try:
        if kind == "msgpack":
            return to_storable(readable(unpack(data)))
    except Invalid:
        return {"kind": kind, "value": to_storable(data)}
    found = parse_json(data.decode("utf-8", "replace")) if kind == "json" else NotImplemented
    return {"kind": kind, "value": to_storable(data)} if found is NotImplemented else found


SERVERS = ("postgres://", "postgresql://")
_PLACE = ("thread_id", "checkpoint_ns", "checkpoint_id")


class LangGraphImport(Import):
    """Imports two tables, both ordered by checkpoint id, which is the order of time."""

    system = "langgraph"
    tables: ClassVar = {
        "checkpoints": (*_PLACE, "parent_checkpoint_id", "type", "checkpoint", "metadata"),
        "writes": (*_PLACE, "task_id", "task_path", "idx", "channel", "type", "value"),
    }
    keys: ClassVar = {"checkpoints": _PLACE, "writes": (*_PLACE, "task_id", "idx")}
    orders: ClassVar = keys

    def __init__(self, *words: Any, shown: str | None = None, **settings: Any) -> None:
        super().__init__(*words, **settings)
        # An address may contain a password.
        self.report.path = shown or self.path
        self.writer.adders[Checkpoint] = self._add_checkpoints
        self.after = {"checkpoints": self._keep_checkpoints, "writes": self._keep_writes}

    def source(self) -> SqliteSource:
        """Open a file, or the tables on a server."""
        if not self.path.startswith(SERVERS):
            return super().source()
        return ServerCheckpoints(self.path, self.report.path, seconds=self.seconds)

    def mappings(self) -> dict[str, Mapping]:
        return {"checkpoints": self.checkpoint, "writes": self.write}

    def check(self, source: SqliteSource) -> None:
        """Raise Invalid for a file that is not LangGraph's."""
        missing = [table for table in self.tables if table not in source]
        if missing:
            raise Invalid(f"{source.path} holds no checkpoints of LangGraph's: it has no {', '.join(missing)}", path=source.path)

    def _keep_checkpoints(self, taken: list[tuple[Row, Outcome]]) -> None:
        """Store the bytes from which a graph resumes, for checkpoints that can be read without running code."""
        for row, outcome in taken:
            document = None if outcome in _LEFT else _document(row.columns)
            if isinstance(document, dict) and isinstance(document.get("channel_values"), dict):
                metadata = parse_json(_text(row.columns.get("metadata")))
                place = {**_place(row), "parent_id": row.columns.get("parent_checkpoint_id")}
                place["thread_id"] = str(row.columns["thread_id"])
                content = metadata if isinstance(metadata, dict) else {}
                self.log.states.import_graph_checkpoint(place, _encoded(_ordered(document)), content, _time_of(document))

    def _keep_writes(self, taken: list[tuple[Row, Outcome]]) -> None:
        """Store the writes after the checkpoints; existing writes stay unchanged."""
        found = [one for row, outcome in taken if outcome not in _LEFT and (one := _write_of(row)) is not None]
        # A write of a thread without a checkpoint is kept with its row, and is not imported again.
        runs = {run_id for run_id in {place["run_id"] for place, _ in found} if self.writer.has_run(run_id)}
        if content := [one for one in found if one[0]["run_id"] in runs]:
            self.log.states.import_graph_writes(content)

    def _add_checkpoints(self, content: list[dict[str, Any]]) -> list[bool]:
        """Add checkpoints; the run of a thread begins with its first one."""
        for run_id, first in {one["run_id"]: one for one in reversed(content)}.items():
            facts: dict[str, object] = {"langgraph": {"thread_id": first["thread"]}}
            self.writer.ensure_run(run_id, f"Thread {first['thread']} of LangGraph", first["created_at"], facts)
        return self.log.states.import_checkpoints(content)

    @pure_mapping
    def checkpoint(self, row: Row) -> PendingRecord:
        """Build a checkpoint record: its channels, versions and metadata as one document."""
        document = _row_value(row, "checkpoint")
        row.take("whole")
        thread = str(row.take("thread_id"))
        run_id = row.stream = run_id_of(thread)
        name, metadata = self._name(row, run_id), _metadata(row)
        payload = {"checkpoint": document, "metadata": metadata, "parent": row.take("parent_checkpoint_id")}
        step = metadata.get("step") if isinstance(metadata, dict) else None
        status = f"step {step}" if isinstance(step, int) else None
        content = {"id": name, "run_id": run_id, "thread": thread, "status": status, "payload": payload}
        return PendingRecord(row, Checkpoint, {**content, "created_at": _time_of(document)})

    @pure_mapping
    def write(self, row: Row) -> PendingEntry:
        """Build the entry for a node's write to a channel."""
        row.stream = run_id_of(str(row.take("thread_id")))
        row.take("idx")
        payload = {"checkpoint": self._name(row, row.stream), "value": _row_value(row, "value")}
        payload["task_path"] = row.take("task_path")
        entry = {
            "body": row.text("channel", ""),
            "kind": EntryKind.EVENT,
            "subtype": "write",
            "agent_id": row.text("task_id"),
            "payload": payload,
        }
        return self.writer.entry(row, entry)

    def _name(self, row: Row, run_id: str) -> str:
        """Return a unique name of a checkpoint: copied threads and subgraphs repeat ids."""
        below, name = str(row.take("checkpoint_ns", "")), str(row.take("checkpoint_id"))
        return "/".join(filter(None, (run_id, below, name)))


def _row_value(row: Row, column: str) -> Any:
    """Decode a value by its type; keep the bytes of one that can't be read safely."""
    kind, data = row.take("type"), row.take(column)
    if kind == "msgpack" and isinstance(data, bytes):
        return _plain(readable(unpack(data)))
    if kind == "json" and (found := parse_json(_text(data))) is not NotImplemented:
        return found
    return None if kind == "null" else {"kind": kind, "value": _plain(data)}


def _metadata(row: Row) -> Any:
    """Parse a checkpoint's metadata, which is always JSON."""
    data = row.take("metadata")
    found = parse_json(_text(data))
    return _plain(data) if found is NotImplemented else found


def _plain(value: Any) -> Any:
    return {str(name): _plain(item) for name, item in value.items()} if isinstance(value, dict) else to_storable(value)


def _time_of(document: object) -> datetime:
    """Return the time of a checkpoint."""
    at: datetime = Row("checkpoints", "", document if isinstance(document, dict) else {}).time("ts", EPOCH)
    return at
