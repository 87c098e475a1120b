from datetime import timedelta
from hashlib import sha256
from random import Random
from string import ascii_letters

import pytest

from decklog import Decklog, Invalid, ManualClock, NotFound
from tests.stores.processes import at_once

INSIGHT = "Read the failing test before the code"


def test_a_strategy_is_named_by_what_it_says(log: Decklog, clock: ManualClock) -> None:
    strategy = log.strategies.record("shop", "general", INSIGHT, lang="python", framework="django")
    assert strategy.id == "shop_general_" + sha256(INSIGHT.encode()).hexdigest()[:16]
    assert (strategy.helpfulness, strategy.created_at) == (1, clock.now())
    assert log.strategies.get(strategy.id) == strategy


def test_said_again_it_helps_more_and_keeps_its_first_language(log: Decklog, clock: ManualClock) -> None:
    log.strategies.record("shop", "general", INSIGHT, lang="python")
    clock.advance(days=1)
    again = log.strategies.record("shop", "general", INSIGHT, lang="go", framework="gin")
    assert (again.helpfulness, again.lang, again.framework, again.last_seen_at) == (2, "python", None, clock.now())


def test_a_long_insight_is_cut_but_named_by_all_of_it(log: Decklog) -> None:
    one = log.strategies.record("shop", "general", "x" * 500 + "a")
    two = log.strategies.record("shop", "general", "x" * 500 + "b")
    assert one.id != two.id
    assert one.insight == two.insight == "x" * 500


def test_the_most_helpful_come_first_and_those_of_no_language_suit_all(log: Decklog, clock: ManualClock) -> None:
    plain = log.strategies.record("shop", "general", "plain")
    clock.advance(seconds=1)
    python = log.strategies.record("shop", "architecture", "for python", lang="python")
    go = log.strategies.record("shop", "general", "for go", lang="go")
    log.strategies.credit(go.id, by=5)
    assert [strategy.id for strategy in log.strategies.find("shop")] == [go.id, python.id, plain.id]
    assert [strategy.id for strategy in log.strategies.find("shop", lang="python")] == [python.id, plain.id]
    assert [strategy.id for strategy in log.strategies.find("shop", topic="architecture")] == [python.id]
    assert [strategy.id for strategy in log.strategies.find("shop", framework="flask", limit=1)] == [go.id]
    assert log.strategies.find("bank") == []


@pytest.mark.parametrize("bad", [{"topic": "lunch"}, {"insight": " "}, {"project": ""}])
def test_what_is_no_strategy_is_refused(log: Decklog, bad: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        log.strategies.record(**({"project": "shop", "topic": "general", "insight": "x"} | bad))  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        log.strategies.find("shop", topic="lunch")  # type: ignore[arg-type]


def test_credit_is_bounded_and_needs_a_strategy(log: Decklog) -> None:
    strategy = log.strategies.record("shop", "general", INSIGHT)
    assert log.strategies.credit(strategy.id).helpfulness == 2
    for by in (-1, 101):
        with pytest.raises(Invalid):
            log.strategies.credit(strategy.id, by=by)
    with pytest.raises(NotFound):
        log.strategies.credit("nobody")


@pytest.mark.slow
def test_insights_repeated_at_once_are_all_counted(target: str) -> None:
    Decklog.open(target).close()
    at_once("tests.stores.memory.memory_jobs.repeat_an_insight", target, processes=4, times=6)
    with Decklog.open(target) as log:
        assert [strategy.helpfulness for strategy in log.strategies.find("shop")] == [24]
        assert log.journal.verify().ok


def _reason(log: Decklog, run_id: str, phase: str, text: str, group_id: str = "A") -> None:
    log.journal.append(run_id, text, kind="reasoning", phase=phase, group_id=group_id, agent="developer")


def test_the_five_newest_thoughts_of_a_group_become_strategies(log: Decklog, run_id: str) -> None:
    for number in range(3):
        _reason(log, run_id, "approach", f"approach {number}")
        _reason(log, run_id, "decisions", f"decision {number}")
    _reason(log, run_id, "risks", "not this")
    _reason(log, run_id, "completion", "done so")
    _reason(log, run_id, "completion", "another group", group_id="B")
    log.journal.append(run_id, "no reasoning", group_id="A")
    extracted = log.strategies.extract(run_id, "A", "shop", lang="python")
    assert [(strategy.topic, strategy.insight) for strategy in extracted] == [
        ("implementation", "done so"),
        ("architecture", "decision 2"),
        ("methodology", "approach 2"),
        ("architecture", "decision 1"),
        ("methodology", "approach 1"),
    ]
    assert all(strategy.refs[0].startswith(f"{run_id}:") and strategy.lang == "python" for strategy in extracted)


def test_extracting_again_counts_an_entry_once(log: Decklog, run_id: str) -> None:
    _reason(log, run_id, "approach", INSIGHT)
    log.strategies.extract(run_id, "A", "shop")
    [again] = log.strategies.extract(run_id, "A", "shop")
    assert again.already
    assert again.helpfulness == 1
    _reason(log, run_id, "approach", INSIGHT)
    log.strategies.extract(run_id, "A", "shop")
    assert log.strategies.get(again.id).helpfulness == 2
    assert log.strategies.extract(run_id, "Z", "shop") == []
    with pytest.raises(Invalid):
        log.strategies.extract(run_id, " ", "shop")


@pytest.mark.slow
def test_extracting_at_once_counts_an_entry_once(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("x", run_id="run_1")
        _reason(log, "run_1", "approach", INSIGHT)
    at_once("tests.stores.memory.memory_jobs.extract_strategies", target, processes=4, times=2)
    with Decklog.open(target) as log:
        assert [strategy.helpfulness for strategy in log.strategies.find("shop")] == [1]


def test_a_strategy_of_another_system_is_taken_over_as_it_is(log: Decklog, clock: ManualClock) -> None:
    then = clock.now() - timedelta(days=3)
    given = {"created_at": then, "last_seen_at": then, "helpfulness": 9}
    assert log.strategies.adopt("old_id", "shop", "general", INSIGHT, **given).helpfulness == 9  # type: ignore[arg-type]
    assert log.strategies.adopt("old_id", "shop", "general", "other", **given).already  # type: ignore[arg-type]


def test_every_state_of_a_strategy_can_be_seen_again(log: Decklog) -> None:
    strategy = log.strategies.record("shop", "general", INSIGHT)
    log.strategies.credit(strategy.id, by=3)
    log.strategies.record("shop", "general", INSIGHT)
    states = [
        log.journal.at("strategies", strategy.id, str(entry.seq)) for entry in log.journal.history("strategies", strategy.id)
    ]
    assert [state.helpfulness for state in states] == [1, 4, 5]  # type: ignore[attr-defined]
    assert log.journal.verify().ok


def test_a_long_insight_with_a_secret_is_marked_and_leaves_no_half_of_it(log: Decklog) -> None:
    secret = "gh" + "p_" + "".join(Random(5).choices(ascii_letters, k=36))
    strategy = log.strategies.record("shop", "general", "x" * 480 + " " + secret)
    assert secret[:20] not in strategy.insight
    [entry] = log.journal.find("@memory")
    assert entry.redacted
    assert secret[:20] not in str(entry.as_dict())
