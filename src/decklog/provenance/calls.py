"""Tool calls under way in a worktree, so that two sessions that change files at the same time are noticed."""

import fcntl
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from decklog.core.processes import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Line = dict[str, Any]

_FILE = "calls"
# Names every call of a session: its turn has ended.
ALL = "*"


class CallsUnderWay:
    """A file of lines in the order of events: a call begins (`begin`), a call ends (`end`).

    A line has the session, and the paths that the call may change or has changed; None means any path.
    """

    def __init__(self, state: str) -> None:
        self._path = os.path.join(state, _FILE)

    @contextmanager
    def locked(self) -> "Iterator[list[Line]]":
        """Hold the file, and write the lines back that the block leaves."""
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "r+", encoding="utf-8") as file:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            text = file.read()
            lines = [line for line in map(_read, text.splitlines()) if line]
            yield lines
            written = "".join(json.dumps(line) + "\n" for line in _needed(lines))
            if written != text:
                file.seek(0)
                file.write(written)
                file.truncate()

    def begin(self, line: "Line") -> None:
        with self.locked() as lines:
            lines.append(line)

    def end_all(self, session: str) -> None:
        """End every call of a session."""
        if os.path.exists(self._path):
            with self.locked() as lines:
                lines.append({"end": ALL, "session": session, "paths": []})


class CallOverlap:
    """What other calls did while one call was under way."""

    def __init__(self, lines: "list[Line]", session: str, call: str) -> None:
        starts = [place for place, line in enumerate(lines) if line.get("begin") == call and line["session"] == session]
        self.begun: Line | None = lines[starts[-1]] if starts else None
        # What a path became meanwhile, by calls that were captured.
        self.blobs: dict[str, str] = {}
        self._paths: dict[str, set[str]] = {}
        self._any_path: set[str] = set()
        if starts:
            self._look(lines, starts[-1])

    def _look(self, lines: "list[Line]", start: int) -> None:
        open_then = [line for line in _open(lines[:start]) if not _is_gone(line)]
        ended = [line for line in lines[start + 1 :] if "end" in line]
        for line in ended:
            blobs = line.get("blobs") or {}
            self._paths.setdefault(line["session"], set()).update(blobs)
            self.blobs.update({path: blob for path, blob in blobs.items() if blob})
        for line in _open([*open_then, *lines[start + 1 :]]):
            if line["paths"] is None:
                self._any_path.add(line["session"])
            else:
                self._paths.setdefault(line["session"], set()).update(line["paths"])

    def sessions(self, path: str) -> list[str]:
        """Return the other sessions that may have changed a path meanwhile."""
        assert self.begun is not None
        named = {session for session, paths in self._paths.items() if path in paths}
        return sorted((named | self._any_path) - {self.begun["session"]})


def is_shell_under_way(lines: "list[Line]", session: str) -> bool:
    """Return whether a call of a session that may change any file has not ended."""
    return any(line["session"] == session and line["paths"] is None for line in _open(lines))


def _open(lines: "list[Line]") -> "list[Line]":
    """Return the calls that have begun and not ended."""
    found: list[Line] = []
    for line in lines:
        if "begin" in line:
            found.append(line)
        else:
            found = [one for one in found if one["session"] != line["session"] or line["end"] not in (ALL, one["begin"])]
    return found


def _needed(lines: "list[Line]") -> "list[Line]":
    """Leave out what no call under way can ask for: all that is before the oldest of them."""
    waiting = [line for line in _open(lines) if not _is_gone(line)]
    return lines[lines.index(waiting[0]) :] if waiting else []


def _read(text: str) -> "Line | None":
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and "session" in line and ("begin" in line or "end" in line) else None


def _is_gone(line: "Line") -> bool:
    """Return whether the program that made a call has surely ended."""
    process = line.get("process")
    return isinstance(process, str) and Identity.from_text(process).is_alive() is False
