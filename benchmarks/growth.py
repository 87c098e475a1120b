"""Whether a log of many runs stays as fast as a small one: views, pages, searches, claims and appends.

    python -m benchmarks.growth --engine postgres --entries 10000000
    python -m benchmarks.growth --engine sqlite --entries 3000000

Both logs have as many runs that go on, as many tasks in them, and runs of the same size. DECKLOG_TEST_POSTGRES names the programs
of another version of PostgreSQL.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from tests.databases import named
from tests.postgres import Server, programs, version_of
from tests.web.client import Browser, make_browser

from benchmarks.figures import Figure
from benchmarks.measure import Row, row, write
from benchmarks.now import printed
from benchmarks.scale import WORDS
from decklog import Decklog

SMALL = 100_000
IN_A_RUN = 3_333
# A page of runs is full in the small log too.
_FEWEST_RUNS = 60
_BATCH = 1_111
_GOING_ON = 10
_TASKS = 20
_READY = 300
_CHARGES = 5
_AT_ONCE = 50
_MOST = "<= 1.25"
# The run that is read and written: an early one, which is in the first partition.
_RUN = "run-0"
_PAGES = (
    *("/now", "/runs", "/runs?as=family", "/inbox", "/spend", "/tasks", "/search?q=lexer+budget", "/memory", "/workflow"),
    *("/trust", "/system"),
    *(f"/runs/{_RUN}/{tab}" for tab in ("overview", "lanes", "tasks", "journal", "tools", "reasoning", "spend", "graph")),
)
_NOTES = (
    f"{_GOING_ON} runs of {IN_A_RUN:,} entries go on in both logs, all others have ended. Every run has {_TASKS} tasks and "
    f"{_CHARGES} charges. The small log has {_FEWEST_RUNS} runs.",
    "The same calls on the large and the small log, in turns; the median and its ratio to that of the small log.",
    "Texts are indexed, and PostgreSQL has analyzed its tables.",
)


def fill(log: Decklog, entries: int) -> None:
    """Fill a log with runs, most of which have ended."""
    runs = max(_FEWEST_RUNS, round(entries / IN_A_RUN))
    in_others = (entries - _GOING_ON * IN_A_RUN) // (runs - _GOING_ON)
    for number in range(runs):
        run_id = f"run-{number}"
        with log.transaction():
            log.runs.start(f"Goal {number}", run_id=run_id)
            log.tasks.add_many(run_id, [{"title": f"Task {place}"} for place in range(_READY if number == 0 else _TASKS)])
            for _ in range(_CHARGES):
                log.ledger.charge("model-a", cost_microdollars=1000, run_id=run_id, agent="dev")
        size = IN_A_RUN if number < _GOING_ON else in_others
        for start in range(0, size, _BATCH):
            log.journal.append_many([_entry(run_id, number, place) for place in range(start, min(start + _BATCH, size))])
        if number >= _GOING_ON:
            log.runs.finish(run_id, status="cancelled", force=True, reason="ended")  # type: ignore[arg-type]
        if number % 100 == 99:
            print(f"filled {number + 1:,} of {runs:,} runs", flush=True)
    log.journal.index()


def _entry(run_id: str, run: int, place: int) -> dict[str, object]:
    words = f"{WORDS[place % 18]} and {WORDS[place * 7 % 18]} near line {place % 997} of module{place % 5003}.py"
    rare = f" seldom{run}" if place == 7 else ""
    kind = ("tool", "interaction", "event", "tool", "reasoning")[place % 5]
    return {"stream": run_id, "body": f"step {place}: looked at the {words}{rare}", "kind": kind, "agent": f"agent-{place % 7}"}


def calls(log: Decklog) -> dict[str, Callable[[], object]]:
    """Return what is measured."""
    browser = make_browser(log).log_in()
    return {
        "now": lambda: printed(log),
        "find, newest 20 of a run": lambda: log.journal.find(_RUN),
        "find, newest 20 of all runs": lambda: log.journal.find(),
        "find by kind": lambda: log.journal.find(_RUN, kind="reasoning"),  # type: ignore[arg-type]
        "find by agent": lambda: log.journal.find(_RUN, agent="agent-3"),
        "at": lambda: log.journal.at("runs", _RUN, "5"),
        "search, common words": lambda: log.journal.search("lexer budget"),
        "search, a rare word": lambda: log.journal.search("seldom3"),
        "search, a word that is nowhere": lambda: log.journal.search("nowhere"),
        "search in a run": lambda: log.journal.search("lexer", stream=_RUN),
        "append": lambda: log.journal.append(_RUN, "one more"),
        "claim and finish": lambda: _claim(log),
        **{f"page {url}": lambda url=url: _page(browser, url) for url in _PAGES},  # type: ignore[misc]
    }


def _claim(log: Decklog) -> None:
    claim = log.tasks.claim(_RUN, worker="w")
    assert claim is not None
    log.tasks.finish(claim.id, fence=claim.fence)


def _page(browser: Browser, url: str) -> None:
    answer = browser.get(url)
    assert answer.status == 200, (url, answer.status)


def compared(few: Decklog, many: Decklog) -> Iterator[Row]:
    """Measure each call on both logs in turns."""
    small, large = calls(few), calls(many)
    for name in small:
        times: list[list[float]] = [[], []]
        for turn in range(_AT_ONCE + 3):
            for place, work in enumerate((small[name], large[name])):
                begin = time.perf_counter()
                work()
                if turn >= 3:
                    times[place].append(1000 * (time.perf_counter() - begin))
        yield row(name, Figure(times[1]), "ms", floor=Figure(times[0]), target=_MOST)


@contextmanager
def places(engine: str, folder: str) -> Iterator[tuple[str, str]]:
    """Return where the small and the large log are made."""
    if engine == "sqlite":
        yield str(Path(folder) / "small.db"), str(Path(folder) / "large.db")
        return
    with Server(shared_buffers="1GB", max_wal_size="4GB") as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            for name in ("small", "large"):
                connection.execute(f"create database {name}".encode())
        yield named(server.url, "small"), named(server.url, "large")


def main() -> list[Row]:
    """Measure; write benchmarks/results/growth-ENGINE.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("sqlite", "postgres"), default="postgres")
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("--small", type=int, default=SMALL)
    parser.add_argument("--folder", help="where the SQLite logs are made")
    given: Any = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="decklog-bench-", dir=given.folder) as folder,
        places(given.engine, folder) as (small, large),
    ):
        for target, entries in ((small, given.small), (large, given.entries)):
            with Decklog.open(target, durability="relaxed", migrate=True) as log:
                fill(log, entries)
            if given.engine == "postgres":
                with psycopg.connect(target, autocommit=True) as connection:
                    connection.execute("vacuum analyze")
        with Decklog.open(small) as few, Decklog.open(large) as many:
            rows = list(compared(few, many))
    name = "SQLite" if given.engine == "sqlite" else f"PostgreSQL {version_of(programs())}"
    write(f"growth-{given.engine}", f"{given.entries:,} entries compared with {given.small:,}, on {name}", rows, _NOTES)
    return rows


if __name__ == "__main__":
    main()
