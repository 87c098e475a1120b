"""What hooks were told and the log has not taken in yet: a file a session beside the log, a line an event, as they came.

A hook writes its line and is done; whoever takes the lines in does it for all that wait. Nothing here needs the log or anything
heavy, so that a hook costs little more than Python itself and goes on when the log can't be written.
"""

import fcntl
import json
import os
import stat
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from decklog.agents.texts import as_name
from decklog.core.disk import sync_descriptor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# More is kept of nobody: an event that finds it full says so in the file of what was dropped, and transcripts fill it in.
MOST_BYTES = 256 * 1024 * 1024
_SUFFIX = ".events"
_LOCK = "taking-in"
DROPPED = "dropped"
_TROUBLE = "trouble"
_CHUNK = 65536
_OF_FOLDER = 24


class Spool:
    """A folder of waiting events."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    # Hooks

    def put(self, program: str, session: str, facts: "dict[str, Any]", payload: bytes) -> bool:
        """Append an event and wait for the disk; False when there is no more room."""
        self._make_folder()
        if not self.has_room(len(payload)):
            self.drop(program, len(payload))
            return False
        self.append(program, session, facts, payload, is_synced=True)
        return True

    def append(self, program: str, session: str, facts: "dict[str, Any]", payload: bytes, *, is_synced: bool = False) -> None:
        """Append an event; without waiting for the disk it outlives this process, and not a power cut."""
        head = json.dumps({"at": time.time(), "program": program, **facts}, separators=(",", ":"))
        # JSON has no line break but between its parts.
        line = head.encode() + b"\t" + payload.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"
        with self._appending(f"{program}-{as_name(session)}{_SUFFIX}") as descriptor:
            _write(descriptor, line)
            if is_synced:
                sync_descriptor(descriptor)

    def _make_folder(self) -> None:
        """Create the folder; raise NotADirectoryError for a symbolic link, which a repository could have planted."""
        os.makedirs(os.path.dirname(self.folder), mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(self.folder, mode=0o700)
        if not stat.S_ISDIR(os.lstat(self.folder).st_mode):
            raise NotADirectoryError(f"{self.folder} is not a folder of its own")

    def has_room(self, size: int) -> bool:
        """Return whether so many bytes more may wait here."""
        return self._size() + size <= MOST_BYTES

    @contextmanager
    def _appending(self, name: str) -> "Iterator[int]":
        path = os.path.join(self.folder, name)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            descriptor = os.open(path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is_at(descriptor, path):
                    yield descriptor
                    return
                # Taken in and removed while we waited for it.
            finally:
                os.close(descriptor)

    def _size(self) -> int:
        size = 0
        for name in os.listdir(self.folder):
            # What is taken in meanwhile takes no more room.
            with suppress(FileNotFoundError):
                size += os.lstat(os.path.join(self.folder, name)).st_size
        return size

    def drop(self, program: str, size: int) -> None:
        """Say in the file of what was dropped that an event found no room."""
        line = json.dumps({"at": time.time(), "program": program, "bytes": size}, separators=(",", ":"))
        with self._appending(DROPPED) as descriptor:
            _write(descriptor, line.encode() + b"\n")
            sync_descriptor(descriptor)

    def sync(self) -> None:
        """Wait until all that was appended is on the disk, whoever appended it."""
        for name in self.waiting():
            # Without the lock: nobody who has something to tell waits for the disk here.
            with suppress(FileNotFoundError), open(os.path.join(self.folder, name), "rb") as file:
                sync_descriptor(file.fileno())

    # Whoever takes them in

    @property
    def is_empty(self) -> bool:
        return not self.waiting()

    def waiting(self) -> list[str]:
        """Name the files with whole events, oldest first; what a killed hook left half written is waited for by nobody."""
        files = []
        with suppress(FileNotFoundError):
            for name in os.listdir(self.folder):
                path = os.path.join(self.folder, name)
                with suppress(FileNotFoundError):
                    if name.endswith((_SUFFIX, DROPPED)) and _has_line(path):
                        files.append((os.lstat(path).st_mtime_ns, name))
        return [name for _, name in sorted(files)]

    @contextmanager
    def alone(self) -> "Iterator[bool]":
        """Be the one who takes events in; False when somebody else is."""
        self._make_folder()
        descriptor = os.open(os.path.join(self.folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(descriptor)

    @property
    def is_being_taken_in(self) -> bool:
        """Whether another process takes events in. It looks for what came meanwhile before it ends."""
        with self.alone() as is_free:
            return not is_free

    def read(self, name: str) -> "tuple[list[tuple[dict[str, Any], bytes]], int]":
        """Return a file's whole lines, each as what the hook knew and what it was told, and where they end."""
        try:
            with open(os.path.join(self.folder, name), "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return [], 0
        end = content.rfind(b"\n") + 1
        return [_parts(line) for line in content[:end].split(b"\n")[:-1]], end

    def done(self, name: str, end: int) -> None:
        """Forget what was taken in: all of a file, or its beginning when more has come."""
        path = os.path.join(self.folder, name)
        with suppress(FileNotFoundError), self._appending_existing(path) as descriptor:
            size = os.fstat(descriptor).st_size
            if size <= end:
                os.unlink(path)
                return
            rest = os.pread(descriptor, size - end, end)
            fresh = f"{path}.rest"
            with open(fresh, "wb") as file:
                file.write(rest)
                file.flush()
                sync_descriptor(file.fileno())
            os.rename(fresh, path)

    @contextmanager
    def _appending_existing(self, path: str) -> "Iterator[int]":
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    def say_trouble(self, problem: BaseException) -> None:
        """Leave word of why events could not be taken in: whoever does that has nobody to tell."""
        descriptor = os.open(self._trouble, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{type(problem).__name__}: {problem}")

    def trouble(self) -> str | None:
        """Return why events could not be taken in the last time; None when they could."""
        with suppress(FileNotFoundError), open(self._trouble, encoding="utf-8", errors="replace") as file:
            return file.read()
        return None

    def forget_trouble(self) -> None:
        """Say that events could be taken in."""
        with suppress(FileNotFoundError):
            os.unlink(self._trouble)

    @property
    def _trouble(self) -> str:
        return os.path.join(self.folder, _TROUBLE)

    # How far transcripts were read

    def mark(self, path: str) -> "dict[str, Any]":
        """Return how far a transcript was read, and what is to be known of that to read on."""
        with suppress(FileNotFoundError, ValueError), open(self._mark(path), encoding="utf-8") as file:
            found = json.load(file)
            return found if isinstance(found, dict) else {}
        return {}

    def set_mark(self, path: str, state: "dict[str, Any]", *, is_synced: bool = False) -> None:
        """Remember how far something was read, and what reading on needs to know.

        To forget it of a transcript costs reading that again, and nothing else. What is not written anywhere else waits for the
        disk.
        """
        self._make_folder()
        fresh = f"{self._mark(path)}.new"
        # An import may read what hooks tell of at the same moment.
        with self._appending(os.path.basename(fresh)) as descriptor:
            os.ftruncate(descriptor, 0)
            _write(descriptor, json.dumps(state).encode())
            if is_synced:
                sync_descriptor(descriptor)
            os.rename(fresh, self._mark(path))

    def forget_mark(self, path: str) -> None:
        """Forget what was kept of a session on the wire that has ended."""
        with suppress(FileNotFoundError):
            os.unlink(self._mark(path))

    def _mark(self, path: str) -> str:
        # Transcripts of several folders may have one name.
        folder, name = os.path.split(path)
        return os.path.join(self.folder, f"{as_name(name)}-{as_name(folder)[-_OF_FOLDER:]}.read")


def _write(descriptor: int, line: bytes) -> None:
    """Append a line; what somebody who was killed left of theirs becomes a line of its own."""
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


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _parts(line: bytes) -> "tuple[dict[str, Any], bytes]":
    head, _, payload = line.partition(b"\t")
    try:
        facts = json.loads(head)
    except ValueError:
        return {}, line
    return (facts, payload) if isinstance(facts, dict) else ({}, line)
