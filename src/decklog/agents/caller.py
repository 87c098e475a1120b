"""Identity of the calling worker: by name, by its agent's session, or by the program that calls."""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from decklog.core.errors import Busy, Denied, Invalid

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


class Recognised:
    """The calling agent and the agents that started it. `session` joins their ids, if each has one."""

    def __init__(self, kinds: list[str], sessions: list[str]) -> None:
        self.kind = "+".join(kinds)
        # A nested agent inherits the variables of its starter, so only the ids of all identify it.
        self.session = " ".join(sessions) if all(sessions) else None


def recognised(environment: Mapping[str, str] | None = None) -> Recognised | None:
    """Return the agent that the environment names; None for a person or an unknown program."""
    given = os.environ if environment is None else environment
    kinds = [kind for kind, (marks, _) in _KNOWN.items() if any(given.get(mark) for mark in marks)]
    return Recognised(kinds, [given.get(_KNOWN[kind][1], "") for kind in kinds]) if kinds else None


def is_agent(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether an agent calls, by its own variables or by Decklog's."""
    given = os.environ if environment is None else environment
    return any(given.get(name) for name in _SAID) or recognised(given) is not None


# Wrappers that only start another program; the caller is their parent.
_WRAPPERS = frozenset(
    (
        *("chrt", "doas", "env", "ionice", "make", "nice", "nohup", "script"),
        *("setsid", "stdbuf", "sudo", "time", "timeout", "uv", "xargs"),
    )
)
# A shell with `-c` is a wrapper. A shell that runs a script, or is interactive, is the caller.
_SHELLS = frozenset(("ash", "bash", "busybox", "dash", "fish", "ksh", "sh", "zsh"))
_STATE, _PARENT, _STARTED = 0, 1, 19
# A killed process keeps its number until its parent reaps it.
_ENDED = ("Z", "X", "x")
_UNKNOWN = "-"


@dataclass(frozen=True)
class SystemProcess:
    """Process of the operating system. Its start time and system distinguish it from others of the same number."""

    number: int
    started: str
    system: str

    def spelled(self) -> str:
        return f"{self.number} {self.started} {self.system}"

    @classmethod
    def read(cls, spelled: str) -> "SystemProcess | None":
        """Parse a process from the text of `spelled`; return None for other texts."""
        parts = spelled.split(" ")
        is_one = len(parts) == 3 and parts[0].isdecimal() and parts[2].count("/") == 2
        return cls(int(parts[0]), parts[1], parts[2]) if is_one else None

    @property
    def is_gone(self) -> bool:
        """Whether the process has certainly ended. Processes of other machines and containers can't be checked."""
        machine, boot, container = self.system.split("/")
        here, now, own = _system().split("/")
        if machine != here or self.started == _UNKNOWN or (boot == now and container != own):
            return False
        seen = _look_at(self.number) if boot == now else None
        return seen is None or seen[1][_STARTED] != self.started or seen[1][_STATE] in _ENDED


@dataclass(frozen=True)
class Worker:
    """A worker: its `name` in the log, the `instance` (session or process) that calls, and the calling `process`.

    A given name identifies the worker in every shell. A derived name belongs to one instance.
    """

    name: str
    instance: str
    process: SystemProcess
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
    process, agent = calling_process(), recognised(given)
    instance = agent.session if agent is not None and agent.session else process.spelled()
    if name is not None:
        return Worker(name, instance, process, is_named=True)
    if agent is not None:
        last = agent.session.replace("-", "").replace(" ", "")[-8:] if agent.session else str(process.number)
        return Worker(f"{agent.kind}-{last}", instance, process)
    if program:
        return Worker(f"{program}-{process.number}", instance, process)
    user = given.get("USER") or given.get("LOGNAME") or str(os.getuid())
    return Worker(f"{user}@{os.uname().nodename}-{process.number}", instance, process)


def own_process() -> SystemProcess:
    """Return this process, for callers that are only known by their connection to it."""
    seen = _look_at(os.getpid())
    return SystemProcess(os.getpid(), _UNKNOWN if seen is None else seen[1][_STARTED], _system())


def calling_process() -> SystemProcess:
    """Return the program that calls: the nearest ancestor that is not a wrapper such as `env` or `sh -c`."""
    number = os.getppid()
    while (seen := _look_at(number)) is not None:
        program, fields = seen
        if not _is_between(number, program):
            return SystemProcess(number, fields[_STARTED], _system())
        number = int(fields[_PARENT])
    # Started from outside, for example into a container: all calls from there have one caller.
    return SystemProcess(number, _UNKNOWN, _system())


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


def _look_at(number: int) -> tuple[str, list[str]] | None:
    """Return the name of a process and its fields in /proc; None if they can't be read."""
    try:
        with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    # A name may contain blanks and parentheses, so it ends with the last parenthesis.
    head, _, tail = text.rpartition(")")
    return head.partition("(")[2], tail.split()


def _system() -> str:
    """Return a text for this machine, its boot and its container."""
    machine = os.uname().nodename.replace(" ", "_").replace("/", "_")
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{machine}/{boot}/{os.readlink('/proc/self/ns/pid').strip('pid:[]')}"
    except OSError:
        return f"{machine}/-/-"


# Claims

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
