"""How a forked process becomes a command: its handles, its folder, what holds it in, and last of all its program.

From where it is held in on nothing may be imported any more: Python's own modules may lie out of the command's reach.
"""

import json
import os
import signal
from typing import TYPE_CHECKING

from decklog.guard.sandbox import landlock, mounts

if TYPE_CHECKING:
    from typing import Any


def become(spec: "dict[str, Any]", out: int, err: int, trouble: int) -> None:
    """Turn this process into the command of an order; what prevents it is told on a pipe."""
    try:
        os.setsid()
        given = os.open(spec["input"] or "/dev/null", os.O_RDONLY)
        for source, target in ((given, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        os.fchdir(spec["cwd_fd"])
        # Handlers end with this program; what it had been told to ignore would be ignored by the next one too.
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
    """Run the first program of a name that can be run, as `os.execvpe` does; that one imports."""
    problem = None
    for path in _candidates(argv[0], env):
        try:
            os.execve(path, argv, env)
        except OSError as error:
            # That one can't be run says more than that there is none.
            if problem is None or isinstance(problem, (FileNotFoundError, NotADirectoryError)):
                problem = error
    assert problem is not None
    raise problem


def _candidates(program: str, env: dict[str, str]) -> list[str]:
    """List where a program may lie; the last place also where there is none, to be told so by the kernel."""
    if "/" in program:
        return [program]
    places = [os.path.join(folder, program) for folder in env.get("PATH", os.defpath).split(":")]
    return [*filter(os.path.lexists, places[:-1]), places[-1]]
