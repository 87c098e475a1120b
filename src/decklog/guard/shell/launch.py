"""Start a command under a supervisor and read its status."""

import errno
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decklog.core.errors import Denied, Invalid, NotFound, Unavailable
from decklog.core.processes import Identity
from decklog.guard.sandbox import landlock
from decklog.guard.sandbox.landlock import AllowedPaths
from decklog.guard.shell import process_tree
from decklog.guard.shell.spool import DEFAULT_CAP, Output, read_output
from decklog.guard.shell.supervisor import ADOPTED

_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from decklog.guard.shell.supervisor import main; main()"
_SOURCE = str(Path(__file__).resolve().parents[3])
_START_SECONDS = 30.0
_END_SECONDS = 10.0
_POLL_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class LaunchOrder:
    """Order to run a command. A `bound` one ends with its starter; child processes of a `detached` one may outlive it.

    With `grace_seconds`, a bound command outlives its starter for that time and can be adopted. `input` is the file for its
    standard input.
    """

    mark: str
    argv: list[str]
    env: dict[str, str]
    cwd_fd: int
    folder: Path
    allowed_paths: AllowedPaths | None = None
    timeout_seconds: float | None = None
    cap_bytes: int = DEFAULT_CAP
    bound: bool = True
    detached: bool = False
    durable: bool = False
    grace_seconds: float = 0.0
    input: Path | None = None

    @property
    def is_tied(self) -> bool:
        """Whether it ends at once with its starter. A command that can be adopted is not tied to its starter's pipe."""
        return self.bound and not self.grace_seconds

    def as_line(self, status_fd: int, rules_fd: int | None) -> bytes:
        """Encode the order for the supervisor."""
        spec = {
            "mark": self.mark,
            "argv": self.argv,
            "env": {**self.env, process_tree.MARK: self.mark},
            "folder": str(self.folder),
            "cwd_fd": self.cwd_fd,
            "status_fd": status_fd,
            "rules_fd": rules_fd,
            "landlock": {"network": self.allowed_paths.network, "covered": self.allowed_paths.covered}
            if self.allowed_paths
            else None,
            "timeout": self.timeout_seconds,
            "cap": self.cap_bytes,
            "bound": self.bound,
            "detached": self.detached,
            "durable": self.durable,
            "grace": self.grace_seconds,
            "input": None if self.input is None else str(self.input),
            "starter": Identity.own().as_text(),
        }
        return json.dumps(spec).encode() + b"\n"


@dataclass
class SupervisedCommand:
    """A command under its supervisor."""

    mark: str
    folder: Path
    pid: int
    supervisor: Identity
    _status: "_Status" = field(repr=False)
    _has_ended: bool = False

    def wait(self, while_waiting: Callable[[], None] | None = None) -> dict[str, Any]:
        """Wait for the end of the command and return how it ended."""
        message = self._status.next("ended", while_waiting)
        if message is None:
            end_process_tree(self.mark)
            raise Unavailable(
                f"The supervisor of process {self.pid} was killed, so the outcome is unknown",
                hint="The rest of the command was killed. Check its effects before you run it again.",
                pid=self.pid,
            )
        ended: dict[str, Any] = message["ended"]
        self._has_ended = True
        return ended

    def output(self) -> Output:
        """Return the output so far."""
        return read_output(self.folder)

    def close(self) -> None:
        """Close the status pipe. If a bound command still runs, end it and wait for it."""
        is_ending = self._status.is_binding and not self._has_ended
        self._status.close()
        end = time.monotonic() + _END_SECONDS
        while is_ending and self.supervisor.is_alive() and time.monotonic() < end:
            time.sleep(0.01)


class _Status:
    """The status pipe of a supervisor and, for a bound command, the pipe whose end signals our death."""

    def __init__(self, read: int, control: Any) -> None:
        self._read = read
        self._control = control
        self._buffer = b""

    @property
    def is_binding(self) -> bool:
        return self._control is not None

    def next(self, wanted: str, while_waiting: Callable[[], None] | None = None, seconds: float | None = None) -> Any:
        end = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], _POLL_SECONDS)
            if ready:
                data = os.read(self._read, 65536)
                if not data:
                    return None
                self._buffer += data
            elif end is not None and time.monotonic() > end:
                return None
            elif while_waiting is not None:
                while_waiting()
        line, _, self._buffer = self._buffer.partition(b"\n")
        message = json.loads(line)
        assert wanted in message or "refused" in message, message
        return message

    def close(self) -> None:
        if self._read >= 0:
            os.close(self._read)
            self._read = -1
        if self._control is not None:
            with suppress(OSError):
                self._control.close()
            self._control = None


def launch(order: LaunchOrder) -> SupervisedCommand:
    """Start a command under a supervisor; raise an error if it can't be started."""
    read, write = os.pipe()
    try:
        control = _start_supervisor(order, write)
    except BaseException:
        os.close(read)
        raise
    finally:
        os.close(write)
    status = _Status(read, control)
    message = status.next("started", seconds=_START_SECONDS)
    if message is None:
        status.close()
        raise _build_start_error(order)
    if "refused" in message:
        status.close()
        raise _translate_error(message["refused"], order.argv[0])
    started = message["started"]
    return SupervisedCommand(order.mark, order.folder, started["pid"], Identity.from_text(started["supervisor"]), status)


def _start_supervisor(order: LaunchOrder, status: int) -> Any:
    """Start a supervisor; return the pipe that ties it to this process, or None if it may outlive it."""
    rules = _make_rules(order)
    try:
        with open(order.folder / "supervisor.err", "wb") as errors:
            starter = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, _SOURCE],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**order.env, process_tree.MARK: order.mark},
                cwd="/",
                pass_fds=[order.cwd_fd, status, *(() if rules is None else (rules,))],
                start_new_session=True,
            )
    finally:
        if rules is not None:
            os.close(rules)
    control = starter.stdin
    assert control is not None
    with suppress(BrokenPipeError):
        control.write(order.as_line(status, rules))
        control.flush()
    starter.wait()
    if order.is_tied:
        return control
    control.close()
    return None


def _make_rules(order: LaunchOrder) -> int | None:
    """Return the file descriptor of a command's Landlock rules, or None without Landlock."""
    try:
        return None if order.allowed_paths is None else landlock.make_rules(order.allowed_paths)
    except OSError as error:
        raise _translate_error({"errno": error.errno, "strerror": error.strerror}, order.argv[0]) from error


def _build_start_error(order: LaunchOrder) -> Unavailable:
    error_path = order.folder / "supervisor.err"
    message = error_path.read_text(errors="replace").strip().rpartition("\n")[2] if error_path.exists() else ""
    return Unavailable(
        f"The supervisor of a process did not start: {message or 'it message nothing'}", hint="Check sys.executable."
    )


def _translate_error(problem: dict[str, Any], program: str) -> Exception:
    match problem["errno"]:
        case errno.ENOENT | errno.ENOTDIR:
            return NotFound(f"There is no program {program!r}", hint="Check its name and PATH.", program=program)
        case errno.EACCES | errno.EPERM:
            return Denied(
                f"{program!r} can't be run here", hint="Check its mode, and the paths that the sandbox allows.", program=program
            )
        case errno.E2BIG | errno.ENOEXEC:
            return Invalid(f"{program!r} can't be run: {problem['strerror']}", hint="Run it through its interpreter.")
    return Unavailable(f"{program!r} can't be started: {problem['strerror']}", program=program)


def end_process_tree(mark: str, seconds: float = 10.0) -> int:
    """Kill all processes with a mark until none is left; return their number."""
    count, end = 0, time.monotonic() + seconds
    while (left := process_tree.find_marked_processes(mark)) and time.monotonic() < end:
        count = max(count, len(left))
        process_tree.send_signal(left, signal.SIGKILL)
        time.sleep(0.01)
    return count


def adopt_command(folder: Path) -> None:
    """Register this process as the starter of a command whose starter has died."""
    new = folder / f"{ADOPTED}.{os.getpid()}"
    new.write_text(Identity.own().as_text(), encoding="utf-8")
    new.rename(folder / ADOPTED)


def remove_folder(folder: Path) -> None:
    """Remove a command's folder."""
    shutil.rmtree(folder, ignore_errors=True)
