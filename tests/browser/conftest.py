"""A real browser at a real dashboard. Without one the tests are skipped with a reason."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from tests.pictures import sample_log, sample_parts
from tests.waiting import wait_until
from tests.web.client import PASSWORD
from tests.web.serving import Server

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HAS_DRIVER = find_spec("playwright") is not None
_NEEDED = {
    "there is no chromium here (apt-get install chromium)": CHROMIUM is None,
    "playwright is not installed (pip install 'decklog[browser]')": not HAS_DRIVER,
}
# Why no browser can be had; nothing when one can.
MISSING = "; ".join(why for why, is_missing in _NEEDED.items() if is_missing)
# A foreign host name that resolves to this machine.
REBOUND = "rebound.test"
# Reports violations of the content policy: then the escaping has failed.
WATCH = """
window.violations = []
addEventListener('securitypolicyviolation', event => window.violations.push(event.violatedDirective + ' ' + event.blockedURI))
"""


@dataclass
class Tab:
    """A page of the browser, and what went wrong in it."""

    page: Any
    origin: str
    trouble: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def go(self, path: str) -> "Tab":
        self.page.goto(self.origin + path)
        return self

    def until(self, expression: str) -> None:
        """Wait until an expression holds in the page. The driver evaluates it, since the page's policy forbids `eval`."""
        wait_until(lambda: self.page.evaluate(expression))

    def until_live(self) -> None:
        self.until("document.querySelector('#live').textContent.startsWith('live')")

    def check(self) -> None:
        """Say that nothing went wrong: no message of the console, nothing held back, no request to anybody else."""
        assert self.trouble == []
        assert self.page.evaluate("window.violations") == []
        assert [url for url in self.requests if not url.startswith(self.origin)] == []


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of a week of two runs, with an owner; each test has a copy."""
    from datetime import UTC, datetime, timedelta

    path, clock = sample_log.made(tmp_path_factory.mktemp("week"), datetime.now(UTC) - timedelta(hours=30))
    with Decklog.open(path, clock=clock) as log:
        sample_parts.write(log, clock)
    with Decklog.open(path) as log:
        log.trust.bind("ana", "cli", password=PASSWORD)
    return path


@pytest.fixture
def path(week: Path, tmp_path: Path) -> Path:
    # Nobody has it open: all of it is in the one file.
    assert not Path(f"{week}-wal").exists()
    return Path(shutil.copy(week, tmp_path / week.name))


@pytest.fixture
def server(path: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(str(path), tmp_path).start()
    yield server
    server.stop()


class Tabs:
    """Opens tabs of one browser profile, logged in by a link."""

    def __init__(self, chromium: Any, server: Server, **settings: Any) -> None:
        self.context = chromium.new_context(viewport={"width": 1280, "height": 800}, **settings)
        # As long as everything that is waited for: on a busy machine a page that was slow to read asks again much later.
        self.context.set_default_timeout(90_000)
        self.context.add_init_script(WATCH)
        self._server = server

    def log_in(self) -> Tab:
        tab = self.open()
        tab.page.goto(self._server.link)
        tab.page.wait_for_url(f"{self._server.origin}/")
        return tab

    def open(self) -> Tab:
        page = self.context.new_page()
        tab = Tab(page, self._server.origin)
        page.on("console", lambda message: tab.trouble.append(message.text))
        page.on("pageerror", lambda problem: tab.trouble.append(str(problem)))
        page.on("dialog", lambda dialog: (tab.trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: tab.requests.append(request.url))
        return tab


@pytest.fixture
def tabs(chromium: Any, server: Server) -> Iterator[Tabs]:
    tabs = Tabs(chromium, server)
    yield tabs
    tabs.context.close()


@pytest.fixture
def tab(tabs: Tabs) -> Tab:
    """A tab that is logged in and shows Now."""
    return tabs.log_in()
