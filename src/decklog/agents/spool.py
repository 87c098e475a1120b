"""Spool of hook events that wait for intake: one file per session next to the log, one line per event.

A hook appends its line and exits. Intake reads the lines of all sessions. The spool needs neither the log nor large imports, so a
hook stays fast and works while the log can't be written.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from decklog.agents.texts import as_name
from decklog.core.disk import sync_descriptor

# Maximum size of a spool. A full spool counts dropped events in a file; transcripts supply the content later.
MOST_BYTES = 256 * 1024 * 1024
_SUFFIX = ".events"
_LOCK = "taking-in"
DROPPED = "dropped"
_CHUNK = 65536
_FOLDER_CHARACTERS = 24
_CONNECTION = ".open"
# Larger than any line number: the end follows all lines.
_LAST_NUMBER = 2**53


class Spool:
    """Folder of waiting events."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._error_path = os.path.join(folder, "trouble")

    # Hooks

    def put(self, program: str, session: str, facts: dict[str, Any], payload: bytes, *, is_synced: bool = True) -> bool:
        """Append an event; return False if the spool is full.

        Without a sync the event survives the end of this process, but not a power cut.
        """
        self._create_folder()
        name = f"{program}-{as_name(session)}{_SUFFIX}"
        if is_full := self._size() + len(payload) > MOST_BYTES:
            name, facts, payload = DROPPED, {"bytes": len(payload)}, b""
        head = json.dumps({"at": time.time(), "program": program, **facts}, separators=(",", ":"))
        # In JSON, line breaks only occur between tokens.
        line = head.encode() + b"\t" + payload.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"
        with self._open_locked(name) as descriptor:
            _write(descriptor, line)
            if is_synced:
                sync_descriptor(descriptor)
        return not is_full

    def _create_folder(self) -> None:
        """Create the folder; raise NotADirectoryError for a symbolic link, which a repository could have planted."""
        os.makedirs(os.path.dirname(self.folder), mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(self.folder, mode=0o700)
        if not stat.S_ISDIR(os.lstat(self.folder).st_mode):
            raise NotADirectoryError(f"{self.folder} is not a separate folder")

    @contextmanager
    def _open_locked(self, name: str) -> Iterator[int]:
        path = os.path.join(self.folder, name)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            descriptor = os.open(path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if is_same_file(descriptor, path):
                    yield descriptor
                    return
                # The file was taken in and removed while we waited for the lock.
            finally:
                os.close(descriptor)

    def _size(self) -> int:
        size = 0
        for name in os.listdir(self.folder):
            # A file that was taken in meanwhile has no size.
            with suppress(FileNotFoundError):
                size += os.lstat(os.path.join(self.folder, name)).st_size
        return size

    def sync(self) -> None:
        """Sync all waiting events to disk, including those of other processes."""
        for name in self.list_waiting():
            # Take no lock: hooks must not wait for this sync.
            with suppress(FileNotFoundError), open(os.path.join(self.folder, name), "rb") as file:
                sync_descriptor(file.fileno())

    # Intake

    @property
    def is_empty(self) -> bool:
        return not self.list_waiting()

    def list_waiting(self) -> list[str]:
        """Return the names of files with complete lines, oldest first. Skip a file with only a killed hook's partial line."""
        files = []
        with suppress(FileNotFoundError):
            for name in os.listdir(self.folder):
                path = os.path.join(self.folder, name)
                with suppress(FileNotFoundError):
                    if name.endswith((_SUFFIX, DROPPED)) and _has_line(path):
                        files.append((os.lstat(path).st_mtime_ns, name))
        return [name for _, name in sorted(files)]

    @contextmanager
    def intake_lock(self) -> Iterator[bool]:
        """Take the intake lock; yield False if another process has it."""
        self._create_folder()
        descriptor = os.open(os.path.join(self.folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            yield try_lock(descriptor)
        finally:
            os.close(descriptor)

    @property
    def is_intake_running(self) -> bool:
        """Whether another process runs the intake. It checks for new events before it ends."""
        with self.intake_lock() as is_free:
            return not is_free

    def read(self, name: str) -> tuple[list[tuple[dict[str, Any], bytes]], int]:
        """Return the complete lines of a file as (facts, payload) pairs, and the offset where they end."""
        try:
            with open(os.path.join(self.folder, name), "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return [], 0
        end = content.rfind(b"\n") + 1
        return [_split_line(line) for line in content[:end].split(b"\n")[:-1]], end

    def remove_lines(self, name: str, end: int) -> None:
        """Remove the lines up to `end`; delete the file if nothing follows."""
        with self._open_locked(name) as descriptor:
            rest = os.pread(descriptor, os.fstat(descriptor).st_size, end)
            if rest:
                self._replace(name, rest, is_synced=True)
            else:
                os.unlink(os.path.join(self.folder, name))

    def _replace(self, name: str, content: bytes, *, is_synced: bool) -> None:
        fresh = f"{name}.new"
        # Two processes may replace a file at the same moment.
        with self._open_locked(fresh) as descriptor:
            os.ftruncate(descriptor, 0)
            _write(descriptor, content)
            if is_synced:
                sync_descriptor(descriptor)
            os.rename(os.path.join(self.folder, fresh), os.path.join(self.folder, name))

    def store_error(self, problem: BaseException) -> None:
        """Store the error that stopped the intake: its process has nobody to report to."""
        descriptor = os.open(self._error_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{type(problem).__name__}: {problem}")

    def load_error(self) -> str | None:
        """Return the error of the last intake; None if it succeeded."""
        with suppress(FileNotFoundError), open(self._error_path, encoding="utf-8", errors="replace") as file:
            return file.read()
        return None

    def clear_error(self) -> None:
        """Remove the stored error after a successful intake."""
        with suppress(FileNotFoundError):
            os.unlink(self._error_path)

    # Connections of editors

    def find_ended_connections(self) -> list[str]:
        """Return the paths of connections whose process has ended, and that were not closed yet."""
        found = []
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(self.folder)):
                path = os.path.join(self.folder, name)
                if name.endswith(_CONNECTION):
                    with open(path, "rb") as file:
                        if try_lock(file.fileno()):
                            found.append(path)
        return found

    def close_ended_sessions(self) -> None:
        """Append an end event for each session of an ended connection. Intake drops repeats."""
        for path in self.find_ended_connections():
            with suppress(FileNotFoundError), open(path, "rb") as file:
                # A full spool has no room for an end; the next intake tries again.
                if all(self._close_session(line) for line in file):
                    os.unlink(path)

    def _close_session(self, line: bytes) -> bool:
        """Append the end of a session; return False if there is no room for it."""
        try:
            opened = json.loads(line)
            facts = opened["facts"]
            end = {**facts, "acp": {**facts["acp"], "n": _LAST_NUMBER, "end": True}}
            return self.put(opened["program"], opened["session"], end, b"{}")
        except (ValueError, KeyError, TypeError, RecursionError):
            # A killed process may have left an incomplete line.
            return True

    # Read positions of transcripts

    def mark(self, path: str) -> dict[str, Any]:
        """Return the read position of a transcript, with the reader's state."""
        with (
            suppress(FileNotFoundError, ValueError),
            open(os.path.join(self.folder, self._mark_name(path)), encoding="utf-8") as file,
        ):
            found = json.load(file)
            return found if isinstance(found, dict) else {}
        return {}

    def set_mark(self, path: str, state: dict[str, Any], *, is_synced: bool = False) -> None:
        """Store a read position and the state that the reader needs to continue.

        Losing the position of a transcript only means reading it again. State that exists nowhere else must be synced to
        disk.
        """
        self._create_folder()
        self._replace(self._mark_name(path), json.dumps(state).encode(), is_synced=is_synced)

    def forget_mark(self, path: str) -> None:
        """Remove the state of an editor session that has ended."""
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.folder, self._mark_name(path)))

    def _mark_name(self, path: str) -> str:
        # Transcripts in different folders may have the same name.
        folder, name = os.path.split(path)
        return f"{as_name(name)}-{as_name(folder)[-_FOLDER_CHARACTERS:]}.read"


def _write(descriptor: int, line: bytes) -> None:
    """Append a line; an incomplete line of a killed writer is closed first."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        line = b"\n" + line
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _has_line(path: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while chunk := os.read(descriptor, _CHUNK):
            if b"\n" in chunk:
                return True
        return False
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Lock a file until its descriptor is closed; return False if another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_same_file(descriptor: int, path: str) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _split_line(line: bytes) -> tuple[dict[str, Any], bytes]:
    head, _, payload = line.partition(b"\t")
    try:
        facts = json.loads(head)
    except ValueError:
        return {}, line
    return (facts, payload) if isinstance(facts, dict) else ({}, line)


class Connection:
    """File of one editor connection: it lists the sessions that the connection reports, and is locked while it is open."""

    def __init__(self, folder: str, name: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, f"{name}{_CONNECTION}")
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(f"{path}.new", flags, 0o600)
        # Lock the file before it is visible: an unlocked file means that the connection has ended.
        fcntl.flock(self._file, fcntl.LOCK_EX)
        os.rename(f"{path}.new", path)

    def add(self, program: str, session: str, facts: dict[str, Any]) -> None:
        """Add a session, with the facts to record when the connection ends."""
        line = json.dumps({"program": program, "session": session, "facts": facts})
        os.write(self._file, line.encode() + b"\n")
