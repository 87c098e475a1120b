"""Real processes for claims about several writers: each opens the log itself, and all start together.

They are forked from one that has opened nothing and has imported what they need: real, at a tenth of the cost.
"""

import base64
import multiprocessing
import pickle
import sys
from collections.abc import Callable
from importlib import import_module
from multiprocessing.synchronize import Barrier
from typing import Any

from decklog import Decklog
from tests import fork_server
from tests.db.processes import fork_all

_MODULE = "tests.db.processes"


def shared_out(job: Callable[..., Any], calls: list[tuple[Any, ...]], *, processes: int = 4) -> list[Any]:
    """Share calls of the job out to several processes; give what each call answered."""
    parts = in_processes(processes, _in_turn, processes, job, calls)
    return [parts[number % processes][number // processes] for number in range(len(calls))]


def _in_turn(number: int, ready: Barrier, processes: int, job: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    ready.wait(60)
    return [job(*call) for call in calls[number::processes]]


def at_once(job: str, target: str, *, processes: int, times: int) -> None:
    """Run a job, named as `module.function`, `times` in each of several processes; fail when one of them does."""
    assert in_processes(processes, _repeat, target, job, times) == [times] * processes


def _repeat(number: int, ready: Barrier, target: str, job: str, times: int) -> int:
    module, _, name = job.rpartition(".")
    do = getattr(import_module(module), name)
    with Decklog.open(target) as log:
        ready.wait(60)
        for place in range(number * times, (number + 1) * times):
            do(log, place)
    return times


def in_processes(count: int, work: Callable[..., Any], *arguments: Any) -> Any:
    """Do some work in so many processes, each of which is given its number and a place to meet; give what each returned."""
    done = fork_server.run(_MODULE, ["in_processes", None, [_packed((count, work, arguments))]], timeout=180)
    assert done.code == 0, done.err.decode()
    return pickle.loads(done.out)


def begin(job: Callable[..., Any], *arguments: Any) -> fork_server.ForkedProcess:
    """Call a job in a process of its own, which may be killed; it is the caller's to end."""
    return fork_server.ForkedProcess(_MODULE, ["in_process", None, [_packed((job, arguments))]])


def call_packed(order: str) -> None:
    """Call what was packed."""
    job, arguments = _unpacked(order)
    job(*arguments)


def run_packed(order: str) -> None:
    """Do what was packed, in a process that was forked for it, and write down what came of it."""
    count, work, arguments = _unpacked(order)
    ready = multiprocessing.get_context("fork").Barrier(count)
    answers = fork_all(count, lambda number: _packed(work(number, ready, *arguments)))
    if failed := [answer for answer in answers if not isinstance(answer, str)]:
        sys.exit(str(failed))
    sys.stdout.buffer.write(pickle.dumps([_unpacked(answer) for answer in answers]))


def _packed(value: Any) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()


def _unpacked(text: str) -> Any:
    return pickle.loads(base64.b64decode(text))
