"""Storage of each worker's last claim in a small file next to the log, so that later calls present its fencing token.

A worker with a given name (`--as`, DECKLOG_WORKER) has one file, shared by all shells of the user. Any other worker has one file
for its session or process.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from decklog.agents.context.worker import SystemProcess, Worker
from decklog.core.errors import Busy, Denied

if TYPE_CHECKING:
    from decklog.location.locate import LogLocation

_FOLDER = "claims"
_NAME_LENGTH = 16
_STEP_SECONDS = 0.02
_LONGEST_FILE = 65536
_OF_CLAIM = ("run_id", "task_id", "fence", "lease_seconds", "renewed_at")
_NEEDED = {*_OF_CLAIM, "is_open", "asked", "worker", "instance", "process"}


@dataclass
class Remembered:
    """Stored claim: run, task and fencing token, and whether its worker has ended it."""

    run_id: str
    task_id: str
    fence: int
    lease_seconds: float
    renewed_at: str
    is_open: bool = True
    # Whether questions about the task may have answers.
    asked: bool = False


class RememberedClaims:
    """Stored claims of one log, from the view of one worker."""

    def __init__(self, folder: str, worker: Worker) -> None:
        self._folder = folder
        self._worker = worker
        self._path = os.path.join(folder, _file_name(worker))

    def load(self) -> Remembered | None:
        """Return this worker's last claim; None if there is none, or its file is damaged."""
        return _claim_in(_read(self._path))

    def keep(self, claim: Remembered) -> None:
        """Store a claim in place of the previous one."""
        descriptor = self._open()
        try:
            self._write(descriptor, vars(claim))
        finally:
            os.close(descriptor)

    def _write(self, descriptor: int, claim: dict[str, Any]) -> None:
        who = {"worker": self._worker.name, "instance": self._worker.instance, "process": self._worker.process.spelled()}
        line = (json.dumps({**who, **claim}) + "\n").encode()
        # A concurrent reader uses only the first line, which is never truncated.
        os.pwrite(descriptor, line, 0)
        os.ftruncate(descriptor, len(line))

    @contextmanager
    def alone(self, patience_seconds: float) -> Iterator[None]:
        """Keep out other claiming calls of this worker for a block. It has one task at a time."""
        end = time.monotonic() + patience_seconds
        descriptor = self._locked(end)
        while not _is_same_file(descriptor, self._path):
            # Another worker removed the file as ended between the open and the lock.
            os.close(descriptor)
            descriptor = self._locked(end)
        try:
            if not os.fstat(descriptor).st_size:
                # Write the worker's identity into a new file, so that it can be removed once the worker is gone.
                self._write(descriptor, {**dict.fromkeys(_OF_CLAIM), "is_open": False, "asked": False})
            yield
        finally:
            os.close(descriptor)

    def _locked(self, end: float) -> int:
        descriptor, name = self._open(), self._worker.name
        while not _is_locked(descriptor):
            if time.monotonic() >= end:
                os.close(descriptor)
                raise Busy(f"another call of {name} is claiming at this moment", hint="Wait for it, then: decklog next")
            time.sleep(_STEP_SECONDS)
        return descriptor

    def other_names(self) -> list[str]:
        """Return the names of other workers under which the same caller has open claims."""
        told = [_read(os.path.join(self._folder, name)) for name in _names_in(self._folder)]
        mine = [one for one in told if one and one["instance"] == self._worker.instance and one["is_open"]]
        return [one["worker"] for one in mine if one["worker"] != self._worker.name]

    @property
    def is_from_ended_process(self) -> bool:
        """Whether the process that last wrote this worker's claim has ended."""
        return _is_of_ended_process(_read(self._path))

    def clear_ended(self) -> None:
        """Remove the files of other workers that have no open claim and whose process has ended."""
        for name in _names_in(self._folder):
            path = os.path.join(self._folder, name)
            if path != self._path:
                _remove_if_ended(path)

    def _open(self) -> int:
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as problem:
            raise Denied(
                f"{self._folder} can't be written to, so nobody would know what you claimed: {problem.strerror}",
                hint="Name a log in a folder that you can write to, or use decklog tasks claim and show its fence yourself.",
                path=self._folder,
            ) from None


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def claims_folder_of(place: "LogLocation") -> str:
    """Return the folder of a log's stored claims."""
    from decklog.location.locate import beside

    return beside(place, _FOLDER)


def _file_name(worker: Worker) -> str:
    return sha256(worker.identity.encode(errors="surrogateescape")).hexdigest()[:_NAME_LENGTH]


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if len(name) == _NAME_LENGTH)
    except OSError:
        return []


def _read(path: str) -> dict[str, Any]:
    """Return the content of a file; empty if the file is missing or damaged."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return {}
    try:
        told = json.loads(os.pread(descriptor, _LONGEST_FILE, 0).partition(b"\n")[0])
    except (OSError, ValueError):
        return {}
    finally:
        os.close(descriptor)
    return told if isinstance(told, dict) and told.keys() >= _NEEDED else {}


def _is_of_ended_process(told: dict[str, Any]) -> bool:
    process = SystemProcess.read(str(told.get("process", "")))
    return process is not None and process.is_gone


def _remove_if_ended(path: str) -> None:
    """Remove a worker's file if its claim is closed and its process has ended. A file in use is locked and stays."""
    told = _read(path)
    if not told or told["is_open"] or not _is_of_ended_process(told):
        return
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if _is_locked(descriptor) and _is_same_file(descriptor, path) and _read(path) == told:
            os.unlink(path)
    finally:
        os.close(descriptor)


def _claim_in(told: dict[str, Any]) -> Remembered | None:
    if told.get("task_id") is None:
        return None
    return Remembered(**{name: told[name] for name in (*_OF_CLAIM, "is_open", "asked")})
