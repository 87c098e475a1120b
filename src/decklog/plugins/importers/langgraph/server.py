"""What LangGraph's PostgreSQL saver kept, told as its SQLite saver would have kept it.

There, the values of a checkpoint's channels stand apart, each version once; here they are put into the checkpoints again.
"""

import base64
import json
from typing import TYPE_CHECKING

from decklog.core.errors import Invalid
from decklog.db.postgres.other_database import OtherDatabase
from decklog.importing.row import parsed_json, plain
from decklog.importing.source import SqliteSource
from decklog.plugins.importers.langgraph.msgpack import decoded
from decklog.plugins.importers.langgraph.repacking import opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_COLUMNS = "select table_name, column_name from information_schema.columns where table_schema = any (current_schemas(false))"
_SAVED = {"checkpoints": "checkpoints", "writes": "checkpoint_writes"}
_PLACE = "c.thread_id, c.checkpoint_ns, c.checkpoint_id"
_CHECKPOINTS = f"""
select {_PLACE}, c.parent_checkpoint_id, c.checkpoint::text, c.metadata::text,
       (
       select json_agg(json_build_array(b.channel, b.type, encode(b.blob, 'base64')) order by b.channel)::text
         from jsonb_each_text(c.checkpoint -> 'channel_versions') v
         join checkpoint_blobs b
           on b.thread_id = c.thread_id and b.checkpoint_ns = c.checkpoint_ns and b.channel = v.key and b.version = v.value
       )
  from checkpoints c
 order by {_PLACE}
"""
_WRITES = f"""
select {_PLACE}, c.task_id, c.idx, c.channel, c.type, c.blob, {{task_path}}
  from checkpoint_writes c
 order by {_PLACE}, c.task_id, c.idx
"""
_OF_A_WRITE = ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value", "task_path")


class ServerCheckpoints(SqliteSource):
    """The two tables of the SQLite saver, made of the three of the other."""

    def __init__(self, url: str, shown: str, *, seconds: float) -> None:
        self.path = shown
        self.copy = ""
        self._db: OtherDatabase = OtherDatabase(url, seconds=seconds)  # type: ignore[assignment]
        found: dict[str, list[str]] = {}
        for table, column in self._db.each(_COLUMNS):
            found.setdefault(table, []).append(column)
        self._has_paths = "task_path" in found.get("checkpoint_writes", ())
        self.columns = {name: [] for name, saved in _SAVED.items() if saved in found}
        if "checkpoint_blobs" not in found:
            self.columns = {}

    def count(self, table: str) -> int:
        """Count a table's rows."""
        ((count,),) = self._db.each(f"select count(*) from {_SAVED[table]}")
        return int(count)

    def rows(self, table: str, _by: "Sequence[str]" = ()) -> "Iterator[dict[str, Any]]":
        """Yield a table's rows by their keys."""
        if table == "checkpoints":
            yield from map(_checkpoint, self._db.each(_CHECKPOINTS))
            return
        writes = _WRITES.format(task_path="c.task_path" if self._has_paths else "''")
        for cells in self._db.each(writes):
            yield dict(zip(_OF_A_WRITE, cells, strict=True))

    def close(self) -> None:
        self._db.close()


def _checkpoint(cells: "tuple[Any, ...]") -> "dict[str, Any]":
    thread, below, name, parent, text, metadata, kept = cells
    document, whole = parsed_json(text), None
    if isinstance(document, dict):
        values = document.get("channel_values")
        values = values if isinstance(values, dict) else {}
        blobs = [one for one in json.loads(kept or "[]") if one[1] != "empty"]
        whole = {**document, "channel_values": {**values, **_opened(blobs)}} if _are_plain(blobs) else None
        document["channel_values"] = {**values, **{channel: _value(kind, blob) for channel, kind, blob in blobs}}
        text = json.dumps(document)
    place = {"thread_id": thread, "checkpoint_ns": below, "checkpoint_id": name, "parent_checkpoint_id": parent}
    return {**place, "type": "json", "checkpoint": text, "metadata": metadata, "whole": whole}


def _are_plain(blobs: "list[Any]") -> bool:
    """Return whether all values can be put into one document again, as a graph reads it."""
    try:
        _opened(blobs)
    except Invalid:
        return False
    return all(kind in ("msgpack", "null", "bytes") for _, kind, _ in blobs)


def _opened(blobs: "list[Any]") -> "dict[str, Any]":
    given = {channel: (kind, base64.b64decode(text or "")) for channel, kind, text in blobs}
    return {
        channel: opened(data) if kind == "msgpack" else None if kind == "null" else data
        for channel, (kind, data) in given.items()
    }


def _value(kind: str, text: str | None) -> "Any":
    """Read a channel's value; what can't be read safely, or not at all, is kept in bytes."""
    data = base64.b64decode(text or "")
    if kind == "null":
        return None
    try:
        if kind == "msgpack":
            return plain(decoded(data))
    except Invalid:
        return {"kind": kind, "value": plain(data)}
    found = parsed_json(data.decode("utf-8", "replace")) if kind == "json" else NotImplemented
    return {"kind": kind, "value": plain(data)} if found is NotImplemented else found
