from datetime import UTC, datetime, timedelta

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from tests.every import every

PRICES = {"cache_read_price": 300_000, "cache_create_price": 3_750_000}


@pytest.fixture(autouse=True)
def _prices(log: Decklog) -> None:
    log.prices.set("sonnet", 3_000_000, 15_000_000, **PRICES)
    log.prices.set("total", 1_000_000, 1_000_000)


def rows_of(summary: dict[str, object]) -> dict[object, dict[str, int]]:
    return {row["key"]: row for row in summary["rows"]}  # type: ignore[attr-defined]


# Charging


def test_a_charge_comes_back_as_it_was_given(log: Decklog, run_id: str) -> None:
    charge = log.ledger.charge(
        "sonnet",
        input_tokens=1000,
        cache_read_tokens=20_000,
        cache_create_tokens=400,
        output_tokens=300,
        run_id=run_id,
        group_id="A",
        task_id="task_1",
        agent="developer",
        agent_id="dev-1",
        call_site="plan",
        occurred_at=datetime(2026, 1, 2, 3, tzinfo=UTC),
    )
    assert log.ledger.get(charge.id) == charge
    assert charge.cost_microdollars == 3000 + 6000 + 1500 + 4500
    assert charge.tokens == 21_700
    assert log.ledger.find(task_id="task_1") == [charge]


def test_cache_tokens_have_their_own_price(log: Decklog) -> None:
    cost = {
        name: log.ledger.charge("sonnet", **{name: 1_000_000}).cost_microdollars
        for name in ("input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens")
    }
    assert cost == {
        "input_tokens": 3_000_000,
        "cache_read_tokens": 300_000,
        "cache_create_tokens": 3_750_000,
        "output_tokens": 15_000_000,
    }


def test_a_charge_is_priced_by_the_day_it_occurred(log: Decklog, clock: ManualClock) -> None:
    log.prices.set("sonnet", 6_000_000, 15_000_000, valid_from=clock.now() + timedelta(days=10))
    clock.advance(days=20)
    assert log.ledger.charge("sonnet", input_tokens=100).cost_microdollars == 600
    late = log.ledger.charge("sonnet", input_tokens=100, occurred_at=clock.now() - timedelta(days=15))
    assert late.cost_microdollars == 300


def test_a_new_price_holds_for_the_very_next_charge(log: Decklog, target: str) -> None:
    def cost() -> int | None:
        return log.ledger.charge("sonnet", input_tokens=100).cost_microdollars

    assert cost() == 300
    log.prices.set("sonnet", 4_000_000, 0)
    assert cost() == 400
    with Decklog.open(target, clock=log.clock) as other:
        other.prices.set("sonnet", 5_000_000, 0)
    assert cost() == 500
    with pytest.raises(ZeroDivisionError), log.transaction():
        log.prices.set("sonnet", 6_000_000, 0)
        assert cost() == 600
        raise ZeroDivisionError
    assert cost() == 500
    log.prices.withdraw("sonnet", datetime(2026, 1, 1, tzinfo=UTC))
    assert cost() is None


def test_a_given_cost_is_taken_as_it_is(log: Decklog) -> None:
    assert log.ledger.charge("sonnet", input_tokens=1000, cost_microdollars=7).cost_microdollars == 7
    assert log.ledger.charge("nobody-knows", input_tokens=1000, cost_microdollars=0).cost_microdollars == 0


def test_a_charge_without_a_run_is_in_the_ledgers_own_stream(log: Decklog, run_id: str) -> None:
    mine = log.ledger.charge("sonnet", input_tokens=10, run_id=run_id)
    nobodys = log.ledger.charge("sonnet", input_tokens=10)
    assert log.journal.history("charges", mine.id)[0].stream == run_id
    assert log.journal.history("charges", nobodys.id)[0].stream == "@ledger"
    assert log.journal.verify().ok


def test_a_charge_to_an_unknown_run_is_refused(log: Decklog) -> None:
    with pytest.raises(NotFound, match="no run 'nobody'"):
        log.ledger.charge("sonnet", input_tokens=10, run_id="nobody")
    assert log.ledger.summary()["rows"] == []


def test_who_acts_is_charged(log: Decklog, run_id: str) -> None:
    with log.acting("developer", agent_id="d1", task_id="t1", group_id="A"):
        charge = log.ledger.charge("sonnet", input_tokens=1, run_id=run_id)
        other = log.ledger.charge("sonnet", input_tokens=1, run_id=run_id, task_id="t2")
    assert (charge.agent, charge.agent_id, charge.task_id, charge.group_id) == ("developer", "d1", "t1", "A")
    assert other.task_id == "t2"


@every(
    "bad",
    [
        {"input_tokens": -1},
        {"output_tokens": -1},
        {"cache_read_tokens": -1},
        {"cache_create_tokens": -1},
        {"cost_microdollars": -1},
        {"input_tokens": 1.5},
        {"input_tokens": True},
        {"input_tokens": 10**12 + 1},
        {"cost_microdollars": 10**12 + 1},
        {"occurred_at": datetime(2026, 1, 1)},
        {"model": " "},
        {"colour": "red"},
    ],
)
def test_what_no_call_can_cost_is_refused(log: Decklog, bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.ledger.charge(**{"model": "sonnet", **bad})  # type: ignore[arg-type]
    assert log.ledger.find() == []


# Once


def test_the_same_key_is_charged_once_in_its_run(log: Decklog, run_id: str) -> None:
    first = log.ledger.charge("sonnet", input_tokens=10, run_id=run_id, key="req_1")
    again = log.ledger.charge("sonnet", input_tokens=10, run_id=run_id, key="req_1")
    assert again == first
    assert again.already
    assert not first.already
    assert log.ledger.summary()["total"]["calls"] == 1  # type: ignore[index]
    other = log.runs.start("Another", run_id="run_2").id
    assert not any(log.ledger.charge("sonnet", input_tokens=10, run_id=run, key="req_1").already for run in (other, None))


def test_a_key_used_for_another_call_is_an_error_and_not_a_repetition(log: Decklog, run_id: str) -> None:
    log.ledger.charge("sonnet", input_tokens=10, run_id=run_id, key="k")
    with pytest.raises(Conflict, match="input_tokens") as caught:
        log.ledger.charge("sonnet", input_tokens=11, run_id=run_id, key="k")
    assert caught.value.details["differs"] == ["input_tokens"]


# Models without a price


def test_an_unknown_model_is_recorded_without_a_cost_and_never_guessed(log: Decklog, run_id: str) -> None:
    charge = log.ledger.charge("brand-new", input_tokens=1000, output_tokens=5, run_id=run_id)
    assert charge.cost_microdollars is None
    log.ledger.charge("sonnet", input_tokens=1000, run_id=run_id)
    summary = log.ledger.summary(run_id=run_id)
    assert rows_of(summary)["brand-new"]["unpriced_calls"] == 1
    assert rows_of(summary)["brand-new"]["input_tokens"] == 1000
    assert summary["total"]["unpriced_calls"] == 1  # type: ignore[index]
    assert summary["total"]["cost_microdollars"] == 3000  # type: ignore[index]


def test_a_cache_price_that_is_not_known_makes_the_call_unpriced(log: Decklog) -> None:
    assert log.ledger.charge("total", input_tokens=1, cache_read_tokens=1).cost_microdollars is None


# Adding up


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("day", ["2026-01-01", "2026-01-02", "2026-01-03"]),
        ("model", ["sonnet", "total"]),
        ("agent", ["developer", "qa"]),
        ("agent_id", ["a-0", "a-1", "a-2"]),
        ("task", ["t0", "t1"]),
        ("group", ["A", None]),
        ("call_site", ["plan", "review"]),
        ("run", ["run_1", None]),
    ],
)
def test_charges_are_added_up_by_any_of_their_names(
    log: Decklog, run_id: str, clock: ManualClock, by: str, keys: list[str | None]
) -> None:
    for number in range(6):
        log.ledger.charge(
            "sonnet" if number % 2 == 0 else "total",
            input_tokens=10,
            run_id=run_id if number < 4 else None,
            agent="developer" if number % 3 else "qa",
            agent_id=f"a-{number // 2}",
            task_id=f"t{number % 2}",
            group_id="A" if number < 3 else None,
            call_site="plan" if number < 5 else "review",
        )
        clock.advance(hours=12)
    summary = log.ledger.summary(by=by)  # type: ignore[arg-type]
    assert sorted(rows_of(summary), key=str) == sorted(keys, key=str)
    assert sum(row["calls"] for row in rows_of(summary).values()) == 6
    assert summary["by"] == by
    if by == "day":
        assert [row["key"] for row in summary["rows"]] == keys  # type: ignore[attr-defined]


def test_a_summary_is_narrowed_by_names_and_by_a_span_of_time(log: Decklog, run_id: str, clock: ManualClock) -> None:
    start = clock.now()
    for number in range(10):
        log.ledger.charge("sonnet", input_tokens=1, run_id=run_id, task_id=f"t{number % 2}", agent="dev")
        clock.advance(days=1)
    span = {"since": start + timedelta(days=2), "until": start + timedelta(days=5)}
    assert log.ledger.summary(**span)["total"]["calls"] == 4  # type: ignore[arg-type,index]
    assert log.ledger.summary(task_id="t0", agent="dev", **span)["total"]["calls"] == 2  # type: ignore[arg-type,index]
    assert log.ledger.summary(agent="nobody")["rows"] == []


def test_the_dearest_comes_first(log: Decklog) -> None:
    log.ledger.charge("total", input_tokens=100)
    log.ledger.charge("sonnet", input_tokens=100)
    assert [row["key"] for row in log.ledger.summary()["rows"]] == ["sonnet", "total"]  # type: ignore[attr-defined]


def test_an_unknown_grouping_is_refused(log: Decklog) -> None:
    with pytest.raises(Invalid, match="one of day, model"):
        log.ledger.summary(by="id; drop table charges")  # type: ignore[arg-type]


# History


def test_a_secret_in_a_charge_is_taken_out(log: Decklog) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    charge = log.ledger.charge("sonnet", input_tokens=1, call_site=f"token {secret}")
    assert secret not in str(charge)
    assert log.journal.history("charges", charge.id)[0].redacted


def test_an_answer_is_paid_for_once_whatever_run_tells_of_it(log: Decklog, run_id: str) -> None:
    other = log.runs.start("a fork of the same conversation").id
    first = log.ledger.charge("m", output_tokens=7, run_id=run_id, answer_id="msg_1")
    again = log.ledger.charge("m", output_tokens=7, run_id=other, answer_id="msg_1")
    assert again.already
    assert again.id == first.id
    assert not log.ledger.charge("m", output_tokens=7, run_id=other, answer_id="msg_2").already
    assert len(log.ledger.find()) == 2


def test_a_keyed_charge_repeated_is_known_also_where_redaction_changed_the_models_name(log: Decklog, run_id: str) -> None:
    model = "token=" + "gh" + "p_" + "Ab1" * 12
    first = log.ledger.charge(model, input_tokens=1, run_id=run_id, key="k", enforce=False)
    assert first.model != model
    again = log.ledger.charge(model, input_tokens=1, run_id=run_id, key="k", enforce=False)
    assert (again.id, again.already) == (first.id, True)
    with pytest.raises(Conflict, match="differs in model"):
        log.ledger.charge("another", input_tokens=1, run_id=run_id, key="k", enforce=False)
