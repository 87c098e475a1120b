"""What the dashboard costs: each page beside a bare one, in a small and a large log, on both engines; and what it costs writers.

    python -m benchmarks.web [--size 1000000] [--engines sqlite,postgres] [--times 15] [--keep FOLDER] [--out FILE]

Pages are asked in this process, as a server hands requests on, in turns with the floor: a page of Starlette and Jinja with as
many rows. The small log has 1,000 entries, the large one so many as asked; both are made by `decklog demo --big`, once: they are
kept in a folder, and each run works on copies, which are moved to PostgreSQL for its part. One more entry is written before each
page, so that nothing is answered from memory alone. The rest is measured on a server in a process of its own: how long a commit
takes to be painted in Chromium, where there is one, how many entries a writer appends beside twenty streams, and when it ends.
"""

import argparse
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from importlib.resources import files
from pathlib import Path
from shutil import copyfile
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.browser.conftest import CHROMIUM, MISSING
from tests.statements import statements
from tests.web.asking import NAMES, Answer, Browser, Pairs, hand_on, made
from tests.web.serving import Server

from benchmarks.task_narrowed import places
from benchmarks.views import SMALL, Sample, sampled
from decklog import Decklog
from decklog.transfer.move.move import Move
from decklog.web.rendering import assets, environment
from decklog.web.safety import App
from decklog.web.sessions import COOKIE

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "web.md"
STREAMS, APPENDS, PAINTED = 20, 400, 60
# What each figure is held against.
FLOOR = {"sqlite": 12, "postgres": 25}
GROWTH, STATEMENTS, PAINTED_MS, FIRST_VISIT, WRITERS, STOP_SECONDS = 1.25, 8, 150, 100_000, 0.95, 0.5
_ROWS = """<!doctype html><title>x</title><table>
{% for row in rows %}<tr><td>{{ row.a }}</td><td>{{ row.b }}</td><td>{{ row.c }}</td></tr>{% endfor %}</table>"""


def pages(sample: Sample) -> dict[str, str]:
    """Name the pages with their addresses in a log."""
    run = f"/runs/{sample.run_id}"
    return {
        "Now": "/now",
        "Runs": "/runs",
        "Inbox": "/inbox",
        "Run": f"{run}/overview",
        "Run, as of the middle": f"{run}/overview?at={sample.middle}",
        "Lanes": f"{run}/lanes",
        "Lanes, the middle": f"{run}/lanes?at={sample.middle}",
        "Checks": f"{run}/checks",
        "Spend of the run": f"{run}/spend",
        "Spend, the middle": f"{run}/spend?at={sample.middle}",
        "Plan": f"{run}/plan",
        "States": f"{run}/states",
        "Artifacts": f"{run}/artifacts",
        "Forks": f"{run}/forks",
        "Journal": f"{run}/journal",
        "Journal, the middle": f"{run}/journal?before={sample.middle}",
        "Board": f"{run}/tasks",
        "Tasks of the run": f"{run}/tasks?as=table",
        "Tasks, the middle": f"{run}/tasks?at={sample.middle}",
        "Reasoning": f"{run}/reasoning",
        "Tools": f"{run}/tools",
        "Spend": "/spend",
        "Search": "/search?q=scheduler+week",
        "Tasks": "/tasks",
        "Task": f"/tasks/{sample.task_id}",
        "Compare": f"/compare?a={sample.run_id}:{sample.middle}&b={sample.run_id}",
        "Memory": "/memory",
        "Memory, a question": "/memory?q=why+do+the+tests+of+the+scheduler+fail",
        "Workflow": "/workflow",
        "Trust": "/trust",
        "System": "/system",
    }


def bare(count: int = 50) -> Starlette:
    """Make the floor: a page with as many rows as ours has, and nothing behind it."""
    template = environment().from_string(_ROWS)
    rows = [{"a": f"row {number}", "b": number, "c": "some words of a row"} for number in range(count)]

    def page(_: Request) -> Response:
        return Response(template.render(rows=rows), media_type="text/html")

    return Starlette(routes=[Route("/", page)])


def rows_of(answer: Answer) -> int:
    """Count the rows of a page: a table's, a list's, and ten for what every page has around them."""
    return 10 + answer.text.count("<tr") + answer.text.count("<li")


async def timed(app: App, url: str, headers: Pairs) -> tuple[float, Answer]:
    begun = time.perf_counter()
    answer = await hand_on(app, "GET", url, headers)
    taken = (time.perf_counter() - begun) * 1e3
    assert answer.status == 200, (url, answer.status)
    return taken, answer


async def measured(samples: tuple[Sample, Sample], browsers: list[Browser], times: int) -> list[dict[str, Any]]:
    """Ask for each page in both logs, in turns with the floor. One loop asks for all: its threads keep their connections."""
    addresses = [pages(sample) for sample in samples]
    headers = [[("host", NAMES.host), ("cookie", f"{COOKIE}={browser.cookie}")] for browser in browsers]
    found = []
    for name in addresses[0]:
        urls = [address[name] for address in addresses]
        for place in (0, 1):
            await timed(browsers[place].app, urls[place], headers[place])
        shown = [(await timed(browsers[place].app, urls[place], headers[place]))[1] for place in (0, 1)]
        floors, taken = [bare(rows_of(answer)) for answer in shown], [list[float]() for _ in range(4)]
        for _ in range(times):
            for place, sample in enumerate(samples):
                sample.log.journal.append(sample.run_id, "one more")
                taken[place].append((await timed(browsers[place].app, urls[place], headers[place]))[0])
                taken[2 + place].append((await timed(floors[place], "/", headers[0]))[0])
        samples[1].log.journal.append(samples[1].run_id, "one more")
        with statements(samples[1].log) as seen:
            await timed(browsers[1].app, urls[1], headers[1])
        few, many, *bare_ms = map(statistics.median, taken)
        growth = (many / bare_ms[1]) / (few / bare_ms[0])
        found.append({"page": name, "floor": bare_ms[1], "few": few, "many": many, "growth": growth, "statements": len(seen)})
    return found


# The logs


def kept(folder: Path, size: int) -> Path:
    """Make a large log once, and give where it is kept."""
    path = folder / f"big-{size}-{newest_schema()}.db"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        for left in folder.glob(f"{unfinished.name}*"):
            left.unlink()
        sampled(str(unfinished), size).log.close()
        unfinished.rename(path)
    return path


def newest_schema() -> str:
    """Name the schema that a log would have: one that was kept with an older one is made anew."""
    steps = files("decklog.db") / "migrations"
    return max(one.name for one in steps.iterdir() if one.name[:4].isdecimal()).removesuffix(".sql")


def filled(engine: str, targets: list[str], folder: Path, sizes: tuple[int, int]) -> tuple[Sample, Sample]:
    """Bring copies of the logs to where they are measured."""
    for target, size in zip(targets, sizes, strict=True):
        source = kept(folder, size)
        if engine == "sqlite":
            copyfile(source, target)
            continue
        with Decklog.open(source, read_only=True) as log, Decklog.open(target, migrate=True) as server:
            Move(log, server).run(prove=False)
            server.db.write(lambda server=server: server.db.rows("analyze", {}))  # type: ignore[misc]
    return sampled(targets[0], sizes[0]), sampled(targets[1], sizes[1])


# On a server

_PAINTED = """seq => new Promise(done => {
  const look = () => document.getElementById('e-' + seq) ? requestAnimationFrame(() => done(Date.now())) : setTimeout(look, 2)
  look()
})"""


@contextmanager
def served(target: str) -> Iterator[tuple[Server, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(target, Path(folder)).start()
        try:
            yield server, Path(folder)
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


def writers_and_stop(target: str, sample: Sample) -> tuple[float, float]:
    """Say how many entries a writer appends beside open streams, as a share of how many without; and how soon the server ends."""
    shares = []
    with served(target) as (server, _):
        for _ in range(3):
            alone = appends_a_second(sample.log, sample.run_id)
            opened = streams(server, STREAMS)
            shares.append(appends_a_second(sample.log, sample.run_id) / alone)
            for connection in opened:
                connection.close()
            server.stop()
            server.start()
        streams(server, STREAMS)
        begun = time.perf_counter()
        server.stop(signal.SIGINT)
        return statistics.median(shares), time.perf_counter() - begun


def painted_ms(target: str, sample: Sample) -> list[float]:
    """Measure from a commit to the row in the page, in one tab."""
    from playwright.sync_api import sync_playwright

    found = []
    with served(target) as (server, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context().new_page()
        page.goto(server.link)
        page.wait_for_url(f"{server.origin}/")
        page.goto(f"{server.origin}/runs/{sample.run_id}/journal")
        page.wait_for_timeout(2000)
        for _ in range(PAINTED):
            seq = sample.log.journal.append(sample.run_id, "painted").seq
            committed = time.time() * 1e3
            found.append(page.evaluate(_PAINTED, seq) - committed)
            time.sleep(0.2)
        browser.close()
    return sorted(found)


def first_visit(sample: Sample) -> int:
    page = made(sample.log).log_in().get("/now")
    names = ("decklog.css", "page.js", "events.js", "icon.svg", "vendor/idiomorph-0.8.0.min.js")
    return len(page.body) + sum(len(assets()[name]) for name in names)


# The report


def held(value: float, most: float) -> str:
    return "" if value <= most else " **over**"


def table(engine: str, found: list[dict[str, Any]], sizes: tuple[int, int]) -> Iterator[str]:
    yield f"| page | statements | bare page, ms | {sizes[0]:,} entries, ms | {sizes[1]:,} entries, ms | × bare | × small log |\n"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    for one in found:
        times, growth = one["many"] / one["floor"], one["growth"]
        asked = f"{one['statements']}{held(one['statements'], STATEMENTS)}"
        taken = " | ".join(f"{one[name]:.2f}" for name in ("floor", "few", "many"))
        shares = f"{times:.1f}{held(times, FLOOR[engine])} | {growth:.2f}{held(growth, GROWTH)}"
        yield f"| {one['page']} | {asked} | {taken} | {shares} |\n"


def report(engine: str, targets: list[str], folder: Path, size: int, times: int) -> Iterator[str]:
    samples = filled(engine, targets, folder, (SMALL, size))
    try:
        browsers = [made(sample.log).log_in() for sample in samples]
        found = browsers[0].runner.run(measured(samples, browsers, times))
        yield f"\n## {'SQLite' if engine == 'sqlite' else 'PostgreSQL'}\n\n"
        yield from table(engine, found, (samples[0].entries, samples[1].entries))
        share, seconds = writers_and_stop(targets[1], samples[1])
        yield f"\nA writer beside {STREAMS} open streams appends {share:.2f} × as many entries as alone (at least {WRITERS}). "
        yield f"Ctrl-C with {STREAMS} streams open takes {seconds:.2f} s (at most {STOP_SECONDS}). "
        yield f"The first visit is {first_visit(samples[1]):,} bytes (at most {FIRST_VISIT:,}). "
        if MISSING:
            yield f"Not measured: from a commit to the painted row ({MISSING}).\n"
        else:
            painted = painted_ms(targets[1], samples[1])
            late = painted[int(len(painted) * 0.95)]
            yield f"From a commit to the painted row, one tab: {statistics.median(painted):.0f} ms in the middle, "
            yield f"{late:.0f} ms for 95 of 100 (at most {PAINTED_MS}).\n"
    finally:
        for sample in samples:
            sample.log.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--postgres")
    parser.add_argument("--engines", default="sqlite,postgres")
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--keep", type=Path, default=OUT.parents[2] / "build" / "benchmarks")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    parts = ["# The dashboard\n\n", f"`python -m benchmarks.web --size {given.size}`. {INTRODUCTION}\n"]
    with places(given.postgres) as targets:
        for engine in given.engines.split(","):
            for part in report(engine, targets[engine], given.keep, given.size, given.times):
                sys.stdout.write(part)
                sys.stdout.flush()
                parts.append(part)
    given.out.write_text("".join(parts), encoding="utf-8")


INTRODUCTION = (
    "Each page is asked in one process, in turns with a bare page of Starlette and Jinja with as many rows, and in a small and a "
    "large log, of whose entries a tenth are in one run; one more entry is written before each. Times are medians. A page may "
    f"take {STATEMENTS} statements, {FLOOR['sqlite']} times the bare page on SQLite and {FLOOR['postgres']} times on PostgreSQL, "
    f"and, each beside a bare page with its own rows, {GROWTH} times what it takes in the small log; what is more is marked."
)

if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
