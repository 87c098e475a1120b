"""Real processes for claims about several writers: each opens the log itself, and all start together."""

import multiprocessing
from collections.abc import Callable
from importlib import import_module
from multiprocessing.synchronize import Barrier
from typing import Any

from decklog import Decklog, DecklogError

# Children are forked from a server that has opened nothing and has imported what they need: real, at a tenth of the cost.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["hypothesis", "pytest", "tests.conftest", "tests.imported", __name__])


def _work(target: str, barrier: Barrier, answers: Any, job: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with Decklog.open(target) as log:
        barrier.wait(60)
        try:
            answers.put(("done", job(log, *arguments)))
        except DecklogError as problem:
            answers.put((problem.code, problem.message))


def together(target: str, job: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[tuple[str, Any]]:
    """Run one call of the job in each of as many processes; give what each answered, or its error's code and message."""
    barrier, answers = CONTEXT.Barrier(len(calls)), CONTEXT.Queue()
    workers = [CONTEXT.Process(target=_work, args=(target, barrier, answers, job, call)) for call in calls]
    for worker in workers:
        worker.start()
    got = [answers.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(60)
    return got


def at_once(job: str, target: str, *, processes: int, times: int) -> None:
    """Run a job, named as `module.function`, `times` in each of several processes; fail when one of them does."""
    got = together(target, _repeat, [(job, number * times, times) for number in range(processes)])
    assert got == [("done", times)] * processes


def _repeat(log: Decklog, job: str, first: int, times: int) -> int:
    module, _, name = job.rpartition(".")
    do = getattr(import_module(module), name)
    for number in range(first, first + times):
        do(log, number)
    return times
