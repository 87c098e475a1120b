"""What `benchmarks.web_soak` writes into pages, and the processes around them: a writer, and a browser behind a wire."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser.conftest import CHROMIUM
from tests.browser.wire import Wire
from tests.web.serving import Server

from decklog import Decklog

RUN = "soak"
# Keeps every row that is shown, in the order in which it is put into the list, and how many the page said it had left out.
RECORD = """() => {
  window.shown = []
  const rows = node => node.matches('li[id^="e-"]') ? [node] : [...node.querySelectorAll('li[id^="e-"]')]
  new MutationObserver(changes => {
    for (const node of changes.flatMap(change => [...change.addedNodes])) {
      if (node.nodeType !== 1) continue
      const away = /^([\\d,]+) entr\\w+ while you were away/.exec(node.textContent)
      if (away) window.shown.push(-Number(away[1].replaceAll(',', '')))
      window.shown.push(...rows(node).map(row => Number(row.id.slice(2))))
    }
  }).observe(document.querySelector('#tail'), { childList: true })
}"""
LAST = "Number(document.querySelector('#tail').dataset.last)"
# Keeps how long tasks took that were long, and from each click to the frame that shows it; how many elements there are at most.
FEEL = """() => {
  window.felt = { tasks: [], clicks: [], nodes: 0 }
  const long = new PerformanceObserver(list => window.felt.tasks.push(...list.getEntries().map(one => one.duration)))
  long.observe({ type: 'longtask' })
  addEventListener('click', event => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => window.felt.clicks.push(performance.now() - event.timeStamp)
    port2.postMessage(0)
  }))
  setInterval(() => { window.felt.nodes = Math.max(window.felt.nodes, document.querySelectorAll('*').length) }, 100)
}"""
# Asks how far things moved under the reader, and when the largest thing was painted.
HEALTH = """() => new Promise(done => {
  const found = { shifted: 0, largest: 0 }
  new PerformanceObserver(list => list.getEntries().forEach(one => { found.shifted += one.hadRecentInput ? 0 : one.value }))
    .observe({ type: 'layout-shift', buffered: true })
  new PerformanceObserver(list => list.getEntries().forEach(one => { found.largest = one.startTime }))
    .observe({ type: 'largest-contentful-paint', buffered: true })
  setTimeout(() => done(found), 250)
})"""


class Writer:
    """A process that appends entries to the run at a rate, until it gets the order to end."""

    def __init__(self, path: Path, rate: int, batch: int = 1, what: str = "entries") -> None:
        words = [sys.executable, "-m", "benchmarks.web_soak_page", str(path), str(rate), str(batch), what]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self) -> int:
        """End it, and give the number of its last entry."""
        output, _ = self._process.communicate("")
        return int(output)


def write(path: str, rate: int, batch: int, what: str) -> None:
    """Append until the input ends; say what the last entry's number is."""
    import select

    step, due = batch / rate, time.monotonic()
    with Decklog.open(path, durability="relaxed") as log:
        while not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
            due += step
            if what == "changes":
                log.tasks.add_many(RUN, [{"title": f"task at {due:.3f}"}] * batch)
            else:
                given = [{"stream": RUN, "body": f"entry at {due:.3f}, a thought of some words", "agent": "bo"}] * batch
                log.journal.append_many(given)
        print(log.journal.find(RUN, limit=1)[0].seq)


@contextmanager
def browser_behind(wire: Wire) -> Iterator[Any]:
    """Start a browser whose every connection goes by a wire."""
    from playwright.sync_api import sync_playwright

    rule = f"--host-resolver-rules=MAP *.localhost 127.0.0.1:{wire.port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", rule])
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(90_000)
        yield context
        browser.close()


def log_in(context: Any, server: Server) -> Any:
    page = context.new_page()
    page.goto(server.link)
    page.wait_for_url(f"{server.origin}/")
    return page


def until(page: Any, expression: str, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        if time.monotonic() > end:
            raise TimeoutError(f"{expression} did not come in {seconds:g} s")
        page.wait_for_timeout(20)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
