"""Turn a forked process into a command: file descriptors, directory, sandbox, then exec.

Import nothing after entering the sandbox: Python's modules may be outside of it.
"""

import json
import os
import signal
from typing import TYPE_CHECKING

from decklog.guard.sandbox import landlock, mounts

if TYPE_CHECKING:
    from typing import Any


def become(spec: "dict[str, Any]", out: int, err: int, trouble: int) -> None:
    """Execute the command of an order in this process; write an error to the pipe `trouble`."""
    try:
        os.setsid()
        given = os.open(spec["input"] or "/dev/null", os.O_RDONLY)
        for source, target in ((given, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        os.fchdir(spec["cwd_fd"])
        # Exec resets handlers, but ignored signals would stay ignored.
        signal.set_wakeup_fd(-1)
        held = spec["landlock"]
        if held is not None:
            if held["covered"]:
                mounts.cover(held["covered"])
            landlock.restrict(spec["rules_fd"], network=held["network"])
        _execute(spec["argv"], spec["env"])
    except OSError as error:
        os.write(trouble, json.dumps({"errno": error.errno, "strerror": error.strerror}).encode())
    finally:
        os._exit(127)


def _execute(argv: list[str], env: dict[str, str]) -> None:
    """Execute the first match on PATH, like `os.execvpe`, but without imports."""
    problem = None
    for path in _candidates(argv[0], env):
        try:
            os.execve(path, argv, env)
        except OSError as error:
            # Prefer "can't be run" to "not found".
            if problem is None or isinstance(problem, (FileNotFoundError, NotADirectoryError)):
                problem = error
    assert problem is not None
    raise problem


def _candidates(program: str, env: dict[str, str]) -> list[str]:
    """Return the paths to try; the last one even if it is missing, for the kernel's error."""
    if "/" in program:
        return [program]
    places = [os.path.join(folder, program) for folder in env.get("PATH", os.defpath).split(":")]
    return [*filter(os.path.lexists, places[:-1]), places[-1]]
