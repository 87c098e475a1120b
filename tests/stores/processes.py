<<<<<<< HEAD
"""Real processes for claims about several writers: each opens the log itself, and all start together."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from typing import Any

from decklog import Decklog, DecklogError


def _work(target: str, barrier: Barrier, answers: Any, job: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with Decklog.open(target) as log:
        barrier.wait(60)
        try:
            answers.put(("done", job(log, *arguments)))
        except DecklogError as problem:
            answers.put((problem.code, problem.message))


def together(target: str, job: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[tuple[str, Any]]:
    """Run one call of the job in each of as many processes; give what each answered, or its error's code and message."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(len(calls)), context.Queue()
    workers = [context.Process(target=_work, args=(target, barrier, answers, job, call)) for call in calls]
    for worker in workers:
        worker.start()
    got = [answers.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(60)
    return got
=======
"""Real processes for claims about concurrency: each opens the log itself, and all start at once."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from decklog import Decklog

_ROOT = Path(__file__).parents[2]


def at_once(job: str, target: str, *, processes: int, times: int) -> None:
    """Run a job, named as `module.function`, `times` in each of several processes; fail when one of them does."""
    call = "from tests.stores.processes import work; import sys; work(*sys.argv[1:])"
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
>>>>>>> memory
