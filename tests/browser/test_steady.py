"""Updates keep what a reader has typed, chosen and unfolded; expired and lost things are marked."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from tests.browser.conftest import CHROMIUM, MISSING, Tab, Tabs
from tests.browser.wire import Wire
from tests.searches import FULL
from tests.waiting import wait_until
from tests.web.client import PASSWORD
from tests.web.serving import Server

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

REFRESHES = 100 if FULL else 8
SEQS = "[...document.querySelectorAll('#tail li[id^=e-]')].map(row => Number(row.id.slice(2)))"
LAST = "Number(document.querySelector('#tail').dataset.last)"
COUNTED = """void (Idiomorph.morph = (morph => (...given) => {
  window.morphs = (window.morphs || 0) + 1
  return morph(...given)
})(Idiomorph.morph))"""


def refresh_often(tab: Tab, path: Path) -> None:
    """Have the page updated many times, each time after a write and without its pause."""
    tab.page.evaluate(COUNTED)
    with Decklog.open(path, durability="relaxed") as log:
        for number in range(REFRESHES):
            # Each time two parts: the page's own, and the bar.
            before = tab.page.evaluate("window.morphs || 0")
            log.journal.append("commas", f"number {number}")
            tab.until(f"dispatchEvent(new Event('visibilitychange')) && window.morphs >= {before + 2}")


# A field with typed text, and what is unfolded.
FIELDS = {"/inbox": "#reason", "/tasks?state=blocked": "#worker", "/runs/commas/lanes": "#at"}


@pytest.mark.parametrize("place", FIELDS)
def test_updates_keep_typed_text_choice_folds_and_scroll(tab: Tab, path: Path, place: str) -> None:
    tab.page.set_viewport_size({"width": 1280, "height": 300})
    tab.go(place).until_live()
    field = FIELDS[place]
    tab.page.evaluate("document.querySelectorAll('#main details').forEach(one => { one.open = true })")
    tab.page.fill(field, "12")
    if field == "#reason":
        tab.page.evaluate(f"document.querySelector('{field}').setSelectionRange(1, 2)")
    tab.page.evaluate("scrollTo(0, 90)")
    state = f"""() => {{
      const field = document.querySelector('{field}')
      return [field.value, document.activeElement === field, scrollY,
      field.type === 'number' ? null : field.selectionStart, field.type === 'number' ? null : field.selectionEnd,
      [...document.querySelectorAll('#main details')].map(one => one.open)] }}"""
    before = tab.page.evaluate(state)
    refresh_often(tab, path)
    assert tab.page.evaluate(state) == before
    tab.check()


def test_question_counts_down_and_can_not_be_decided_after_its_expiry(tab: Tab, path: Path) -> None:
    with Decklog.open(path) as log:
        details: dict[str, Any] = {"expires_in_seconds": 3660, "default_verdict": "denied"}
        approval = log.approvals.ask("commas", "And at once?", by="bo", about="git merge", **details)
    tab.go(f"/inbox/approval/{approval.id}").until_live()
    assert tab.page.inner_text("#item [data-left]") == "1 h"
    # The time of the page is moved to the last minute.
    tab.page.evaluate("Date.now = (now => () => now() + 3602000)(Date.now.bind(Date))")
    tab.until("/^5\\d s$/.test(document.querySelector('#item [data-left]').textContent)")
    first = tab.page.inner_text("#item [data-left]")
    tab.until(f"document.querySelector('#item [data-left]').textContent !== '{first}'")
    assert tab.page.locator("#decide:enabled").count() == 1
    tab.page.fill("#reason", "half a rea")
    tab.page.evaluate("Date.now = (now => () => now() + 70000)(Date.now.bind(Date))")
    tab.page.wait_for_selector("#lapsed")
    assert "counts as denied" in tab.page.inner_text("#lapsed")
    assert tab.page.locator("#decide:enabled").count() == 0
    assert not tab.page.is_visible("#changed")
    assert tab.page.input_value("#reason") == "half a rea"
    # A form sent at the last moment gets an error and keeps its text.
    with Decklog.open(path) as log:
        soon = log.clock.now() + timedelta(seconds=3)
        late = log.approvals.ask("commas", "And now?", by="bo", about="git merge 2", expires_at=soon)
    tab.go(f"/inbox/approval/{late.id}?verdict=granted")
    tab.page.fill("#reason", "typed for long")
    tab.page.fill("#proof", PASSWORD)
    tab.page.evaluate("Date.now = () => 0")
    wait_until(lambda: log.clock.now() > soon)
    tab.page.click("#decide")
    tab.page.wait_for_selector(".trouble:not([hidden])")
    assert "nobody answered" in tab.page.inner_text(".trouble >> nth=0")
    assert tab.page.inner_text("#typed") == "typed for long"
    with Decklog.open(path) as log:
        assert log.approvals.get(late.id).decided_by is None


@pytest.fixture
def wired(chromium: Any, server: Server) -> Iterator[tuple[Tabs, Wire]]:
    """Tabs of a browser whose every connection goes by a wire."""
    wire = Wire(server.port)
    rule = f"--host-resolver-rules=MAP *.localhost 127.0.0.1:{wire.port}"
    browser = chromium.browser_type.launch(executable_path=CHROMIUM, args=["--no-sandbox", rule])
    yield Tabs(browser, server), wire
    browser.close()
    wire.close()


def test_page_has_every_row_once_after_network_failures_and_sleep(wired: tuple[Tabs, Wire], server: Server, path: Path) -> None:
    tabs, wire = wired
    tab = tabs.log_in().go("/runs/commas/journal")
    tab.until_live()
    session = tabs.context.new_cdp_session(tab.page)
    ways: list[tuple[Callable[[], object], Callable[[], object]]] = [
        (lambda: os.kill(server.pid, signal.SIGSTOP), lambda: os.kill(server.pid, signal.SIGCONT)),
        (wire.cut, wire.mend),
        (wire.silence, wire.mend),
        (
            lambda: session.send("Page.setWebLifecycleState", {"state": "frozen"}),
            lambda: session.send("Page.setWebLifecycleState", {"state": "active"}),
        ),
    ]
    with Decklog.open(path, durability="relaxed") as log:
        for lose, mend in ways:
            lose()
            for number in range(10):
                newest = log.journal.append("commas", f"number {number}").seq
            time.sleep(0.1)
            mend()
            tab.until(f"{LAST} === {newest}")
            found = tab.page.evaluate(SEQS)
            assert found == list(range(found[0], newest + 1))


def test_rows_that_a_page_dropped_are_on_the_page_before_it(tab: Tab, path: Path) -> None:
    with Decklog.open(path, durability="relaxed") as log:
        log.runs.start("Short", run_id="short")
        tab.go("/runs/short/journal").until_live()
        assert not tab.page.is_visible("#older")
        for _ in range(2):
            newest = log.journal.append_many([{"stream": "short", "body": "entry"} for _ in range(200)])[-1].seq
            tab.until(f"{LAST} === {newest}")
    first = tab.page.evaluate(SEQS)[0]
    assert first > 1
    tab.page.click("#older")
    tab.page.wait_for_url(f"**/runs/short/journal?before={first}")
    assert tab.page.evaluate(SEQS)[-1] == first - 1
