"""Runs by family: child runs below their parent, with sums, on the page and as JSON."""

import re

from decklog import Decklog, ManualClock
from decklog.web.pages import runs
from tests.web.client import Browser


def rows(text: str) -> list[str]:
    return re.findall(r'<tr[^>]* id="((?:run|family)-[^"]+)"', text)


def test_child_runs_are_below_their_parent_with_sums(log: Decklog, filled: Browser) -> None:
    page = filled.get("/runs?as=family").text
    found = rows(page)
    place = found.index("run-commas")
    assert found[place : place + 3] == ["run-commas", "run-commas-again", "family-commas"]
    assert "together, 2 runs" in page
    assert 'class="g l1"' in page
    assert "level 1, child of the run above" in page
    # Families of one run have no sums.
    assert len([row for row in found if row.startswith("family-")]) == 1
    families = filled.get("/runs.json?as=family").data["data"]
    ours = next(family for family in families if family["id"] == "commas")
    assert [(run["id"], run["depth"]) for run in ours["runs"]] == [("commas", 0), ("commas-again", 1)]
    assert ours["sums"]["entries"] == sum(run["entries"] for run in ours["runs"])
    assert {row for row in found if row.startswith("run-")} == {f"run-{run.id}" for run in log.overview.runs(limit=100)}


def test_filters_stay_in_every_link(filled: Browser) -> None:
    page = filled.get("/runs?as=family&repo=parser").text
    assert 'href="/runs?as=family&amp;status=failed&amp;repo=parser"' in page
    assert 'href="/runs?repo=parser"' in page
    assert '<input type="hidden" name="as" value="family">' in page
    assert "decklog overview families --repo parser" in page
    assert "family of Teach the parser" in filled.get("/runs?as=family&parent=commas").text
    assert rows(filled.get("/runs?as=family&parent=commas-again").text) == ["run-commas-again"]
    assert "No run is “failed”" in filled.get("/runs?as=family&status=failed&text=nothing-like-it").text
    assert filled.get("/runs?as=family&after=x").status == 400


def test_next_page_follows_the_last_family(log: Decklog, clock: ManualClock, filled: Browser) -> None:
    for number in range(runs.PAGE):
        clock.advance(minutes=1)
        log.runs.start("one more", run_id=f"more-{number}")
    shown: list[str] = []
    url = "/runs?as=family"
    for _ in range(5):
        text = filled.get(url).text
        shown += rows(text)
        older = re.search(r'<a rel="next" href="([^"]+)"', text)
        if older is None:
            break
        url = older[1].replace("&amp;", "&")
    assert len(shown) == len(set(shown))
    run_ids = {row.removeprefix("run-") for row in shown if row.startswith("run-")}
    assert run_ids == {run.id for run in log.overview.runs(limit=100)}


def test_large_family_is_cut_with_a_link(log: Decklog, clock: ManualClock, browser: Browser) -> None:
    log.runs.start("the first", run_id="a&b")
    for number in range(runs.PAGE + 5):
        clock.advance(minutes=1)
        log.runs.start("a fork", run_id=f"fork-{number}", parent_run_id="a&b")
    page = browser.get("/runs?as=family").text
    assert f"the first {runs.PAGE} together, there are more" in page
    assert 'href="/runs?parent=a%26b"' in page
