"""Fork test processes from a server that has everything imported and nothing open. Imports are most of their cost."""

import array
import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from decklog.agents.caller import VARIABLES

ROOT = Path(__file__).parent.parent
# Not a valid exit code or process id.
_TIMED_OUT = -1000
# A model that happens to be installed on this machine would change what recall finds.
NO_MODELS = str(ROOT / "tests" / "no-models")

# Runs in the forked process.
JobFunction = Callable[..., Any]


class ProcessResult(NamedTuple):
    """The exit code and the output of a process."""

    code: int
    out: bytes
    err: bytes


def environment(**more: str) -> dict[str, str]:
    """Return an environment with the code under test and without the user's settings."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("DECKLOG_") and name not in VARIABLES}
    variables["DECKLOG_MODELS"] = NO_MODELS
    return {**variables, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "PYTHONWARNINGS": "default", **more}


def run(
    module: str,
    arguments: list[Any],
    *,
    cwd: Path | None = None,
    variables: dict[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 60,
) -> ProcessResult:
    """Fork a process that calls the function returned by `prepare` of a module; return its result."""
    with tempfile.TemporaryFile() as stdin_file, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin_file.write(stdin)
        stdin_file.seek(0)
        where = {"cwd": str(cwd or Path.cwd()), "environment": environment(**(variables or {}))}
        code = _server(module).order(
            {"arguments": arguments, "timeout": timeout, **where}, [file.fileno() for file in (stdin_file, out, err)]
        )
        out.seek(0)
        err.seek(0)
        return ProcessResult(code, out.read(), err.read())


class ForkedProcess:
    """A forked process whose output can be read while it runs; like `subprocess.Popen`."""

    def __init__(self, module: str, arguments: list[Any]) -> None:
        self._server = _server(module)
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        order = {"arguments": arguments, "cwd": str(Path.cwd()), "environment": environment(), "goes_on": True}
        self.pid = self._server.order(order, [theirs_in, theirs_out, 2])
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin, self.stdout = os.fdopen(ours_in, "w"), os.fdopen(ours_out)
        self._code: int | None = None

    def wait(self, timeout: float = 60) -> int:
        """Wait for the process to end; return its exit code."""
        if self._code is None:
            self._code = self._server.order({"arguments": [], "awaited": self.pid, "timeout": timeout}, [])
        return self._code

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)  # nobody has waited for it yet, so the pid is still its own

    def communicate(self, text: str = "", timeout: float = 60) -> tuple[str, None]:
        """Write to the process and close its input; return its output, at most what a pipe holds."""
        with self.stdin, self.stdout:
            with suppress(BrokenPipeError):
                self.stdin.write(text)
                self.stdin.close()
            self.wait(timeout)
            return self.stdout.read(), None


# The stub of a program: it sends its arguments, environment and open files to the fork server.
_STUB_PROGRAM = """#!/bin/sh
'''exec' "{python}" -IS "$0" "$@"
' '''
import json, os, sys, _socket
prepared = _socket.socket(fileno={number})
order = {{"arguments": sys.argv[1:], "cwd": os.getcwd(), "environment": dict(os.environ), "timeout": 60}}
files = b"".join(file.to_bytes(4, sys.byteorder) for file in (0, 1, 2))
prepared.sendmsg([json.dumps(order).encode()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
code = int(prepared.recv(64))
prepared.detach()
sys.exit(code if code >= 0 else 128 - code)
"""


def write_stub_program(module: str, program: Path) -> int:
    """Write a stub program that runs in the fork server; return the file descriptor that the shell must inherit.

    Calls run one at a time.
    """
    number = _server(module).number
    program.write_text(_STUB_PROGRAM.format(python=sys.executable, number=number))
    program.chmod(0o755)
    return number


class _ForkServer:
    """The client of a process that forks a child for each order."""

    def __init__(self, module: str) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [sys.executable, "-m", "tests.fork_server", module, str(theirs.fileno())]
        self._process = subprocess.Popen(words, env=environment(), pass_fds=[theirs.fileno()])
        theirs.close()
        atexit.register(self._close)

    def _close(self) -> None:
        """Close the connection, which ends the server."""
        self._ours.close()
        self._process.wait(10)

    @property
    def number(self) -> int:
        return self._ours.fileno()

    def order(self, order: dict[str, Any], files: list[int]) -> int:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
        self._ours.sendmsg([json.dumps(order).encode()], rights if files else [])
        answer = self._ours.recv(64)
        assert answer, f"the fork server ended with {self._process.wait(10)}"
        code = int(answer)
        if code == _TIMED_OUT:
            raise subprocess.TimeoutExpired(str(order["arguments"]), order["timeout"])
        return code


@cache
def _server(module: str) -> _ForkServer:
    return _ForkServer(module)


def _serve(act: JobFunction, orders: socket.socket) -> None:
    # Exclude imported objects from garbage collection, which would copy their pages in every child.
    gc.collect()
    gc.freeze()
    while True:
        message, rights, *_ = orders.recvmsg(1 << 20, socket.CMSG_SPACE(3 * array.array("i").itemsize))
        if not message:
            return
        files = array.array("i")
        for _, _, data in rights:
            files.frombytes(data[: len(data) - len(data) % files.itemsize])
        order = json.loads(message)
        awaited = order.get("awaited")
        answer = _wait(awaited, order["timeout"]) if awaited else _fork_child(act, order, files, orders)
        orders.send(str(answer).encode())


def _fork_child(act: JobFunction, order: dict[str, Any], files: "array.array[int]", orders: socket.socket) -> int:
    """Fork a child; return its exit code, or its pid if it is to run on."""
    child = os.fork()
    if not child:
        orders.close()
        _run_child(act, order, list(files))
    for file in files:
        os.close(file)
    return child if order.get("goes_on") else _wait_or_kill(child, order["timeout"])


def _run_child(act: JobFunction, order: dict[str, Any], files: list[int]) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    act(*order["arguments"])
    sys.exit()


def _wait_or_kill(child: int, timeout: float) -> int:
    """Wait for a child, and kill it after the timeout; return its exit code as `subprocess` does."""
    code = _wait(child, timeout)
    if code == _TIMED_OUT:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return code


def _wait(child: int, timeout: float) -> int:
    """Wait for a child; return its exit code, or _TIMED_OUT."""

    def stop(*_: object) -> None:
        raise TimeoutError

    if timeout <= 0:
        ended, status = os.waitpid(child, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else _TIMED_OUT
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, timeout)
    try:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    except TimeoutError:
        return _TIMED_OUT
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[2])) as orders:
        _serve(import_module(sys.argv[1]).prepare(), orders)
