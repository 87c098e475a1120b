"""Families of runs, spans of days, workflow, sessions and verification: by keys, without scripts, by axe."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from tests.browser.conftest import MISSING, Tab, Tabs
from tests.browser.test_dashboard import AXE, TAGS
from tests.waiting import wait_until
from tests.web.serving import Server

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

FAMILY = "/runs?as=family"
HERE = "document.querySelector('.here')?.id"


@pytest.fixture(autouse=True)
def grown(path: Path) -> None:
    """A run with a fork and a run of a sub-agent, which has another one; tasks of two roles."""
    with Decklog.open(path) as log:
        log.runs.start("Write it down", run_id="commas-docs", parent_run_id="commas")
        log.runs.start("Check the links", run_id="commas-links", parent_run_id="commas-docs")
        log.tasks.add("commas-docs", "Write the page", role="writer")
        log.tasks.add("commas-docs", "Read the page", role="reader")


@pytest.fixture
def plain(chromium: Any, server: Server) -> Iterator[Tab]:
    """A tab without scripts, logged in."""
    tabs = Tabs(chromium, server, java_script_enabled=False)
    tab = tabs.open().go("/login")
    tab.page.fill("#token", server.link.partition("#")[2])
    tab.page.click("text=Log in >> nth=-1")
    yield tab
    tabs.context.close()


def press_on(tab: Tab, selector: str, key: str = "Enter") -> None:
    """Move the focus by the tabulator to an element, and press a key."""
    for _ in range(80):
        tab.page.keyboard.press("Tab")
        if tab.page.evaluate("selector => document.activeElement.matches(selector)", selector):
            tab.page.keyboard.press(key)
            return
    raise AssertionError(f"nobody comes to {selector} by the keyboard")


# Families


def test_families_are_chosen_gone_through_and_opened_by_keys(tab: Tab) -> None:
    tab.go("/runs").until_live()
    press_on(tab, "a[href='/runs?as=family']")
    tab.page.wait_for_url("**/runs?as=family")
    tab.until_live()
    rows = tab.page.evaluate("[...document.querySelectorAll('tbody:has(#run-commas) [data-row]')].map(row => row.id)")
    assert rows[0] == "run-commas"
    assert set(rows) == {"run-commas", "run-commas-again", "run-commas-docs", "run-commas-links"}
    assert rows.index("run-commas-links") == rows.index("run-commas-docs") + 1
    all_rows = tab.page.evaluate("[...document.querySelectorAll('[data-row]')].map(row => row.id)")
    # What a family adds up to is no run, and is passed over.
    for row in all_rows[: all_rows.index("run-commas-links") + 1]:
        tab.page.keyboard.press("j")
        tab.until(f"{HERE} === '{row}'")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/runs/commas-links/overview")
    tab.check()


def test_child_runs_are_indented_below_their_parent(tab: Tab) -> None:
    for width in (1280, 390):
        tab.page.set_viewport_size({"width": width, "height": 800})
        tab.go(FAMILY)
        edges = [
            tab.page.evaluate(f"document.querySelector('#run-{name} td.g a').getBoundingClientRect().left")
            for name in ("commas", "commas-docs", "commas-links")
        ]
        assert edges == sorted(set(edges)), width
    assert "level 2, child of the run above:" in tab.page.inner_text("#run-commas-links")
    assert "together, 4 runs" in tab.page.inner_text("#family-commas")


def test_family_on_an_open_page_grows(tab: Tab, path: Path) -> None:
    tab.go(FAMILY).until_live()
    with Decklog.open(path) as log:
        log.runs.start("One more", run_id="commas-more", parent_run_id="commas-links")
    tab.until("document.querySelector('#run-commas-more td.l3') !== null")
    tab.until("document.querySelector('#family-commas').textContent.includes('together, 5 runs')")
    tab.check()


def test_families_without_scripts(plain: Tab) -> None:
    plain.go("/runs").page.click("text=Tree")
    assert plain.page.url.endswith(FAMILY)
    assert "together, 4 runs" in plain.page.inner_text("main")
    plain.page.click("text=Check the links")
    assert plain.page.url.endswith("/runs/commas-links/overview")


# Any span of days


def test_any_span_of_days_is_chosen_by_keys(chromium: Any, server: Server) -> None:
    tabs = Tabs(chromium, server, locale="en-US")
    tab = tabs.log_in().go("/spend")
    tab.until_live()
    press_on(tab, "#narrow > summary")
    press_on(tab, "#since", "0")
    tab.page.keyboard.type("1022026")
    press_on(tab, "#until", "0")
    tab.page.keyboard.type("3042026")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/spend?by=model&since=2026-01-02&until=2026-03-04")
    assert tab.page.inner_text("#days").startswith("2026-01-02 to 2026-03-04: $0.00 in 0 calls")
    assert tab.page.is_visible("#since")
    press_on(tab, ".places-in-time a[href*='since=2026-03-05']")
    tab.page.wait_for_url("**/spend?*since=2026-03-05&until=2026-05-05*")
    tab.check()
    tabs.context.close()


def test_a_span_of_days_without_scripts(plain: Tab) -> None:
    plain.go("/spend?days=30").page.click("#each-day ~ div a >> nth=-1")
    assert "since=" in plain.page.url
    whole = plain.page.inner_text("#days")
    plain.page.fill("#since", "2020-01-01")
    plain.page.click("#narrow button")
    # Longer than the longest span: the error names the limit.
    assert "400 days" in plain.page.inner_text("main")
    plain.page.go_back()
    assert plain.page.inner_text("#days") == whole


# The workflow


def test_workflow_counts_update_and_steps_fold_by_keys(tab: Tab, path: Path) -> None:
    tab.go("/workflow").until_live()
    count = "document.querySelector('#at-writer td.n').textContent"
    before = int(tab.page.evaluate(count))
    assert before
    # The steps of the roles in use are open at first; who folds them finds them folded after an update.
    tab.until("document.querySelector('#steps').open")
    press_on(tab, "#steps > summary")
    tab.until("!document.querySelector('#steps').open")
    with Decklog.open(path) as log:
        log.tasks.add("commas-docs", "Write another", role="writer")
    tab.until(f"{count} === '{before + 1}'")
    assert not tab.page.evaluate("document.querySelector('#steps').open")
    assert tab.page.evaluate("document.activeElement.matches('#steps > summary')")
    press_on(tab, "#at-person a")
    tab.page.wait_for_url("**/inbox")
    tab.check()


def test_workflow_without_scripts(plain: Tab) -> None:
    plain.go("/workflow")
    assert plain.page.inner_text("#at-writer").split()[:2] == ["writer", "not"]
    assert "1" in plain.page.inner_text("#at-reader")
    plain.page.click("#at-person a")
    assert plain.page.url.endswith("/inbox")


# Sessions and the proof of the log


def test_the_log_is_verified_gone_on_with_and_the_session_ended_by_keys(tab: Tab, path: Path) -> None:
    tab.go("/system").until_live()
    assert "1 browser" in tab.page.inner_text("#sessions-head")
    press_on(tab, "button[value=anew]")
    tab.page.wait_for_selector("#verified:has-text('verified')")
    with Decklog.open(path) as log:
        log.journal.append("commas", "one more")
        entries = log.journal.verify().entries
    press_on(tab, "button[value=on]")
    tab.page.wait_for_selector(f"#verified:has-text('{entries} entries')")
    press_on(tab, ".sessions button")
    tab.page.wait_for_url("**/login")
    assert tab.page.context.cookies() == []


def test_the_log_is_verified_and_a_session_ended_without_scripts(plain: Tab) -> None:
    plain.go("/system").page.click("button[value=anew]")
    wait_until(lambda: plain.go("/system").page.query_selector("#verified") is not None)
    assert "verified" in plain.page.inner_text("#verified")
    plain.page.click(".sessions button")
    assert plain.page.url.partition("?")[0].endswith("/login")


# Everybody


def _verified(tab: Tab) -> None:
    tab.page.click("button[value=anew]")
    tab.page.wait_for_selector("#verified")


OPENED: dict[str, Callable[[Tab], object] | None] = {
    FAMILY: None,
    "/runs?as=family&parent=commas-docs": None,
    "/spend?since=2026-01-02&until=2026-03-04&by=agent": None,
    "/spend?days=30": lambda tab: tab.page.click("#narrow > summary"),
    "/workflow": lambda tab: tab.page.click("#steps > summary"),
    "/system": _verified,
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_page(chromium: Any, server: Server, scheme: str, width: int) -> None:
    tabs = Tabs(chromium, server, color_scheme=scheme)
    tab, found = tabs.log_in(), {}
    tab.page.set_viewport_size({"width": width, "height": 800})
    for path, opened in OPENED.items():
        tab.go(path)
        if opened is not None:
            opened(tab)
        tab.page.evaluate(AXE)
        result = tab.page.evaluate("tags => axe.run(document, {runOnly: tags})", TAGS)
        found |= {(path, one["id"]): [node["html"] for node in one["nodes"]] for one in result["violations"]}
        if tab.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found[path, "wider than the page"] = []
    assert found == {}
    tabs.context.close()
