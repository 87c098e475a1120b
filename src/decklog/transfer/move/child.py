"""A process of its own for a part of a move: one Python process uses one core."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Below this many entries another process takes longer to start than it saves.
WORTH_A_PROCESS = 50_000


@contextmanager
def child(module: str, given: "Any") -> "Iterator[subprocess.Popen[bytes]]":
    """Run a module as a program of its own, with something on its standard input; it is ended with the block."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    started = subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        # Not an argument: everyone on the machine can read those, and a server's address may hold a password.
        assert started.stdin is not None
        started.stdin.write(json.dumps(given).encode())
        started.stdin.close()
        started.stdin = None
        yield started
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate()
