from datetime import timedelta

import pytest

from decklog import BudgetExceeded, Conflict, Decklog, Invalid, ManualClock, NotFound
from decklog.core.clock import to_text
from decklog.stores.money.records import Reservation


@pytest.fixture(autouse=True)
def _prices(log: Decklog) -> None:
    log.prices.set("m", 1_000_000, 1_000_000)  # a micro-dollar per token


def reserve(log: Decklog, amount: int, *, minutes: float = 10, **given: object) -> Reservation:
    return log.reservations.reserve(log.clock.now() + timedelta(minutes=minutes), amount_microdollars=amount, **given)  # type: ignore[arg-type]


def spend(log: Decklog, amount: int, reservation: Reservation | None = None, **given: object) -> None:
    log.ledger.charge("m", input_tokens=amount, reservation_id=reservation and reservation.id, **given)  # type: ignore[arg-type]


def standing(log: Decklog) -> tuple[object, object]:
    (shown,) = log.budgets.burn()
    return shown["spent"], shown["reserved"]


# Holding


def test_what_is_reserved_nobody_else_can_spend(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    reserve(log, 70, run_id=run_id, holder="task_1 fence 1")
    assert standing(log) == (0, 70)
    with pytest.raises(BudgetExceeded) as caught:
        spend(log, 31, run_id=run_id)
    assert caught.value.details["reserved"] == 70
    with pytest.raises(BudgetExceeded):
        reserve(log, 31, run_id=run_id)
    spend(log, 30, run_id=run_id)


def test_a_reserved_charge_is_covered_up_to_what_was_reserved(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    held = reserve(log, 60, run_id=run_id)
    spend(log, 40, run_id=run_id)
    spend(log, 25, held)
    spend(log, 35, held)
    assert standing(log) == (100, 0)
    with pytest.raises(BudgetExceeded):
        spend(log, 1, held)


def test_more_than_was_reserved_needs_room_for_the_rest(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    held = reserve(log, 60, run_id=run_id)
    reserve(log, 30, run_id=run_id)
    with pytest.raises(BudgetExceeded) as caught:
        spend(log, 71, held)
    assert caught.value.details["asked"] == 11
    spend(log, 70, held)
    assert standing(log) == (70, 30)
    used = log.reservations.get(held.id)
    assert (used.used_microdollars, used.used_tokens) == (70, 70)


def test_settling_frees_what_was_not_used(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    held = reserve(log, 100, run_id=run_id)
    spend(log, 30, held)
    settled = log.reservations.settle(held.id)
    assert settled.state == "settled"
    assert settled.ended_at is not None
    assert standing(log) == (30, 0)
    assert log.reservations.settle(held.id).already
    with pytest.raises(Conflict, match="settled"):
        log.reservations.release(held.id)


def test_a_settled_reservation_covers_nothing(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    held = reserve(log, 100, run_id=run_id)
    log.reservations.settle(held.id)
    reserve(log, 80, run_id=run_id)
    with pytest.raises(BudgetExceeded):
        spend(log, 21, held)
    spend(log, 20, held)
    assert log.reservations.get(held.id).used_microdollars == 0


def test_nothing_can_be_reserved_where_nothing_is_left(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    spend(log, 100, run_id=run_id)
    with pytest.raises(BudgetExceeded):
        reserve(log, 0, run_id=run_id)


def test_a_reservation_holds_in_every_budget_it_falls_under(log: Decklog, run_id: str) -> None:
    log.budgets.set("all", limit_microdollars=100)
    log.tasks.add(run_id, "work", task_id="t1")
    log.budgets.set("task", scope_id="t1", limit_tokens=50)
    held = reserve(log, 90, tokens=50, run_id=run_id, task_id="t1")
    for given in ({"task_id": "t1"}, {"task_id": "t2"}):
        with pytest.raises(BudgetExceeded):
            spend(log, 11, **given)
    spend(log, 50, held)
    assert [(shown["spent"], shown["reserved"]) for shown in log.budgets.burn()] == [(50, 40), (50, 0)]


def test_a_budget_the_reservation_is_not_under_needs_room_of_its_own(log: Decklog, run_id: str) -> None:
    log.budgets.set("agent", scope_id="qa", limit_microdollars=10)
    held = reserve(log, 100, run_id=run_id)
    with pytest.raises(BudgetExceeded):
        spend(log, 11, held, agent="qa")
    spend(log, 11, held, agent="developer")


def test_a_reservation_is_spent_only_where_it_was_made_for(log: Decklog, run_id: str) -> None:
    held = reserve(log, 100, run_id=run_id, task_id="t1")
    with pytest.raises(Invalid, match="task_id t1"):
        spend(log, 1, held, task_id="t2")
    with pytest.raises(Invalid, match="run_id None"):
        spend(log, 1, reserve(log, 100), run_id=run_id)
    spend(log, 1, held)
    (charge,) = log.ledger.find()
    assert (charge.run_id, charge.task_id, charge.reservation_id) == (run_id, "t1", held.id)
    with pytest.raises(NotFound):
        log.ledger.charge("m", input_tokens=1, reservation_id="nobody")


def test_a_budget_set_later_counts_what_is_held(log: Decklog, run_id: str) -> None:
    held = reserve(log, 70, run_id=run_id)
    spend(log, 20, held)
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    assert standing(log) == (20, 50)


def test_a_promise_is_kept_when_the_ceiling_is_lowered(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    held = reserve(log, 60, run_id=run_id)
    log.budgets.set("run", scope_id=run_id, limit_microdollars=10)
    spend(log, 60, held)
    with pytest.raises(BudgetExceeded):
        spend(log, 1, run_id=run_id)


# Time


def test_an_expired_reservation_holds_nothing(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    held = reserve(log, 100, run_id=run_id, minutes=10)
    clock.advance(minutes=9)
    with pytest.raises(BudgetExceeded):
        spend(log, 1, run_id=run_id)
    clock.advance(minutes=1)
    spend(log, 100, run_id=run_id)
    with pytest.raises(BudgetExceeded):
        spend(log, 1, held)
    assert standing(log) == (100, 0)


def test_an_extended_reservation_holds_longer(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    held = reserve(log, 100, run_id=run_id, minutes=10)
    clock.advance(minutes=9)
    log.reservations.extend(held.id, clock.now() + timedelta(minutes=10))
    assert log.reservations.extend(held.id, clock.now()).already
    clock.advance(minutes=9)
    spend(log, 100, held)
    clock.advance(minutes=2)
    with pytest.raises(Conflict, match="expired at"):
        log.reservations.extend(held.id, clock.now() + timedelta(minutes=10))


def test_what_one_has_seen_expire_is_expired_for_all_even_where_clocks_disagree(
    log: Decklog, target: str, run_id: str, clock: ManualClock
) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    held = reserve(log, 100, run_id=run_id, minutes=10)
    with Decklog.open(target, clock=ManualClock(clock.now() + timedelta(minutes=11))) as ahead:
        ahead.ledger.charge("m", input_tokens=100, run_id=run_id)
    with pytest.raises(BudgetExceeded):
        spend(log, 1, held)
    with pytest.raises(Conflict):
        log.reservations.extend(held.id, clock.now() + timedelta(hours=1))
    assert standing(log) == (100, 0)


def test_a_call_over_midnight_is_paid_from_the_day_it_was_promised_on(log: Decklog, run_id: str, clock: ManualClock) -> None:
    clock.advance(hours=23, minutes=59)
    log.budgets.set("run", scope_id=run_id, period="day", limit_microdollars=100)
    held = reserve(log, 60, run_id=run_id, minutes=10)
    clock.advance(minutes=5)
    spend(log, 100, run_id=run_id)
    spend(log, 60, held)
    charge = log.ledger.find(reservation_id=held.id)[0]
    assert charge.counted_at == held.reserved_at
    assert to_text(charge.occurred_at).startswith("2026-01-02")
    (shown,) = log.budgets.burn()
    assert [day["spent"] for day in shown["days"]][-2:] == [60, 100]  # type: ignore[index,attr-defined]
    assert log.budgets.check()["ok"]
    log.budgets.rebuild()
    assert log.budgets.check()["ok"]
    assert log.budgets.burn()[0]["spent"] == 100


# Shapes


def test_the_same_key_reserves_once(log: Decklog, run_id: str) -> None:
    first = reserve(log, 10, run_id=run_id, key="k")
    again = reserve(log, 10, run_id=run_id, key="k")
    assert again.id == first.id
    assert again.already
    assert reserve(log, 10, key="k").id != first.id


@pytest.mark.parametrize("bad", [{"amount_microdollars": -1}, {"tokens": -1}, {"tokens": 1.5}, {"tokens": 10**12 + 1}])
def test_an_amount_that_makes_no_sense_is_refused(log: Decklog, clock: ManualClock, bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.reservations.reserve(clock.now() + timedelta(minutes=1), **bad)  # type: ignore[arg-type]


def test_a_reservation_must_end_in_the_future(log: Decklog, clock: ManualClock) -> None:
    with pytest.raises(Invalid, match="past"):
        log.reservations.reserve(clock.now())
    with pytest.raises(Invalid, match="time zone"):
        log.reservations.reserve(clock.now().replace(tzinfo=None))


def test_nobody_reserves_a_budget_for_longer_than_a_week(log: Decklog, clock: ManualClock) -> None:
    log.budgets.set("all", limit_microdollars=100)  # type: ignore[arg-type]
    for until in (clock.now() + timedelta(days=7, seconds=1), clock.now().replace(year=9999)):
        with pytest.raises(Invalid, match="within 7 days"):
            log.reservations.reserve(until, amount_microdollars=100)
    held = log.reservations.reserve(clock.now() + timedelta(days=7), amount_microdollars=100)
    with pytest.raises(Invalid, match="within 7 days"):
        log.reservations.extend(held.id, clock.now().replace(year=9999))
    clock.advance(days=7)
    assert log.reservations.reserve(amount_microdollars=100).id != held.id


def test_reservation_without_a_time_ends_after_an_hour(log: Decklog, clock: ManualClock) -> None:
    held = log.reservations.reserve(amount_microdollars=1)
    assert held.expires_at == clock.now() + timedelta(hours=1)


def test_claim_with_a_long_lease_reserves_for_a_week_at_most(log: Decklog, clock: ManualClock, run_id: str) -> None:
    log.tasks.add(run_id, "Long")
    task = log.tasks.claim(run_id, worker="w", lease_seconds=30 * 86400, reserve_microdollars=5)
    assert task is not None
    assert task.reservation_id is not None
    assert log.reservations.get(task.reservation_id).expires_at == clock.now() + timedelta(days=7)
    log.tasks.extend(task.id, fence=task.fence, lease_seconds=30 * 86400)


def test_reservations_are_listed_by_what_they_are_for(log: Decklog, run_id: str) -> None:
    first = reserve(log, 1, run_id=run_id, task_id="t1", holder="t1 fence 3")
    log.reservations.settle(reserve(log, 2, run_id=run_id, task_id="t2").id)
    assert [held.id for held in log.reservations.find(state="open")] == [first.id]
    assert [held.id for held in log.reservations.find(holder="t1 fence 3")] == [first.id]
    assert len(log.reservations.find(run_id=run_id)) == 2


def test_a_refused_reservation_inside_a_transaction_leaves_the_rest(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    with log.transaction():
        log.runs.update(run_id, summary="claimed")
        held = reserve(log, 60, run_id=run_id)
        with pytest.raises(BudgetExceeded):
            reserve(log, 60, run_id=run_id)
    assert log.runs.get(run_id).summary == "claimed"
    assert standing(log) == (0, 60)
    assert log.reservations.get(held.id).state == "open"


def test_a_reservation_for_no_run_pays_nothing_for_a_runs_task(log: Decklog, run_id: str, clock: ManualClock) -> None:
    task = log.tasks.add(run_id, "lexer")
    log.budgets.set("run", scope_id=run_id, limit_microdollars=10)
    held = log.reservations.reserve(clock.now() + timedelta(hours=1), amount_microdollars=500)
    with pytest.raises(Invalid, match="is for no run"):
        log.ledger.charge("m", cost_microdollars=500, reservation_id=held.id, task_id=task.id)
    assert log.ledger.find() == []


def test_a_task_is_of_its_own_run_alone(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.runs.start("another", run_id="run_2")
    task = log.tasks.add(run_id, "lexer")
    log.budgets.set("run", scope_id=run_id, limit_microdollars=10)
    with pytest.raises(Invalid, match="this is for run_2"):
        log.ledger.charge("m", cost_microdollars=500, run_id="run_2", task_id=task.id)
    with pytest.raises(Invalid, match="this is for run_2"):
        log.reservations.reserve(clock.now() + timedelta(hours=1), amount_microdollars=500, run_id="run_2", task_id=task.id)


def test_a_tasks_money_is_its_groups_unless_another_is_named(log: Decklog, run_id: str, clock: ManualClock) -> None:
    task = log.tasks.add(run_id, "lexer", group_id="front")
    log.budgets.set("group", scope_id=f"{run_id}/front", limit_microdollars=10)
    with pytest.raises(BudgetExceeded):
        log.ledger.charge("m", cost_microdollars=500, task_id=task.id)
    with pytest.raises(BudgetExceeded):
        log.reservations.reserve(clock.now() + timedelta(hours=1), amount_microdollars=500, task_id=task.id)
    charges = [log.ledger.charge("m", cost_microdollars=5, task_id=task.id, group_id=group) for group in (None, "review")]
    assert [charge.group_id for charge in charges] == ["front", "review"]


def test_a_worker_may_spend_for_another_run_than_that_of_its_task(log: Decklog, run_id: str) -> None:
    log.runs.start("another", run_id="run_2")
    task = log.tasks.add(run_id, "lexer", group_id="front")
    with log.acting("dev", task_id=task.id, group_id="front"):
        charge = log.ledger.charge("m", cost_microdollars=5, run_id="run_2")
    assert (charge.run_id, charge.task_id, charge.group_id, charge.agent) == ("run_2", None, None, "dev")
