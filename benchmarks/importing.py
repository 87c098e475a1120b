"""Taking over from every other system: rate, CPU time, and memory that does not grow with the source.

Of the largest kind, an older system's log rows, also the cost compared with plain inserts, and that of the same file again.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import apsw

from benchmarks import history
from benchmarks.import_sources import BODY, SOURCES, Source
from benchmarks.measure import Row, row, write
from decklog.plugins.importers.bazinga.importer import SCHEMA

ROWS = int(os.environ.get("DECKLOG_BENCH_ROWS", "1000000"))
FEWER = ROWS // 10
# Of each of the other systems: what they keep is smaller, and there are many of them.
OTHER_ROWS = int(os.environ.get("DECKLOG_BENCH_OTHER_ROWS", "60000"))
LINES = int(os.environ.get("DECKLOG_BENCH_HISTORY_LINES", "30000"))
SESSIONS = 20
START = datetime(2025, 1, 1)
KINDS = ("interaction", "interaction", "reasoning", "event")
COLUMNS = (
    *("session_id", "timestamp", "iteration", "agent_type", "agent_id", "content", "log_type", "reasoning_phase"),
    *("confidence_level", "references_json", "group_id", "event_subtype", "event_payload"),
)
NOTES = (
    "A row is one of a table of the source, or an issue, a link within it or a comment; a line of a session has some thousand"
    " characters, and for gemini is an answer with a tool's use.",
    "Every import has its own process; what a second one reads ahead counts in its CPU time and memory.",
    "Code, documents and logs that a session's tools print come again line by line, never as a whole, so that no text is known"
    " from before.",
)
# Each in its own process, so that its peak memory is that of the work alone.
IMPORT = """
import resource, sys, time
from decklog import Decklog
from decklog.plugins.importers.bazinga.importer import BazingaImport
with Decklog.open(sys.argv[2]) as log:
    wall, cpu = time.perf_counter(), time.process_time()
    report = BazingaImport(log, sys.argv[1], seconds=36000).run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
# The process that reads ahead.
other = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu += other.ru_utime + other.ru_stime
# Not by `getrusage`, which also counts what the process that started this one had.
own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
most = own + other.ru_maxrss
print(report.tables["orchestration_logs"][sys.argv[3]], wall, cpu, most)
"""
OTHER = """
import resource, sys, time
from decklog import Decklog
{imported}
path, place = sys.argv[1:]
with Decklog.open(place) as log:
    wall, cpu = time.perf_counter(), time.process_time()
    {importing}.run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
other = resource.getrusage(resource.RUSAGE_CHILDREN)
# Not by `getrusage`, which also counts what the process that started this one had.
own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
most = own + other.ru_maxrss
print(wall, cpu + other.ru_utime + other.ru_stime, most)
"""
FLOOR = """
import resource, sys, time
import apsw
wall, cpu = time.perf_counter(), time.process_time()
source, target = apsw.Connection(sys.argv[1]), apsw.Connection(sys.argv[2])
target.execute("pragma journal_mode = wal")
target.execute("pragma synchronous = full")
names = [column[1] for column in source.execute("select * from pragma_table_info('orchestration_logs')")]
target.execute(f"create table plain ({', '.join(names)})")
with target:
    rows = source.execute("select * from orchestration_logs order by rowid")
    target.executemany(f"insert into plain values ({', '.join('?' for _ in names)})", rows)
count = target.changes() and target.execute("select count(*) from plain").get
print(count, time.perf_counter() - wall, time.process_time() - cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def fill(path: Path, count: int) -> None:
    """Create a bazinga database with `count` log rows: half interactions, a quarter reasoning, a quarter events."""
    db = apsw.Connection(str(path))
    SCHEMA.create(db)
    db.execute("insert or ignore into schema_version (version) values (19)")
    with db:
        sessions = [(f"session_{number}", "simple", "measure") for number in range(SESSIONS)]
        db.executemany("insert into sessions (session_id, mode, original_requirements) values (?, ?, ?)", sessions)
        marks = ", ".join("?" for _ in COLUMNS)
        db.executemany(f"insert into orchestration_logs ({', '.join(COLUMNS)}) values ({marks})", _logs(count))
    db.close()


def _logs(count: int) -> Iterator[tuple[object, ...]]:
    for number in range(count):
        kind = KINDS[number % 4]
        at = START + timedelta(seconds=number)
        session, agent_id = f"session_{number * SESSIONS // count}", f"developer_{number % 3}"
        start = (session, f"{at:%Y-%m-%d %H:%M:%S}", number % 50, "developer", agent_id, f"{number}: {BODY}", kind)
        thought = ("approach", "high", '["src/ledger.py"]') if kind == "reasoning" else (None, None, None)
        event = ("role_check", f'{{"number": {number}, "ok": true}}') if kind == "event" else (None, None)
        yield (*start, *thought, f"group_{number % 5}", *event)


def measured(program: str, *arguments: object) -> list[float]:
    """Run a program in its own process; return the numbers it prints: rows, seconds, processor seconds, peak KiB."""
    words = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]


def imports(folder: Path) -> list[Row]:
    """Import a large and a small file, the large one twice, and insert the same rows plainly."""
    large, small, log = folder / "large.db", folder / "small.db", folder / "log.db"
    fill(large, ROWS)
    fill(small, FEWER)
    plain, plain_wall, plain_cpu, _ = measured(FLOOR, large, folder / "plain.db")
    new, wall, cpu, most = measured(IMPORT, large, log, "new")
    known, again_wall, again_cpu, _ = measured(IMPORT, large, log, "already")
    _, _, _, least = measured(IMPORT, small, folder / "small-log.db", "new")
    assert plain == new == known == ROWS, "not every row was taken"
    size = f"{ROWS:,} log rows"
    return [
        row(f"import of {size}", new / wall, "per s", target=">= 20000"),
        row(f"import of {size}, CPU time of both processes a row", cpu / new * 1e6, "µs", target="<= 100"),
        row(f"import of {size}, compared with plain inserts", wall, "s", floor=plain_wall),
        row(f"import of {size}, compared with plain inserts, CPU time", cpu, "s", floor=plain_cpu),
        row("the same file again", known / again_wall, "per s"),
        row("the same file again, CPU time of both processes a row", again_cpu / known * 1e6, "µs"),
        row(f"peak memory at {ROWS:,} rows, compared with {FEWER:,}", most / 1024, "MiB", floor=least / 1024, target="<= 1.3"),
    ]


def sessions(folder: Path, program: str, session: history.Session) -> list[Row]:
    """Import sessions of a coding agent; benchmarks/history.py does so with a gigabyte of them."""
    long, short = folder / f"{program}-long", folder / f"{program}-short"
    lines, _ = history.fill(long, session, LINES)
    history.fill(short, session, LINES // 2)
    (folder / f"{program}-1").mkdir()
    (folder / f"{program}-2").mkdir()
    _, wall, writing, reading, most = history.measured(history.IMPORT, program, str(long), str(folder / f"{program}-1"))
    *_, least = history.measured(history.IMPORT, program, str(short), str(folder / f"{program}-2"))
    return _rows(program, "lines", lines, (wall, writing + reading, most), least)


def others(folder: Path, system: str, source: Source) -> list[Row]:
    """Import a source of another system, and one of half its rows."""
    ending = ".db" if system == "opencode" else ""
    large, small = folder / f"{system}-large{ending}", folder / f"{system}-small{ending}"
    source.fill(large, OTHER_ROWS)
    source.fill(small, OTHER_ROWS // 2)
    program = OTHER.format(imported=source.imported, importing=source.importing)
    wall, cpu, most = measured(program, large, folder / f"{system}-1.db")
    *_, least = measured(program, small, folder / f"{system}-2.db")
    return _rows(system, "rows", OTHER_ROWS, (wall, cpu, most), least)


def _rows(system: str, noun: str, count: int, found: tuple[float, float, float], least: float) -> list[Row]:
    wall, cpu, most = found
    name = f"import {system}, {count:,} {noun}"
    return [
        row(name, count / wall, "per s", target=">= 20000"),
        row(f"{name}, CPU time of both processes each", cpu / count * 1e6, "µs", target="<= 100"),
        row(f"{name}, peak memory, compared with half as many", most / 1024, "MiB", floor=least / 1024, target="<= 1.3"),
    ]


def main() -> list[Row]:
    """Measure imports; write benchmarks/results/importing.md."""
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        rows = imports(folder)
        for program, session in (("claude", history.claude), ("codex", history.codex)):
            rows += sessions(folder, program, session)
        for system, source in SOURCES.items():
            rows += others(folder, system, source)
    write("importing", "Taking over from other systems", rows, NOTES)
    return rows


if __name__ == "__main__":
    main()
