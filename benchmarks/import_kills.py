"""Imports, killed at random moments by a real signal and run again: the log is that of one that was not killed.

Of every system that is taken over. What is read by a process of its own is read so from a megabyte on, not from eight, so that
both are there to be killed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import history
from benchmarks.import_sources import SOURCES
from benchmarks.importing import fill as fill_bazinga
from benchmarks.measure import Row, row, write

KILLS = int(os.environ.get("DECKLOG_BENCH_KILLS", "50"))
OTHER_KILLS = int(os.environ.get("DECKLOG_BENCH_OTHER_KILLS", "50"))
OTHER_ROWS = int(os.environ.get("DECKLOG_BENCH_KILLED_ROWS", "5000"))
ISSUES = int(os.environ.get("DECKLOG_BENCH_ISSUES", "3000"))
LOG_ROWS = 25_000
# Of a session.
LINES = int(os.environ.get("DECKLOG_BENCH_KILLED_LINES", "4000"))
AT = "2026-01-01T00:00:00Z"
START = """
import sys
from decklog import Decklog
from decklog.importers.engine import reading_ahead
{imported}
reading_ahead.WORTH_A_PROCESS = 1024**2
path, place = sys.argv[1:]
with Decklog.open(place) as log:
    print("open", flush=True)
    {importing}.run()
"""
BEADS = START.format(
    imported="from decklog.importers.beads.importer import BeadsImport",
    importing="BeadsImport(log, path, run_id='beads')",
)
BAZINGA = START.format(
    imported="from decklog.importers.bazinga.importer import BazingaImport",
    importing="BazingaImport(log, path)",
)
SUMS = """
import hashlib, json, sys
from decklog import Decklog
with Decklog.open(sys.argv[1]) as log:
    assert log.journal.verify().ok
    def read():
        found = {}
        for table in ("tasks", "dependencies", "task_comments"):
            names, rows = log.db.rows(f"select * from {table}", {})
            found[table] = sorted(json.dumps(dict(zip(names, row)), sort_keys=True) for row in rows)
        for table, columns in (
            # Not the ids that are made here, nor when something was recorded.
            ("charges", "occurred_at, model, input_tokens, output_tokens, cost_microdollars, run_id, task_id, key, answer_id"),
            ("checkpoints", "id, run_id, number, digest"),
        ):
            found[table] = sorted(json.dumps(list(row)) for row in log.db.rows(f"select {columns} from {table}", {})[1])
        kept = "select stream, subtype, key, body, payload from entries where kind <> 'change'"
        found["kept"] = sorted(json.dumps(list(row)) for row in log.db.rows(kept, {})[1])
        return found
    print(hashlib.sha256(json.dumps(log.db.read(read)).encode()).hexdigest())
"""


def fill(path: Path) -> None:
    """Write issues of which every third waits for an earlier one, and some lines that are none."""
    chance = random.Random(1)
    with path.open("w") as file:
        for number in range(ISSUES):
            name = f"bd-{number:x}"
            needs = [{"depends_on_id": f"bd-{chance.randrange(number):x}", "type": "blocks"}] if number % 3 == 2 else []
            said = [{"id": number, "author": "ana", "text": f"Said {number}", "created_at": AT}] if number % 5 == 0 else []
            status = chance.choice(("open", "closed", "in_progress"))
            told = {"id": name, "title": f"Issue {number}", "status": status, "priority": number % 5, "updated_at": AT}
            file.write(json.dumps({**told, "created_at": AT, "dependencies": needs, "comments": said}) + "\n")
            if number % 500 == 0:
                file.write("{broken\n")


def take(program: str, source: Path, log: Path, seconds: float | None = None) -> float | None:
    """Import in a process of its own, and kill it so long after it has opened the log; say how long it took if it was not."""
    process = subprocess.Popen([sys.executable, "-c", program, source, log], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    begun = time.perf_counter()
    if seconds is not None:
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
    process.stdout.close()
    return time.perf_counter() - begun if process.wait() == 0 else None


def sums(log: Path) -> str:
    return subprocess.run([sys.executable, "-c", SUMS, log], capture_output=True, text=True, check=True).stdout.strip()


def kills(folder: Path, what: str, program: str, fill: "Callable[[Path], object]", times: int = KILLS) -> list[Row]:
    """Kill an import at random moments, each time with a new log; count the logs that are right once it was run again."""
    chance, source = random.Random(2), folder / f"{what}.source.db"
    fill(source)
    whole, expected = take(program, source, folder / f"{what}.db"), sums(folder / f"{what}.db")
    assert whole is not None
    killed = same = 0
    for number in range(times):
        log = folder / f"{what}-{number}.db"
        killed += take(program, source, log, chance.uniform(0, whole)) is None
        assert take(program, source, log) is not None
        same += sums(log) == expected
    return [
        row(f"imports of {what} that were killed on their way, of {times}", killed, "imports"),
        row(f"imports of {what}, the same log once run again", same, "imports", target=f">= {times}"),
    ]


def kills_of_sessions(folder: Path, name: str, session: history.Session) -> list[Row]:
    """Kill the import of a coding agent's sessions."""
    imported = "from decklog.agents.history import HistoryImport; from decklog.agents.spool import Spool"
    program = START.format(imported=imported, importing=f"HistoryImport(log, {name!r}, path, Spool(place + '.spool'))")
    return kills(folder, f"{LINES:,} lines of {name}", program, lambda path: history.fill(path, session, LINES), OTHER_KILLS)


def main() -> list[Row]:
    """Kill imports; write docs/benchmarks/import-kills.md."""
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        rows = kills(folder, f"{ISSUES:,} issues of beads", BEADS, fill)
        rows += kills(folder, f"{LOG_ROWS:,} log rows of bazinga", BAZINGA, lambda path: fill_bazinga(path, LOG_ROWS))
        for name, session in (("claude", history.claude), ("codex", history.codex)):
            rows += kills_of_sessions(folder, name, session)
        for system, source in SOURCES.items():
            program = START.format(imported=source.imported, importing=source.importing)
            what = f"{OTHER_ROWS:,} rows of {system}"
            rows += kills(folder, what, program, lambda path, fill=source.fill: fill(path, OTHER_ROWS), OTHER_KILLS)  # type: ignore[misc]
    write("import-kills", "Imports that are killed", rows)
    return rows


if __name__ == "__main__":
    main()
