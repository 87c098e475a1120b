"""The half of `benchmarks.web` that needs a server in a process of its own: what writers, readers and whoever ends it notice."""

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from tests.browser.conftest import CHROMIUM
from tests.web.asking import made
from tests.web.serving import Server

from benchmarks.views import Sample
from decklog import Decklog
from decklog.web.rendering import assets

STREAMS, APPENDS, PAINTED, ROUNDS = 20, 200, 40, 5
# So many tabs of one browser, all in sight, are looked at together.
TABS = (1, 12, 20)
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
    begun = time.perf_counter()
    for _ in range(APPENDS):
        log.journal.append(run_id, "a thought of some words")
    return APPENDS / (time.perf_counter() - begun)


def writers(target: str, sample: Sample) -> float:
    """Say how many entries a writer appends beside open streams, as a share of how many without.

    With and without are measured in turns, so that whatever else the machine does falls on both.
    """
    alone, beside = [], []
    with served(target) as server:
        for _ in range(ROUNDS):
            alone.append(appends_a_second(sample.log, sample.run_id))
            opened = streams(server, STREAMS)
            beside.append(appends_a_second(sample.log, sample.run_id))
            for connection in opened:
                connection.close()
            server.stop()
            server.start()
    return statistics.median(beside) / statistics.median(alone)


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
    """Give the processor time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def painted_ms(target: str, sample: Sample, tabs: int) -> list[float]:
    """Measure from a commit to the row in the page, in every one of some tabs of one browser; give all times in order."""
    from playwright.sync_api import sync_playwright

    committed: dict[str, float] = {}
    with served(target) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context()
        pages = [context.new_page() for _ in range(tabs)]
        pages[0].goto(server.link)
        pages[0].wait_for_url(f"{server.origin}/")
        for page in pages:
            page.goto(f"{server.origin}/runs/{sample.run_id}/journal")
            page.evaluate(_WATCHING)
        pages[0].wait_for_timeout(2000)
        for _ in range(PAINTED):
            seq = sample.log.journal.append(sample.run_id, "painted").seq
            committed[str(seq)] = time.time() * 1e3
            pages[0].wait_for_timeout(250)
        pages[0].wait_for_timeout(2000)
        seen = [page.evaluate("window.painted") for page in pages]
        browser.close()
    # A row that never came is as late as can be.
    return sorted(times.get(seq, float("inf")) - at for times in seen for seq, at in committed.items())


def first_visit(sample: Sample) -> int:
    page = made(sample.log).log_in().get("/now")
    names = ("decklog.css", "page.js", "events.js", "icon.svg", "vendor/idiomorph-0.8.0.min.js")
    return len(page.body) + sum(len(assets()[name]) for name in names)
