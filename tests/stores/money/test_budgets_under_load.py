"""Many processes against one budget, some of them killed in the middle of what they do."""

import os
import random
import signal
import time
from datetime import timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from decklog import BudgetExceeded, Decklog, ManualClock
from tests.fork_server import ForkedProcess
from tests.stores.processes import begin, in_processes
from tests.waiting import wait_until

FULL = bool(os.environ.get("DECKLOG_TEST_FULL"))
# Some dozens of calls reach it, and every worker is refused in the end; `make test-full` has them cross longer.
CEILING = 1_000_000 if FULL else 400_000
ROUNDS = 25 if FULL else 8
WORKERS = 16
KILLED = 5
# Longer than anybody waits for the others; what is left of it at the end is moved, not waited for.
HELD_SECONDS = 60.0
REFUSALS = 3


def work(target: str, seed: int, folder: Path, refusals: int | None = REFUSALS) -> None:
    """Reserve, charge, settle or forget, at random, until refused several times in a row; None means until killed."""
    dice = random.Random(seed)
    with Decklog.open(target) as log:
        wait_for_the_others(folder, seed)
        refused = 0
        while refusals is None or refused < refusals:
            try:
                one_call(log, dice, f"run_{seed % 4}")
                refused = 0
            except BudgetExceeded:
                refused += 1


def wait_for_the_others(folder: Path, seed: int) -> None:
    """Wait for the start with files alone: whoever is killed while holding a lock would stop all the others."""
    (folder / f"ready_{seed}").touch()
    wait_until((folder / "go").exists)


def begin_together(workers: list[ForkedProcess], folder: Path) -> None:
    wait_until(lambda: len(list(folder.glob("ready_*"))) == len(workers))
    (folder / "go").touch()


def one_call(log: Decklog, dice: random.Random, run_id: str) -> None:
    amount = dice.randint(1, 20_000)
    if dice.random() < 0.4:
        log.ledger.charge("m", input_tokens=amount, run_id=run_id)
        return
    with log.transaction():  # on a busy machine the wait for the others may be longer than the reservation
        until = log.clock.now() + timedelta(seconds=HELD_SECONDS)
        held = log.reservations.reserve(until, amount_microdollars=amount, run_id=run_id, holder=f"pid {os.getpid()}")
    for share in (0.5, 0.6):  # together more than was reserved: the rest needs room
        log.ledger.charge("m", input_tokens=int(amount * share), reservation_id=held.id)
    if dice.random() < 0.9:
        log.reservations.settle(held.id)


@pytest.mark.slow
def test_sixteen_processes_never_spend_a_microdollar_too_much(target: str, tmp_path: Path) -> None:
    with Decklog.open(target) as log:
        log.prices.set("m", 1_000_000, 1_000_000)
        for number in range(4):
            log.runs.start("spend", run_id=f"run_{number}")
        log.budgets.set("all", limit_microdollars=CEILING)
        log.budgets.set("run", scope_id="run_0", limit_microdollars=CEILING // 5)
    run_workers(target, tmp_path)
    with Decklog.open(target) as log:
        everything, run_0 = log.budgets.burn()
        assert everything["spent"] == log.ledger.summary()["total"]["cost_microdollars"]  # type: ignore[index]
        for shown, ceiling in ((everything, CEILING), (run_0, CEILING // 5)):
            assert shown["spent"] + shown["reserved"] <= ceiling  # type: ignore[operator]
        assert everything["spent"] > CEILING * 0.5  # type: ignore[operator]
        assert log.budgets.check()["ok"]
        assert log.journal.verify().ok
        open_ones = log.reservations.find(state="open", limit=1000)
        assert open_ones, "some were killed or forgot to settle"
    after = ManualClock(max(held.expires_at for held in open_ones) + timedelta(seconds=1))
    with Decklog.open(target, clock=after) as log:
        the_dead_hold_nothing(log)


def run_workers(target: str, folder: Path) -> None:
    """Let some workers spend until they are killed, and the others until nothing is left."""
    workers = [begin(work, target, seed, folder, None if seed < KILLED else REFUSALS) for seed in range(WORKERS)]
    begin_together(workers, folder)
    dice = random.Random(7)
    for worker in workers[:KILLED]:
        # Until they are killed they go on asking: what they are refused costs as much as what they get.
        time.sleep(dice.uniform(0.02, 0.1))
        worker.kill()
    assert ended(workers) == [-signal.SIGKILL] * KILLED + [0] * (WORKERS - KILLED)


def ended(workers: list[ForkedProcess]) -> list[int]:
    """Wait for the end of all of them; give their exit codes."""
    for worker in workers:
        worker.communicate(timeout=120)
    return [worker.wait() for worker in workers]


def the_dead_hold_nothing(log: Decklog) -> None:
    """What was reserved by those who died, or forgot to settle, can be spent once its time is over: all of it, and no more."""
    (everything,) = log.budgets.burn(scope="all")
    assert everything["reserved"] == 0
    log.ledger.charge("m", input_tokens=everything["left"])  # type: ignore[arg-type]
    (everything,) = log.budgets.burn(scope="all")
    assert (everything["spent"], everything["left"]) == (CEILING, 0)


def spend_at_once(seed: int, start: Barrier, target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("spend", run_id=f"run_{seed}")
        for number in range(ROUNDS):
            start.wait(60)
            try:
                log.ledger.charge("m", input_tokens=100, run_id=f"run_{seed}", agent=f"round_{number}")
            except BudgetExceeded:
                continue


@pytest.mark.slow
def test_of_many_who_spend_at_the_same_moment_only_as_many_succeed_as_there_is_money_for(target: str) -> None:
    with Decklog.open(target) as log:
        log.prices.set("m", 1_000_000, 1_000_000)
        for number in range(ROUNDS):
            log.budgets.set("agent", scope_id=f"round_{number}", limit_microdollars=399)
    in_processes(8, spend_at_once, target)
    with Decklog.open(target) as log:
        assert [shown["spent"] for shown in log.budgets.burn()] == [300] * ROUNDS
        assert log.budgets.check()["ok"]


def set_budgets(target: str, folder: Path) -> None:
    with Decklog.open(target) as log:
        wait_for_the_others(folder, -1)
        for _ in range(ROUNDS):
            budget = log.budgets.set("all", limit_tokens=10**9)
            assert log.budgets.check()["ok"]
            log.budgets.lift(budget.id)


@pytest.mark.slow
def test_a_budget_set_while_others_spend_misses_none_of_their_charges(target: str, tmp_path: Path) -> None:
    with Decklog.open(target) as log:
        log.prices.set("m", 1_000_000, 1_000_000)
        for number in range(4):
            log.runs.start("spend", run_id=f"run_{number}")
            log.budgets.set("run", scope_id=f"run_{number}", limit_microdollars=CEILING)
    workers = [begin(work, target, seed, tmp_path) for seed in range(4)]
    workers.append(begin(set_budgets, target, tmp_path))
    begin_together(workers, tmp_path)
    assert ended(workers) == [0] * 5
    with Decklog.open(target) as log:
        assert log.budgets.check()["ok"]
        assert log.journal.verify().ok
