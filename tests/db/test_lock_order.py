"""Transactions that write to one run in any order of verbs wait for each other, and never in a circle."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from decklog import Decklog
from tests.searches import FULL

THREADS = 6
SECONDS = 4.0 if FULL else 1.0
LONG = "the same long text " * 2000


def verbs(log: Decklog, luck: random.Random) -> list[Callable[[], Any]]:
    """What a worker may do to the run, each touching other tables."""

    def work() -> None:
        claim = log.tasks.claim("run_1", worker=f"w{luck.random()}", lease_seconds=60)
        if claim is not None:
            luck.choice([claim.finish, claim.release, lambda: claim.extend(stage="x"), lambda: claim.fail("no")])()

    def decide() -> None:
        approval = log.approvals.ask("run_1", "Ship it?", about={"n": luck.random()}, by="dev")
        log.approvals.decide(approval.id, "granted", by="ana")

    def hand_over() -> None:
        path = f"notes{luck.random()}.md"
        package = log.context.save("run_1", "research", path, "developer", "What it says", consumers=["qa_expert"])
        log.context.consume(package.id, "qa_expert")

    return [
        lambda: log.journal.append("run_1", "short"),
        lambda: log.journal.append("run_1", LONG),
        lambda: log.journal.append_many([{"stream": "run_1", "body": "many"}] * 3),
        lambda: log.runs.count_cycle("run_1"),
        lambda: log.runs.record_agent("run_1", "developer", turns=luck.randrange(9)),
        lambda: log.tasks.add("run_1", "one more"),
        lambda: log.states.save("run_1", "pm", {"n": luck.randrange(3)}),
        lambda: log.ledger.charge("claude-x", input_tokens=1, output_tokens=1, run_id="run_1", cost_microdollars=1),
        work,
        decide,
        hand_over,
    ]


@pytest.fixture
def worked_on(log: Decklog) -> Decklog:
    log.runs.start("shared", run_id="run_1")
    for number in range(5):
        log.tasks.add("run_1", f"task {number}")
    for verb in verbs(log, random.Random(1)):
        verb()
    return log


@pytest.mark.slow
def test_mixed_verbs_in_transactions_never_cross(worked_on: Decklog) -> None:
    problems: list[str] = []
    end = time.monotonic() + SECONDS

    def keep_on(number: int) -> None:
        luck = random.Random(number)
        mine = verbs(worked_on, luck)
        while time.monotonic() < end:
            chosen = luck.sample(mine, 3)
            try:
                if number % 3:
                    with worked_on.transaction():
                        for verb in chosen:
                            verb()
                else:
                    chosen[0]()
            except Exception as problem:  # noqa: BLE001
                problems.append(f"{type(problem).__name__}: {problem}")

    threads = [threading.Thread(target=keep_on, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert problems == []
    assert worked_on.journal.verify().ok
