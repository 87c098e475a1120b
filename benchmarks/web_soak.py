"""What open pages of the dashboard go through: servers that end and freeze, lost networks, sleep, and very many entries.

    python -m benchmarks.web_soak [--times 20] [--seconds 30] [--only PART,…] [--write]

A real Chromium has the journal of a run open while another process writes to it. Every row that the page shows is kept as it
comes, and compared with what was written. It takes about eight minutes. `--write` puts the figures into their page of the
documents.
"""

import argparse
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from tests.browser.conftest import MISSING
from tests.browser.test_dashboard import WHOLE
from tests.browser.wire import Wire
from tests.pictures import sample_log, sample_parts
from tests.web.serving import Server

from benchmarks.web_soak_page import FEEL, HEALTH, LAST, RECORD, RUN, Writer, browser_behind, log_in, until
from decklog import Decklog

PAGE = Path(__file__).resolve().parent / "results" / "web-soak.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
WRITES, BURST = 50, 1000
# The target of each figure.
LONG_TASK_MS, NODES, HEAP_MB, CLICK_MS, SHIFT, LARGEST = 100, 3000, 10, 200, 0.02, 4
LOADS = 5


class Soak(NamedTuple):
    """A log of a run, a server of it, and a browser that looks at it through a wire."""

    path: Path
    server: Server
    wire: Wire
    context: Any

    def followed(self, *given: Any) -> tuple[Any, Writer]:
        """Open the journal of the run and keep what it shows; give it with a writer that it has begun to follow."""
        page = self.journal()
        writer = Writer(self.path, *(given or (WRITES,)))
        until(page, f"{LAST} > 61")
        return page, writer

    def journal(self) -> Any:
        """Open the journal of the run, and keep what it shows."""
        page = log_in(self.context, self.server)
        page.goto(f"{self.server.origin}/runs/{RUN}/journal")
        until(page, "document.querySelector('#live').textContent.startsWith('live')")
        page.evaluate(RECORD)
        return page


@contextmanager
def soaked(fill: Callable[[Path], Path] | None = None) -> Iterator[Soak]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        folder = Path(name)
        path = fill(folder) if fill else _new(folder)
        server = Server(str(path), folder).start()
        wire = Wire(server.port)
        try:
            with browser_behind(wire) as context:
                yield Soak(path, server, wire, context)
        finally:
            wire.close()
            server.stop()


def _new(folder: Path) -> Path:
    path = folder / "soak.db"
    with Decklog.open(path) as log:
        log.runs.start("Write for a long time", run_id=RUN)
        for number in range(60):
            log.journal.append(RUN, f"before, {number}")
    return path


def _week(folder: Path) -> Path:
    from datetime import UTC, datetime, timedelta

    path, clock = sample_log.made(folder, datetime.now(UTC) - timedelta(hours=30))
    with Decklog.open(path, clock=clock) as log:
        sample_parts.write(log, clock)
    return path


# What was shown


def read_counts(page: Any, last: int) -> tuple[int, int, int, int]:
    """Say how many entries were shown, left out and said so, missing, and shown twice or out of order, once the last is there."""
    until(page, f"{LAST} >= {last}")
    shown: list[int] = page.evaluate("window.shown")
    here, missing, wrong, away = 61, 0, 0, 0
    for seq in shown:
        if seq < 0:
            away, here = away - seq, here - seq
            continue
        missing += max(0, seq - here - 1)
        wrong += seq <= here
        here = max(here, seq)
    return sum(seq > 0 for seq in shown), away, missing + max(0, last - here), wrong


def line(what: str, count: str, found: tuple[int, int, int, int]) -> str:
    shown, away, missing, wrong = found
    mark = " **wrong**" if missing or wrong else ""
    return f"| {what} | {count} | {shown:,} | {away:,} | {missing}{mark} | {wrong} |\n"


# Servers that end, freeze and come back; networks that go away; sleep


def ended(how: signal.Signals, times: int) -> str:
    """End a server in this way again and again while a writer works."""
    with soaked() as soak:
        page, writer = soak.followed()
        for _ in range(times):
            page.wait_for_timeout(200)
            if how is signal.SIGSTOP:
                os.kill(soak.server.pid, signal.SIGSTOP)
                page.wait_for_timeout(700)
                os.kill(soak.server.pid, signal.SIGCONT)
                continue
            soak.server.stop(how)
            soak.server.start()
            # Sessions end with the server: a login in any tab lets all of them go on.
            log_in(soak.context, soak.server).close()
            until(page, "document.querySelector('#live').textContent.startsWith('live')")
        return line(f"server: {how.name}", f"{times} times", read_counts(page, writer.end()))


def away(how: str, seconds: float) -> str:
    """Take the network, or the page itself, away for a while as a writer works."""
    with soaked() as soak:
        page, writer = soak.followed()
        session = soak.context.new_cdp_session(page)
        page.wait_for_timeout(1000)
        if how == "page frozen":
            session.send("Page.setWebLifecycleState", {"state": "frozen"})
            time.sleep(seconds)
            session.send("Page.setWebLifecycleState", {"state": "active"})
        elif how == "network cut":
            soak.wire.cut()
            page.wait_for_timeout(seconds * 1000)
            soak.wire.mend()
        else:
            soak.wire.silence()
            page.wait_for_timeout(seconds * 1000)
            soak.wire.mend(lost=how == "network silent, connections lost")
        page.wait_for_timeout(1000)
        last = writer.end()
        begun = time.monotonic()
        found = read_counts(page, last)
        return line(how, f"{seconds:g} s, whole again after {time.monotonic() - begun + 1:.0f} s", found)


# Very many entries


def _heap(session: Any) -> float:
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def burst(what: str, seconds: float) -> Iterator[str]:
    """Write very many entries with an open page, and click in it."""
    with soaked() as soak:
        page = soak.journal()
        page.evaluate(FEEL)
        session = soak.context.new_cdp_session(page)
        before, begun = _heap(session), time.monotonic()
        writer = Writer(soak.path, BURST, 10, what)
        page.wait_for_timeout(500)
        while time.monotonic() < begun + seconds:
            page.mouse.click(40, 300)
            page.wait_for_timeout(250)
        found = read_counts(page, writer.end())
        felt, grown = page.evaluate("window.felt"), _heap(session) - before
        yield line(f"{BURST:,} {what} a second", f"{seconds:g} s", found)
        clicks = sorted(felt["clicks"])
        longest = max(felt["tasks"], default=0.0)
        yield from (
            "\n| what | figure | may be |\n| --- | ---: | ---: |\n",
            _held(f"the longest task of the page during {what}, under 50 ms shown as 0", longest, LONG_TASK_MS, "ms"),
            _held("from a click to its frame, 95 of 100", clicks[int(len(clicks) * 0.95)], CLICK_MS, "ms"),
            _held("elements of the page, at most", felt["nodes"], NODES, ""),
            _held("memory that its program holds more than before", grown, HEAP_MB, "MB"),
        )


def _held(what: str, value: float, most: float, unit: str) -> str:
    shown = f"{value:,.0f}" if value >= 20 or not value else f"{value:,.1f}"
    return f"| {what} | {shown} {unit}{'' if value <= most else ' **over**'} | {most:,} {unit} |\n"


# How a page comes


class _Still(BaseHTTPRequestHandler):
    """Serves what it was given as a file would be."""

    content = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_: object) -> None:
        pass


def health() -> Iterator[str]:
    """Load every screen, and the same as a file: when the largest part is painted, and what moves under a reader."""
    still = ThreadingHTTPServer(("127.0.0.1", 0), _Still)
    threading.Thread(target=still.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{still.server_port}/"
    yield "\n| screen | shifted | largest painted, ms | × the same as a file |\n| --- | ---: | ---: | ---: |\n"
    with soaked(_week) as soak:
        page = log_in(soak.context, soak.server)
        style = page.evaluate("fetch(document.querySelector('link[rel=stylesheet]').href).then(answer => answer.text())")
        for path in WHOLE:
            page.goto(soak.server.origin + path)
            text = page.evaluate("fetch(location.href).then(answer => answer.text())")
            kept = [part for part in text.split("\n") if "<script" not in part and "<link" not in part]
            _Still.content = "\n".join(kept).replace("</head>", f"<style>{style}</style></head>").encode()
            ours, others = _loads(page, soak.server.origin + path), _loads(page, address)
            shifted = max(found["shifted"] for found in ours)
            largest, bare = (statistics.median(found["largest"] for found in side) for side in (ours, others))
            times = largest / bare if bare else 0.0
            over = " **over**" if shifted > SHIFT else "", " **over**" if times > LARGEST else ""
            yield f"| `{path}` | {shifted:.3f}{over[0]} | {largest:.0f} | {times:.1f}{over[1]} |\n"
    still.shutdown()
    still.server_close()


def _loads(page: Any, url: str) -> list[dict[str, float]]:
    found = []
    for _ in range(LOADS):
        page.goto(url)
        found.append(page.evaluate(HEALTH))
    return found


# The report

HEAD = "| what happens | how often or long | entries shown | left out and said so | missing | twice or out of order |\n"


def parts(times: int, seconds: float) -> dict[str, Callable[[], Iterator[str]]]:
    def ends() -> Iterator[str]:
        yield f"{HEAD}| --- | --- | ---: | ---: | ---: | ---: |\n"
        for how in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGSTOP):
            yield ended(how, times)

    def networks() -> Iterator[str]:
        for how in ("network cut", "network silent", "network silent, connections lost", "page frozen"):
            yield away(how, seconds)

    def bursts() -> Iterator[str]:
        for what in ("entries", "changes"):
            yield f"\n{HEAD}| --- | --- | ---: | ---: | ---: | ---: |\n"
            yield from burst(what, seconds)

    return {"ends": ends, "networks": networks, "bursts": bursts, "health": health}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true", help="put the figures into their page of the documents")
    given = parser.parse_args()
    if MISSING:
        sys.exit(f"not measured: {MISSING}")
    found: list[str] = []
    for name, part in parts(given.times, given.seconds).items():
        if given.only and name not in given.only.split(","):
            continue
        for text in part():
            sys.stdout.write(text)
            sys.stdout.flush()
            found.append(text)
    if given.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text("".join([before, BEGIN, "\n", *found, "\n", END, rest.partition(END)[2]]), encoding="utf-8")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
