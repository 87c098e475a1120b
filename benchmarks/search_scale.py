"""Search, find and verification in a large log, as ratios on both engines.

    python -m benchmarks.search_scale --entries 200000 --engines sqlite,postgres --baseline ../other/src

`--baseline` is the source folder of another checkout: the same is measured with its package. DECKLOG_TEST_POSTGRES names the
programs of another version of PostgreSQL.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.postgres import Server, programs, version_of

from benchmarks.figures import Figure
from benchmarks.measure import Row, row, write
from benchmarks.scale import WORDS
from decklog import Decklog

_IN_A_RUN = 500
_BATCH = 5_000
_APPENDS = 10_000
_RARE_EVERY = 50_000
# What is compared, and the highest ratio: the name, the figure, its baseline.
RATIOS = (
    ("first search after 10,000 appends / repeated", "first search", "repeated search", 2.0),
    ("rare word / common word", "rare word", "common word", 3.0),
    ("verify with text index / without", "verify", "verify without text index", 1.5),
    ("incremental verify / full", "incremental verify", "verify", 0.5),
)
_EARLIER = ", earlier commit"
_NOTES = (
    "First search: after 10,000 appends, before they are indexed. A rare word is in one entry.",
    "Find: over all runs, by time or phase; the limit is 100 ms.",
    "Rows of the earlier commit were measured in the same run, on its own server or file.",
)
LIMITS = (("find by time", 0.1), ("find by phase", 0.1), ("find by phase, none", 0.1))


def _run_id(number: int) -> str:
    return f"run_06fq2v8k3c9d4e5f6{number:09d}"


def _entry(number: int) -> dict[str, object]:
    words = f"{WORDS[number % 18]} and {WORDS[number * 7 % 18]} near line {number % 997} of module{number % 5003}.py"
    rare = f" seldom{number // _RARE_EVERY}" if number % _RARE_EVERY == 7 else ""
    kind = ("tool", "interaction", "event", "tool", "tool")[number % 5]
    return {"stream": _run_id(number // _IN_A_RUN), "body": f"step {number}: looked at the {words}{rare}", "kind": kind}


def fill(log: Decklog, first: int, count: int) -> None:
    """Append entries, each run with its own stream."""
    for start in range(first, first + count, _BATCH):
        numbers = range(start, min(start + _BATCH, first + count))
        with log.transaction():
            for run in range(-(-numbers[0] // _IN_A_RUN), -(-(numbers[-1] + 1) // _IN_A_RUN)):
                log.runs.start("Grow", run_id=_run_id(run))
            log.journal.append_many([_entry(number) for number in numbers])


def seconds(work: Callable[[], object], rounds: int = 1) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return float(Figure(times))


def measure(target: str, entries: int) -> dict[str, float]:
    """Fill a log and measure it."""
    found: dict[str, float] = {}
    with Decklog.open(target, durability="relaxed", migrate=True) as log:
        found["append, entries/s"] = entries / seconds(lambda: fill(log, 0, entries))
        found["index everything"] = seconds(log.journal.index)
        _analyze(log)
        _search(log, entries, found)
        _find(log, found)
        _verify(log, found)
    return found


def _analyze(log: Decklog) -> None:
    if log.db.engine == "postgres":
        log.db.write(lambda: log.db.count("analyze entries, entry_text, streams", {}))


def _search(log: Decklog, entries: int, found: dict[str, float]) -> None:
    log.journal.search("lexer")
    first = []
    for place in range(3):
        fill(log, entries + place * _APPENDS, _APPENDS)
        time.sleep(1)  # steps in the background end meanwhile
        first.append(seconds(lambda: log.journal.search("budget")))
        log.journal.index()
    found["first search"] = float(Figure(first))
    found["repeated search"] = seconds(lambda: log.journal.search("budget"), 9)
    found["common word"] = seconds(lambda: log.journal.search("lexer"), 9)
    found["rare word"] = seconds(lambda: log.journal.search("seldom0"), 9)
    assert len(log.journal.search("seldom0")) == 1


def _find(log: Decklog, found: dict[str, float]) -> None:
    later = datetime(2100, 1, 1, tzinfo=UTC)
    for name, narrowed in (
        ("find by time", {"since": later}),
        ("find by phase", {"phase": "risks"}),
        ("find by phase, none", {"phase": "pivot"}),
    ):
        found[name] = seconds(lambda narrowed=narrowed: _found(log, narrowed), 5)  # type: ignore[misc]


def _found(log: Decklog, narrowed: dict[str, Any]) -> object:
    try:
        return log.journal.find(**narrowed)
    except Exception as refusal:
        if type(refusal).__name__ != "Invalid":
            raise
        return None


def _verify(log: Decklog, found: dict[str, float]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anchor = os.path.join(folder, "anchor")
        log.journal.verify()  # the first one also loads code and builds the expected schema
        found["verify"] = seconds(lambda: log.journal.verify(anchor=anchor))
        log.journal.append(_run_id(0), "one more")
        found["incremental verify"] = seconds(lambda: log.journal.verify(anchor=anchor, since_anchor=True))
    log.db.forget_all_text()
    found["verify without text index"] = seconds(log.journal.verify)


def main() -> list[Row]:
    """Measure; write benchmarks/results/search-scale-ENGINE.md for each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--engines", default="sqlite,postgres")
    parser.add_argument("--baseline", type=Path, help="the folder src of another checkout")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure, given.entries)))
        return []
    sources = {"": Path(__file__).parents[1] / "src"} | ({_EARLIER: given.baseline.resolve()} if given.baseline else {})
    rows = []
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as folder:
        for engine in given.engines.split(","):
            found = {suffix: _measured(engine, source, given.entries, Path(folder)) for suffix, source in sources.items()}
            of_engine = list(compared(found))
            name = "SQLite" if engine == "sqlite" else f"PostgreSQL {version_of(programs())}"
            title = f"Search, find and verification in {given.entries:,} entries on {name}"
            write(f"search-scale-{name.lower().replace(' ', '-')}", title, of_engine, _NOTES)
            rows += of_engine
    return rows


def _measured(engine: str, source: Path, entries: int, folder: Path) -> dict[str, float]:
    if engine == "sqlite":
        return _in_child(source, str(Path(tempfile.mkdtemp(dir=folder)) / "log.db"), entries)
    with Server(shared_buffers="256MB") as server:
        return _in_child(source, server.url, entries)


def _in_child(source: Path, target: str, entries: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.search_scale", "--measure", target, "--entries", str(entries)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(Path(__file__).parents[1])])}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout))


def compared(found: dict[str, dict[str, float]]) -> Iterator[Row]:
    """Make the rows of each source, by the suffix of its rows; only those without a suffix have targets."""
    for suffix, one in found.items():
        for label, name, base, most in RATIOS:
            target = "" if suffix else f"<= {most:g}"
            yield row(f"{label}{suffix}", 1000 * one[name], "ms", floor=1000 * one[base], target=target)
        for name, seconds_allowed in LIMITS:
            yield row(f"{name}{suffix}", 1000 * one[name], "ms", target="" if suffix else f"<= {1000 * seconds_allowed:g}")
        yield row(f"append{suffix}", one["append, entries/s"], "entries/s")
        yield row(f"index everything{suffix}", one["index everything"], "s")


if __name__ == "__main__":
    main()
