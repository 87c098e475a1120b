"""Imports, killed at random moments by a real signal and run again: the log is that of one that was not killed.

Of every system that is taken over, or of those that are named: `python -m benchmarks.import_kills claude gaia`. An import is
killed up to five times in a row on its way through one log, then run to its end, and the log compared. What is read by a process
of its own is read so from 64 KiB on, not from eight megabytes, so that both are there to be killed; at every fourth kill it is
the reader that goes. Each system's figures are put into the page as soon as they are there.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from benchmarks import history
from benchmarks.import_sources import SOURCES, Source
from benchmarks.importing import fill as fill_bazinga
from benchmarks.measure import Row, renew, row
from decklog import Decklog, redact
from decklog.errors import Unavailable
from decklog.importers.engine import reading_ahead

KILLS = int(os.environ.get("DECKLOG_BENCH_KILLS", "50"))
OTHER_KILLS = int(os.environ.get("DECKLOG_BENCH_OTHER_KILLS", "50"))
OTHER_ROWS = int(os.environ.get("DECKLOG_BENCH_KILLED_ROWS", "600"))
ISSUES = int(os.environ.get("DECKLOG_BENCH_ISSUES", "600"))
LOG_ROWS = int(os.environ.get("DECKLOG_BENCH_KILLED_LOG_ROWS", "2000"))
# Of sessions, which are written whole.
LINES = int(os.environ.get("DECKLOG_BENCH_KILLED_LINES", "1000"))
IN_A_ROW, READER_AT = 5, 4
WORTH_A_PROCESS = 64 * 1024
AT = "2026-01-01T00:00:00Z"
RECORDS = ("tasks", "dependencies", "task_comments")
# Not the ids that are made here, nor when something was recorded.
PARTS = (
    ("charges", "occurred_at, model, input_tokens, output_tokens, cost_microdollars, run_id, task_id, key, answer_id"),
    ("checkpoints", "id, run_id, number, digest"),
)
KEPT = "select stream, subtype, key, body, payload from entries where kind <> 'change'"
BEADS = Source(
    lambda path, _count: fill(path),
    "from decklog.importers.beads.importer import BeadsImport",
    "BeadsImport(log, path, run_id='beads')",
)
BAZINGA = Source(
    fill_bazinga, "from decklog.importers.bazinga.importer import BazingaImport", "BazingaImport(log, path, seconds=36000)"
)


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


class Reader:
    """The process that reads ahead, forked where it would be started: its own work and its pipes, without its rules to load."""

    def __init__(self, words: Sequence[str], **_settings: object) -> None:
        (given, self._give), (self._take, taken) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _ended_by(lambda: self._read(words, given, taken))
        os.close(given)
        os.close(taken)
        self.stdin, self.stdout = os.fdopen(self._give, "wb"), os.fdopen(self._take, "rb")

    def _read(self, words: Sequence[str], given: int, taken: int) -> None:
        os.setsid()
        os.dup2(given, 0)
        os.dup2(taken, 1)
        # The log's too: whoever is killed must not leave it open here.
        os.closerange(3, 1024)
        sys.argv, sys.stdin, sys.stdout = [*words[words.index("-m") + 1 :]], os.fdopen(0), os.fdopen(1, "w")
        with suppress(BrokenPipeError):
            reading_ahead._main()
        os._exit(0)

    def kill(self) -> None:
        """End it, as the import does once it has all."""
        _kill(self.pid)

    def wait(self) -> None:
        """Wait until it has ended."""
        os.waitpid(self.pid, 0)


class Killed:
    """An import in a process of its own, forked from this one, which has all that it needs loaded and no database open."""

    def __init__(self, source: Source, path: Path) -> None:
        self._source, self._path = source, path
        reading_ahead.WORTH_A_PROCESS = WORTH_A_PROCESS
        reading_ahead.subprocess = SimpleNamespace(Popen=Reader, PIPE=None)  # type: ignore[assignment]
        self._names: dict[str, object] = {}
        exec(source.imported, self._names)

    def run(self, place: Path, seconds: float | None = None, *, is_reader: bool = False) -> float | None:
        """Import, and kill it or its reader so long after it has opened the log; say how long it took if it was not."""
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            _ended_by(lambda: self._import(place, tell))
        os.close(tell)
        os.read(told, 1)
        begun = time.perf_counter()
        if seconds is not None:
            time.sleep(seconds)
            _kill((_reader_of(pid) if is_reader else None) or pid)
        _, status = os.waitpid(pid, 0)
        os.close(told)
        # Whatever else went wrong is no kill.
        assert os.waitstatus_to_exitcode(status) in (0, 1, -signal.SIGKILL), f"the import ended with {status}"
        return None if status else time.perf_counter() - begun

    def _import(self, place: Path, tell: int) -> None:
        with Decklog.open(place) as log:
            os.write(tell, b"1")
            made = eval(self._source.importing, {**self._names, "log": log, "path": str(self._path), "place": str(place)})
            made.run()

    def sums(self, place: Path) -> str:
        """Verify a log, in a process of its own; give a digest of what it holds."""
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            _ended_by(lambda: os.write(tell, _digest(place).encode()))
        os.close(tell)
        found = os.read(told, 64).decode()
        os.close(told)
        os.waitpid(pid, 0)
        return found


def _ended_by(work: Callable[[], object]) -> None:
    """Do the work of a forked process, which ends here: with 1 if its reader was killed and it says so, else with 2."""
    status = 2
    try:
        work()
        status = 0
    except Unavailable:
        status = 1
    except BaseException:  # noqa: BLE001 - nothing of this process may go on in the other's place
        traceback.print_exc()
    os._exit(status)


def _reader_of(pid: int) -> int | None:
    """Give the process that reads for an import, if there is one by now."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return int(found[0]) if found else None


def _kill(pid: int) -> None:
    # It may have come to its end just now.
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _digest(place: Path) -> str:
    with Decklog.open(place) as log:
        assert log.journal.verify().ok

        def read() -> dict[str, list[str]]:
            found = {}
            for table in RECORDS:
                names, rows = log.db.rows(f"select * from {table}", {})
                found[table] = sorted(json.dumps(dict(zip(names, row, strict=True)), sort_keys=True) for row in rows)
            for table, columns in PARTS:
                found[table] = sorted(json.dumps(list(row)) for row in log.db.rows(f"select {columns} from {table}", {})[1])
            found["kept"] = sorted(json.dumps(list(row)) for row in log.db.rows(KEPT, {})[1])
            return found

        return hashlib.sha256(json.dumps(log.db.read(read)).encode()).hexdigest()


def kills(folder: Path, what: str, source: Source, count: int, times: int) -> list[Row]:
    """Kill an import at random moments, up to five times in a row; count the logs that are right once it came to its end."""
    chance, path, first = random.Random(2), folder / "source.db", folder / "whole" / "log.db"
    source.fill(path, count)
    first.parent.mkdir()
    killed = Killed(source, path)
    whole, expected = killed.run(first), killed.sums(first)
    assert whole is not None
    assert expected
    done = logs = same = 0
    while done < times:
        log = folder / str(logs) / "log.db"
        log.parent.mkdir()
        for _ in range(min(IN_A_ROW, times - done)):
            took = killed.run(log, chance.uniform(0, whole), is_reader=done % READER_AT == 0)
            if took is not None:
                # Sooner done than the first time; on a busy machine that is anybody's time.
                whole = max(whole / 2, took * 0.8)
                break
            done += 1
        assert killed.run(log) is not None
        logs += 1
        if killed.sums(log) == expected:
            same += 1
            shutil.rmtree(log.parent)
    return [
        row(f"import of {what}, killed on its way", done, "times"),
        row(f"import of {what}, logs that are the same once it came to its end", same, "logs", target=f">= {logs}"),
    ]


def _filled(path: Path, session: history.Session, count: int) -> None:
    """Write short sessions, so that there are several."""
    with mock.patch.object(history, "SESSION_LINES", 400):
        history.fill(path, session, count)


def of_sessions(name: str, session: history.Session, folder: Path) -> list[Row]:
    """Kill the import of a coding agent's sessions."""
    source = Source(
        lambda path, count: _filled(path, session, count),
        "from decklog.agents.history import HistoryImport; from decklog.agents.spool import Spool",
        f"HistoryImport(log, {name!r}, path, Spool(place + '.spool'))",
    )
    return kills(folder, f"{LINES:,} lines of {name} or more", source, LINES, OTHER_KILLS)


def of_rows(system: str, source: Source, folder: Path) -> list[Row]:
    """Kill the import of another system's source."""
    return kills(folder, f"{OTHER_ROWS:,} rows of {system}", source, OTHER_ROWS, OTHER_KILLS)


SYSTEMS: dict[str, Callable[[Path], list[Row]]] = {
    **{system: partial(of_rows, system, source) for system, source in SOURCES.items()},
    "claude": partial(of_sessions, "claude", history.claude),
    "codex": partial(of_sessions, "codex", history.codex),
    # With lines among the issues that are none.
    "beads": lambda folder: kills(folder, f"{ISSUES:,} issues of beads", BEADS, ISSUES, KILLS),
    "bazinga": lambda folder: kills(folder, f"{LOG_ROWS:,} log rows of bazinga", BAZINGA, LOG_ROWS, KILLS),
}


def main(names: Sequence[str] = ()) -> list[Row]:
    """Kill imports; put each system's figures into docs/benchmarks/import-kills.md."""
    rows: list[Row] = []
    # Loaded once, with the tables that texts of sessions need, for all that is forked.
    words = history.Words()
    redact.clean_among([words.printed() for _ in range(300)])
    for name in names or SYSTEMS:
        with tempfile.TemporaryDirectory(prefix="decklog-bench-") as folder:
            found = SYSTEMS[name](Path(folder))
        print(*(f"{item['name']}: {item['value']:.0f} {item.get('target', '')}" for item in found), sep="\n", flush=True)
        renew("import-kills", "Imports that are killed", found)
        rows += found
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
