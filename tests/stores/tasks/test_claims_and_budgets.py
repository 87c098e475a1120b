"""A claim reserves budget in its own transaction."""

from datetime import timedelta

import pytest

from decklog import BudgetExceeded, Decklog, ManualClock
from tests.stores.claiming import claimed


@pytest.fixture
def budget(log: Decklog, run_id: str) -> str:
    return log.budgets.set("run", scope_id=run_id, limit_microdollars=1000).id


def reserved(log: Decklog) -> int:
    return int(log.budgets.burn()[0]["reserved"])


def test_a_claim_reserves_and_finishing_settles(log: Decklog, run_id: str, budget: str) -> None:
    for title in "abc":
        log.tasks.add(run_id, title)
    first = log.tasks.claim(run_id, worker="w", reserve_microdollars=600)
    assert reserved(log) == 600
    with pytest.raises(BudgetExceeded) as refusal:
        log.tasks.claim(run_id, worker="v", reserve_microdollars=600)
    assert refusal.value.details
    assert log.tasks.find(run_id, state="running") == [log.tasks.get(first.task.id)]
    first.finish()
    assert reserved(log) == 0
    assert log.tasks.claim(run_id, worker="v", reserve_microdollars=600) is not None


def test_an_expired_lease_gives_its_budget_back(log: Decklog, run_id: str, budget: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "a")
    log.tasks.claim(run_id, worker="dead", reserve_microdollars=1000, lease_seconds=60)
    clock.advance(seconds=61)
    again = claimed(log, run_id, worker="next", reserve_microdollars=1000)
    again.extend()
    assert log.reservations.get(again.task.reservation_id).expires_at == again.task.leased_until
    assert log.journal.verify().ok


def test_a_claim_brings_lessons_along(log: Decklog, run_id: str) -> None:
    log.memory.remember("failure_patterns", "The lexer drops the last token when a file has no final newline")
    log.tasks.add(run_id, "Fix the lexer", objective="The last token of a file is missing")
    claim = log.tasks.claim(run_id, worker="w", recall=True)
    assert "lexer" in str(claim.as_dict()["lessons"][0])


def test_a_task_that_is_taken_from_its_worker_holds_no_budget(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    for number, take in enumerate(
        (
            lambda task: log.tasks.pause(task, reason="stop"),
            lambda task: log.tasks.abandon(task, reason="stop"),
            lambda _: log.tasks.replan(run_id, [], include_running=True),
        )
    ):
        log.tasks.add(run_id, "work", task_id=f"work-{number}")
        log.tasks.claim(run_id, worker="w", reserve_microdollars=100)
        assert log.budgets.burn()[0]["left"] == 0
        take(f"work-{number}")
        assert log.budgets.burn()[0]["left"] == 100


def test_a_worker_that_gave_its_budget_back_can_still_finish(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    log.tasks.add(run_id, "work")
    claim = log.tasks.claim(run_id, worker="w", reserve_microdollars=100)
    log.reservations.release(claim.task.reservation_id)
    assert log.tasks.finish(claim.task.id, fence=claim.task.fence).state == "done"


def test_finish_and_claim_reserves_for_the_next_or_does_nothing(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    log.tasks.add_many(run_id, [{"title": "one", "priority": 60}, {"title": "two"}])
    claim = log.tasks.claim(run_id, worker="w", reserve_microdollars=100)
    with pytest.raises(BudgetExceeded):
        log.tasks.finish_and_claim(claim.task.id, fence=claim.task.fence, reserve_microdollars=101)
    assert log.tasks.get(claim.task.id).state == "running"
    following = log.tasks.finish_and_claim(claim.task.id, fence=claim.task.fence, reserve_microdollars=100)
    assert following.task.title == "two"
    assert log.budgets.burn()[0]["reserved"] == 100


def test_a_worker_that_gave_its_budget_back_does_not_get_it_again_by_going_on(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "work")
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    claim = claimed(log, run_id, reserve_microdollars=60)
    log.reservations.release(claim.reservation_id)
    claim.extend()
    assert log.budgets.burn()[0]["reserved"] == 0
    assert len(log.reservations.find(run_id)) == 1


def test_a_charge_in_a_claims_block_uses_the_claims_reservation(log: Decklog, run_id: str, budget: str) -> None:
    log.tasks.add(run_id, "a")
    with log.tasks.claim(run_id, worker="w", reserve_microdollars=1000) as claim:
        charge = log.ledger.charge("m", input_tokens=1, cost_microdollars=700)
        assert (charge.reservation_id, charge.task_id, charge.agent) == (claim.task.reservation_id, claim.task.id, "w")
        with pytest.raises(BudgetExceeded):
            log.ledger.charge("m", input_tokens=1, cost_microdollars=301)
        log.ledger.charge("m", input_tokens=1, cost_microdollars=300)
        assert log.reservations.get(claim.task.reservation_id).used_microdollars == 1000
    assert log.budgets.burn()[0]["spent"] == 1000
    assert log.journal.verify().ok


def test_whoever_acts_in_a_claims_block_can_spend_its_reservation(log: Decklog, run_id: str, budget: str) -> None:
    log.tasks.add(run_id, "a")
    with log.tasks.claim(run_id, worker="w", reserve_microdollars=1000) as claim, log.acting("developer"):
        first = log.ledger.charge("m", input_tokens=1, cost_microdollars=400)
        second = log.ledger.charge("m", input_tokens=1, cost_microdollars=400, reservation_id=claim.task.reservation_id)
        third = log.ledger.charge("m", input_tokens=1, cost_microdollars=200, agent="reviewer")
    assert [one.agent for one in (first, second, third)] == ["developer", "developer", "reviewer"]
    assert {one.reservation_id for one in (first, second, third)} == {claim.task.reservation_id}


def test_an_agents_own_budget_counts_in_a_claims_block(log: Decklog, run_id: str, budget: str) -> None:
    log.budgets.set("agent", scope_id="developer", limit_microdollars=100)
    log.tasks.add(run_id, "a")
    with (
        log.tasks.claim(run_id, worker="w", reserve_microdollars=1000),
        log.acting("developer"),
        pytest.raises(BudgetExceeded, match="developer"),
    ):
        log.ledger.charge("m", input_tokens=1, cost_microdollars=101)


def test_a_reservation_that_is_named_goes_before_the_task_at_hand(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.runs.start("another", run_id="run_2")
    other = log.reservations.reserve(clock.now() + timedelta(hours=1), amount_microdollars=10, run_id="run_2")
    log.groups.add(run_id, "A")
    log.tasks.add(run_id, "a", group_id="A")
    with log.tasks.claim(run_id, worker="w", reserve_microdollars=5):
        charge = log.ledger.charge("m", input_tokens=1, cost_microdollars=1, reservation_id=other.id)
    assert (charge.run_id, charge.task_id, charge.group_id) == ("run_2", None, None)


def test_a_charge_for_another_task_leaves_the_reservation_alone(log: Decklog, run_id: str) -> None:
    log.groups.add(run_id, "A")
    log.tasks.add(run_id, "a", group_id="A")
    other = log.tasks.add(run_id, "b", not_before=log.clock.now() + timedelta(days=1))
    with log.tasks.claim(run_id, worker="w", reserve_microdollars=5):
        charge = log.ledger.charge("m", input_tokens=1, cost_microdollars=1, task_id=other.id)
    assert (charge.reservation_id, charge.task_id, charge.group_id) == (None, other.id, None)


def test_a_worker_that_lost_its_task_does_not_spend_what_the_next_one_reserved(
    log: Decklog, run_id: str, budget: str, clock: ManualClock
) -> None:
    log.tasks.add(run_id, "a")
    lost = log.tasks.claim(run_id, worker="lost", reserve_microdollars=500, lease_seconds=60)
    clock.advance(seconds=61)
    next_one = log.tasks.claim(run_id, worker="next", reserve_microdollars=500)
    with log.acting("lost", task_id=lost.task.id, fence=lost.task.fence):
        charge = log.ledger.charge("m", input_tokens=1, cost_microdollars=400)
    assert (charge.is_late, charge.reservation_id) == (True, None)
    assert log.reservations.get(next_one.task.reservation_id).used_microdollars == 0
    with log.acting("next", task_id=next_one.task.id, fence=next_one.task.fence):
        assert log.ledger.charge("m", input_tokens=1, cost_microdollars=500).reservation_id == next_one.task.reservation_id
