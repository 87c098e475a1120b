"""Pictures of the dashboard: the made-up log at a fixed hour, in a real browser, light and dark, wide and narrow."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

from decklog import Decklog, ManualClock
from tests.browser.conftest import CHROMIUM, MISSING
from tests.conductor.plans import make_checked_repository, work_item
from tests.pictures import sample_log, sample_parts
from tests.web.conducted import conduct
from tests.web.serving import free_port

# What is shown, by the name of its picture.
SCREENS = {
    "now": "/now",
    "inbox": "/inbox",
    "run": "/runs/commas/overview",
    "runs": "/runs",
    "spend": "/spend?days=7",
    "past": "/runs/commas/overview?at=38",
    "lanes": f"/runs/{sample_parts.ITEMS}/lanes",
    "plan": "/runs/commas/plan",
    "graph": "/runs/commas/graph",
    "palette": "/runs/commas/overview",
    "item": "/runs/{run}/items/triple",
    "journal": "/runs/commas/journal",
    "tools": "/runs/commas/tools",
    "entry": "/runs/commas/entries/32",
    "checks": f"/runs/{sample_parts.ITEMS}/checks",
    "tasks": "/tasks?state=blocked",
    "task": "/tasks/docs",
    "memory": "/memory?q=lexer",
    "search": "/search?q=comma*",
    "compare": "/compare?a=commas:20&b=commas",
    "trust": "/trust",
    "workflow": "/workflow",
    "system": "/system",
}
# What is pressed on a page before its picture is taken.
PRESSED = {"palette": "Control+k"}
# Pages that are shown in both schemes, wide and narrow. The others are shown light and wide, and most of them dark and narrow.
_EVERY_WAY = ("now", "inbox", "run", "runs", "spend", "item", "graph")
_WIDE_ONLY = ("past", "lanes", "plan", "palette")
_WIDE, _NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
# Scheme, size of the window, end of the file's name, and the pages.
WAYS = (
    ("light", _WIDE, "light", tuple(SCREENS)),
    ("dark", _WIDE, "dark", _EVERY_WAY),
    ("light", _NARROW, "light-390", _EVERY_WAY),
    ("dark", _NARROW, "dark-390", tuple(name for name in SCREENS if name not in _WIDE_ONLY)),
)
LARGEST_BYTES = 300_000
# Text of a page once its script has run and its stream is open.
_SETTLED = re.compile("^(live|as of an entry)")
_START = datetime(2026, 11, 16, 11, 0, tzinfo=UTC) - timedelta(hours=28)


def take(folder: Path, into: Path) -> None:
    """Take all pictures, where there is a browser."""
    if MISSING:
        sys.stdout.write(f"docs/pictures/dashboard-*.png are as they were: {MISSING}\n")
        return
    from playwright.sync_api import sync_playwright

    # Settings that are consented to and workspaces are kept in the home, which is the folder here.
    at_home = patch.dict(os.environ, HOME=str(folder), XDG_STATE_HOME=str(folder / "state"))
    with at_home, _dashboard(folder) as (link, run_id), sync_playwright() as playwright:
        # Drawn whole each time, and the same on every processor: otherwise an edge differs by a shade now and then.
        drawn = ["--disable-partial-raster", "--disable-skia-runtime-opts", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *drawn])
        context = browser.new_context()
        page = context.new_page()
        page.goto(link)
        page.wait_for_url(link.partition("login")[0])
        for scheme, size, end, names in WAYS:
            settings = {"viewport": size, "color_scheme": scheme, "storage_state": context.storage_state()}
            pages = {name: SCREENS[name].format(run=run_id) for name in names}
            _shoot(browser.new_context(**settings), link.partition("/login")[0], end, pages, into)
        browser.close()


def _shoot(context: Any, origin: str, end: str, pages: dict[str, str], into: Path) -> None:
    page = context.new_page()
    # The clocks of the log and of the browser stand still, so pictures do not depend on timing.
    page.clock.set_fixed_time(_START)
    for name, path in pages.items():
        page.goto(origin + path)
        if page.locator("[data-live]").count():
            page.locator("#live", has_text=_SETTLED).wait_for()
        if name in PRESSED:
            page.keyboard.press(PRESSED[name])
            page.locator("#palette a").first.wait_for()
        drawn = page.screenshot(path=str(into / f"dashboard-{name}-{end}.png"))
        assert len(drawn) < LARGEST_BYTES, name
        sys.stdout.write(f"docs/pictures/dashboard-{name}-{end}.png\n")
    context.close()


@contextmanager
def _dashboard(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve the log with a stopped clock from this process; yield its login link and the run with a diff."""
    import uvicorn

    from decklog.web.application import application
    from decklog.web.hosts import Names
    from decklog.web.live import ChangeFeed
    from decklog.web.sessions import BrowserSessions
    from decklog.web.site import DashboardSite

    path, clock = sample_log.made(folder, _START)
    with Decklog.open(path, clock=clock) as log:
        run_id = _conducted(log, folder)
        _more(log, clock)
        site = DashboardSite(
            log, "parser", Names("dl-000000.localhost", free_port()), BrowserSessions(now=log.clock.now), ChangeFeed(log)
        )
        config = uvicorn.Config(application(site), host="127.0.0.1", port=site.names.port, log_level="error", ws="none")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                os.sched_yield()
            yield f"{site.names.origin}/login#{site.sessions.new_link()}", run_id
        finally:
            site.feed.close()
            server.should_exit = True
            thread.join()


def _conducted(log: Decklog, folder: Path) -> str:
    """Have a scripted agent change a small repository, and return the run."""
    docstring = '"""Return the sum of two numbers."""'
    documented = ["replace", "calc.py", "    return a + b", f"    {docstring}\n    return a + b"]
    added = ["append", "calc.py", "\n\ndef triple(a):\n    return add(a, double(a))\n"]
    tested = ["append", "tests/test_calc.py", "\n\ndef test_triple():\n    assert calc.triple(2) == 6\n"]
    reported = ["print", "I wrote triple() with a test, and gave add() a docstring."]
    return conduct(log, make_checked_repository(folder / "calc"), work_item("triple", documented, added, tested, reported)).run_id


def _more(log: Any, clock: ManualClock) -> None:
    """Write what else an owner has on the desk: a second run at work, one that has gone quiet, a budget and a deadline."""
    sample_parts.write(log, clock)
    log.budgets.set("all", period="day", limit_microdollars=50_000_000)
    log.runs.start("Upgrade to Python 3.13", run_id="python-313", repo="jobs")
    log.tasks.add_many("python-313", [{"title": f"Port module {number}"} for number in range(12)])
    log.tasks.claim("python-313", worker="dev-3", lease_seconds=60)
    clock.advance(hours=1, minutes=40)
    log.runs.start("Move the scheduler off cron and onto the queue, with no run lost", run_id="scheduler", repo="jobs")
    log.tasks.add_many("scheduler", [{"title": f"Move job {number} over"} for number in range(8)])
    for number in range(3):
        claim = log.tasks.claim("scheduler", worker="qa-2", lease_seconds=3600)
        with log.acting("qa-2"), claim:
            call = {"tool": "run", "arguments": {"command": f"pytest -q tests/test_job_{number}.py"}, "result": {"exit_code": 0}}
            log.journal.append("scheduler", kind="tool", subtype="run", payload=call)
            clock.advance(minutes=3)
            log.ledger.charge(
                "claude-opus-5-5", input_tokens=90_000, output_tokens=4000, cost_microdollars=1_310_000, run_id="scheduler"
            )
            claim.finish("It runs from the queue")
    log.tasks.claim("scheduler", worker="qa-2", lease_seconds=3600)
    log.approvals.ask(
        "scheduler",
        "May I switch cron off on the staging host?",
        by="qa-2",
        about="ssh staging sudo systemctl disable --now cron",
        expires_in_seconds=5400,
        default_verdict="denied",
    )
    clock.advance(seconds=41)
    log.trust.bind("ana", "cli", password=" ".join(("a", "password", "for", "pictures")))
