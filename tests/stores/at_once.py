"""Real processes for claims about concurrency: each opens the log itself, and all start at once."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from decklog import Decklog

_ROOT = Path(__file__).parents[2]


def at_once(job: str, target: str, *, processes: int, times: int) -> None:
    """Run a job, named as `module.function`, `times` in each of several processes; fail when one of them does."""
    call = "from tests.stores.at_once import work; import sys; work(*sys.argv[1:])"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", call, job, target, str(number * times), str(times)],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
            text=True,
        )
        for number in range(processes)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate(timeout=120)
    assert [worker.returncode for worker in workers] == [0] * processes


def work(job: str, target: str, first: str, times: str) -> None:
    """Open the log, say so, wait for the word, and do the job with a number of its own each time."""
    module, _, name = job.rpartition(".")
    do = getattr(import_module(module), name)
    with Decklog.open(target) as log:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(first), int(first) + int(times)):
            do(log, number)
