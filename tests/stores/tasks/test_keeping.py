"""Keeping a lease alive: without holding anybody up, and never silently given up."""

import copy
import threading
import time

import pytest

from decklog import Decklog, LeaseLost


@pytest.fixture
def log(target: str) -> Decklog:
    log = Decklog.open(target)
    log.runs.start("x", run_id="run_1")
    log.tasks.add("run_1", "t", task_id="t")
    return log


@pytest.mark.slow
def test_a_claim_inside_of_a_transaction_ends(log: Decklog) -> None:
    done = threading.Event()

    def work() -> None:
        with log.transaction():
            claim = log.tasks.claim("run_1", worker="ada", lease_seconds=0.6)
            assert claim is not None
            with claim:
                time.sleep(0.5)  # longer than a third of the lease
        done.set()

    threading.Thread(target=work, daemon=True).start()
    assert done.wait(20)
    assert log.tasks.get("t").state == "done"
    log.close()


def test_a_transaction_inside_of_a_claim_ends(log: Decklog) -> None:
    claim = log.tasks.claim("run_1", worker="ada", lease_seconds=0.9)
    assert claim is not None
    before = time.monotonic()
    with claim, log.transaction():
        log.journal.append("run_1", "result")
        time.sleep(0.4)
        claim.finish("ok")
    assert time.monotonic() - before < 60
    assert log.tasks.get("t").state == "done"
    log.close()


def test_a_lease_that_can_not_be_kept_alive_says_why(log: Decklog) -> None:
    claim = log.tasks.claim("run_1", worker="ada", lease_seconds=0.6)
    assert claim is not None
    with pytest.raises(LeaseLost, match=r"could not be kept alive: .*closed"), claim:
        log.close()
        for _ in range(200):
            if claim.lost is not None:
                break
            time.sleep(0.02)
        assert claim.lost is not None


def test_a_claim_can_be_copied(log: Decklog) -> None:
    claim = log.tasks.claim("run_1", worker="ada")
    assert claim is not None
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


def test_a_waiting_claim_takes_what_becomes_ready(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("x", run_id="run_1")
        adding = threading.Timer(0.3, lambda: log.tasks.add("run_1", "t", task_id="t"))
        adding.start()
        claim = log.tasks.claim("run_1", worker="ada", wait_seconds=20)
        adding.join()
        assert claim is not None
        assert claim.task.id == "t"
