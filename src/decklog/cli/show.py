"""Shows results: one JSON envelope for programs, plain text for people."""

import os
import sys
from collections.abc import Sequence

from decklog.cli.exits import print_json
from decklog.records import Page, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_WIDEST = 60


def show(result: "Any", *, as_json: bool, warnings: list[str] | None = None) -> int:
    """Print a verb's result; give the exit code."""
    if hasattr(result, "__next__"):
        return _show_stream(result, as_json)
    if as_json:
        envelope = {"ok": True, "data": to_data(result), "next": getattr(result, "next", None), "warnings": warnings or []}
        print_json(envelope)
        return 0
    sys.stdout.write(as_text(result))
    if isinstance(result, Page) and result.next is not None:
        sys.stderr.write(f"More: add --after '{result.next}'\n")
    for warning in warnings or []:
        sys.stderr.write(f"warning: {warning}\n")
    return 0


def _show_stream(results: "Iterator[Any]", as_json: bool) -> int:
    for item in results:
        if as_json:
            print_json(to_data(item))
        else:
            sys.stdout.write(as_text([item]))
        sys.stdout.flush()
    return 0


def to_data(value: "Any") -> "Any":
    """Give a result as plain JSON values."""
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if isinstance(value, dict):
        return {key: to_data(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [to_data(item) for item in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value


def as_text(result: "Any") -> str:
    """Write a result for a person."""
    data = to_data(result)
    if data is None:
        return ""
    if isinstance(data, dict):
        return "".join(f"{name:<{_width(data)}}  {plain(value)}\n" for name, value in data.items() if value is not None)
    if isinstance(data, list) and isinstance(result, list) and result and _is_entry(result[0]):
        return "".join(entry_line(item) + "\n" for item in result)
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return table(data)
    if isinstance(data, list):
        return "".join(f"{plain(item)}\n" for item in data)
    return f"{plain(data)}\n"


def _is_entry(value: "Any") -> bool:
    return isinstance(value, Record) and value.table == "entries"


def _width(data: "dict[str, Any]") -> int:
    return max((len(name) for name in data), default=0)


def plain(value: "Any") -> str:
    """Write one value: JSON for what has parts, words for truth."""
    if isinstance(value, (dict, list)):
        import json

        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def table(rows: "list[dict[str, Any]]") -> str:
    """Write rows as a table, without the columns that no row fills."""
    names = [name for name in rows[0] if any(row.get(name) not in (None, "", {}, [], False) for row in rows)]
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(row[place]) for row in cells)) for place, name in enumerate(names)]
    lines = [names, *cells]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n" for line in lines
    )


def _cell(value: "Any") -> str:
    text = " ".join(plain(value).split())
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def entry_line(entry: "Any") -> str:
    """Write an entry as one line: when, where, who, what."""
    who = entry.agent or "-"
    what = f"{entry.record_table} {entry.record_id} {entry.subtype}" if entry.record_table else (entry.subtype or "")
    text = entry.body if entry.body is not None else ("" if entry.record_table else plain(entry.payload))
    parts = [part for part in (what, " ".join((text or "").split())) if part]
    line = f"{entry.at:%Y-%m-%d %H:%M:%S}  {entry.id}  {entry.kind:<11} {who:<12} {': '.join(parts)}"
    return line if not sys.stdout.isatty() else line[: os.get_terminal_size().columns]
