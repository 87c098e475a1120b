"""Work in its own process that may be killed, and the git of the repositories that it is about."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

_NAMED = ("-c", "user.name=kills", "-c", "user.email=kills@localhost")


def git(repository: Path, *words: str) -> str:
    """Run git with a name and an address; return its output."""
    done = subprocess.run(["git", *_NAMED, *words], cwd=repository, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def forked(work: Callable[[], object]) -> int:
    """Begin a work in a forked process; give its number."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def came_to_its_end(child: int, seconds: float | None) -> bool:
    """Wait for a process, and kill it after so long; say whether it came to its end."""
    end = None if seconds is None else time.monotonic() + seconds
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0:
        if end is not None and time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            end = None
        time.sleep(0.005)
    code = os.waitstatus_to_exitcode(done[1])
    assert code in (0, -signal.SIGKILL), code
    return code == 0
