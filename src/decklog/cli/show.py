"""Results: one JSON envelope for programs, plain text for people. On a terminal, tables have the columns that fit."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from typing import Any

from decklog.cli import terminal
from decklog.cli.exits import print_json, shape
from decklog.cli.lines import Line, print_lines
from decklog.cli.terminal import DIM, PLAIN, STRONG, of_word, painted
from decklog.core.display import one_line, shorten
from decklog.core.errors import Invalid
from decklog.records.record import Page, Record

_WIDEST = 60
_NARROW = 24
_GAP = 2
_STORED_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{6}Z")
# The first columns; the others follow in the order of the record.
_FIRST = (
    *("id", "number", "key", "calls", "cost_dollars", "unpriced_calls", "model", "agent", "name", "kind", "from_tier"),
    *("to_tier", "title", "goal", "criterion", "question", "insight", "live_status", "state", "status", "body", "why"),
    *("severity", "topic", "role", "worker", "priority", "outcome", "summary", "reason", "attempts", "next_agent", "action"),
    *("handle", "at"),
)
# Columns of which each value is one of a few words, which have styles.
WORDS = frozenset({"live_status", "state", "status", "outcome", "severity", "verdict", "default_verdict"})
_SMALL = "microdollars"
# Prices of a million tokens are in microdollars too.
_PRICE = "_price"
# Columns that are in the unit that their row names.
_OF_UNIT = ("ceiling", "spent", "reserved", "left", "free", "asked")
# These stay useful when they are cut; of the others, such as ids, a part is worth nothing.
_CUT_COLUMNS = frozenset({"title", "goal", "criterion", "question", "insight", "why", "body", "summary", "reason", "source"})
# `2026-11-15 12:00:00`, with which a line of an entry begins.
_TIME = 19
# Fields that describe a record, and its state; the first with a value is shown.
_TEXTS = ("goal", "title", "question", "criterion", "insight", "body", "subject", "name", "model", "key", "summary", "scope")
_STATES = ("state", "status", "verdict", "outcome")
_AMOUNTS = ("cost_dollars", "dollars", "limit_dollars", "ceiling")
_WIDTH = 100


def fitted(rows: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """Write rows as a table without empty columns; return it with the names of the columns that do not fit the terminal.

    Columns that `--fields` names are all written, in that order.
    """
    if shape().fields:
        return _written(dict.fromkeys(dict.fromkeys(name for row in rows for name in row), _WIDEST), rows), []
    names = _filled(rows)
    if not terminal.is_terminal():
        return _written(dict.fromkeys(names, _WIDEST), rows), []
    ordered = [name for name in _FIRST if name in names] + [name for name in names if name not in _FIRST]
    whole = {name: max(len(name), *(len(_cell(row.get(name), _WIDEST)) for row in rows)) for name in ordered}
    left, kept = terminal.width(), dict[str, int]()
    for name in ordered:
        least = min(whole[name], max(_NARROW, len(name))) if name in _CUT_COLUMNS else whole[name]
        gap = _GAP if kept else 0
        if least + gap <= left or not kept:
            kept[name] = least
            left -= least + gap
    for name in kept:
        more = min(whole[name] - kept[name], max(left, 0))
        kept[name] += more
        left -= more
    return _written(kept, rows), [name for name in names if name not in kept]


def _filled(rows: list[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if not all(_is_empty(row.get(name)) for row in rows)] or list(names)[:1]


def _is_empty(value: Any) -> bool:
    """Return whether a cell has nothing to show. Columns that somebody asked for are shown all the same."""
    return value in (None, "", {}, [], False)


def _written(limits: dict[str, int], rows: list[dict[str, Any]]) -> str:
    cells = [[_cell(row.get(name), limit) for name, limit in limits.items()] for row in rows]
    widths = [max(len(name), *(len(row[place]) for row in cells)) for place, name in enumerate(limits)]
    head = [painted(terminal.visible(name).ljust(width), DIM) for name, width in zip(limits, widths, strict=True)]
    body = [[_styled(*cell) for cell in zip(limits, line, widths, strict=True)] for line in cells]
    return "".join((" " * _GAP).join(line).rstrip() + "\n" for line in (head, *body))


def _styled(name: str, cell: str, width: int) -> str:
    return (painted(cell, of_word(cell)) if name in WORDS else cell) + " " * (width - len(cell))


def _cell(value: Any, limit: int) -> str:
    text = " ".join(plain(value).split())
    return shorten(readable(text), limit)


def readable(text: str) -> str:
    """Write a text, on a terminal, as a person reads it: times without their fractions, and nothing that a terminal obeys."""
    return terminal.visible(_STORED_TIME.sub(r"\1 \2", text)) if terminal.is_terminal() else text


def in_dollars(value: Any) -> Any:
    """Return data for people: amounts in microdollars, also nested ones, as `$16.97`."""
    if isinstance(value, list):
        return [in_dollars(item) for item in value]
    if not isinstance(value, dict):
        return value
    of_unit = _OF_UNIT if value.get("unit") == _SMALL else ()
    return {name.replace(_SMALL, "dollars"): _amount(name, item, name in of_unit) for name, item in value.items()}


def _amount(name: str, value: Any, is_of_unit: bool) -> Any:
    if type(value) is int and (is_of_unit or name.endswith((_SMALL, _PRICE))):
        from decklog.core.display import dollars

        return dollars(value)
    return "dollars" if (name, value) == ("unit", _SMALL) else in_dollars(value)


def plain(value: Any) -> str:
    """Write one value: words with commas for a list of words, JSON for what has more parts, words for truth."""
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
    """Print a result, for people as the `text` if there is one, or the reason for which there is none; return the exit code.

    A check passes the `problem` that it found.
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
    written, left_out = as_text(_shaped(result))
    warnings += shape().warnings
    sys.stdout.write(written)
    if isinstance(result, list) and not result:
        sys.stderr.write("Nothing found.\n")
    if left_out:
        sys.stderr.write(f"Not shown: {', '.join(left_out)}; --json has all\n")
    if isinstance(result, Page) and result.next is not None:
        sys.stderr.write(f"More: add --after '{result.next}'\n")
    print_warnings(warnings)
    if reason is not None:
        sys.stderr.write(f"Nothing: {terminal.visible(reason['message'], sys.stderr)}\n  {reason['hint']}\n")
    return 0


def _print_text(text: str | list[Line]) -> None:
    if isinstance(text, str):
        terminal.say(text)
    else:
        print_lines(text)


def print_warnings(warnings: list[str]) -> None:
    """Print warnings for a person, each in a line."""
    for warning in warnings:
        sys.stderr.write(f"{painted('warning:', STRONG, sys.stderr)} {terminal.visible(warning, sys.stderr)}\n")


def confirm(record: Record, warnings: list[str]) -> int:
    """Print one line about a record that was just written; return the exit code."""
    data = in_dollars(to_data(record))
    names = record.identity if isinstance(record.identity, tuple) else (record.identity,)
    parts = [" ".join(str(data[name]) for name in names if data.get(name) is not None)]
    text = next((str(data[name]) for name in _TEXTS if data.get(name) and name not in names), "")
    parts += [shorten(one_line(text), _WIDTH)] if text else []
    parts += [str(data[name]) for name in _AMOUNTS if data.get(name) is not None][:1]
    state = next((str(data[name]) for name in _STATES if data.get(name)), None)
    notes = [note for note in (state, "nothing changed" if getattr(record, "already", False) else None) if note]
    end = f" ({', '.join(notes)})" if notes else ""
    head, *rest = filter(None, parts)
    terminal.say(f"{_singular(record.table)} {head}{': ' if rest else ''}{'  '.join(rest)}{end}")
    print_warnings(warnings)
    return 0


def _singular(table: str) -> str:
    """Return what a record of a table is called, such as `Run` or `Task comment`."""
    name = table.replace("_", " ").capitalize()
    endings = {"ies": "y", "sses": "ss", "criteria": "criterion", "s": ""}
    return next((name.removesuffix(plural) + one for plural, one in endings.items() if name.endswith(plural)), name)


def _shaped(result: Any) -> Any:
    """Return the chosen fields of a result. Lines of entries and tables omit empty fields anyway."""
    wanted = shape()
    if wanted.fields or (wanted.brief and not isinstance(result, list)):
        return wanted.of_data(to_data(result))
    return result


def show_stream(entries: Iterator[Any], *, as_json: bool, of_one_stream: bool = False) -> int:
    """Print entries as they come, each at once."""
    for entry in entries:
        if as_json:
            print_json(to_data(entry))
        else:
            terminal.put(painted_entry(entry, of_one_stream=of_one_stream))
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


def as_text(result: Any) -> tuple[str, list[str]]:
    """Return a result as text for a terminal, and the columns of tables that do not fit."""
    data = in_dollars(to_data(result))
    if data is None:
        return "", []
    if isinstance(data, dict):
        return _of_dict(data)
    if isinstance(data, list) and isinstance(result, list) and result and _is_entry(result[0]):
        one = len({entry.stream for entry in result}) == 1
        return "".join(painted_entry(item, of_one_stream=one) + "\n" for item in result), []
    if _is_table(data):
        return fitted(data)
    if isinstance(data, list):
        return terminal.visible("".join(f"{plain(item)}\n" for item in data)), []
    return terminal.visible(f"{plain(data)}\n"), []


def _of_dict(data: dict[str, Any]) -> tuple[str, list[str]]:
    """Write a record as a line for each field, and tables beneath it for what has rows."""
    tables = {name: value for name, value in data.items() if _is_table(value)}
    size = max((len(name) for name in data if name not in tables), default=0)
    lines = [_field(name, value, size) for name, value in data.items() if value is not None and name not in tables]
    text, left_out = "".join(line.rstrip() + "\n" for line in lines), list[str]()
    for name, rows in tables.items():
        written, missing = fitted(rows)
        text += f"{chr(10) if text else ''}{painted(terminal.visible(name), STRONG)}\n{written}"
        left_out += [column for column in missing if column not in left_out]
    return text, left_out


def _field(name: str, value: Any, size: int) -> str:
    said = readable(plain(value))
    style = of_word(value) if name in WORDS else PLAIN
    return f"{painted(terminal.visible(f'{name:<{size}}'), DIM)}  {painted(said, style)}"


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) and row for row in value)


def _is_entry(value: Any) -> bool:
    return isinstance(value, Record) and value.table == "entries"


def _described(entry: Any) -> str:
    """Describe an entry without text: a call by its command and outcome, a charge by its amount, else its record."""
    if not entry.record_table:
        return _call_of(entry) if entry.kind == "tool" and entry.payload else plain(entry.payload)
    image = entry.payload if entry.record_table == "charges" and isinstance(entry.payload, dict) else {}
    if "model" not in image:
        return ""
    cost = image.get("cost_microdollars")
    from decklog.core.display import dollars

    return f"{'price unknown' if cost is None else dollars(cost)}, {image['model']}"


def _call_of(entry: Any) -> str:
    from decklog.transfer.report.words import sentence_of

    return sentence_of(entry.as_dict()).text


def entry_line(entry: Any, *, of_one_stream: bool = False) -> str:
    """Write an entry as one line: when, where, who, what. On a terminal its number does where all are of one stream."""
    who = entry.agent or "-"
    what = f"{entry.record_table} {entry.record_id} {entry.subtype}" if entry.record_table else (entry.subtype or "")
    text = entry.body if entry.body is not None else _described(entry)
    parts = [part for part in (what, " ".join((text or "").split())) if part]
    where = f"{entry.seq:>5}" if of_one_stream and terminal.is_terminal() else entry.id
    line = f"{entry.at:%Y-%m-%d %H:%M:%S}  {where}  {entry.kind:<11} {who:<12} {': '.join(parts)}"
    line = terminal.written_out(line)
    return shorten(line, terminal.width()) if terminal.is_terminal() else line


def painted_entry(entry: Any, *, of_one_stream: bool = False) -> str:
    """Return an entry as one line with a dimmed time."""
    line = entry_line(entry, of_one_stream=of_one_stream)
    return painted(line[:_TIME], DIM) + line[_TIME:]
