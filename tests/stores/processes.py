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
