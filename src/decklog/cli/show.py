"""Print results: a JSON envelope for programs, text for people. On a terminal, tables show the columns that fit."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from typing import Any

from decklog.cli import terminal
from decklog.cli.exits import output_shape, print_json
from decklog.cli.lines import Line, print_lines
from decklog.cli.terminal import DIM, PLAIN, STRONG, status_style, style_text
from decklog.core.display import one_line, shorten
from decklog.core.errors import Invalid
from decklog.records.record import Page, Record

_WIDEST_CELL = 60
_NARROWEST_CUT = 24
_GAP = 2
_STORED_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{6}Z")
# The first columns; the others follow in the order of the record.
_FIRST_COLUMNS = (
    *("id", "number", "key", "calls", "cost_dollars", "unpriced_calls", "model", "agent", "name", "kind", "from_tier"),
    *("to_tier", "title", "goal", "criterion", "question", "insight", "live_status", "state", "status", "body", "why"),
    *("severity", "topic", "role", "worker", "priority", "outcome", "summary", "reason", "attempts", "next_agent", "action"),
    *("handle", "at"),
)
# Columns with status words, which are coloured.
STATUS_COLUMNS = frozenset({"live_status", "state", "status", "outcome", "severity", "verdict", "default_verdict"})
_MICRODOLLARS = "microdollars"
# Prices of a million tokens are in microdollars too.
_PRICE_SUFFIX = "_price"
# Amount columns, in the unit that the row's `unit` field names.
_AMOUNT_COLUMNS = ("ceiling", "spent", "reserved", "left", "free", "asked")
# Columns that stay useful when cut; a part of an id is useless.
_CUT_COLUMNS = frozenset({"title", "goal", "criterion", "question", "insight", "why", "body", "summary", "reason", "source"})
# The length of `2026-11-15 12:00:00`, which starts the line of an entry.
_TIME_LENGTH = 19
# Fields that describe a record and its state; `confirm` prints the first one that has a value.
_TEXT_FIELDS = (
    "goal",
    "title",
    "question",
    "criterion",
    "insight",
    "body",
    "subject",
    "name",
    "model",
    "key",
    "summary",
    "scope",
)
_STATE_FIELDS = ("state", "status", "verdict", "outcome")
_AMOUNT_FIELDS = ("cost_dollars", "dollars", "limit_dollars", "ceiling")
_WIDTH = 100


def format_table(rows: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """Return rows as a table without empty columns, and the names of the columns that do not fit the terminal.

    With `--fields`, the table has all the named columns in that order.
    """
    if output_shape().fields:
        return _render_table(dict.fromkeys(dict.fromkeys(name for row in rows for name in row), _WIDEST_CELL), rows), []
    names = _non_empty_columns(rows)
    if not terminal.is_terminal():
        return _render_table(dict.fromkeys(names, _WIDEST_CELL), rows), []
    ordered = [name for name in _FIRST_COLUMNS if name in names] + [name for name in names if name not in _FIRST_COLUMNS]
    whole = {name: max(len(name), *(len(_cell(row.get(name), _WIDEST_CELL)) for row in rows)) for name in ordered}
    left, kept = terminal.width(), dict[str, int]()
    for name in ordered:
        least = min(whole[name], max(_NARROWEST_CUT, len(name))) if name in _CUT_COLUMNS else whole[name]
        gap = _GAP if kept else 0
        if least + gap <= left or not kept:
            kept[name] = least
            left -= least + gap
    for name in kept:
        more = min(whole[name] - kept[name], max(left, 0))
        kept[name] += more
        left -= more
    return _render_table(kept, rows), [name for name in names if name not in kept]


def _non_empty_columns(rows: list[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if not all(_is_empty(row.get(name)) for row in rows)] or list(names)[:1]


def _is_empty(value: Any) -> bool:
    """Return whether a cell has nothing to show."""
    return value in (None, "", {}, [], False)


def _render_table(limits: dict[str, int], rows: list[dict[str, Any]]) -> str:
    cells = [[_cell(row.get(name), limit) for name, limit in limits.items()] for row in rows]
    widths = [max(len(name), *(len(row[place]) for row in cells)) for place, name in enumerate(limits)]
    head = [style_text(terminal.escape_for_terminal(name).ljust(width), DIM) for name, width in zip(limits, widths, strict=True)]
    body = [[_style_cell(*cell) for cell in zip(limits, line, widths, strict=True)] for line in cells]
    return "".join((" " * _GAP).join(line).rstrip() + "\n" for line in (head, *body))


def _style_cell(name: str, cell: str, width: int) -> str:
    return (style_text(cell, status_style(cell)) if name in STATUS_COLUMNS else cell) + " " * (width - len(cell))


def _cell(value: Any, limit: int) -> str:
    text = " ".join(format_value(value).split())
    return shorten(make_readable(text), limit)


def make_readable(text: str) -> str:
    """Return a text for people: on a terminal, without fractions of seconds and with control characters escaped."""
    return terminal.escape_for_terminal(_STORED_TIME.sub(r"\1 \2", text)) if terminal.is_terminal() else text


def in_dollars(value: Any) -> Any:
    """Return data for people: amounts in microdollars, also nested ones, as `$16.97`."""
    if isinstance(value, list):
        return [in_dollars(item) for item in value]
    if not isinstance(value, dict):
        return value
    of_unit = _AMOUNT_COLUMNS if value.get("unit") == _MICRODOLLARS else ()
    return {name.replace(_MICRODOLLARS, "dollars"): _convert_amount(name, item, name in of_unit) for name, item in value.items()}


def _convert_amount(name: str, value: Any, is_of_unit: bool) -> Any:
    if type(value) is int and (is_of_unit or name.endswith((_MICRODOLLARS, _PRICE_SUFFIX))):
        from decklog.core.display import dollars

        return dollars(value)
    return "dollars" if (name, value) == ("unit", _MICRODOLLARS) else in_dollars(value)


def format_value(value: Any) -> str:
    """Return one value as text: lists of words joined by commas, other lists and objects as JSON, booleans as yes or no."""
    if isinstance(value, list) and all(isinstance(item, str) and item and "," not in item for item in value):
        return ", ".join(value)
    if isinstance(value, (dict, list)):
        import json

        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def show(
    result: Any,
    *,
    as_json: bool,
    text: str | list[Line] | None = None,
    warnings: list[str] | None = None,
    reason: dict[str, Any] | None = None,
    problem: Invalid | None = None,
) -> int:
    """Print a result and return the exit code: 1 with a `problem`, which a check found, otherwise 0.

    People get `text` instead of the result, if it is given. `reason` explains an empty result.
    """
    if hasattr(result, "__next__"):
        return show_stream(result, as_json=as_json)
    warnings = list(getattr(result, "warnings", ())) if warnings is None else [*warnings]
    if as_json:
        envelope = {"ok": problem is None, "data": to_data(result), "next": getattr(result, "next", None), "warnings": warnings}
        more = {"reason": reason, "error": problem and problem.as_dict()}
        print_json({**envelope, **{name: value for name, value in more.items() if value is not None}})
        return int(problem is not None)
    if text is not None:
        _print_text(text)
        print_warnings(warnings)
        return int(problem is not None)
    shown, left_out = format_result(_select_fields(result))
    warnings += output_shape().warnings
    sys.stdout.write(shown)
    if isinstance(result, list) and not result:
        sys.stderr.write("Nothing found.\n")
    if left_out:
        sys.stderr.write(f"Not shown: {', '.join(left_out)}; --json has all\n")
    if isinstance(result, Page) and result.next is not None:
        sys.stderr.write(f"More: add --after '{result.next}'\n")
    print_warnings(warnings)
    if reason is not None:
        sys.stderr.write(f"Nothing: {terminal.escape_for_terminal(reason['message'], sys.stderr)}\n  {reason['hint']}\n")
    return 0


def _print_text(text: str | list[Line]) -> None:
    if isinstance(text, str):
        terminal.print_text(text)
    else:
        print_lines(text)


def print_warnings(warnings: list[str]) -> None:
    """Print warnings for people, one per line."""
    for warning in warnings:
        sys.stderr.write(f"{style_text('warning:', STRONG, sys.stderr)} {terminal.escape_for_terminal(warning, sys.stderr)}\n")


def confirm(record: Record, warnings: list[str]) -> int:
    """Print one line that confirms a written record; return the exit code."""
    data = in_dollars(to_data(record))
    names = record.identity if isinstance(record.identity, tuple) else (record.identity,)
    parts = [" ".join(str(data[name]) for name in names if data.get(name) is not None)]
    text = next((str(data[name]) for name in _TEXT_FIELDS if data.get(name) and name not in names), "")
    parts += [shorten(one_line(text), _WIDTH)] if text else []
    parts += [str(data[name]) for name in _AMOUNT_FIELDS if data.get(name) is not None][:1]
    state = next((str(data[name]) for name in _STATE_FIELDS if data.get(name)), None)
    notes = [note for note in (state, "nothing changed" if getattr(record, "already", False) else None) if note]
    end = f" ({', '.join(notes)})" if notes else ""
    head, *rest = filter(None, parts)
    terminal.print_text(f"{_singular(record.table)} {head}{': ' if rest else ''}{'  '.join(rest)}{end}")
    print_warnings(warnings)
    return 0


def _singular(table: str) -> str:
    """Return the name of one record of a table, such as `Run` or `Task comment`."""
    name = table.replace("_", " ").capitalize()
    endings = {"ies": "y", "sses": "ss", "criteria": "criterion", "s": ""}
    return next((name.removesuffix(plural) + one for plural, one in endings.items() if name.endswith(plural)), name)


def _select_fields(result: Any) -> Any:
    """Return a result with the chosen fields. Lists omit empty fields anyway."""
    selected = output_shape()
    if selected.fields or (selected.brief and not isinstance(result, list)):
        return selected.of_data(to_data(result))
    return result


def show_stream(entries: Iterator[Any], *, as_json: bool, of_one_stream: bool = False) -> int:
    """Print entries as they arrive."""
    for entry in entries:
        if as_json:
            print_json(to_data(entry))
        else:
            terminal.print_escaped(style_entry(entry, of_one_stream=of_one_stream))
        sys.stdout.flush()
    return 0


def to_data(value: Any) -> Any:
    """Return a result as plain JSON values."""
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if isinstance(value, dict):
        return {key: to_data(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [to_data(item) for item in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return to_data(dict(vars(value))) if is_dataclass(value) else value


def format_result(result: Any) -> tuple[str, list[str]]:
    """Return a result as text, and the table columns that do not fit the terminal."""
    data = in_dollars(to_data(result))
    if data is None:
        return "", []
    if isinstance(data, dict):
        return _format_record(data)
    if isinstance(data, list) and isinstance(result, list) and result and _is_entry(result[0]):
        is_one_stream = len({entry.stream for entry in result}) == 1
        return "".join(style_entry(item, of_one_stream=is_one_stream) + "\n" for item in result), []
    if _is_table(data):
        return format_table(data)
    if isinstance(data, list):
        return terminal.escape_for_terminal("".join(f"{format_value(item)}\n" for item in data)), []
    return terminal.escape_for_terminal(f"{format_value(data)}\n"), []


def _format_record(data: dict[str, Any]) -> tuple[str, list[str]]:
    """Return a record as one line per field, followed by its tables."""
    tables = {name: value for name, value in data.items() if _is_table(value)}
    size = max((len(name) for name in data if name not in tables), default=0)
    lines = [_format_field(name, value, size) for name, value in data.items() if value is not None and name not in tables]
    text, left_out = "".join(line.rstrip() + "\n" for line in lines), list[str]()
    for name, rows in tables.items():
        table, missing = format_table(rows)
        text += f"{chr(10) if text else ''}{style_text(terminal.escape_for_terminal(name), STRONG)}\n{table}"
        left_out += [column for column in missing if column not in left_out]
    return text, left_out


def _format_field(name: str, value: Any, size: int) -> str:
    text = make_readable(format_value(value))
    style = status_style(value) if name in STATUS_COLUMNS else PLAIN
    return f"{style_text(terminal.escape_for_terminal(f'{name:<{size}}'), DIM)}  {style_text(text, style)}"


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) and row for row in value)


def _is_entry(value: Any) -> bool:
    return isinstance(value, Record) and value.table == "entries"


def _describe_entry(entry: Any) -> str:
    """Describe an entry without text: a tool call by its command and outcome, a charge by its amount and model."""
    if not entry.record_table:
        return _describe_call(entry) if entry.kind == "tool" and entry.payload else format_value(entry.payload)
    image = entry.payload if entry.record_table == "charges" and isinstance(entry.payload, dict) else {}
    if "model" not in image:
        return ""
    cost = image.get("cost_microdollars")
    from decklog.core.display import dollars

    return f"{'price unknown' if cost is None else dollars(cost)}, {image['model']}"


def _describe_call(entry: Any) -> str:
    from decklog.transfer.report.words import describe_entry

    return describe_entry(entry.as_dict()).text


def format_entry(entry: Any, *, of_one_stream: bool = False) -> str:
    """Return an entry as one line: time, id, kind, agent, text. On a terminal with one stream, show its number for the id."""
    who = entry.agent or "-"
    what = f"{entry.record_table} {entry.record_id} {entry.subtype}" if entry.record_table else (entry.subtype or "")
    text = entry.body if entry.body is not None else _describe_entry(entry)
    parts = [part for part in (what, " ".join((text or "").split())) if part]
    where = f"{entry.seq:>5}" if of_one_stream and terminal.is_terminal() else entry.id
    line = f"{entry.at:%Y-%m-%d %H:%M:%S}  {where}  {entry.kind:<11} {who:<12} {': '.join(parts)}"
    line = terminal.escape_controls(line)
    return shorten(line, terminal.width()) if terminal.is_terminal() else line


def style_entry(entry: Any, *, of_one_stream: bool = False) -> str:
    """Return an entry as one line with a dimmed time."""
    line = format_entry(entry, of_one_stream=of_one_stream)
    return style_text(line[:_TIME_LENGTH], DIM) + line[_TIME_LENGTH:]
