"""Late answers do not replace what a reader looks at now, and nothing moves while it is held.

Without a shared worker a page sends requests that a test can delay.
"""

from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from tests.browser.conftest import MISSING, Tab, Tabs
from tests.waiting import wait_until

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

LAST = "Number(document.querySelector('#tail').dataset.last)"
RANGE = "['value', 'max'].map(name => Number(document.querySelector('#slide')[name]))"
# The page handles an answer after its next frame.
SETTLED = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))"


@pytest.fixture
def alone(tabs: Tabs) -> Tab:
    """A tab without the shared worker."""
    tabs.context.add_init_script("delete window.SharedWorker")
    return tabs.log_in()


class Late:
    """Keeps what a tab asks for at some addresses until it is let go."""

    def __init__(self, tab: Tab, pattern: str) -> None:
        self._tab = tab
        self._pattern = pattern
        self.routes: list[Any] = []
        tab.page.route(pattern, self._keep)

    def _keep(self, route: Any) -> None:
        # To go to a page is no question of an open one.
        if route.request.is_navigation_request():
            route.continue_()
        else:
            self.routes.append(route)

    def until(self, count: int) -> None:
        wait_until(lambda: self._tab.page.evaluate("true") and len(self.routes) >= count)

    def answer(self, number: int) -> None:
        """Let one go, and wait until the page has taken its answer."""
        route = self.routes[number]
        with self._tab.page.expect_response(lambda answer: answer.request == route.request) as answer:
            route.continue_()
        answer.value.finished()
        self._tab.page.evaluate(SETTLED)

    def end(self) -> None:
        self._tab.page.unroute(self._pattern)


def slide_to(tab: Tab, at: str) -> None:
    tab.page.evaluate(f"(s => {{ s.value = {at}; s.dispatchEvent(new Event('input')) }})(document.querySelector('#slide'))")


def append(path: Path, text: str = "hello") -> int:
    with Decklog.open(path) as log:
        return log.journal.append("commas", text).seq


def test_preview_shows_the_row_chosen_last(alone: Tab) -> None:
    alone.go("/runs").until_live()
    late, keys = Late(alone, "**/runs/*/overview"), alone.page.keyboard
    goals = [link.strip() for link in alone.page.locator("tr[data-row] td.g").all_inner_texts()]
    keys.press("j")
    keys.press("Space")
    late.until(1)
    late.answer(0)
    keys.press("j")
    late.until(2)
    keys.press("j")
    late.until(3)
    late.answer(2)
    assert alone.page.inner_text("#peek h1") == goals[2]
    late.answer(1)
    assert alone.page.inner_text("#peek h1") == goals[2]
    keys.press("k")
    late.until(4)
    keys.press("Escape")
    late.answer(3)
    assert not alone.page.evaluate("document.querySelector('#peek').open")
    # What is looked at is not what the page is about, nor is it a list to go through.
    keys.press("Space")
    late.until(5)
    late.answer(4)
    assert alone.page.locator("#peek :is([data-row], [data-run], [data-live], [id])").count() == 0
    alone.check()


def test_paused_page_ignores_a_late_answer(alone: Tab, path: Path) -> None:
    late, keys = Late(alone, "**/now"), alone.page.keyboard
    alone.go("/now")
    late.until(1)
    with Decklog.open(path) as log:
        log.approvals.ask("commas", "And may I merge it?", by="bo", about="git merge")
    keys.press(".")
    late.answer(0)
    assert not alone.page.is_visible("text=And may I merge it?")
    late.end()
    keys.press(".")
    # It would rest ten times as long as the answer took.
    alone.page.evaluate("dispatchEvent(new Event('visibilitychange'))")
    alone.page.wait_for_selector("text=And may I merge it?")
    alone.check()


def test_entries_during_the_return_to_now_are_shown(alone: Tab, path: Path) -> None:
    alone.go("/runs/commas/overview").until_live()
    slide_to(alone, "41")
    alone.page.wait_for_selector("text=AS OF ENTRY 41")
    late = Late(alone, "**/runs/commas/overview")
    slide_to(alone, "1e9")
    late.until(1)
    read = alone.page.evaluate("fetch('/runs/commas/overview?').then(answer => answer.text())")
    newest = append(path)
    # The page has heard of it, and grown, before it has what was read before.
    alone.until(f"{RANGE}[1] === {newest}")
    late.routes[0].fulfill(body=read, content_type="text/html; charset=utf-8")
    late.end()
    alone.until(f"{LAST} === {newest}")
    alone.until(f"{RANGE}[0] === {newest}")
    assert "at=" not in alone.page.url
    alone.check()


def test_end_of_the_slider_is_now_for_a_growing_run(alone: Tab, path: Path) -> None:
    alone.go("/runs/commas/overview?at=20").until("document.querySelector('#slide').oninput !== null")
    late = Late(alone, "**/runs/commas/overview")
    slide_to(alone, "1e9")
    # As it does when it grows, before the page asks.
    alone.page.evaluate("document.querySelector('#slide').max++")
    newest = append(path)
    late.until(1)
    late.answer(0)
    late.end()
    alone.until(f"{LAST} === {newest}")
    assert alone.page.locator(".asof").count() == 0
    alone.check()


def test_slider_grows_with_its_run_but_not_while_held(tab: Tab, path: Path) -> None:
    tab.go("/runs/commas/overview").until_live()
    strip = "document.querySelector('.pulse').innerHTML"
    before = tab.page.evaluate(strip)
    newest = append(path)
    tab.until(f"{RANGE}.join() === '{newest},{newest}'")
    assert tab.page.input_value("#at") == str(newest)
    assert tab.page.inner_text(".of") == f"of {newest}"
    # Somebody holds the knob.
    box = tab.page.locator("#slide").bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
    tab.page.mouse.down()
    later = append(path)
    tab.until(f"{LAST} === {later}")
    # It grows once a second, where it does.
    tab.page.wait_for_timeout(1200)
    assert tab.page.evaluate(RANGE) == [newest, newest]
    tab.page.mouse.up()
    tab.until(f"{RANGE}.join() === '{later},{later}'")
    # Somebody types a number.
    tab.page.fill("#at", "12")
    last = append(path)
    tab.until(f"{RANGE}[1] === {last}")
    assert tab.page.input_value("#at") == "12"
    # The strip is drawn anew ten seconds after it was, and no sooner.
    assert tab.page.evaluate(strip) == before
    tab.page.evaluate("Date.now = (now => () => now() + 11000)(Date.now.bind(Date))")
    tab.until(f"{strip} !== {before!r}")
    assert tab.page.input_value("#at") == "12"
    tab.check()


def test_chosen_and_marked_rows_stay_when_the_list_moves(tab: Tab, path: Path) -> None:
    tab.go("/runs").until_live()
    rows = "[...document.querySelectorAll('tr[data-row]')].map(row => row.id)"
    chosen = tab.page.evaluate(rows)[1]
    for key in "jjx":
        tab.page.keyboard.press(key)
    with Decklog.open(path) as log:
        log.runs.start("Come before all others", run_id="first")
        # What needs a person comes first.
        log.approvals.ask("first", "May I?", by="bo", about="git push")
    tab.until(f"{rows}[0] === 'run-first'")
    assert tab.page.evaluate("document.querySelector('tr.here.marked').id") == chosen
    tab.page.keyboard.press("o")
    tab.page.wait_for_url(f"**/runs/{chosen.removeprefix('run-')}/overview")
    tab.check()


def test_open_inbox_item_stays_and_shows_that_it_is_over(tab: Tab, path: Path) -> None:
    tab.go("/inbox").until_live()
    item = tab.page.evaluate("document.querySelector('#item').dataset.at")
    tab.page.fill("#reason", "half a rea")
    with Decklog.open(path) as log:
        log.approvals.ask("commas", "And at once?", by="bo", about="git merge", expires_in_seconds=60, default_verdict="denied")
    tab.page.wait_for_selector(".list :text('And at once?')")
    assert "And at once?" in tab.page.inner_text(".list li >> nth=0")
    assert tab.page.get_attribute(".list [aria-current]", "href") == item
    assert not tab.page.is_visible("#changed")
    assert tab.page.locator("#decide:enabled").count() == 1
    with Decklog.open(path) as log:
        log.approvals.withdraw(item.rpartition("/")[2], reason="not any more")
    tab.page.wait_for_selector("#changed")
    assert tab.page.locator("#decide:enabled").count() == 0
    assert tab.page.input_value("#reason") == "half a rea"
    tab.check()
