"""Shows results: one JSON envelope for programs, plain text for people."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from decklog.cli import terminal
from decklog.cli.exits import print_json, shape
from decklog.cli.styles import DIM, PLAIN, STRONG, of_word, painted
from decklog.cli.table import WORDS, cut, fitted, in_dollars, plain, readable
from decklog.records.record import Page, Record

# `2026-11-15 12:00:00`, with which a line of an entry begins.
_TIME = 19
# What describes a record, and what says how it is; the first that has a value is taken.
_TEXTS = ("goal", "title", "question", "criterion", "insight", "body", "subject", "name", "model", "key", "summary", "scope")
_STATES = ("state", "status", "verdict", "outcome")
_AMOUNTS = ("cost_dollars", "dollars", "limit_dollars", "ceiling")
_WIDTH = 100


def show(result: Any, *, as_json: bool, warnings: list[str] | None = None, reason: dict[str, Any] | None = None) -> int:
    """Print a verb's result, or the reason why there is none; give the exit code."""
    if hasattr(result, "__next__"):
        return show_stream(result, as_json=as_json)
    warnings = list(getattr(result, "warnings", ())) if warnings is None else [*warnings]
    if as_json:
        envelope = {"ok": True, "data": to_data(result), "next": getattr(result, "next", None), "warnings": warnings}
        print_json(envelope if reason is None else {**envelope, "reason": reason})
        return 0
    text, left_out = as_text(_shaped(result))
    warnings += shape().warnings
    sys.stdout.write(text)
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


def print_warnings(warnings: list[str]) -> None:
    """Print warnings for a person, each in a line."""
    for warning in warnings:
        sys.stderr.write(f"{painted('warning:', STRONG, sys.stderr)} {terminal.visible(warning, sys.stderr)}\n")


def confirm(verb: str, record: Record, warnings: list[str]) -> int:
    """Print one line about a record that was just written; return the exit code."""
    data = in_dollars(to_data(record))
    names = record.identity if isinstance(record.identity, tuple) else (record.identity,)
    parts = [" ".join(str(data[name]) for name in names if data.get(name) is not None)]
    text = next((str(data[name]) for name in _TEXTS if data.get(name) and name not in names), "")
    parts += [cut(" ".join(text.split()), _WIDTH)] if text else []
    parts += [str(data[name]) for name in _AMOUNTS if data.get(name) is not None][:1]
    state = next((str(data[name]) for name in _STATES if data.get(name)), None)
    notes = [note for note in (state, "already" if getattr(record, "already", False) else None) if note]
    end = f" ({', '.join(notes)})" if notes else ""
    terminal.say(f"{verb}: {'  '.join(part for part in parts if part)}{end}")
    print_warnings(warnings)
    return 0


def _shaped(result: Any) -> Any:
    """Return what a person asked to see of a result. Entries are lines and tables leave empty columns out as they are."""
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
    return value


def as_text(result: Any) -> tuple[str, list[str]]:
    """Write a result as a person's terminal may be sent it; name the columns of tables that found no room."""
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


def _untold(entry: Any) -> str:
    """Return what an entry without words is about: a call by its command and outcome, a charge by its amount, else its record."""
    if not entry.record_table:
        return _call_of(entry) if entry.kind == "tool" and entry.payload else plain(entry.payload)
    image = entry.payload if entry.record_table == "charges" and isinstance(entry.payload, dict) else {}
    if "model" not in image:
        return ""
    cost = image.get("cost_microdollars")
    from decklog.core.figures import dollars

    return f"{'price unknown' if cost is None else dollars(cost)}, {image['model']}"


def _call_of(entry: Any) -> str:
    from decklog.transfer.report.words import told

    return told(entry.as_dict()).text


def entry_line(entry: Any, *, of_one_stream: bool = False) -> str:
    """Write an entry as one line: when, where, who, what. On a terminal its number does where all are of one stream."""
    who = entry.agent or "-"
    what = f"{entry.record_table} {entry.record_id} {entry.subtype}" if entry.record_table else (entry.subtype or "")
    text = entry.body if entry.body is not None else _untold(entry)
    parts = [part for part in (what, " ".join((text or "").split())) if part]
    where = f"{entry.seq:>5}" if of_one_stream and terminal.is_terminal() else entry.id
    line = f"{entry.at:%Y-%m-%d %H:%M:%S}  {where}  {entry.kind:<11} {who:<12} {': '.join(parts)}"
    line = terminal.written_out(line)
    return cut(line, terminal.width()) if terminal.is_terminal() else line


def painted_entry(entry: Any, *, of_one_stream: bool = False) -> str:
    """Write an entry as one line whose time stands back."""
    line = entry_line(entry, of_one_stream=of_one_stream)
    return painted(line[:_TIME], DIM) + line[_TIME:]
