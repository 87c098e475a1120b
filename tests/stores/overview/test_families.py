"""Runs by families: whole on one page, in an order that holds, and at a cost that does not grow with what is not shown."""

from typing import Any

import pytest

from decklog import Decklog, Invalid, ManualClock
from decklog.stores.overview import families, run_list
from tests.db.tampering import PostgresVictim, SqliteVictim
from tests.statements import statements
from tests.stores.claiming import claimed


def start(log: Decklog, clock: ManualClock, *runs: str, **more: Any) -> None:
    """Start runs a minute apart, each written as RUN or RUN<PARENT."""
    for run in runs:
        run_id, _, parent = run.partition("<")
        clock.advance(minutes=1)
        log.runs.start(f"goal of {run_id}", run_id=run_id, parent_run_id=parent or None, **more)


def shape(page: Any) -> list[str]:
    """Write each family as its runs, indented by their depths."""
    return [" ".join("-" * member.depth + member.run.id for member in family.runs) for family in page]


def test_each_run_stands_below_the_one_that_it_came_of(log: Decklog, clock: ManualClock) -> None:
    start(log, clock, "a", "b", "a1<a", "a11<a1", "c", "a2<a", "b1<b")
    assert shape(log.overview.families()) == ["c", "b -b1", "a -a1 --a11 -a2"]


def test_a_family_has_the_sums_of_its_runs(log: Decklog, clock: ManualClock) -> None:
    start(log, clock, "a", "a1<a", "a2<a1")
    for run_id in ("a", "a1", "a2"):
        log.tasks.add_many(run_id, [{"title": "one"}, {"title": "two"}])
        log.ledger.charge("m", run_id=run_id, cost_microdollars=1_000)
    claim = claimed(log, "a2")
    claim.finish("done")
    family = log.overview.families()[0]
    sums = family.sums
    assert (sums["done"], sums["planned"], sums["cost_microdollars"], sums["calls"]) == (1, 6, 3_000, 3)
    assert sums["entries"] == sum(member.run.entries for member in family.runs)
    assert (family.ended_at, family.last_at) == (None, log.overview.run("a2").last_at)
    told = family.as_dict()
    assert (told["id"], [run["depth"] for run in told["runs"]], told["is_cut"]) == ("a", [0, 1, 2], False)


def test_the_end_of_a_family_is_that_of_its_last_run(log: Decklog, clock: ManualClock) -> None:
    start(log, clock, "a", "a1<a")
    for run_id in ("a1", "a"):
        clock.advance(minutes=1)
        log.runs.finish(run_id)
    assert log.overview.families()[0].ended_at == log.overview.run("a").ended_at


def test_pages_keep_families_together_and_have_each_once(log: Decklog, clock: ManualClock) -> None:
    for name in "abcdefg":
        start(log, clock, name, *(f"{name}{number}<{name}" for number in range(ord(name) % 4)))
    whole = shape(log.overview.families(limit=100))
    seen, after = [], None
    for _ in range(10):
        page = log.overview.families(limit=4, after=after)
        assert sum(len(family.runs) for family in page) <= 4
        seen += shape(page)
        after = page.next
        if after is None:
            break
    assert seen == whole
    assert len(whole) == 7


def test_of_a_large_family_the_first_are_shown_and_it_is_said(log: Decklog, clock: ManualClock) -> None:
    start(log, clock, "old", "a", *(f"a{number}<a" for number in range(9)))
    page = log.overview.families(limit=5)
    assert (shape(page), page[0].is_cut) == (["a -a0 -a1 -a2 -a3"], True)
    assert shape(log.overview.families(limit=5, after=page.next)) == ["old"]


def test_what_is_walked_to_has_an_end(log: Decklog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    start(log, clock, "a", "b<a", "c<b", "d<c", "e<d", "f<e", "g<f", "h<g", "i<h", "j<i", "k<j")
    family = log.overview.families()[0]
    assert (family.runs[-1].depth, family.is_cut) == (families.MOST_LEVELS, True)
    monkeypatch.setattr(families, "_WALK", families._WALK.replace(f"limit {families.MOST_WALKED}", "limit 3"))
    family = log.overview.families()[0]
    assert (len(family.runs), family.is_cut) == (3, True)


def test_what_is_asked_for_is_asked_of_the_first_run(log: Decklog, clock: ManualClock) -> None:
    start(log, clock, "a", "b", repo="one")
    start(log, clock, "c", "a1<a", repo="two", branch="main")
    since = clock.now()
    start(log, clock, "d")
    log.runs.finish("b")
    assert shape(log.overview.families(repo="one")) == ["b", "a -a1"]
    assert shape(log.overview.families(repo="two", branch="main")) == ["c"]
    assert shape(log.overview.families(text="OF A")) == ["a -a1"]
    assert shape(log.overview.families(since=since)) == ["d"]
    assert shape(log.overview.families(until=since, status="done")) == ["b"]  # type: ignore[arg-type]
    assert shape(log.overview.families(repo="three")) == []


def test_a_word_for_what_goes_on_finds_the_family_of_whoever_has_it(log: Decklog, clock: ManualClock) -> None:
    start(log, clock, "a", "b", "a1<a", "a11<a1", "b1<b")
    log.approvals.ask("a11", "May I?", by="dev-1", about="git push")
    assert shape(log.overview.families(status="needs attention")) == ["a -a1 --a11"]  # type: ignore[arg-type]
    assert shape(log.overview.families(status="needs attention", text="of b")) == []  # type: ignore[arg-type]
    assert shape(log.overview.families(status="stalled")) == []  # type: ignore[arg-type]
    first = log.overview.families(status="idle", limit=2)  # type: ignore[arg-type]
    rest = log.overview.families(status="idle", limit=3, after=first.next)  # type: ignore[arg-type]
    assert (shape(first), shape(rest)) == (["b -b1"], ["a -a1 --a11"])


def test_a_run_can_be_shown_with_what_came_of_it_alone(log: Decklog, clock: ManualClock) -> None:
    start(log, clock, "a", "a1<a", "a11<a1", "a2<a")
    assert shape(log.overview.families(parent_run_id="a1")) == ["a1 -a11"]
    assert shape(log.overview.families(parent_run_id="nobody")) == []


def test_a_run_whose_parent_is_not_in_the_log_begins_a_family(log: Decklog, clock: ManualClock, target: str) -> None:
    start(log, clock, "a", "a1<a")
    victim = SqliteVictim(target) if log.db.engine == "sqlite" else PostgresVictim(target, log)
    victim.change("update runs set parent_run_id = 'elsewhere' where id = 'a'")
    assert shape(log.overview.families()) == ["a -a1"]


def test_behind_very_many_forks_a_page_goes_on(log: Decklog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    start(log, clock, "a", *(f"a{number}<a" for number in range(5)))
    monkeypatch.setattr(run_list, "MOST_LOOKED_AT", 3)
    first = log.overview.families()
    second = log.overview.families(after=first.next)
    assert (shape(first), shape(second)) == ([], ["a -a0 -a1 -a2 -a3 -a4"])
    assert log.overview.families(after=second.next) == []


def test_a_strange_place_is_refused(log: Decklog) -> None:
    with pytest.raises(Invalid, match="is not a cursor"):
        log.overview.families(after="x")


@pytest.mark.slow
def test_families_take_as_many_statements_however_many_there_are(log: Decklog, clock: ManualClock) -> None:
    def asked(**given: Any) -> int:
        log.overview.families_table(limit=50, **given)
        with statements(log) as seen:
            log.overview.families_table(limit=50, **given)
        return len(seen)

    start(log, clock, "a", "a1<a")
    few = asked(), asked(status="idle")
    for name in "bcdefgh":
        start(log, clock, name, *(f"{name}{number}<{name}" for number in range(9)))
    assert (asked(), asked(status="idle")) == few
    assert max(few) <= 8


def test_neither_runs_nor_entries_are_read_from_end_to_end(log: Decklog, clock: ManualClock) -> None:
    start(log, clock, "a", "a1<a", "b")
    log.overview.families()
    with statements(log) as seen:
        log.overview.families()
    if log.db.engine == "postgres":
        pytest.skip("a server reads a table of three rows as a whole")
    plans = [log.db.read(lambda: log.db.rows(f"explain query plan {sql}", bound)[1]) for sql, bound in seen]  # noqa: B023
    steps = [str(row[-1]) for plan in plans for row in plan]
    assert [step for step in steps if step in ("SCAN runs", "SCAN entries", "SCAN k", "SCAN c")] == []
