"""Five of the ten questions that a newcomer has: what changed, stop it, raise the budget, show the diff, land it.

Each begins at Now and is answered in one to three clicks, on both engines; what is typed is no click.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from tests.browser.conducted import plan, work_in
from tests.browser.conftest import MISSING, Tab, Tabs
from tests.conductor.repositories import git
from tests.pictures import sample_log
from tests.waiting import wait_until
from tests.web.client import PASSWORD
from tests.web.serving import Server

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

MOST_CLICKS = 3


class Newcomer:
    """Somebody who begins at Now, and whose clicks are counted."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab.go("/now")
        self.clicks = 0

    def click(self, selector: str) -> "Newcomer":
        self.tab.page.click(selector)
        self.clicks += 1
        return self

    def sign(self, **typed: str) -> "Newcomer":
        """Fill a form in, with the owner's password."""
        for name, text in typed.items():
            self.tab.page.fill(f".answer [name={name}]", text)
        self.tab.page.fill(".answer [name=proof]", PASSWORD)
        return self

    def is_done(self) -> None:
        assert 1 <= self.clicks <= MOST_CLICKS, self.clicks
        self.tab.check()


@pytest.fixture
def run_id(target: str, tmp_path: Path) -> str:
    """A run of the conductor with an item that has landed and one that is red, and a budget for all runs."""
    clock = ManualClock(datetime.now(UTC) - timedelta(hours=23))
    with Decklog.open(target, clock=clock) as log:
        sample_log.write(log, clock)
        log.trust.bind("ana", "cli", password=PASSWORD)
    with Decklog.open(target) as log, log.proving(password=PASSWORD):
        log.budgets.set("all", period="day", limit_microdollars=50_000_000)
    return work_in(target, tmp_path, *plan())


@pytest.fixture
def newcomer(run_id: str, target: str, tmp_path: Path, chromium: Any) -> Iterator[Newcomer]:
    assert run_id
    server = Server(target, tmp_path).start()
    tabs = Tabs(chromium, server)
    try:
        yield Newcomer(tabs.log_in())
    finally:
        tabs.context.close()
        server.stop()


def run_link(run_id: str) -> str:
    return f"main a[href='/runs/{run_id}/overview'] >> nth=0"


def test_what_changed(newcomer: Newcomer, run_id: str) -> None:
    newcomer.click(run_link(run_id)).click("text=Changes")
    newcomer.tab.page.wait_for_selector(".diff-file")
    assert "def triple(a):" in newcomer.tab.page.inner_text("#diff")
    newcomer.is_done()


def test_stop_it(newcomer: Newcomer, run_id: str, target: str) -> None:
    newcomer.click(run_link(run_id)).click("text=Stop…").sign(reason="It works on the wrong branch").click("#act #decide")
    with Decklog.open(target) as log:
        wait_until(lambda: log.runs.get(run_id).status == "cancelled")
        assert log.runs.get(run_id).summary == "It works on the wrong branch"
    newcomer.is_done()


def test_raise_the_budget(newcomer: Newcomer, target: str) -> None:
    newcomer.click("#bar >> text=Spend").click("text=Raise…").sign(limit="75").click("#act #decide")
    with Decklog.open(target) as log:
        wait_until(lambda: [one.ceiling for one in log.budgets.find(scope="all")] == [75_000_000])
    newcomer.is_done()


def test_show_the_diff(newcomer: Newcomer, run_id: str) -> None:
    newcomer.click(run_link(run_id)).click(".tabs >> text=Checks").click(f"a[href='/runs/{run_id}/items/triple']")
    newcomer.tab.page.wait_for_selector("tr.d-add")
    assert "def triple(a):" in newcomer.tab.page.inner_text("tr.d-add >> nth=2")
    newcomer.is_done()


def test_land_it(newcomer: Newcomer, run_id: str, tmp_path: Path, target: str) -> None:
    folder = tmp_path / "repository"
    before = git(folder, "rev-parse", "main")
    newcomer.click(run_link(run_id)).click("text=Land…").sign().click("#act #decide")
    newcomer.tab.page.wait_for_url(f"**/runs/{run_id}/changes")
    assert git(folder, "rev-parse", "main") != before
    assert "def triple" in (folder / "calc.py").read_text()
    with Decklog.open(target) as log:
        assert any(one.source == "conductor.land" and one.is_proven for one in log.approvals.find(run_id, state="granted"))
    newcomer.is_done()
