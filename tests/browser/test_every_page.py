"""Every page of the dashboard in Chromium: axe finds nothing, and no text of an agent does anything."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from tests.browser.conftest import MISSING, Tab, Tabs
from tests.browser.test_dashboard import AXE, TAGS
from tests.web.payloads import PAYLOADS
from tests.web.poison import poison
from tests.web.serving import Server
from tests.web.test_states import addresses

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

MODES = [("light", 1440), ("dark", 1440), ("light", 390), ("dark", 390)]
# Forms, and pages that an address of `SCREENS` does not show.
MORE = (
    *("/palette?q=run", "/views?save=/runs", "/runs?as=family", "/search", "/compare", "/memory?health=1", "/system?look=1"),
    *("/act/pause-run/commas", "/act/stop-run/commas", "/act/message-run/commas", "/tasks?state=paused", "/nowhere"),
    *("/runs/commas/overview?at=20", "/runs/commas/tasks?as=table", "/runs/lexer-split/checks", "/runs/lexer-split/lanes"),
)


@pytest.fixture
def pages(path: Path) -> list[str]:
    with Decklog.open(path) as log:
        (lesson, *_) = log.memory.find()
        log.journal.append("@desk", kind="event", subtype="view.saved", payload={"name": "Mine", "path": "/runs?text=x"})
        return [*addresses(log), *MORE, f"/memory?lesson={lesson.id}", "/views"]


def faults(tab: Tab, path: str) -> dict[tuple[str, str], list[str]]:
    """Return what axe finds on a page, and whether the page is wider than its window."""
    tab.go(path).page.evaluate(AXE)
    result = tab.page.evaluate("tags => axe.run(document, {runOnly: tags})", TAGS)
    found = {(path, one["id"]): [node["html"] for node in one["nodes"]][:2] for one in result["violations"]}
    if tab.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found[path, "wider than the window"] = []
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), MODES)
def test_axe_finds_nothing_on_any_page(pages: list[str], chromium: Any, server: Server, scheme: str, width: int) -> None:
    tabs = Tabs(chromium, server, color_scheme=scheme)
    tab, found = tabs.log_in(), {}
    tab.page.set_viewport_size({"width": width, "height": 800})
    for page in pages:
        found |= faults(tab, page)
    tabs.context.close()
    assert found == {}


@pytest.fixture
def hostile(path: Path, pages: list[str], tmp_path: Path) -> Iterator[Server]:
    """A log with payloads in every text of every record."""
    with Decklog.open(path) as log:
        done = poison(log, [text.replace("\0", "") for text in PAYLOADS], 0)
        for text in PAYLOADS:
            saved = {"name": text[:80], "path": f"/runs?text={text}"}
            log.journal.append("@desk", text, kind="event", subtype="view.saved", payload=saved)
    assert {"tasks.title", "runs.goal", "approvals.question", "lessons.body"} <= done
    server = Server(str(path), tmp_path).start()
    yield server
    server.stop()


@pytest.mark.slow
def test_no_text_of_a_record_does_anything_on_any_page(hostile: Server, pages: list[str], chromium: Any) -> None:
    tabs = Tabs(chromium, hostile)
    tab = tabs.log_in()
    # The form of a message reads the owner's name, which no agent writes: its record is damaged here, and is refused.
    for page in (one for one in pages if "/message-run/" not in one):
        tab.go(page)
        tab.page.wait_for_timeout(50)
        foreign = tab.page.locator("main script, main img[src=x], main iframe, [onerror], [onload], [onfocus], [ontoggle]")
        assert foreign.count() == 0, page
        tab.trouble = [one for one in tab.trouble if "status of 4" not in one]
        tab.check()
    tab.go("/now").page.keyboard.press("Control+k")
    tab.until("document.querySelector('#palette a') !== null")
    tab.check()
    tabs.context.close()
