"""The list of runs: what a person looks at first, counts, sorting by a column, and a search box that is always there."""

import html
import re

import pytest

from decklog import Decklog, ManualClock
from tests.conftest import on_both
from tests.paging import all_pages
from tests.web.client import Browser
from tests.web.test_pages import Read


def ids(text: str) -> list[str]:
    return re.findall(r'<tr id="run-([^"]+)"', text)


@pytest.fixture
def fleet(log: Decklog, clock: ManualClock, browser: Browser) -> Browser:
    """Runs of every status; those that are over ended in another order than they began."""
    for run_id in ("old", "failed", "done"):
        log.runs.start(f"Goal of {run_id}", run_id=run_id, repo="parser")
        clock.advance(minutes=1)
    for run_id, status in (("done", "completed"), ("failed", "failed"), ("old", "completed")):
        log.runs.finish(run_id, status=status)
        clock.advance(minutes=1)
    for run_id in ("stalled", "paused", "running", "asks"):
        log.runs.start(f"Goal of {run_id}", run_id=run_id, repo="jobs")
        log.tasks.add(run_id, "one")
    log.tasks.claim("stalled", worker="dev-3", lease_seconds=30)
    clock.advance(minutes=3)
    log.runs.update("paused", status="paused")
    log.tasks.claim("running", worker="dev-1", lease_seconds=3600)
    log.approvals.ask("asks", "Push?", by="dev-2", about="git push")
    log.ledger.charge("m", cost_microdollars=5_000_000, run_id="failed")
    log.ledger.charge("m", cost_microdollars=9_000_000, run_id="old")
    return browser


ORDER = ["asks", "running", "stalled", "paused", "old", "failed", "done"]


@on_both
def test_runs_are_sorted_by_attention(fleet: Browser) -> None:
    assert ids(fleet.get("/runs").text) == ORDER


@on_both
def test_pages_of_runs_keep_the_order(log: Decklog, fleet: Browser) -> None:
    for size in (1, 2, 3, 4, 5):
        runs = all_pages(lambda after: log.overview.table(limit=size, after=after).runs)  # noqa: B023
        assert [run.id for run in runs] == ORDER, size


@on_both
def test_filters_have_counts_that_follow_the_other_filters(fleet: Browser) -> None:
    page = Read(fleet.get("/runs").text).text
    assert "all 7 needs attention 1 running 1 stalled 1 blocked 0 waiting 0 idle 0 paused 1 done 2 failed 1 cancelled 0" in page
    assert "all 3 needs attention 0" in Read(fleet.get("/runs?repo=parser").text).text
    assert "all 1 needs attention 0" in Read(fleet.get("/runs?text=OF+old").text).text
    assert ids(fleet.get("/runs?status=stalled").text) == ["stalled"]
    assert ids(fleet.get("/runs?status=done").text) == ["old", "done"]


@pytest.mark.slow
@on_both
def test_table_heads_sort(fleet: Browser) -> None:
    text = fleet.get("/runs").text
    assert re.findall(r'aria-sort="(\w+)"', text) == ["other"]
    [spent] = re.findall(r'<a class="sort" href="([^"]+)">spent', text)
    by_cost = fleet.get(html.unescape(spent)).text
    assert ids(by_cost)[:2] == ["old", "failed"]
    assert re.search(r'<th scope="col" class="n c-spent" aria-sort="descending">', by_cost)
    [turned] = re.findall(r'<a class="sort" href="([^"]+)">spent', by_cost)
    assert ids(fleet.get(html.unescape(turned)).text)[-2:] == ["failed", "old"]
    by_goal = ids(fleet.get("/runs?sort=run").text)
    assert by_goal == sorted(by_goal)
    assert fleet.get("/runs?sort=colour").status == 400
    assert fleet.get('/runs?sort=run&after=["x"]').status == 400


def test_search_box_is_visible_and_keeps_the_other_filters(fleet: Browser) -> None:
    text = fleet.get("/runs?status=done&repo=parser").text
    form = text[text.index('role="search"') :].partition("</form>")[0]
    assert 'name="text" type="search"' in form
    assert 'name="status" value="done"' in form
    assert 'name="repo" value="parser"' in form
    assert "<details" not in text[text.index("<main") : text.index('role="search"')]


def test_ended_run_shows_its_summary(log: Decklog, browser: Browser, run_id: str) -> None:
    log.runs.finish(run_id, summary="Merged as 4e1f")
    assert re.search('<td class="d">([^<]*)</td>', browser.get("/runs").text)[1] == "Merged as 4e1f"


def test_list_and_page_show_the_same_duration(log: Decklog, clock: ManualClock, browser: Browser, run_id: str) -> None:
    clock.advance(minutes=7)
    log.journal.append(run_id, "Found it")
    clock.advance(hours=5)
    row = re.search(rf'<tr id="run-{run_id}".*?</tr>', browser.get("/runs").text, re.DOTALL)
    assert row
    assert '<td class="n wide">7 min</td>' in row[0]
    assert "· 7 min ·" in browser.get(f"/runs/{run_id}/overview").text
