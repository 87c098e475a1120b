"""The program in a process of its own, forked from one that has everything imported: importing is most of what a call costs.

Calls whose environment changes Python itself, and those on a terminal, are started from nothing.
"""

import array
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tests.db.processes import environment

# What Python or the C library looks at when a process begins.
_OF_PYTHON = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "COVERAGE")


class Done(NamedTuple):
    """How a call of the program ended."""

    code: int
    out: bytes
    err: bytes


def call(words: list[str], *, cwd: Path, variables: dict[str, str], stdin: bytes = b"", timeout: float = 60) -> Done:
    """Run `decklog` with these words and give what came of it."""
    if any(name.startswith(_OF_PYTHON) for name in variables):
        started = [sys.executable, "-m", "decklog", *words]
        done = subprocess.run(
            started, input=stdin, capture_output=True, cwd=cwd, env=environment(**variables), timeout=timeout, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        order = {"words": words, "cwd": str(cwd), "environment": environment(**variables), "timeout": timeout}
        code = _prepared().order(order, [given.fileno(), out.fileno(), err.fileno()])
        out.seek(0)
        err.seek(0)
        return Done(code, out.read(), err.read())


class _Prepared:
    """A process that has everything imported and nothing open, and forks a child for each call."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.programs", str(theirs.fileno())], env=environment(), pass_fds=[theirs.fileno()]
        )
        theirs.close()

    def order(self, order: dict[str, Any], files: list[int]) -> int:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
        self._ours.sendmsg([json.dumps(order).encode()], rights)
        answer = self._ours.recv(64)
        assert answer, f"the prepared process ended with {self._process.wait(10)}"
        code = int(answer)
        if code == _TOO_LONG:
            raise subprocess.TimeoutExpired(order["words"], order["timeout"])
        return code


_TOO_LONG = 1000


@cache
def _prepared() -> _Prepared:
    return _Prepared()


def _serve(orders: socket.socket) -> None:
    from decklog.cli import main  # before a module of this name takes its place in the package

    _import_everything()
    while True:
        message, rights, *_ = orders.recvmsg(1 << 20, socket.CMSG_SPACE(3 * array.array("i").itemsize))
        if not message:
            return
        files = array.array("i")
        for _, _, data in rights:
            files.frombytes(data[: len(data) - len(data) % files.itemsize])
        order = json.loads(message)
        child = os.fork()
        if not child:
            orders.close()
            _be_the_program(main, order, list(files))
        for file in files:
            os.close(file)
        orders.send(str(_ended(child, order["timeout"])).encode())


def _import_everything() -> None:
    import decklog.cli.main
    from decklog.app import STORES, store_class

    for store in STORES:
        store_class(store)
    for name in decklog.cli.main.COMMANDS:
        decklog.cli.main.menu.get_command(None, name)  # type: ignore[arg-type]
    import decklog.cli.derived
    import decklog.cli.short.planning
    import decklog.cli.short.program
    import decklog.cli.short.question
    import decklog.cli.show
    import decklog.db.sqlite.database


def _be_the_program(main: Callable[[list[str]], NoReturn], order: dict[str, Any], files: list[int]) -> NoReturn:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["decklog", *order["words"]]
    main(order["words"])


def _ended(child: int, timeout: float) -> int:
    """Wait for a child as long as it may take; give its exit code as `subprocess` does."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, timeout)
    try:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    except TimeoutError:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return _TOO_LONG
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        _serve(orders)
