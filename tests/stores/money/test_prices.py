import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decklog import Decklog, Invalid, ManualClock, NotFound
from decklog.stores.money import prices as price_module
from decklog.stores.money.prices import Price, shipped_prices
from tests.every import every

counts = st.integers(0, 10**12)
prices = st.integers(0, 10**12)


def price(**given: object) -> Price:
    return Price(**{"model": "m", "valid_from": datetime(2026, 1, 1, tzinfo=UTC), "input_price": 0, "output_price": 0, **given})  # type: ignore[arg-type]


# Arithmetic


@given(tokens=st.tuples(counts, counts, counts, counts), kinds=st.tuples(prices, prices, prices, prices))
def test_a_cost_is_the_exact_sum_rounded_half_up_once(tokens: tuple[int, ...], kinds: tuple[int, ...]) -> None:
    names = ("input_price", "cache_read_price", "cache_create_price", "output_price")
    cost = price(**dict(zip(names, kinds, strict=True))).cost(tokens)  # type: ignore[arg-type]
    exact = sum(count * each for count, each in zip(tokens, kinds, strict=True))
    assert cost is not None
    # Half up: the cost is at most half a micro-dollar above the exact amount, and less than half below it.
    assert -500_000 <= exact - cost * 1_000_000 < 500_000


def test_a_kind_of_token_without_a_price_makes_the_cost_unknown_only_when_it_is_used() -> None:
    each = price(input_price=1_000_000, cache_read_price=None)
    assert each.cost((10, 1, 0, 0)) is None
    assert each.cost((10, 0, 0, 0)) == 10


# Which price holds


def test_a_price_holds_from_its_day_until_the_next(log: Decklog) -> None:
    for month, input_price in ((1, 1_000_000), (3, 2_000_000)):
        log.prices.set("m", input_price, 0, valid_from=datetime(2026, month, 1, tzinfo=UTC))
    assert log.prices.get("m", at=datetime(2026, 1, 1, tzinfo=UTC)).input_price == 1_000_000
    assert log.prices.get("m", at=datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC)).input_price == 1_000_000
    assert log.prices.get("m", at=datetime(2026, 3, 1, tzinfo=UTC)).input_price == 2_000_000
    with pytest.raises(NotFound, match="not known"):
        log.prices.get("m", at=datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC))


def test_a_long_prompt_has_its_own_price(log: Decklog) -> None:
    log.prices.set("m", 1_000_000, 0, cache_read_price=0)
    log.prices.set("m", 2_000_000, 0, cache_read_price=0, over_tokens=200_000)
    assert log.prices.quote("m", input_tokens=200_000) == 200_000
    assert log.prices.quote("m", input_tokens=200_001) == 400_002
    # What is read from a cache is part of the prompt.
    assert log.prices.quote("m", input_tokens=1, cache_read_tokens=200_000) == 2


def test_a_new_price_replaces_the_long_prompts_of_the_old_one(log: Decklog, clock: ManualClock) -> None:
    log.prices.set("m", 1_000_000, 0)
    log.prices.set("m", 9_000_000, 0, over_tokens=1000)
    clock.advance(days=1)
    log.prices.set("m", 3_000_000, 0)
    assert log.prices.get("m", prompt_tokens=5000).input_price == 3_000_000


def test_the_logs_own_price_goes_before_the_one_that_comes_with_decklog(log: Decklog, clock: ManualClock) -> None:
    assert log.prices.get("claude-opus-4-5").input_price == 5_000_000
    log.prices.set("claude-opus-4-5", 4_000_000, 20_000_000)
    assert log.prices.get("claude-opus-4-5").input_price == 4_000_000
    assert log.prices.get("claude-opus-4-5", at=datetime(2025, 12, 1, tzinfo=UTC)).input_price == 5_000_000
    log.prices.withdraw("claude-opus-4-5", datetime(2026, 1, 1, tzinfo=UTC))
    assert log.prices.get("claude-opus-4-5").input_price == 5_000_000
    with pytest.raises(NotFound):
        log.prices.withdraw("claude-opus-4-5", datetime(2026, 1, 1, tzinfo=UTC))


def test_no_price_is_guessed_from_a_similar_name(log: Decklog) -> None:
    for model in ("claude-opus-4-5-x", "Claude-Opus-4-5", "claude-opus", "total", "null"):
        with pytest.raises(NotFound):
            log.prices.quote(model, input_tokens=1)


def test_every_price_is_listed_and_a_replaced_one_only_once(log: Decklog) -> None:
    listed = log.prices.find()
    assert len(listed) == sum(map(len, shipped_prices().values()))
    log.prices.set("m", 1, 1)
    first = shipped_prices()["claude-opus-4-5"][0]
    log.prices.set("claude-opus-4-5", 1, 1, valid_from=first.valid_from)
    assert len(log.prices.find()) == len(listed) + 1
    assert [each.input_price for each in log.prices.find(model="claude-opus-4-5")] == [1]


# Files


def test_a_file_of_prices_is_loaded_whole_or_not_at_all(log: Decklog) -> None:
    good = {"model": "m", "valid_from": "2026-01-01", "input_price": 1_000_000, "output_price": 2_000_000}
    assert [each.model for each in log.prices.load([good, {**good, "model": "n", "cache_read_price": 5}])] == ["m", "n"]
    assert log.prices.quote("m", input_tokens=10, output_tokens=10) == 30
    with pytest.raises(Invalid, match="price 2"):
        log.prices.load([{**good, "model": "o"}, {**good, "colour": 1}])
    with pytest.raises(NotFound):
        log.prices.get("o")
    assert log.prices.load({"prices": [good]})[0].model == "m"


@every(
    "bad",
    [
        "text",
        [],
        [1],
        [{"model": "m"}],
        [{"model": "", "valid_from": "2026-01-01", "input_price": 1, "output_price": 1}],
        [{"model": "m", "valid_from": "soon", "input_price": 1, "output_price": 1}],
        [{"model": "m", "valid_from": 3, "input_price": 1, "output_price": 1}],
        [{"model": "m", "valid_from": "2026-01-01", "input_price": -1, "output_price": 1}],
        [{"model": "m", "valid_from": "2026-01-01", "input_price": 1.5, "output_price": 1}],
        [{"model": "m", "valid_from": "2026-01-01", "input_price": True, "output_price": 1}],
        [{"model": "m", "valid_from": "2026-01-01", "input_price": None, "output_price": 1}],
        [{"model": "m", "valid_from": "2026-01-01", "input_price": 10**13, "output_price": 1}],
    ],
)
def test_a_file_that_is_no_price_list_is_refused(log: Decklog, bad: object) -> None:
    with pytest.raises(Invalid):
        log.prices.load(bad)


def test_every_shipped_price_says_where_and_when_it_was_read() -> None:
    path = Path(price_module.__file__).with_name("prices.json")
    rows = json.loads(path.read_text())["prices"]
    assert rows
    for row in rows:
        assert row["source"].startswith("https://"), row
        datetime.fromisoformat(row["sourced_on"])
        assert row.keys() == set(Price.columns())
        assert all(row[name] is None or type(row[name]) is int for name in row if name.endswith("_price"))
    keys = [(row["model"], row["valid_from"], row["over_tokens"]) for row in rows]
    assert len(keys) == len(set(keys))
    assert all((model, day, 0) in keys for model, day, _ in keys)


def test_every_shipped_price_holds_from_a_day_that_someone_states_or_from_when_it_was_read() -> None:
    path = Path(price_module.__file__).with_name("prices.json")
    file = json.loads(path.read_text())
    days = {(row["model"], row["valid_from"]): row["sourced_on"] for row in file["prices"]}
    assert {tuple(stated.rsplit(" ", 1)) for stated in file["dated_by"]} <= days.keys()
    assert all(url.startswith("https://") for url in file["dated_by"].values())
    for (model, day), read in days.items():
        assert f"{model} {day}" in file["dated_by"] or day == read, (model, day)


def test_the_shipped_file_can_be_loaded_as_a_users_own(log: Decklog) -> None:
    path = Path(price_module.__file__).with_name("prices.json")
    loaded = log.prices.load(json.loads(path.read_text()))
    assert len(loaded) == len(log.prices.find())
    assert log.journal.verify().ok


# History


def test_only_the_owner_sets_prices() -> None:
    from decklog.records.operations import operations_of
    from decklog.stores.money.prices import Prices

    assert {each.name for each in operations_of(Prices) if each.writes} == {
        each.name for each in operations_of(Prices) if each.owner_only
    }
