"""Identity of the calling worker: by name, by its agent's session, or by the program that calls."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from decklog.agents.spool import is_same_file, try_lock
from decklog.core.errors import Busy, Denied, Invalid
from decklog.core.processes import Identity, stat_of

if TYPE_CHECKING:
    from decklog.location.locate import LogLocation


# Each agent's own variables, and the variable of its session id, if there is one.
_KNOWN = {
    "claude": (("CLAUDECODE", "CLAUDE_CODE_SESSION_ID"), "CLAUDE_CODE_SESSION_ID"),
    "codex": (("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"), "CODEX_THREAD_ID"),
    "gemini": (("GEMINI_CLI",), "GEMINI_SESSION_ID"),
    "opencode": (("OPENCODE",), "OPENCODE_SESSION_ID"),
}
# Variables that identify any other agent, set by its starter.
_SAID = ("DECKLOG_AGENT", "DECKLOG_AGENT_ID", "DECKLOG_WORKER")
VARIABLES = frozenset(name for marks, session in _KNOWN.values() for name in (*marks, session))


def _agent_in(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the agent that the environment names and its session; empty for a person, or without a session."""
    kinds = [kind for kind, (marks, _) in _KNOWN.items() if any(environment.get(mark) for mark in marks)]
    # A nested agent inherits the variables of its starter, so only the ids of all identify it.
    sessions = [environment.get(_KNOWN[kind][1], "") for kind in kinds]
    return "+".join(kinds), " ".join(sessions) if all(sessions) else ""


def is_agent() -> bool:
    """Return whether an agent calls, by its own variables or by Decklog's."""
    return any(os.environ.get(name) for name in _SAID) or bool(_agent_in(os.environ)[0])


# Wrappers that only start another program; the caller is their parent.
_WRAPPERS = frozenset(
    (
        *("chrt", "doas", "env", "ionice", "make", "nice", "nohup", "script"),
        *("setsid", "stdbuf", "sudo", "time", "timeout", "uv", "xargs"),
    )
)
# A shell with `-c` is a wrapper. A shell that runs a script, or is interactive, is the caller.
_SHELLS = frozenset(("ash", "bash", "busybox", "dash", "fish", "ksh", "sh", "zsh"))


@dataclass(frozen=True)
class Worker:
    """A worker: its `name` in the log, the `instance` (session or process) that calls, and the calling `process`.

    A given name identifies the worker in every shell. A derived name belongs to one instance. A process is None if it can't be
    seen from here.
    """

    name: str
    instance: str
    process: Identity | None
    is_named: bool = False

    @property
    def identity(self) -> str:
        """Text that identifies the file of this worker's claim."""
        return self.name if self.is_named else f"{self.name}\0{self.instance}"


def worker(named: str | None, environment: Mapping[str, str] | None = None, program: str | None = None) -> Worker:
    """Return the calling worker: by its given name, its agent's session, or the program that calls."""
    given = os.environ if environment is None else environment
    name = given.get("DECKLOG_WORKER") if named is None else named
    if name is not None and not name.strip():
        raise Invalid("a worker needs a name", hint="Such as: decklog next --as dev-1", field="as")
    process, (agent, session) = calling_process(), _agent_in(given)
    instance = session or (process.as_text() if process else _outside())
    if name is not None:
        return Worker(name, instance, process, is_named=True)
    user = given.get("USER") or given.get("LOGNAME") or str(os.getuid())
    who = agent or program or f"{user}@{os.uname().nodename}"
    last = session.replace("-", "").replace(" ", "")[-8:] or str(process.pid if process else 0)
    return Worker(f"{who}-{last}", instance, process)


def _outside() -> str:
    """Return the instance of calls without a visible caller, such as those from outside of a container: it is one for all."""
    own = Identity.own()
    return f"outside {own.host} {own.boot_id} {own.pid_space}"


def calling_process() -> Identity | None:
    """Return the program that calls: the nearest ancestor that is not a wrapper such as `env` or `sh -c`."""
    number = os.getppid()
    try:
        while (seen := stat_of(number)) is not None:
            if not _is_between(number, seen.name):
                return Identity.of(number)
            number = seen.parent
    except PermissionError:
        # The system may hide the processes of other users.
        pass
    return None


def _is_between(number: int, program: str) -> bool:
    if program not in _SHELLS:
        return program in _WRAPPERS
    try:
        with open(f"/proc/{number}/cmdline", "rb") as file:
            words = file.read(4096).split(b"\0")[1:]
    except OSError:
        return False
    options = (word for word in words if word[:1] == b"-" and word[1:2] != b"-")
    return b"c" in next(options, b"") and words[0][:1] == b"-"


# Claims

_FOLDER = "claims"
_NAME_LENGTH = 16
_STEP_SECONDS = 0.02
_LONGEST_FILE = 65536
_OF_CLAIM = ("run_id", "task_id", "fence", "lease_seconds", "renewed_at")
_NEEDED = {*_OF_CLAIM, "is_open", "asked", "worker", "instance", "process"}


@dataclass
class StoredClaim:
    """Stored claim: run, task and fencing token, and whether its worker has ended it."""

    run_id: str
    task_id: str
    fence: int
    lease_seconds: float
    renewed_at: str
    is_open: bool = True
    # Whether questions about the task may have answers.
    asked: bool = False


class StoredClaims:
    """Stored claims of one log, from the view of one worker."""

    def __init__(self, folder: str, worker: Worker) -> None:
        self._folder = folder
        self._worker = worker
        self._path = os.path.join(folder, sha256(worker.identity.encode(errors="surrogateescape")).hexdigest()[:_NAME_LENGTH])

    def load(self) -> StoredClaim | None:
        """Return this worker's last claim; None if there is none, or its file is damaged."""
        stored = _read(self._path)
        if stored.get("task_id") is None:
            return None
        return StoredClaim(**{name: stored[name] for name in (*_OF_CLAIM, "is_open", "asked")})

    def store(self, claim: StoredClaim) -> None:
        """Store a claim in place of the previous one."""
        descriptor = self._open()
        try:
            self._write(descriptor, vars(claim))
        finally:
            os.close(descriptor)

    def _write(self, descriptor: int, claim: dict[str, Any]) -> None:
        process = self._worker.process
        who = {"worker": self._worker.name, "instance": self._worker.instance, "process": process and process.as_text()}
        line = (json.dumps({**who, **claim}) + "\n").encode()
        # A concurrent reader uses only the first line, which is never truncated.
        os.pwrite(descriptor, line, 0)
        os.ftruncate(descriptor, len(line))

    @contextmanager
    def locked(self, patience_seconds: float) -> Iterator[None]:
        """Keep out other claiming calls of this worker for a block. It has one task at a time."""
        end = time.monotonic() + patience_seconds
        descriptor = self._open_locked(end)
        while not is_same_file(descriptor, self._path):
            # Another worker removed the file as ended between the open and the lock.
            os.close(descriptor)
            descriptor = self._open_locked(end)
        try:
            if not os.fstat(descriptor).st_size:
                # Write the worker's identity into a new file, so that it can be removed once the worker is gone.
                self._write(descriptor, {**dict.fromkeys(_OF_CLAIM), "is_open": False, "asked": False})
            yield
        finally:
            os.close(descriptor)

    def _open_locked(self, end: float) -> int:
        descriptor, name = self._open(), self._worker.name
        while not try_lock(descriptor):
            if time.monotonic() >= end:
                os.close(descriptor)
                raise Busy(f"another call of {name} is claiming at this moment", hint="Wait for it, then: decklog next")
            time.sleep(_STEP_SECONDS)
        return descriptor

    def other_names(self) -> list[str]:
        """Return the names of other workers under which the same caller has open claims."""
        stored = [_read(os.path.join(self._folder, name)) for name in _names_in(self._folder)]
        mine = [one for one in stored if one and one["instance"] == self._worker.instance and one["is_open"]]
        return [one["worker"] for one in mine if one["worker"] != self._worker.name]

    @property
    def is_from_ended_process(self) -> bool:
        """Whether the process that last wrote this worker's claim has ended."""
        return _is_of_ended_process(_read(self._path))

    def remove_ended(self) -> None:
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


def claims_folder_of(place: "LogLocation") -> str:
    """Return the folder of a log's stored claims."""
    from decklog.location.locate import sibling_path

    return sibling_path(place, _FOLDER)


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
        stored = json.loads(os.pread(descriptor, _LONGEST_FILE, 0).partition(b"\n")[0])
    except (OSError, ValueError):
        return {}
    finally:
        os.close(descriptor)
    return stored if isinstance(stored, dict) and stored.keys() >= _NEEDED else {}


def _is_of_ended_process(stored: dict[str, Any]) -> bool:
    try:
        return Identity.from_text(stored["process"]).is_alive() is False
    except (ValueError, TypeError, KeyError):
        # Nobody can tell: the caller was not visible, or the file is missing or damaged.
        return False


def _remove_if_ended(path: str) -> None:
    """Remove a worker's file if its claim is closed and its process has ended. A file in use is locked and stays."""
    stored = _read(path)
    if not stored or stored["is_open"] or not _is_of_ended_process(stored):
        return
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if try_lock(descriptor) and is_same_file(descriptor, path) and _read(path) == stored:
            os.unlink(path)
    finally:
        os.close(descriptor)
