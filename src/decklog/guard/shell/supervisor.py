"""The supervisor: a small process beside each command that outlives whoever started it.

It starts the command in a session of its own, keeps its output and its exit code, and ends its whole process tree: as the nearest
"subreaper" it inherits every orphan below it, so that no grandchild gets away by leaving its group. It runs in a fresh
interpreter with the standard library alone, because it must start fast and must not share a lock with the program it serves.
"""

import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING

from decklog.core.disk import sync
from decklog.core.processes import Identity
from decklog.guard.shell import process_tree
from decklog.guard.shell.becoming import become
from decklog.guard.shell.spool import STREAMS, OutputSpool

if TYPE_CHECKING:
    from typing import Any

SET_CHILD_SUBREAPER = 36
POLL_SECONDS = 0.5
CHECK_SECONDS = 0.02
LATE_SECONDS = 0.1
READ_SIZE = 65536
ADOPTED = "adopted.json"
# The handles that come with an order, in this order. Rules only come where Landlock holds the command in.
HANDLES = ("status_fd", "cwd_fd", "rules_fd")

# What wakes the supervisor, and what is not to end it. None is ignored outright: the command would go on ignoring it.
HEARD = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)

_libc = ctypes.CDLL(None)

# How a process tree is ended when nobody said otherwise: what is sent, and how long to wait for it to help.
BRISK = ((int(signal.SIGTERM), 1.0), (int(signal.SIGKILL), 5.0))


def main() -> None:
    """Read what to run from standard input, and keep it."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        # Whoever started us died before it said what to do: nothing was done, and nothing will be.
        return
    spec = json.loads(line.decode())
    if os.fork():
        # The starter waits for this process alone; the supervisor itself belongs to nobody.
        os._exit(0)
    supervise(spec)


def supervise(spec: "dict[str, Any]") -> None:
    """Keep a command from its start to its end."""
    os.setsid()
    Supervisor(spec).run()


def _name_of(number: int) -> str:
    """Name a signal as `signal.Signals` does; those of the real-time range have numbers only."""
    names = sorted(name for name, value in vars(signal).items() if value == number and name.startswith("SIG") and name[3] != "_")
    return names[0] if names else f"SIG{number}"


def _pass(*_: object) -> None:
    """Let a signal be: whoever polls has been woken by it."""


class Supervisor:
    """Looks after one command from start to end."""

    def __init__(self, spec: "dict[str, Any]") -> None:
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
        self.is_alone = False
        self.leftovers = 0
        self.left_since: float | None = None
        self.output_error: str | None = None

    def run(self) -> None:
        """Run the command to its end and tell how it ended."""
        _libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._listen()
        supervisor = Identity.own().as_text()
        self._note("started.json", {"supervisor": supervisor})
        problem = self._start()
        if problem is not None:
            self._tell({"refused": problem})
            self._note("ended.json", {"refused": problem})
            return
        started = {"pid": self.pid, "supervisor": supervisor}
        self._note("running.json", started)
        self._tell({"started": started})
        self._watch()
        self._drain()
        self.spool.close()
        ended = self._ending()
        try:
            self._note("ended.json", ended)
        finally:
            self._tell({"ended": ended})

    # Starting

    def _listen(self) -> None:
        """Turn signals into something that can be waited for."""
        self.wake, write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in HEARD:
            signal.signal(number, _pass)
        self._hear(self.wake, "wake")
        if self.starter is not None and not self.grace:
            self._hear(0, "starter")

    def _hear(self, handle: int, source: str) -> None:
        self.sources[handle] = source
        self.poll.register(handle, select.POLLIN)

    def _unhear(self, handle: int) -> None:
        del self.sources[handle]
        self.poll.unregister(handle)

    def _start(self) -> "dict[str, Any] | None":
        """Start the command; give what kept it from starting."""
        out, err, trouble = os.pipe(), os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            become(self.spec, out[1], err[1], trouble[1])
        for write in (out[1], err[1], trouble[1]):
            os.close(write)
        problem = b""
        while piece := os.read(trouble[0], READ_SIZE):
            problem += piece
        os.close(trouble[0])
        for stream, read in (("stdout", out[0]), ("stderr", err[0])):
            os.set_blocking(read, False)
            self._hear(read, stream)
        return json.loads(problem.decode()) if problem else None

    # Watching

    def _watch(self) -> None:
        while not self._is_over():
            for handle, _ in self.poll.poll(self._patience() * 1000):
                match self.sources[handle]:
                    case "wake":
                        self._read_signals()
                    case "starter":
                        self._end(BRISK, "abandoned")
                        self._unhear(0)
                    case stream:
                        self._read(handle, stream)
            self._reap()
            self._mind_time()

    def _patience(self) -> float:
        return CHECK_SECONDS if self.stages or self.left_since is not None else POLL_SECONDS

    def _is_over(self) -> bool:
        """Return whether nothing of the process tree is left."""
        if self.code is None or self.is_alone:
            return self.is_alone
        left = process_tree.descendants(os.getpid())
        if left and not self.stages and not self.spec["detached"]:
            self._mind_leftovers(len(left))
        return not left

    def _mind_leftovers(self, count: int) -> None:
        """End what an attached command leaves behind, unless it is only a moment late."""
        now = time.monotonic()
        if self.left_since is None:
            self.left_since = now
        elif now - self.left_since > LATE_SECONDS:
            self.leftovers = count
            self._end(BRISK, self.reason)

    def _read_signals(self) -> None:
        numbers = os.read(self.wake, 4096)
        if signal.SIGTERM in numbers:
            self._end(self._asked_stages(), "stopped")

    def _asked_stages(self) -> "tuple[tuple[int, float], ...]":
        """Read how to stop from the file that whoever asks leaves in the folder."""
        try:
            with open(os.path.join(self.folder, "stop.json"), encoding="utf-8") as file:
                return tuple((int(number), float(seconds)) for number, seconds in json.loads(file.read()))
        except (OSError, ValueError):
            return BRISK

    def _end(self, stages: "tuple[tuple[int, float], ...]", reason: str) -> None:
        """Begin to end the process tree; a harder way than the one under way takes over."""
        if self.stages and len(stages) >= len(self.stages):
            return
        self.reason = reason
        self.stages = list(stages)
        self._next_stage()

    def _next_stage(self) -> None:
        number, seconds = self.stages[0]
        self.stage_ends = time.monotonic() + seconds
        if self._signal(number):
            self.sent.append(_name_of(number))

    def _signal(self, number: int) -> int:
        members = process_tree.descendants(os.getpid())
        if number != signal.SIGKILL:
            # Bubblewrap dies of the first signal and takes the command with it before that could tidy up.
            members = [one for one in members if one.name != "bwrap"]
        return process_tree.strike(members, number)

    def _mind_time(self) -> None:
        now = time.monotonic()
        self._mind_starter(now)
        if self.deadline is not None and now > self.deadline:
            self.deadline = None
            self._end(BRISK, "timed_out")
        if self.stages and self.stages[0][0] == signal.SIGKILL:
            # What forked while it was being struck is struck again until nothing is left.
            self._signal(signal.SIGKILL)
        elif self.stages and now > self.stage_ends:
            self.stages.pop(0)
            self._next_stage()

    def _mind_starter(self, now: float) -> None:
        """End what nobody waits for any more: at once, or when nobody has adopted it within the grace."""
        if self.starter is None or self.starter.is_alive() is not False:
            self.orphaned_at = None
            return
        if self.orphaned_at is None:
            self.orphaned_at = now
        adopter = self._adopter() if self.grace else None
        if adopter is not None and adopter.is_alive():
            self.starter = adopter
        elif now - self.orphaned_at >= self.grace:
            self._end(BRISK, "abandoned")

    def _adopter(self) -> Identity | None:
        """Read who wants to be taken for the starter from the file that an adopter leaves in the folder."""
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
            self._unhear(handle)
            os.close(handle)
        return bool(data)

    def _spool(self, stream: str, data: bytes) -> None:
        try:
            self.spool.take(stream, data)
        except OSError as error:
            # A full disk must not end the supervisor: the process tree would be left to itself.
            self.output_error = error.strerror

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                # Whatever loses its parents becomes a child of this process: without one, nothing is left.
                self.is_alone = True
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

    # Telling

    def _ending(self) -> "dict[str, Any]":
        assert self.code is not None
        return {
            "reason": self.reason,
            "exit_code": self.code if self.code >= 0 else None,
            "signal": _name_of(-self.code) if self.code < 0 else None,
            "signals_sent": self.sent,
            "leftovers": self.leftovers,
            "output_error": self.output_error,
        }

    def _tell(self, message: "dict[str, Any]") -> None:
        try:
            os.write(self.spec["status_fd"], json.dumps(message).encode() + b"\n")
        except OSError:
            # Whoever asked is gone; the files tell the next one.
            return

    def _note(self, name: str, content: "dict[str, Any]") -> None:
        """Write a file in the folder, all of it or nothing."""
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
