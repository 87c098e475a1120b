"""Keeping a lease alive: without holding anybody up, and never silently given up."""

import copy
import threading
import time

import pytest

from decklog import Decklog
from tests.stores.claiming import claimed


@pytest.fixture
def log(target: str) -> Decklog:
    log = Decklog.open(target)
    log.runs.start("x", run_id="run_1")
    log.tasks.add("run_1", "t", task_id="t")
    return log


def test_a_transaction_inside_of_a_claim_ends(log: Decklog) -> None:
    claim = claimed(log, "run_1", worker="ada", lease_seconds=0.9)
    before = time.monotonic()
    with claim, log.transaction():
        log.journal.append("run_1", "result")
        time.sleep(0.4)
        claim.finish("ok")
    assert time.monotonic() - before < 60
    assert log.tasks.get("t").state == "done"
    log.close()


def test_a_claim_can_be_copied(log: Decklog) -> None:
    claim = claimed(log, "run_1", worker="ada")
    assert copy.copy(claim).task == claim.task
    assert copy.deepcopy(claim.task) == claim.task
    log.close()


@pytest.mark.slow
def test_a_waiting_claim_only_looks_while_there_is_nothing_to_take(target: str) -> None:
    with Decklog.open(target) as busy, Decklog.open(target, busy_seconds=0.2) as waiting:
        busy.runs.start("x", run_id="run_1")
        told: list[object] = []

        def wait() -> None:
            try:
                told.append(waiting.tasks.claim("run_1", worker="ada", wait_seconds=2.5))
            except BaseException as problem:  # noqa: BLE001
                told.append(problem)

        waiter = threading.Thread(target=wait)
        waiter.start()
        time.sleep(0.5)
        busy.journal.append("run_1", "which wakes whoever waits")
        with busy.transaction():
            busy.journal.append("run_1", "which keeps everybody from writing")
            time.sleep(1.5)
        waiter.join(20)
    assert told == [None]
