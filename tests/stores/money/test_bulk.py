"""Entries and charges that are written together: as the verbs would have written them, one by one."""

from datetime import UTC, datetime
from typing import Any

import pytest

from decklog import BudgetScope, Conflict, Decklog, EntryKind
from decklog.journal.new_entry import prepare_entry
from decklog.records.values import Values
from decklog.stores.money.bulk import Bulk
from decklog.stores.money.records import Charge

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def run(log: Decklog) -> None:
    log.runs.start("a session", run_id="r")


def entry(key: str, body: str = "text", stream: str = "r") -> dict[str, Any]:
    return {"stream": stream, "body": body, "kind": "tool", "subtype": "call", "key": key, "at": AT}


def charge(answer: str, run_id: str = "r", **given: Any) -> dict[str, Any]:
    place = {"run_id": run_id, "agent": "claude", "agent_id": "s", "occurred_at": AT}
    tokens = {"input_tokens": 3, "cache_read_tokens": 0, "cache_create_tokens": 0, "output_tokens": 5}
    return {"model": "m", "answer_id": answer, "cost_microdollars": 7, **place, **tokens, **given}


def take(log: Decklog, *told: Any) -> int:
    return log.db.write(lambda: Bulk(log.parts).take(told))


def story(log: Decklog) -> list[str]:
    entries = log.journal.find("r", oldest_first=True, limit=50)[1:]
    return [each.key or each.payload["answer_id"] for each in entries]  # type: ignore[index]


def test_entries_and_charges_keep_the_order_in_which_they_were_told(log: Decklog) -> None:
    assert take(log, entry("a"), charge("m1"), entry("b"), charge("m2"), entry("c")) == 5
    assert story(log) == ["a", "m1", "b", "m2", "c"]
    assert log.journal.verify().ok


def test_what_is_told_again_is_written_once(log: Decklog) -> None:
    take(log, entry("a"), charge("m1"))
    assert take(log, entry("a"), entry("b"), entry("b"), charge("m1"), charge("m2"), charge("m2")) == 2
    assert story(log) == ["a", "m1", "b", "m2"]


def test_an_answer_that_another_run_paid_for_is_not_charged_again(log: Decklog) -> None:
    log.runs.start("before", run_id="first")
    log.ledger.charge("m", input_tokens=3, run_id="first", answer_id="m1")
    assert take(log, charge("m1")) == 0
    assert log.ledger.summary("r")["rows"] == []


def test_a_charge_is_the_same_as_by_the_verb(log: Decklog) -> None:
    log.ledger.charge(**charge("m1"))
    take(log, charge("m2"))
    one, two = log.ledger.find("r", oldest_first=True)
    same = {"id": "", "answer_id": ""}
    assert {**one.as_dict(), **same, "counted_at": None} == {**two.as_dict(), **same, "counted_at": None}
    assert (one.counted_at is None) is (two.counted_at is None)
    assert [entry.subtype for entry in log.journal.find("r", limit=2)] == ["added", "added"]


def test_a_budget_counts_what_is_charged_among_others(log: Decklog) -> None:
    log.budgets.set(BudgetScope.RUN, scope_id="r", limit_microdollars=10)
    take(log, entry("a"), charge("m1"), entry("b"), charge("m2"), entry("c"))
    assert [each.overdrew for each in log.ledger.find("r", oldest_first=True)] == [False, True]
    assert log.budgets.check()["ok"]
    subtypes = [each.subtype for each in log.journal.find("r", oldest_first=True, limit=50)][1:]
    assert subtypes == ["call", "added", "call", "added", "budget_overdrawn", "call"]
    assert log.journal.verify().ok


def test_an_entry_that_was_prepared_elsewhere_is_redacted_and_chained_like_any_other(log: Decklog) -> None:
    secret = "ghp_" + "k3Jd8sLq" * 4 + "Zx1v"
    given = entry("p", f"export TOKEN={secret}")
    assert take(log, prepare_entry(Values(), given), charge("m1"), entry("q", f"export TOKEN={secret}")) == 3
    first, second = (each for each in log.journal.find("r", kind=EntryKind.TOOL, oldest_first=True))
    assert first.body == second.body
    assert secret not in (first.body or "")
    assert first.redacted
    assert second.redacted
    assert log.journal.verify().ok


def test_nothing_is_written_to_a_run_that_is_not_there(log: Decklog) -> None:
    with pytest.raises(Exception, match="there is no run 'nobody'"):
        take(log, entry("a", stream="nobody"))


def spent(key: str, **given: Any) -> dict[str, Any]:
    return {"model": "m", "input_tokens": 3, "cost_microdollars": 7, "run_id": "r", "occurred_at": AT, "key": key, **given}


def charge_all(log: Decklog, *told: dict[str, Any]) -> list[bool]:
    return log.db.write(lambda: Bulk(log.parts).charge_all(told))


def test_charges_known_by_their_keys_are_those_that_the_verb_would_have_written(log: Decklog) -> None:
    log.ledger.charge(**spent("a"), enforce=False)
    assert charge_all(log, spent("a"), spent("b"), spent("b"), spent("a", run_id=None)) == [False, True, False, True]
    assert charge_all(log, spent("b"), spent("c")) == [False, True]
    first, *others = [one.values() for one in log.ledger.find("r", limit=10)]
    for other in others:
        assert {**other, "id": "", "key": ""} == {**first, "id": "", "key": ""}
    assert len(others) == 2
    assert log.journal.verify().ok


def test_a_key_that_means_another_charge_by_now_is_refused(log: Decklog) -> None:
    charge_all(log, spent("a"))
    with pytest.raises(Conflict):
        charge_all(log, spent("b"), spent("a", input_tokens=4))
    assert len(log.ledger.find("r", limit=10)) == 1


def test_charges_that_a_budget_counts_are_counted_in_their_order(log: Decklog) -> None:
    log.budgets.set(BudgetScope.RUN, scope_id="r", limit_microdollars=10)
    assert charge_all(log, spent("a"), spent("b")) == [True, True]
    assert [one.overdrew for one in log.ledger.find("r", limit=10)] == [True, False]


def test_what_a_charge_became_is_written_as_any_record_is(log: Decklog) -> None:
    costs: list[dict[str, Any]] = [{}, {"cost_microdollars": None}, {"key": "a 100%"}, {"occurred_at": None}]
    told = [charge(f"m{number}", agent="50 %s", **given) for number, given in enumerate(costs)]
    # Enough to be chained column by column.
    told += [charge(f"o{number}", model='a "model"') for number in range(70)]
    assert take(log, *told) == 74
    assert log.journal.verify().ok
    names, rows = log.db.read(lambda: log.db.rows(f"select {', '.join(Charge.columns())} from charges order by id", {}))
    sql = "select payload from entries where record_table = 'charges' order by pos"
    _, images = log.db.read(lambda: log.db.rows(sql, {}))
    assert [image for (image,) in images] == [Charge.image_of(names, row) for row in rows]


def test_a_name_that_was_bound_elsewhere_is_not_looked_through_again(log: Decklog) -> None:
    secret = "ghp_" + "k3Jd8sLq" * 4 + "Zx1v"
    name = Values().bind_text("answer_id", secret)[0]
    assert log.db.write(lambda: Bulk(log.parts).take([charge(name), charge("m2"), charge(secret)], {name})) == 2
    assert [each.answer_id for each in log.ledger.find("r", oldest_first=True)] == [name, "m2"]
