"""Runs by family: what came of a run stands below it, with sums, in the page and in its data."""

import re

import pytest

from decklog import Decklog, ManualClock
from decklog.web.pages import runs
from tests.pictures import sample_log, sample_parts
from tests.web.asking import Browser


@pytest.fixture
def filled(log: Decklog, clock: ManualClock, browser: Browser) -> Browser:
    sample_log.write(log, clock)
    sample_parts.write(log, clock)
    return browser


def rows(text: str) -> list[str]:
    return re.findall(r'<tr[^>]* id="((?:run|family)-[^"]+)"', text)


def test_what_came_of_a_run_stands_below_it_with_their_sums(log: Decklog, filled: Browser) -> None:
    page = filled.get("/runs?as=family").text
    found = rows(page)
    place = found.index("run-commas")
    assert found[place : place + 3] == ["run-commas", "run-commas-again", "family-commas"]
    assert "together, 2 runs" in page
    assert 'class="g l1"' in page
    assert "level 1, child of the run above" in page
    # The others have no sums: they are what their line says.
    assert len([row for row in found if row.startswith("family-")]) == 1
    told = filled.get("/runs.json?as=family").data["data"]
    ours = next(family for family in told if family["id"] == "commas")
    assert [(run["id"], run["depth"]) for run in ours["runs"]] == [("commas", 0), ("commas-again", 1)]
    assert ours["sums"]["entries"] == sum(run["entries"] for run in ours["runs"])
    assert {row for row in found if row.startswith("run-")} == {f"run-{run.id}" for run in log.overview.runs(limit=100)}


def test_what_is_asked_for_stays_in_every_address(filled: Browser) -> None:
    page = filled.get("/runs?as=family&repo=parser").text
    assert 'href="/runs?as=family&amp;status=failed&amp;repo=parser"' in page
    assert 'href="/runs?repo=parser"' in page
    assert '<input type="hidden" name="as" value="family">' in page
    assert "decklog overview families --repo parser" in page
    assert "family of Teach the parser" in filled.get("/runs?as=family&parent=commas").text
    assert rows(filled.get("/runs?as=family&parent=commas-again").text) == ["run-commas-again"]
    assert "No run is “failed”" in filled.get("/runs?as=family&status=failed&text=nothing-like-it").text
    assert filled.get("/runs?as=family&after=x").status == 400


def test_a_page_goes_on_behind_its_last_family(log: Decklog, clock: ManualClock, filled: Browser) -> None:
    for number in range(runs.PAGE):
        clock.advance(minutes=1)
        log.runs.start("one more", run_id=f"more-{number}")
    seen: list[str] = []
    url = "/runs?as=family"
    for _ in range(5):
        text = filled.get(url).text
        seen += rows(text)
        older = re.search(r'<a rel="next" href="([^"]+)"', text)
        if older is None:
            break
        url = older[1].replace("&amp;", "&")
    assert len(seen) == len(set(seen))
    runs_seen = {row.removeprefix("run-") for row in seen if row.startswith("run-")}
    assert runs_seen == {run.id for run in log.overview.runs(limit=100)}


def test_of_a_large_family_it_is_said_that_there_is_more(log: Decklog, clock: ManualClock, browser: Browser) -> None:
    log.runs.start("the first", run_id="a&b")
    for number in range(runs.PAGE + 5):
        clock.advance(minutes=1)
        log.runs.start("a fork", run_id=f"fork-{number}", parent_run_id="a&b")
    page = browser.get("/runs?as=family").text
    assert f"the first {runs.PAGE} together, there are more" in page
    assert 'href="/runs?parent=a%26b"' in page
