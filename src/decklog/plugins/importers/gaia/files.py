"""Gaia-coder's three file stores, read line by line and file by file without trusting them."""

import json
import os
import stat
from datetime import datetime
from typing import TYPE_CHECKING

from decklog.core.clock import from_text
from decklog.core.errors import Invalid
from decklog.importing.row import Row, parsed_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.importing.report import Report

PAUSED = "paused-tasks"
SELF_EDITS = "self-edits.log"
LEARNINGS = "learnings.log"
_MOST_BYTES = 64 * 1024**2
_MOST_LOG_BYTES = 1024**3


def snapshots(folder: str, report: "Report") -> "Iterator[Row]":
    """Yield the snapshots of paused tasks in the order of their tasks' ids; each version of a file is its own row."""
    root = os.path.join(folder, PAUSED)
    names = sorted(os.listdir(root)) if os.path.isdir(root) else []
    for name in names:
        if not name.endswith(".json"):
            continue
        content = _content(os.path.join(root, name), _MOST_BYTES, report)
        if content is None:
            continue
        text = content.decode("utf-8", "replace")
        document = parsed_json(text)
        task_id = name.removesuffix(".json")
        columns = {"task_id": task_id, "document": text if document is NotImplemented else document}
        row = Row("paused_tasks", task_id, columns)
        row.id = f"{task_id}/{row.digest()}"
        yield row


def lines(folder: str, name: str, table: str, report: "Report") -> "Iterator[Row]":
    """Yield the lines of a log, each named by its number; blank ones say nothing."""
    content = _content(os.path.join(folder, name), _MOST_LOG_BYTES, report)
    for number, line in enumerate((content or b"").split(b"\n"), 1):
        if line.strip():
            yield Row(table, number, {"line": line.decode("utf-8", "replace").removesuffix("\r")})


def whole(folder: str, name: str, report: "Report") -> "Iterator[Row]":
    """Yield a settings file as one row, named by the file."""
    content = _content(os.path.join(folder, name), _MOST_BYTES, report)
    if content is not None:
        yield Row(name, name, {"text": content.decode("utf-8", "replace")})


def _content(path: str, most: int, report: "Report") -> bytes | None:
    """Read a plain file; what is something else, or too large, is reported."""
    try:
        # Neither through a link nor waiting for a pipe.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as problem:
        report.note(f"{path} was not read: {problem.strerror}")
        return None
    with open(file, "rb") as opened:
        found = os.fstat(opened.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            report.note(f"{path} was not read: it is no plain file of at most {most} bytes")
            return None
        return opened.read(most)


def parsed(text: str) -> "dict[str, Any]":
    """Read a line that is a JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"the line is no JSON: {problem}") from None
    if not isinstance(found, dict):
        raise Invalid("the line is no JSON object")
    return found


def time_of(text: str) -> datetime:
    return from_text(text)
