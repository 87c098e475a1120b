from datetime import UTC, datetime, timedelta

import pytest

from decklog import BudgetExceeded, BudgetScope, Charge, Decklog, Invalid, ManualClock, NotFound
from decklog.core.errors import Refused
from decklog.records.operations import operations_of
from decklog.stores.money.budgets import Budgets
from tests.every import every


@pytest.fixture(autouse=True)
def _prices(log: Decklog) -> None:
    log.prices.set("m", 1_000_000, 1_000_000)  # a micro-dollar per token


def spend(log: Decklog, amount: int, **given: object) -> Charge:
    return log.ledger.charge("m", input_tokens=amount, **given)  # type: ignore[arg-type]


def only(log: Decklog) -> dict[str, object]:
    (shown,) = log.budgets.burn()
    return shown


# Stopping


def test_a_charge_that_fits_to_the_last_microdollar_is_taken_and_one_more_is_refused(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    spend(log, 60, run_id=run_id)
    spend(log, 40, run_id=run_id)
    with pytest.raises(BudgetExceeded):
        spend(log, 1, run_id=run_id)
    spend(log, 0, run_id=run_id)
    assert only(log)["spent"] == 100


def test_a_refusal_says_which_budget_how_much_is_left_and_when_it_renews(log: Decklog, run_id: str) -> None:
    budget = log.budgets.set("run", scope_id=run_id, period="day", limit_microdollars=1_500_000)
    spend(log, 1_000_000, run_id=run_id)
    with pytest.raises(BudgetExceeded) as caught:
        spend(log, 600_000, run_id=run_id)
    error = caught.value.as_dict()
    assert error["code"] == "budget_exceeded"
    assert error["details"] == {
        "budget_id": budget.id,
        "scope": "run",
        "scope_id": run_id,
        "period": "day",
        "unit": "microdollars",
        "ceiling": 1_500_000,
        "spent": 1_000_000,
        "reserved": 0,
        "left": 500_000,
        "asked": 600_000,
        "renews_at": "2026-01-02T00:00:00.000000Z",
    }
    assert "run run_1, per day" in error["message"]
    assert "$0.50 left of $1.50" in error["message"]
    assert "2026-01-02T00:00:00" in error["message"]
    assert error["hint"]


@pytest.mark.parametrize(("scope", "column"), [("run", "run_id"), ("group", "group_id"), ("task", "task_id"), ("agent", "agent")])
def test_a_budget_counts_only_what_is_in_its_scope(log: Decklog, run_id: str, scope: str, column: str) -> None:
    spend(log, 0, **{column: run_id})
    log.budgets.set(scope, scope_id=run_id, limit_microdollars=10)  # type: ignore[arg-type]
    spend(log, 100)
    spend(log, 10, **{column: run_id})
    with pytest.raises(BudgetExceeded):
        spend(log, 1, **{column: run_id})


def test_the_tightest_of_several_budgets_decides(log: Decklog, run_id: str) -> None:
    log.budgets.set("all", limit_microdollars=1000)
    tight = log.budgets.set("agent", scope_id="qa", limit_microdollars=5)
    with pytest.raises(BudgetExceeded) as caught:
        spend(log, 6, run_id=run_id, agent="qa")
    assert caught.value.details["budget_id"] == tight.id
    spend(log, 6, run_id=run_id, agent="developer")


def test_a_budget_may_be_in_tokens_of_all_four_kinds(log: Decklog) -> None:
    log.budgets.set("all", limit_tokens=100)
    log.ledger.charge("nobody-knows", input_tokens=10, cache_read_tokens=20, cache_create_tokens=30, output_tokens=40)
    with pytest.raises(BudgetExceeded, match="0 tokens left of 100 tokens"):
        log.ledger.charge("nobody-knows", output_tokens=1)


def test_what_was_spent_before_a_budget_was_set_counts(log: Decklog, run_id: str) -> None:
    for _ in range(3):
        spend(log, 30, run_id=run_id)
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    assert only(log)["spent"] == 90
    with pytest.raises(BudgetExceeded):
        spend(log, 11, run_id=run_id)


def test_an_unknown_price_is_refused_where_a_budget_in_money_must_be_kept(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    with pytest.raises(Refused, match="price of 'brand-new' is not known"):
        log.ledger.charge("brand-new", input_tokens=5, run_id=run_id)
    log.ledger.charge("brand-new", input_tokens=5)
    log.ledger.charge("brand-new", input_tokens=5, run_id=run_id, cost_microdollars=50)
    assert log.ledger.charge("brand-new", input_tokens=5, run_id=run_id, enforce=False).overdrew
    assert only(log)["unpriced_calls"] == 1
    assert [event.subtype for event in log.journal.find(run_id, kind="event")] == ["budget_unpriced"]
    assert only(log)["spent"] == 50


# Recording what is spent already


def test_money_that_is_spent_can_be_recorded_shows_as_overdrawn_and_stops_the_next_call(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    charge = log.ledger.charge("m", input_tokens=150, run_id=run_id, enforce=False)
    assert charge.overdrew
    shown = only(log)
    assert (shown["is_overdrawn"], shown["state"], shown["spent"], shown["left"]) == (True, "stop", 150, 0)
    (event,) = log.journal.find(run_id, kind="event")
    assert event.subtype == "budget_overdrawn"
    assert event.payload["spent"] == 150  # type: ignore[index,call-overload]
    assert log.budgets.check()["ok"]
    with pytest.raises(BudgetExceeded):
        log.ledger.charge("m", input_tokens=1, run_id=run_id)
    with pytest.raises(BudgetExceeded):
        log.reservations.reserve(log.clock.now() + timedelta(minutes=5), amount_microdollars=1, run_id=run_id)


# Warning


def test_the_warning_comes_once_when_the_threshold_is_crossed(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    for amount in (79, 1, 5):
        spend(log, amount, run_id=run_id)
    events = log.journal.find(run_id, kind="event")
    assert [event.subtype for event in events] == ["budget_warning"]
    assert "$0.00008 of $0.0001" in events[0].body
    assert only(log)["state"] == "warn"


def test_a_budget_that_warns_never_refuses(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100, action="warn", warn_percent=50)
    for amount in (49, 1, 50, 1, 1000):
        spend(log, amount, run_id=run_id)
    events = log.journal.find(run_id, kind="event", oldest_first=True)
    assert [event.subtype for event in events] == ["budget_warning", "budget_passed"]
    shown = only(log)
    assert (shown["state"], shown["percent"], shown["is_overdrawn"]) == ("warn", 1101, True)


# Periods


@pytest.mark.parametrize(
    ("period", "start", "last", "renewed"),
    [
        ("day", "2026-03-04T00:00:00", "2026-03-04T23:59:59.999999", "2026-03-05T00:00:00"),
        ("week", "2026-03-02T00:00:00", "2026-03-08T23:59:59.999999", "2026-03-09T00:00:00"),
        ("month", "2026-02-01T00:00:00", "2026-02-28T23:59:59.999999", "2026-03-01T00:00:00"),
        ("month", "2026-12-01T00:00:00", "2026-12-31T23:59:59.999999", "2027-01-01T00:00:00"),
    ],
)
def test_a_budget_renews_when_its_period_ends(
    log: Decklog, clock: ManualClock, period: str, start: str, last: str, renewed: str
) -> None:
    def move_to(text: str) -> None:
        clock.advance(seconds=(datetime.fromisoformat(text).replace(tzinfo=UTC) - clock.now()).total_seconds())

    log.budgets.set("all", period=period, limit_microdollars=100)  # type: ignore[arg-type]
    move_to(start)
    spend(log, 100)
    move_to(last)
    with pytest.raises(BudgetExceeded) as caught:
        spend(log, 1)
    assert caught.value.details["renews_at"] == renewed + ".000000Z"
    move_to(renewed)
    spend(log, 100)
    with pytest.raises(BudgetExceeded):
        spend(log, 1)
    assert log.budgets.check()["ok"]


def test_a_budget_for_ever_never_renews(log: Decklog, clock: ManualClock) -> None:
    log.budgets.set("all", limit_microdollars=100)
    spend(log, 100)
    clock.advance(days=4000)
    with pytest.raises(BudgetExceeded, match="never renews") as caught:
        spend(log, 1)
    assert caught.value.details["renews_at"] is None


@pytest.mark.parametrize("days", [-40, -1, 1, 40])
def test_a_charge_of_another_day_counts_on_the_day_it_is_recorded(log: Decklog, clock: ManualClock, days: int) -> None:
    clock.advance(days=50)
    log.budgets.set("all", period="day", limit_microdollars=100)
    spend(log, 90, occurred_at=clock.now() + timedelta(days=days))
    with pytest.raises(BudgetExceeded):
        spend(log, 11, occurred_at=clock.now() + timedelta(days=days - 1))
    assert [day["spent"] for day in only(log)["days"]][-2:] == [0, 90]  # type: ignore[index,attr-defined]
    assert log.ledger.summary(by="day")["rows"][0]["key"] != clock.now().date().isoformat()  # type: ignore[index,arg-type]
    assert log.budgets.check()["ok"]


@pytest.mark.parametrize(("scope", "scope_id"), [("run", "run_l"), ("task", "nobody"), ("group", "A"), ("group", "run_1/B")])
def test_a_budget_for_what_nobody_knows_is_refused(log: Decklog, run_id: str, scope: BudgetScope, scope_id: str) -> None:
    log.tasks.add(run_id, "work", group_id="C")
    with pytest.raises(NotFound, match=f"no {scope} {scope_id}"):
        log.budgets.set(scope, scope_id=scope_id, limit_microdollars=1)
    log.budgets.set("group", scope_id="run_1/C", limit_microdollars=1)


def test_leaving_the_run_out_does_not_leave_its_budget_out(log: Decklog, run_id: str, clock: ManualClock) -> None:
    task = log.tasks.add(run_id, "work")
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    assert spend(log, 60, task_id=task.id).run_id == run_id
    with log.acting("dev", task_id=task.id):
        with pytest.raises(BudgetExceeded):
            spend(log, 41)
        with pytest.raises(BudgetExceeded):
            log.reservations.reserve(clock.now() + timedelta(hours=1), amount_microdollars=41)


# Setting


def test_setting_a_budget_again_changes_it_and_keeps_what_was_spent(log: Decklog, run_id: str) -> None:
    first = log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    spend(log, 100, run_id=run_id)
    raised = log.budgets.set("run", scope_id=run_id, limit_microdollars=150)
    assert raised.id == first.id
    spend(log, 50, run_id=run_id)
    log.budgets.set("run", scope_id=run_id, limit_microdollars=10)
    with pytest.raises(BudgetExceeded):
        spend(log, 1, run_id=run_id)
    assert len(log.budgets.find()) == 1


def test_a_budget_set_elsewhere_holds_for_the_very_next_charge(log: Decklog, target: str, run_id: str) -> None:
    spend(log, 10, run_id=run_id)
    with Decklog.open(target, clock=log.clock) as other:
        budget = other.budgets.set("run", scope_id=run_id, limit_microdollars=15)
        with pytest.raises(BudgetExceeded):
            spend(log, 10, run_id=run_id)
        other.budgets.set("run", scope_id=run_id, limit_microdollars=20)
        spend(log, 10, run_id=run_id)
        other.budgets.lift(budget.id)
    spend(log, 10, run_id=run_id)
    with pytest.raises(ZeroDivisionError), log.transaction():
        log.budgets.set("run", scope_id=run_id, limit_microdollars=30)
        with pytest.raises(BudgetExceeded):
            spend(log, 1, run_id=run_id)
        raise ZeroDivisionError
    spend(log, 1, run_id=run_id)
    assert log.budgets.find() == []


def test_budgets_of_other_periods_and_units_stand_side_by_side(log: Decklog) -> None:
    ids = {
        log.budgets.set("all", **given).id  # type: ignore[arg-type]
        for given in (
            {"limit_microdollars": 1},
            {"limit_tokens": 1},
            {"limit_microdollars": 1, "period": "day"},
            {"limit_microdollars": 1, "period": "week"},
        )
    }
    assert len(ids) == 4
    assert len(log.budgets.find(scope="all")) == 4


def test_a_lifted_budget_refuses_nothing_and_is_counted_anew_when_set_again(log: Decklog, run_id: str) -> None:
    budget = log.budgets.set("run", scope_id=run_id, limit_microdollars=10)
    spend(log, 10, run_id=run_id)
    log.budgets.lift(budget.id)
    spend(log, 10, run_id=run_id)
    assert log.budgets.burn() == []
    with pytest.raises(NotFound):
        log.budgets.lift(budget.id)
    log.budgets.set("run", scope_id=run_id, limit_microdollars=10)
    assert only(log)["spent"] == 20


@every(
    "bad",
    [
        {"scope": "all"},
        {"scope": "all", "limit_microdollars": 1, "limit_tokens": 1},
        {"scope": "all", "scope_id": "x", "limit_tokens": 1},
        {"scope": "run", "limit_tokens": 1},
        {"scope": "run", "scope_id": "", "limit_tokens": 1},
        {"scope": "planet", "scope_id": "x", "limit_tokens": 1},
        {"scope": "all", "limit_tokens": -1},
        {"scope": "all", "limit_tokens": 1.5},
        {"scope": "all", "limit_tokens": True},
        {"scope": "all", "limit_tokens": 1, "period": "year"},
        {"scope": "all", "limit_tokens": 1, "action": "shout"},
        {"scope": "all", "limit_tokens": 1, "warn_percent": 0},
        {"scope": "all", "limit_tokens": 1, "warn_percent": 101},
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(log: Decklog, bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.budgets.set(**bad)  # type: ignore[arg-type]
    assert log.budgets.find() == []


def test_a_ceiling_of_nothing_stops_everything(log: Decklog) -> None:
    log.budgets.set("all", limit_microdollars=0)
    with pytest.raises(BudgetExceeded):
        spend(log, 1)
    assert (only(log)["percent"], only(log)["state"]) == (100, "stop")


def test_no_agent_may_set_or_lift_a_budget() -> None:
    assert {each.name for each in operations_of(Budgets) if each.owner_only} == {"set", "lift"}


# Showing and checking


def test_the_burn_shows_the_last_fourteen_days(log: Decklog, clock: ManualClock) -> None:
    log.budgets.set("all", period="week", limit_microdollars=1000)
    for amount in (5, 10, 15):
        spend(log, amount)
        clock.advance(days=1)
    shown = only(log)
    days = shown["days"]
    assert isinstance(days, list)
    assert len(days) == 14
    assert days[-1] == {"day": "2026-01-04", "spent": 0}
    assert [day["spent"] for day in days[-4:]] == [5, 10, 15, 0]
    assert shown["spent"] == 30
    assert shown["renews_at"] == "2026-01-05T00:00:00.000000Z"


def test_sums_that_were_tampered_with_are_found_and_made_anew(log: Decklog, run_id: str) -> None:
    budget = log.budgets.set("run", scope_id=run_id, limit_microdollars=1000)
    spend(log, 100, run_id=run_id)
    assert log.budgets.check() == {"ok": True, "budgets": 1, "problems": []}
    log.db.write(lambda: log.db.count("update budget_days set microdollars = 1", {}))
    checked = log.budgets.check()
    assert not checked["ok"]
    assert checked["problems"] == [
        {"budget_id": budget.id, "day": "2026-01-01", "kept": [1, 100, 1, 0], "charged": [100, 100, 1, 0]}
    ]
    assert log.budgets.rebuild()["corrected"] == checked["problems"]
    assert log.budgets.check()["ok"]
    assert only(log)["spent"] == 100


def test_a_budget_can_be_seen_as_it_was(log: Decklog, clock: ManualClock) -> None:
    start = len(log.journal.find("@ledger", limit=100))
    for ceiling in (10, 20, 30):
        budget = log.budgets.set("all", limit_microdollars=ceiling)
    for number, ceiling in enumerate((10, 20, 30), start + 1):
        assert log.journal.at("budgets", budget.id, str(number)).ceiling == ceiling  # type: ignore[attr-defined]
    log.budgets.lift(budget.id)
    with pytest.raises(NotFound):
        log.journal.at("budgets", budget.id, str(start + 4))
    assert log.journal.verify().ok


def test_a_budget_is_for_the_group_of_one_run_or_of_all(log: Decklog, run_id: str) -> None:
    other = log.runs.start("other", run_id="run_2").id
    log.ledger.charge("m", input_tokens=1, cost_microdollars=30, run_id=run_id, group_id="A")
    log.ledger.charge("m", input_tokens=1, cost_microdollars=50, run_id=other, group_id="A")
    log.budgets.set("group", scope_id="run_1/A", limit_microdollars=100)
    log.budgets.set("group", scope_id="A", limit_microdollars=1000)
    assert {one["scope_id"]: one["spent"] for one in log.budgets.burn()} == {"run_1/A": 30, "A": 80}
    log.tasks.add(run_id, "work", group_id="A")
    held = log.tasks.claim(run_id, worker="w", reserve_microdollars=60)
    assert {one["scope_id"]: one["reserved"] for one in log.budgets.burn()} == {"run_1/A": 60, "A": 60}
    with pytest.raises(BudgetExceeded) as caught:
        log.ledger.charge("m", input_tokens=1, cost_microdollars=11, run_id=run_id, group_id="A")
    assert caught.value.details["scope_id"] == "run_1/A"
    log.ledger.charge("m", input_tokens=1, cost_microdollars=11, run_id=other, group_id="A")
    paid = {"cost_microdollars": 60, "run_id": run_id, "group_id": "A", "reservation_id": held.task.reservation_id}
    log.ledger.charge("m", input_tokens=1, **paid)
    held.finish()
    assert {one["scope_id"]: one["spent"] for one in log.budgets.burn()} == {"run_1/A": 90, "A": 151}
    assert log.budgets.check()["ok"]
