"""The palette, the bar and the tabs of a run: what leads where, with how much is there."""

import re

import pytest

from decklog import Decklog, ManualClock
from decklog.web.pages.run import BAR
from tests.pictures import sample_log, sample_parts
from tests.web.client import Browser
from tests.web.payloads import PAYLOADS
from tests.web.test_text_of_agents import shape


@pytest.fixture
def filled(log: Decklog, clock: ManualClock, browser: Browser) -> Browser:
    sample_log.write(log, clock)
    sample_parts.write(log, clock)
    return browser


def rows(browser: Browser, query: str) -> list[tuple[str, str]]:
    return [(row["kind"], row["path"]) for row in browser.get(f"/palette.json?{query}").data["data"]]


def test_words_find_pages_runs_tasks_and_actions(filled: Browser) -> None:
    assert ("page", "/trust") in rows(filled, "q=tru")
    assert ("run", "/runs/commas/overview") in rows(filled, "q=commas")
    assert ("action", "/act/stop-run/commas") in rows(filled, "q=stop+comma")
    assert any(kind == "task" for kind, _ in rows(filled, "q=task"))
    assert rows(filled, "q=nothing+is+called+so") == []


def test_on_a_run_its_own_actions_and_tabs_come_first(filled: Browser) -> None:
    found = rows(filled, "on=commas")
    assert found[0] == ("action", "/act/pause-run/commas")
    assert ("this run", "/runs/commas/journal") in found
    assert ("action", "/act/stop-run/commas") in found
    assert len(found) == len(set(found))


def test_the_bar_has_seven_places_and_a_menu(filled: Browser) -> None:
    text = filled.get("/now").text
    nav = text[text.index('<nav aria-label="Main">') : text.index("</nav>")]
    names = re.findall(r'<a href="[^"]*"[^>]*>([A-Z]\w+)', nav.partition("<details")[0])
    assert names == ["Now", "Inbox", "Runs", "Tasks", "Spend", "Memory", "Search"]
    assert re.findall(r'href="(/\w+)"', nav.partition("<details")[2]) == ["/views", "/compare", "/workflow", "/trust", "/system"]


def test_tabs_have_counts_and_empty_ones_are_dimmed(filled: Browser, log: Decklog) -> None:
    text = filled.get("/runs/commas/overview").text
    bar = text[text.index('<nav class="tabs"') :].partition("</nav>")[0]
    assert [name for name in BAR if f"/runs/commas/{name}" not in bar] == []
    assert f'Tasks <span class="tab-count">{len(log.tasks.find("commas", limit=200))}</span>' in bar
    assert 'Forks <span class="tab-count">1</span>' in bar
    log.runs.start("Nothing yet", run_id="new")
    bar = filled.get("/runs/new/overview").text
    assert 'class="none">Plan <span class="tab-count">0</span>' in bar
    # As of an earlier entry it is not known how much there was.
    assert "Forks</a>" in filled.get("/runs/commas/overview?at=5").text


def test_reasoning_and_tool_calls_are_filters_of_the_journal(filled: Browser) -> None:
    text = filled.get("/runs/commas/tools").text
    assert '<a href="/runs/commas/journal" aria-current="page">Journal' in text
    assert '<a href="/runs/commas/tools" aria-current="true">tool calls</a>' in text


def test_what_agents_wrote_is_text_in_the_palette(log: Decklog, browser: Browser) -> None:
    log.runs.start("plain words", run_id="r")
    known = shape(browser.get("/palette?on=r").text)
    for text in PAYLOADS:
        log.runs.start(text)
    text = browser.get("/palette?on=r").text
    assert shape(text) <= known
    assert shape(browser.get("/palette?q=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E").text) <= known | {
        ("p", "class"),
        ("p", "id"),
    }
