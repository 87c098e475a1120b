"""What a graph needs to go on from an imported thread: LangGraph's own bytes, without secrets, where its saver on a log looks."""

from typing import TYPE_CHECKING, NamedTuple

from decklog import redaction
from decklog.core.errors import Invalid
from decklog.importing.report import Fate
from decklog.importing.row import EPOCH, Row, parsed_json
from decklog.importing.writer import run_id_of
from decklog.plugins.importers.langgraph.repacking import closed, opened
from decklog.stores.artifacts.graphs import Encoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from typing import Any

    from decklog.importing.writer import RowWriter
    from decklog.records.values import Values

_LEFT = (Fate.KEPT, Fate.REFUSED)
# LangGraph's own maps, whose order says nothing: from either saver they are written in the same.
_MAPS = ("channel_values", "channel_versions", "versions_seen")
_AS_THEY_ARE = ("null", "bytes", "bytearray")


class _Opened(NamedTuple):
    """A value whose secrets are still in it."""

    value: object


class Keeping:
    """Keeps what came of a batch of rows; what is here already stays as it is."""

    def __init__(self, landing: "RowWriter") -> None:
        self._landing = landing
        self._log = landing.log

    def checkpoints(self, taken: list[tuple[Row, Fate]]) -> None:
        """Keep checkpoints that can be read without running anything."""
        for row, fate in taken:
            document = None if fate in _LEFT else _document(row.columns)
            if isinstance(document, dict) and isinstance(document.get("channel_values"), dict):
                metadata = parsed_json(_text(row.columns.get("metadata")))
                place = {**_place(row), "parent_id": row.columns.get("parent_checkpoint_id")}
                place["thread_id"] = str(row.columns["thread_id"])
                told = metadata if isinstance(metadata, dict) else {}
                self._log.states.import_graph_checkpoint(place, _encoded(_ordered(document)), told, _time_of(document))

    def writes(self, taken: list[tuple[Row, Fate]]) -> None:
        """Keep what was written after them."""
        rows = [row for row, fate in taken if fate not in _LEFT]
        found = [one for one in writes_kept(rows, self._log.db.values) if one is not None]
        # A write of a thread that has no checkpoint is kept with its row, and told as known when it comes again.
        runs = {run_id for run_id in {place["run_id"] for place, _ in found} if self._landing.has_run(run_id)}
        if told := [one for one in found if one[0]["run_id"] in runs]:
            self._log.states.import_graph_writes(told)


def writes_kept(rows: "Sequence[Row]", known: "Values") -> "list[tuple[dict[str, Any], Encoded] | None]":
    """Say of writes where each belongs, and give its bytes without secrets; None for one that can't be taken apart.

    Their texts are those of their entries, which may have been looked through already.
    """
    values = [_value(row.columns) for row in rows]
    encoded = _all_encoded([value for value in values if value is not None], known)
    return [None if value is None else (_place_of_write(row), next(encoded)) for row, value in zip(rows, values, strict=True)]


def _place_of_write(row: Row) -> "dict[str, Any]":
    columns = row.columns
    named = {name: str(columns.get(name) or "") for name in ("task_id", "task_path")}
    return {**_place(row), **named, "number": int(columns["idx"]), "channel": str(columns["channel"])}


def _place(row: Row) -> "dict[str, Any]":
    columns = row.columns
    return {
        "run_id": run_id_of(str(columns["thread_id"])),
        "namespace": str(columns.get("checkpoint_ns") or ""),
        "checkpoint_id": str(columns["checkpoint_id"]),
    }


def _document(columns: "dict[str, Any]") -> "Any":
    """Take a checkpoint apart: one of a file by its bytes, one of a server as that was put together."""
    if (whole := columns.get("whole")) is not None:
        return whole
    data = columns.get("checkpoint")
    return _opened(data) if columns.get("type") == "msgpack" and isinstance(data, bytes) else None


def _value(columns: "dict[str, Any]") -> Encoded | _Opened | None:
    """Take what was written apart; None if that can't be done without running anything."""
    kind, data = columns.get("type"), columns.get("value")
    if kind in _AS_THEY_ARE:
        return Encoded(kind, data if isinstance(data, bytes) else b"", False)
    if kind != "msgpack" or not isinstance(data, bytes):
        return None
    found = _opened(data)
    return None if found is NotImplemented else _Opened(found)


def _opened(data: bytes) -> "Any":
    try:
        return opened(data)
    except Invalid:
        return NotImplemented  # it is kept with its row


def _encoded(value: "Any") -> Encoded:
    clean, changed = redaction.scan_json(value)
    return Encoded("msgpack", closed(clean), changed)


def _all_encoded(values: "Sequence[Any]", known: "Values") -> "Iterator[Encoded]":
    """Take the secrets out of many values; they are looked through together, and only what shows a sign by itself."""
    held = [redaction.json_strings(one.value) if isinstance(one, _Opened) else [] for one in values]
    clean = known.clean_texts({text for strings in held if strings for text in strings})
    for one, strings in zip(values, held, strict=True):
        if isinstance(one, Encoded):
            yield one
        elif strings is not None and clean.issuperset(strings):
            yield Encoded("msgpack", closed(one.value), False)
        else:
            yield _encoded(one.value)


def _ordered(document: "dict[str, Any]") -> "dict[str, Any]":
    told = {name: document[name] for name in sorted(document, key=str)}
    for name in _MAPS:
        if isinstance(found := told.get(name), dict):
            told[name] = {channel: found[channel] for channel in sorted(found, key=str)}
    return told


def _text(data: object) -> object:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data


def _time_of(document: "dict[str, Any]") -> "datetime":
    at: datetime = Row("checkpoints", "", document).time("ts", EPOCH)
    return at
