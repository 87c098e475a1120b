"""The supervisor: a small process that runs one command and outlives its starter.

It starts the command in a new session, stores its output and exit code, and ends its whole process tree. As the "subreaper" it
adopts every orphan, so that no grandchild escapes by leaving its group. It uses only the standard library, to start fast and to
share no lock with its starter.
"""

import ctypes
import json
import os
import select
import signal
import sys
import time
import warnings  # noqa: F401 (imported by os.execvpe, which a sandbox might not allow)
from typing import Any

from decklog.core.disk import sync
from decklog.core.processes import Identity
from decklog.guard.sandbox import landlock, mounts
from decklog.guard.shell import process_tree
from decklog.guard.shell.spool import STREAMS, OutputSpool


def execute_command(spec: dict[str, Any], out: int, err: int, error_pipe: int) -> None:
    """Execute the command of an order in this process; write an error to `error_pipe`."""
    try:
        os.setsid()
        stdin = os.open(spec["input"] or "/dev/null", os.O_RDONLY)
        for source, target in ((stdin, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        os.fchdir(spec["cwd_fd"])
        # Exec resets handlers, but ignored signals would stay ignored.
        signal.set_wakeup_fd(-1)
        landlock_settings = spec["landlock"]
        if landlock_settings is not None:
            if landlock_settings["covered"]:
                mounts.cover(landlock_settings["covered"])
            landlock.restrict(spec["rules_fd"], network=landlock_settings["network"])
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])
    except OSError as error:
        os.write(error_pipe, json.dumps({"errno": error.errno, "strerror": error.strerror}).encode())
    finally:
        os._exit(127)


SET_CHILD_SUBREAPER = 36
POLL_SECONDS = 0.5
CHECK_SECONDS = 0.02
LEFTOVER_SECONDS = 0.1
READ_SIZE = 65536
ADOPTED = "adopted.json"
# The file descriptors of an order. Rules only exist if Landlock confines the command.
HANDLES = ("status_fd", "cwd_fd", "rules_fd")

# Signals that wake the supervisor instead of ending it. Ignoring them would make the command ignore them too.
WAKING_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)

_libc = ctypes.CDLL(None)

# Default stages to end a process tree: the signal, and the seconds to wait.
DEFAULT_STAGES = ((int(signal.SIGTERM), 1.0), (int(signal.SIGKILL), 5.0))


def main() -> None:
    """Read an order from standard input and run it."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        # The starter died before it sent the order: do nothing.
        return
    spec = json.loads(line.decode())
    if os.fork():
        # The starter waits for this process only; the supervisor has no parent.
        os._exit(0)
    os.setsid()
    Supervisor(spec).run()


def _signal_name(number: int) -> str:
    """Return the name of a signal; real-time signals have only a number."""
    names = sorted(name for name, value in vars(signal).items() if value == number and name.startswith("SIG") and name[3] != "_")
    return names[0] if names else f"SIG{number}"


def _ignore(*_: object) -> None:
    """Do nothing: the signal has woken the poll."""


class Supervisor:
    """Runs one command from start to end."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.folder: str = spec["folder"]
        for name in HANDLES:
            if spec[name] is not None:
                os.set_inheritable(spec[name], False)
        self.spool = OutputSpool(self.folder, spec["cap"])
        self.poll = select.poll()
        self.sources: dict[int, str] = {}
        self.starter = Identity.from_text(spec["starter"]) if spec["bound"] else None
        self.grace: float = spec["grace"]
        self.orphaned_at: float | None = None
        self.deadline = time.monotonic() + spec["timeout"] if spec["timeout"] is not None else None
        self.pid = 0
        self.code: int | None = None
        self.reason = "exited"
        self.sent: list[str] = []
        self.stages: list[tuple[int, float]] = []
        self.stage_ends = 0.0
        self.has_no_children = False
        self.leftovers = 0
        self.left_since: float | None = None
        self.output_error: str | None = None

    def run(self) -> None:
        """Run the command and report how it ended."""
        _libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._listen()
        supervisor = Identity.own().as_text()
        self._write_file("started.json", {"supervisor": supervisor})
        problem = self._start()
        if problem is not None:
            self._send_status({"refused": problem})
            self._write_file("ended.json", {"refused": problem})
            return
        started = {"pid": self.pid, "supervisor": supervisor}
        self._write_file("running.json", started)
        self._send_status({"started": started})
        self._watch()
        self._drain()
        self.spool.close()
        ended = self._describe_end()
        try:
            self._write_file("ended.json", ended)
        finally:
            self._send_status({"ended": ended})

    # Starting

    def _listen(self) -> None:
        """Register signal handlers that wake the poll."""
        self.wake, write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in WAKING_SIGNALS:
            signal.signal(number, _ignore)
        self._register(self.wake, "wake")
        if self.starter is not None and not self.grace:
            self._register(0, "starter")

    def _register(self, handle: int, source: str) -> None:
        self.sources[handle] = source
        self.poll.register(handle, select.POLLIN)

    def _unregister(self, handle: int) -> None:
        del self.sources[handle]
        self.poll.unregister(handle)

    def _start(self) -> dict[str, Any] | None:
        """Start the command; return the error if it can't be started."""
        out, err, error_pipe = os.pipe(), os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            execute_command(self.spec, out[1], err[1], error_pipe[1])
        for write in (out[1], err[1], error_pipe[1]):
            os.close(write)
        problem = b""
        while piece := os.read(error_pipe[0], READ_SIZE):
            problem += piece
        os.close(error_pipe[0])
        for stream, read in (("stdout", out[0]), ("stderr", err[0])):
            os.set_blocking(read, False)
            self._register(read, stream)
        return json.loads(problem.decode()) if problem else None

    # Watching

    def _watch(self) -> None:
        while not self._has_ended():
            for handle, _ in self.poll.poll(self._poll_interval() * 1000):
                match self.sources[handle]:
                    case "wake":
                        self._read_signals()
                    case "starter":
                        self._end(DEFAULT_STAGES, "abandoned")
                        self._unregister(0)
                    case stream:
                        self._read(handle, stream)
            self._reap()
            self._check_time()

    def _poll_interval(self) -> float:
        return CHECK_SECONDS if self.stages or self.left_since is not None else POLL_SECONDS

    def _has_ended(self) -> bool:
        """Return whether the whole process tree has ended."""
        if self.code is None or self.has_no_children:
            return self.has_no_children
        left = process_tree.find_descendants(os.getpid())
        if left and not self.stages and not self.spec["detached"]:
            self._check_leftovers(len(left))
        return not left

    def _check_leftovers(self, count: int) -> None:
        """End child processes that outlive an attached command by more than a short time."""
        now = time.monotonic()
        if self.left_since is None:
            self.left_since = now
        elif now - self.left_since > LEFTOVER_SECONDS:
            self.leftovers = count
            self._end(DEFAULT_STAGES, self.reason)

    def _read_signals(self) -> None:
        numbers = os.read(self.wake, 4096)
        if signal.SIGTERM in numbers:
            self._end(self._requested_stages(), "stopped")

    def _requested_stages(self) -> tuple[tuple[int, float], ...]:
        """Read the requested stages from stop.json."""
        try:
            with open(os.path.join(self.folder, "stop.json"), encoding="utf-8") as file:
                return tuple((int(number), float(seconds)) for number, seconds in json.loads(file.read()))
        except (OSError, ValueError):
            return DEFAULT_STAGES

    def _end(self, stages: tuple[tuple[int, float], ...], reason: str) -> None:
        """Start ending the process tree; fewer stages replace the current ones."""
        if self.stages and len(stages) >= len(self.stages):
            return
        self.reason = reason
        self.stages = list(stages)
        self._next_stage()

    def _next_stage(self) -> None:
        number, seconds = self.stages[0]
        self.stage_ends = time.monotonic() + seconds
        if self._signal(number):
            self.sent.append(_signal_name(number))

    def _signal(self, number: int) -> int:
        members = process_tree.find_descendants(os.getpid())
        if number != signal.SIGKILL:
            # Bubblewrap exits on the first signal and kills the command before it can clean up.
            members = [one for one in members if one.name != "bwrap"]
        return process_tree.send_signal(members, number)

    def _check_time(self) -> None:
        now = time.monotonic()
        self._check_starter(now)
        if self.deadline is not None and now > self.deadline:
            self.deadline = None
            self._end(DEFAULT_STAGES, "timed_out")
        if self.stages and self.stages[0][0] == signal.SIGKILL:
            # Repeat for processes that were forked meanwhile.
            self._signal(signal.SIGKILL)
        elif self.stages and now > self.stage_ends:
            self.stages.pop(0)
            self._next_stage()

    def _check_starter(self, now: float) -> None:
        """End a command whose starter died: at once, or after the grace period without an adopter."""
        if self.starter is None or self.starter.is_alive() is not False:
            self.orphaned_at = None
            return
        if self.orphaned_at is None:
            self.orphaned_at = now
        adopter = self._read_adopter() if self.grace else None
        if adopter is not None and adopter.is_alive():
            self.starter = adopter
        elif now - self.orphaned_at >= self.grace:
            self._end(DEFAULT_STAGES, "abandoned")

    def _read_adopter(self) -> Identity | None:
        """Return the process that wants to adopt the command, or None."""
        try:
            with open(os.path.join(self.folder, ADOPTED), encoding="utf-8") as file:
                return Identity.from_text(file.read())
        except (OSError, ValueError, TypeError):
            return None

    def _read(self, handle: int, stream: str) -> bool:
        try:
            data = os.read(handle, READ_SIZE)
        except BlockingIOError:
            return False
        if data:
            self._spool(stream, data)
        else:
            self._unregister(handle)
            os.close(handle)
        return bool(data)

    def _spool(self, stream: str, data: bytes) -> None:
        try:
            self.spool.take(stream, data)
        except OSError as error:
            # A full disk must not end the supervisor: nothing would end the process tree.
            self.output_error = error.strerror

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                # Orphans become children of this process: without children the tree has ended.
                self.has_no_children = True
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.code = os.waitstatus_to_exitcode(status)

    def _drain(self) -> None:
        for handle, source in list(self.sources.items()):
            if source in STREAMS:
                while self._read(handle, source):
                    pass

    # Reporting

    def _describe_end(self) -> dict[str, Any]:
        assert self.code is not None
        return {
            "reason": self.reason,
            "exit_code": self.code if self.code >= 0 else None,
            "signal": _signal_name(-self.code) if self.code < 0 else None,
            "signals_sent": self.sent,
            "leftovers": self.leftovers,
            "output_error": self.output_error,
        }

    def _send_status(self, message: dict[str, Any]) -> None:
        try:
            os.write(self.spec["status_fd"], json.dumps(message).encode() + b"\n")
        except OSError:
            # The starter is gone; the files keep the state.
            return

    def _write_file(self, name: str, content: dict[str, Any]) -> None:
        """Write a file atomically."""
        path = os.path.join(self.folder, name)
        text = json.dumps(content).encode()
        handle = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            while text:
                text = text[os.write(handle, text) :]
            if self.spec["durable"]:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(f"{path}.new", path)
        if self.spec["durable"]:
            sync(self.folder)


if __name__ == "__main__":
    main()
