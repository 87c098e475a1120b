"""What an agent claimed last: a small file for each, beside the log, so that every later call shows the fence of its own claim.

The log alone can't tell: of two workers with one name, the one whose lease went to the other would be taken for it.
"""

import fcntl
import json
import os
import time

from decklog.caller.worker import Process
from decklog.digests import sha256
from decklog.errors import Busy, Denied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from decklog.caller.worker import Worker
    from decklog.place.locate import Place

_FOLDER = "claims"
_NAME_LENGTH = 16
_STEP_SECONDS = 0.02
_LONGEST_FILE = 65536
_OF_CLAIM = ("run_id", "task_id", "fence", "lease_seconds", "renewed_at")
_NEEDED = {*_OF_CLAIM, "is_open", "asked", "worker", "instance", "process"}


class Remembered:
    """A claim as it was remembered: of which run and task, under which fence, and whether it was ended by the one who had it."""

    def __init__(self, run_id: str, task_id: str, fence: int, lease_seconds: float, renewed_at: str) -> None:
        self.run_id = run_id
        self.task_id = task_id
        self.fence = fence
        self.lease_seconds = lease_seconds
        self.renewed_at = renewed_at
        self.is_open = True
        # Whether questions were asked about the task, to which there may be answers.
        self.asked = False


class Claims:
    """The claims that callers of one log remember, as seen by one of them."""

    def __init__(self, folder: str, worker: "Worker") -> None:
        self._folder = folder
        self._worker = worker
        self._path = os.path.join(folder, _file_name(worker.name, worker.instance))

    def load(self) -> Remembered | None:
        """Give what this worker claimed last; None when it never did, or nobody can tell any more."""
        return _claim_in(_read(self._path))

    def keep(self, claim: Remembered) -> None:
        """Remember a claim in the place of the one before."""
        descriptor = self._open()
        try:
            self._write(descriptor, vars(claim))
        finally:
            os.close(descriptor)

    def _write(self, descriptor: int, claim: "dict[str, Any]") -> None:
        who = {"worker": self._worker.name, "instance": self._worker.instance, "process": self._worker.process.spelled()}
        line = (json.dumps({**who, **claim}) + "\n").encode()
        # Whoever reads meanwhile looks at the first line alone, which is never cut off.
        os.pwrite(descriptor, line, 0)
        os.ftruncate(descriptor, len(line))

    def alone(self, patience_seconds: float) -> "_Lock":
        """Keep out whoever else claims for this worker: it has one task at a time, however many of its calls run at once."""
        return _Lock(self._open(), time.monotonic() + patience_seconds, self._worker.name, self._sign)

    def _sign(self, descriptor: int) -> None:
        """Write into a new file whose it is, so that it can be cleared away once that one is gone."""
        if not os.fstat(descriptor).st_size:
            self._write(descriptor, {**dict.fromkeys(_OF_CLAIM), "is_open": False, "asked": False})

    def other_names(self) -> list[str]:
        """Name the other workers as whom the same caller has open claims."""
        told = [_read(os.path.join(self._folder, name)) for name in _names_in(self._folder)]
        mine = [one for one in told if one and one["instance"] == self._worker.instance and one["is_open"]]
        return [one["worker"] for one in mine if one["worker"] != self._worker.name]

    def left_behind(self, run_id: str | None) -> "Iterator[Remembered]":
        """Take, one by one, the open claims of workers of the same name whose processes have ended, of one run or of any."""
        for name in _names_in(self._folder):
            path = os.path.join(self._folder, name)
            told = _read(path) if path != self._path else {}
            process = Process.read(str(told.get("process", "")))
            if process is None or not process.is_gone:
                continue
            if not told["is_open"]:
                _taken(path)  # its worker has ended, and so has its task: nobody will ask
            elif told["worker"] == self._worker.name and run_id in (None, told["run_id"]):
                claim = _claim_in(_taken(path))
                if claim is not None and claim.is_open:
                    yield claim

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


class _Lock:
    """Holds a lock on a worker's file for the length of a block."""

    def __init__(self, descriptor: int, end: float, name: str, begin: "Callable[[int], None]") -> None:
        self._descriptor = descriptor
        self._end = end
        self._name = name
        self._begin = begin

    def __enter__(self) -> None:
        while not self._is_locked():
            if time.monotonic() >= self._end:
                os.close(self._descriptor)
                raise Busy(f"another call of {self._name} is claiming at this moment", hint="Wait for it, then: decklog next")
            time.sleep(_STEP_SECONDS)
        self._begin(self._descriptor)

    def _is_locked(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def folder_beside(place: "Place") -> str:
    """Say where the claims of a log are remembered."""
    from decklog.place.locate import beside

    return beside(place, _FOLDER)


def _file_name(name: str, instance: str) -> str:
    return sha256(f"{name}\0{instance}".encode(errors="surrogateescape")).hexdigest()[:_NAME_LENGTH]


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if len(name) == _NAME_LENGTH)
    except OSError:
        return []


def _read(path: str) -> "dict[str, Any]":
    """Read what a file says; one that is not there, or damaged, says nothing."""
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


def _taken(path: str) -> "dict[str, Any]":
    """Remove another's file and give what it said; of several who try, one gets it."""
    mine = f"{path}.{os.getpid()}"
    try:
        os.rename(path, mine)
        told = _read(mine)
        os.unlink(mine)
    except FileNotFoundError:
        return {}
    return told


def _claim_in(told: "dict[str, Any]") -> Remembered | None:
    if told.get("task_id") is None:
        return None
    claim = Remembered(*(told[name] for name in _OF_CLAIM))
    claim.is_open, claim.asked = told["is_open"], told["asked"]
    return claim
