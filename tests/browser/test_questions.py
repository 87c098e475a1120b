"""Questions of an owner who opens the dashboard at Now: each is answered in one to three clicks, on both engines."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from tests.browser.conftest import MISSING, Tab, Tabs
from tests.pictures import sample_log
from tests.stores.claiming import claimed
from tests.web.client import PASSWORD
from tests.web.serving import Server

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)


class Owner:
    """A person at the dashboard, whose clicks are counted."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self.clicks = 0

    def click(self, selector: str) -> "Owner":
        self.clicks += 1
        self.tab.page.click(selector)
        self.tab.page.wait_for_load_state()
        return self

    def reads(self, *texts: str, within: str = "main") -> None:
        """Check that a part of the page has these texts, after one to three clicks."""
        visible = " ".join(self.tab.page.inner_text(within).split())
        assert [text for text in texts if text not in visible] == [], visible
        assert 1 <= self.clicks <= 3
        self.tab.check()


def write(target: str) -> None:
    """Write a week of runs: one asks and was approved before, one works, and one has failed."""
    clock = ManualClock(datetime.now(UTC) - timedelta(hours=23))
    with Decklog.open(target, clock=clock) as log:
        sample_log.write(log, clock)
        log.runs.start("Publish the nightly build", run_id="nightly")
        log.runs.finish("nightly", status="failed", summary="The signing key has expired")
        clock.advance(minutes=1)
        log.trust.bind("ana", "cli", password=PASSWORD)
    with Decklog.open(target) as log:
        log.runs.start("Move the scheduler", run_id="scheduler")
        log.tasks.add("scheduler", "Move the tests")
        claim = claimed(log, "scheduler", worker="qa-2", lease_seconds=3600)
        log.tasks.extend(claim.task.id, fence=claim.task.fence, stage="pytest -q", lease_seconds=3600)


@pytest.fixture
def owner(target: str, tmp_path: Path, chromium: Any) -> Iterator[Owner]:
    write(target)
    server = Server(target, tmp_path).start()
    tabs = Tabs(chromium, server)
    try:
        yield Owner(tabs.log_in())
    finally:
        tabs.context.close()
        server.stop()


def test_what_needs_me(owner: Owner) -> None:
    owner.click("#bar >> text=Inbox")
    owner.reads("May I push the branch trailing-commas?", "git push origin trailing-commas", "Approve exactly this, once")


def test_why_did_this_fail(owner: Owner) -> None:
    owner.click("#attention-part >> text=run failed")
    owner.reads("Failed", "The signing key has expired", within="#outcome")


def test_what_did_it_cost(owner: Owner) -> None:
    owner.click("#bar >> text=Spend").click("text=by run")
    owner.reads("Teach the parser to read trailing commas $14.09", "$2.31")


def test_who_approved(owner: Owner) -> None:
    owner.click("#bar >> text=Inbox").click("summary >> text=Decided").click("text=May the grammar be changed")
    owner.reads("Approved by ana", "It only reads more than before", within=".verdict")


def test_what_is_it_doing_now(owner: Owner) -> None:
    owner.click("table >> text=Move the scheduler")
    owner.reads("Move the tests", "qa-2", "pytest -q", "lease for", within=".working")
