"""The half of `benchmarks.web` that needs a server in its own process: what writers, readers and the one who ends it notice."""

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.browser.conftest import CHROMIUM
from tests.web.client import make_browser
from tests.web.serving import Server

from benchmarks.views import Sample
from decklog import Decklog
from decklog.web.rendering import assets

STREAMS, APPENDS, PAINTED, ROUNDS = 20, 4000, 40, 5
# Factor by which PostgreSQL takes longer for each.
SLOWER = 5
# Number of windows of one browser, all visible at once.
WINDOWS = (1, 12, 20)
# Number of tabs of one window: one is visible, the others are hidden.
TABS = 12
# As many as one session may have.
IDLE_STREAMS, IDLE_SECONDS = 60, 10.0
_TICKS = os.sysconf("SC_CLK_TCK")
# Written into every page that is looked at: when each row was painted, by its number.
_WATCHING = """() => {
  window.painted = {}
  new MutationObserver(changes => {
    const rows = changes.flatMap(change => [...change.addedNodes]).filter(node => (node.id || '').startsWith('e-'))
    if (rows.length) requestAnimationFrame(() => { for (const row of rows) window.painted[row.id.slice(2)] ??= Date.now() })
  }).observe(document.getElementById('tail'), { childList: true })
}"""
# Written into every tab: the driver reports all of them as visible, so each is set by hand.
_BEHIND = """() => {
  Object.defineProperty(document, 'hidden', { get: () => !window.isInFront })
  window.turn = isInFront => { window.isInFront = isInFront; dispatchEvent(new Event('visibilitychange')) }
}"""


@contextmanager
def served(target: str, *words: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(target, Path(folder), *words).start()
        try:
            yield server
        finally:
            server.stop()


def logged_in(server: Server) -> str:
    """Log a program in by the link, and give its cookie."""
    host = server.origin.removeprefix("http://")
    connection = HTTPConnection("127.0.0.1", server.port)
    headers = {"host": host, "origin": server.origin, "content-type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/login", f"token={server.link.partition('#')[2]}", headers)
    answer = connection.getresponse()
    return str(answer.headers["set-cookie"]).partition(";")[0]


def streams(server: Server, count: int) -> list[HTTPConnection]:
    cookie, host, opened = logged_in(server), server.origin.removeprefix("http://"), []
    for _ in range(count):
        connection = HTTPConnection("127.0.0.1", server.port)
        connection.request("GET", "/events", headers={"host": host, "cookie": cookie})
        connection.getresponse().readline()
        opened.append(connection)
    return opened


def appends_a_second(log: Decklog, run_id: str) -> float:
    count = APPENDS // (SLOWER if log.db.engine == "postgres" else 1)
    begun = time.perf_counter()
    for _ in range(count):
        log.journal.append(run_id, "a thought of some words")
    return count / (time.perf_counter() - begun)


def writers(target: str, sample: Sample) -> float:
    """Return the entries that a writer appends with open streams, as a share of those without.

    Both are measured interleaved, so that other load of the machine falls on both.
    """
    alone, together = [], []
    with served(target) as server:
        for _ in range(ROUNDS):
            alone.append(appends_a_second(sample.log, sample.run_id))
            opened = streams(server, STREAMS)
            together.append(appends_a_second(sample.log, sample.run_id))
            for connection in opened:
                connection.close()
            server.stop()
            server.start()
    return statistics.median(together) / statistics.median(alone)


def stops(target: str, sample: Sample) -> list[float]:
    """Start servers, writable and read-only, and end them with streams open by either signal; give how long each took."""
    taken = []
    for words in ((), ("--read-only",)):
        for how in (signal.SIGINT, signal.SIGTERM) * 2:
            with served(target, *words) as server:
                opened = streams(server, STREAMS)
                sample.log.journal.append(sample.run_id, "one more")
                begun = time.perf_counter()
                server.stop(how)
                taken.append(time.perf_counter() - begun)
                for connection in opened:
                    connection.close()
    return sorted(taken)


def idle_share(target: str) -> float:
    """Say which share of a core the server takes with many pages open while nothing is written."""
    with served(target) as server:
        opened = streams(server, IDLE_STREAMS)
        time.sleep(1)
        before = _used(server.pid)
        time.sleep(IDLE_SECONDS)
        share = (_used(server.pid) - before) / IDLE_SECONDS
        for connection in opened:
            connection.close()
    return share


def _used(pid: int) -> float:
    """Give the CPU time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def browsing(server: Server) -> Iterator[Any]:
    """Open a browser that is logged in, and give its first page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context().new_page()
        page.goto(server.link)
        page.wait_for_url(f"{server.origin}/")
        yield page
        browser.close()


def windows_of(first: Any, count: int) -> list[Any]:
    """Open pages in windows of their own: a browser draws a page that is behind another of its window once a second."""
    context, given = first.context, {"url": "about:blank", "newWindow": True}
    target = context.new_cdp_session(first).send("Target.getTargetInfo")["targetInfo"]
    session, pages = context.browser.new_browser_cdp_session(), [first]
    for _ in range(count - 1):
        with context.expect_page() as opened:
            session.send("Target.createTarget", {**given, "browserContextId": target["browserContextId"]})
        pages.append(opened.value)
    return pages


def commits(sample: Sample, page: Any) -> dict[str, float]:
    """Write entries one after the other; give when each was committed, by its number."""
    committed: dict[str, float] = {}
    for _ in range(PAINTED):
        seq = sample.log.journal.append(sample.run_id, "painted").seq
        committed[str(seq)] = time.time() * 1e3
        page.wait_for_timeout(250)
    page.wait_for_timeout(2000)
    return committed


def late_by(painted: dict[str, float], committed: dict[str, float]) -> list[float]:
    """Say how late each row was; one that never came is as late as can be."""
    return [painted.get(seq, float("inf")) - at for seq, at in committed.items()]


def painted_ms(target: str, sample: Sample, windows: int) -> list[float]:
    """Measure from a commit to the row in the page, in every one of some windows of one browser; give all times in order."""
    with served(target) as server, browsing(server) as first:
        pages = windows_of(first, windows)
        for page in pages:
            page.goto(f"{server.origin}/runs/{sample.run_id}/journal")
            page.evaluate(_WATCHING)
        first.wait_for_timeout(2000)
        committed = commits(sample, first)
        return sorted(late for page in pages for late in late_by(page.evaluate("window.painted"), committed))


def tabs_ms(target: str, sample: Sample, tabs: int) -> tuple[list[float], list[float]]:
    """Measure the same in the one tab of a window that is in sight; and from turning to each other tab to its newest row."""
    with served(target) as server, browsing(server) as first:
        pages = [*(first.context.new_page() for _ in range(tabs - 1)), first]
        for page in pages:
            page.goto(f"{server.origin}/runs/{sample.run_id}/journal")
            page.evaluate(_WATCHING)
            page.evaluate(_BEHIND)
        first.bring_to_front()
        first.evaluate("window.turn(true)")
        first.wait_for_timeout(2000)
        committed = commits(sample, first)
        in_front = sorted(late_by(first.evaluate("window.painted"), committed))
        turned, newest = [], max(committed, key=int)
        for before, page in zip([first, *pages], pages[:-1], strict=False):
            before.evaluate("window.turn(false)")
            begun = time.time() * 1e3
            page.bring_to_front()
            page.evaluate("window.turn(true)")
            page.wait_for_timeout(1500)
            turned += late_by(page.evaluate("window.painted"), {newest: begun})
        return in_front, sorted(turned)


def first_visit(sample: Sample) -> int:
    page = make_browser(sample.log).log_in().get("/now")
    names = ("decklog.css", "page.js", "events.js", "icon.svg", "vendor/idiomorph-0.8.0.min.js")
    return len(page.body) + sum(len(assets()[name]) for name in names)
