"""Imports, killed at random moments by a real signal and run again: the log is that of one that was not killed.

Of every system that is taken over, or of those that are named: `python -m benchmarks.import_kills claude gaia`. An import is
killed up to five times in a row on its way through one log, then run to its end, and the log compared. What is read by a process
of its own is read so from 64 KiB on, not from eight megabytes, so that both are there to be killed: of four kills two are of the
one that writes, one of the reader, and one of both. With `--postgres` the logs are databases of a server. Each system's figures
are put into the page as soon as they are there.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import psycopg

from benchmarks import history
from benchmarks.import_sources import SOURCES, Source
from benchmarks.importing import fill as fill_bazinga
from benchmarks.measure import Row, renew, row
from benchmarks.transfer import server
from decklog import Decklog, redaction
from decklog.core.errors import Unavailable
from decklog.importing import reading_ahead

KILLS = int(os.environ.get("DECKLOG_BENCH_KILLS", "50"))
OTHER_KILLS = int(os.environ.get("DECKLOG_BENCH_OTHER_KILLS", "50"))
OTHER_ROWS = int(os.environ.get("DECKLOG_BENCH_KILLED_ROWS", "600"))
ISSUES = int(os.environ.get("DECKLOG_BENCH_ISSUES", "600"))
LOG_ROWS = int(os.environ.get("DECKLOG_BENCH_KILLED_LOG_ROWS", "2000"))
# Of sessions, which are written whole.
LINES = int(os.environ.get("DECKLOG_BENCH_KILLED_LINES", "1000"))
IN_A_ROW = 5
LEAST_SHARE = 0.15
WORTH_A_PROCESS = 64 * 1024
# So that the reader of a small source too has to wait for the one that writes.
PIPE_BYTES, AHEAD_BYTES = 64 * 1024, 128 * 1024
AT = "2026-01-01T00:00:00Z"
BASE = "kills_base"
# Who is killed, in turns: of the two processes of an import.
WRITER, READER, BOTH = ("writer",), ("reader",), ("reader", "writer")
TURNS = (READER, WRITER, BOTH, WRITER)
RECORDS = ("tasks", "dependencies", "task_comments")
# Not the ids that are made here, nor when something was recorded.
PARTS = (
    ("charges", "occurred_at, model, input_tokens, output_tokens, cost_microdollars, run_id, task_id, key, answer_id"),
    ("checkpoints", "id, run_id, number, digest"),
)
KEPT = "select stream, subtype, key, body, payload from entries where kind <> 'change'"
BEADS = Source(
    lambda path, _count: fill(path),
    "from decklog.plugins.importers.beads.importer import BeadsImport",
    "BeadsImport(log, path, run_id='beads')",
)
BAZINGA = Source(
    fill_bazinga,
    "from decklog.plugins.importers.bazinga.importer import BazingaImport",
    "BazingaImport(log, path, seconds=36000)",
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


class Place(NamedTuple):
    """Where a log is, and the folder of its own that its import has."""

    target: str
    folder: Path

    def of(self, name: str) -> "Place":
        """Give a new log beside this one: a file, or a database that is a copy of the first."""
        folder = self.folder / name
        folder.mkdir()
        if "://" not in self.target:
            return Place(str(folder / "log.db"), folder)
        self._say(f"create database kills_{name} template {BASE}")
        return Place(_named(self.target, f"kills_{name}"), folder)

    def drop(self, made: "Place") -> None:
        """Let a log go that was made beside this one."""
        shutil.rmtree(made.folder)
        if "://" in self.target:
            self._say(f"drop database kills_{made.folder.name} with (force)")

    def _say(self, words: str) -> None:
        with psycopg.connect(self.target, autocommit=True) as connection:
            connection.execute(words.encode())


def _named(url: str, name: str) -> str:
    head, _, query = url.partition("?")
    return f"{head.rsplit('/', 1)[0]}/{name}" + (f"?{query}" if query else "")


@contextmanager
def places(folder: Path, *, on_postgres: bool) -> Iterator[Place]:
    """Give where logs are made: in a folder, or on a server of our own."""
    if not on_postgres:
        yield Place("", folder)
        return
    with server(folder / "server") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"create database {BASE}".encode())
        Decklog.open(_named(url, BASE), migrate=True).close()
        yield Place(url, folder)


class Killed:
    """An import in a process of its own, forked from this one, which has all that it needs loaded and no database open."""

    def __init__(self, source: Source, path: Path) -> None:
        self._source, self._path = source, path
        self.readers = 0
        reading_ahead.WORTH_A_PROCESS = WORTH_A_PROCESS
        reading_ahead._PIPE_BYTES, reading_ahead._AHEAD_BYTES = PIPE_BYTES, AHEAD_BYTES
        reading_ahead.subprocess = SimpleNamespace(Popen=Reader, PIPE=None)  # type: ignore[assignment,attr-defined]
        self._names: dict[str, object] = {}
        exec(source.imported, self._names)

    def run(self, place: Place, moments: tuple[float, float] | None = None, *, whom: Sequence[str] = WRITER) -> float | None:
        """Import, and kill it, its reader or both; say how long it took if it was not killed.

        It is killed so many seconds after it has opened the log, the first of them, or after its reader began, the second.
        """
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            _ended_by(lambda: self._import(place, tell))
        os.close(tell)
        os.read(told, 1)
        begun = time.perf_counter()
        if moments is not None:
            first, second = moments
            if "reader" not in whom:
                time.sleep(first)
            elif _is_met(pid, begun + first):
                time.sleep(second)
            self._kill(pid, whom)
        _, status = os.waitpid(pid, 0)
        os.close(told)
        # Whatever else went wrong is no kill.
        assert os.waitstatus_to_exitcode(status) in (0, 1, -signal.SIGKILL), f"the import ended with {status}"
        return None if status else time.perf_counter() - begun

    def _kill(self, pid: int, whom: Sequence[str]) -> None:
        reader = _reader_of(pid)
        if "reader" in whom and reader is not None:
            self.readers += 1
            _kill(reader)
        if "writer" in whom or reader is None:
            _kill(pid)

    def _import(self, place: Place, tell: int) -> None:
        with Decklog.open(place.target) as log:
            os.write(tell, b"1")
            own = str(place.folder / "log.db")
            made = eval(self._source.importing, {**self._names, "log": log, "path": str(self._path), "place": own})
            made.run()

    def sums(self, place: Place) -> str:
        """Verify a log, in a process of its own; give a digest of what it holds."""
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            _ended_by(lambda: os.write(tell, _digest(place.target).encode()))
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


def _is_met(pid: int, until: float) -> bool:
    """Wait for the process that reads for an import; say whether there was one in time."""
    while (reader := _reader_of(pid)) is None and time.perf_counter() < until:
        time.sleep(0.002)
    return reader is not None


def _reader_of(pid: int) -> int | None:
    """Give the process that reads for an import, if there is one by now."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return next((int(reader) for reader in found if _is_at_work(reader)), None)


def _is_at_work(pid: str) -> bool:
    """Say whether a process has not ended yet; one that has is there until it is asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _kill(pid: int) -> None:
    # It may have come to its end just now.
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _digest(target: str) -> str:
    with Decklog.open(target) as log:
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


def kills(within: Place, what: str, source: Source, count: int, times: int) -> list[Row]:
    """Kill an import at random moments, up to five times in a row; count the logs that are right once it came to its end."""
    chance, path = random.Random(2), within.folder / "source.db"
    source.fill(path, count)
    killed = Killed(source, path)
    first = within.of("whole")
    whole, expected = killed.run(first), killed.sums(first)
    assert whole is not None
    assert expected
    done = logs = same = 0
    # The share of the time for which a reader is there: one that is ahead is gone long before the end.
    reads = 1.0
    while done < times:
        place = within.of(str(logs))
        for _ in range(min(IN_A_ROW, times - done)):
            whom, met = TURNS[done % len(TURNS)], killed.readers
            moments = chance.uniform(0, whole), chance.uniform(0, whole * reads)
            took = killed.run(place, moments, whom=whom)
            if "reader" in whom and killed.readers == met:
                reads = max(LEAST_SHARE, reads * 0.8)
            if took is not None:
                # Sooner done than the first time; on a busy machine that is anybody's time.
                whole = max(whole / 2, took * 0.8)
                break
            done += 1
        assert killed.run(place) is not None
        logs += 1
        if killed.sums(place) == expected:
            same += 1
            within.drop(place)
    name = f"import of {what}" + (" on PostgreSQL" if within.target else "")
    return [
        row(f"{name}, killed on its way", done, "times"),
        row(f"{name}, kills that met the process that reads", killed.readers, "times"),
        row(f"{name}, logs that are the same once it came to its end", same, "logs", target=f">= {logs}"),
    ]


def _filled(path: Path, session: history.Session, count: int) -> None:
    """Write short sessions, so that there are several."""
    with mock.patch.object(history, "SESSION_LINES", 400):
        history.fill(path, session, count)


def of_sessions(name: str, session: history.Session, within: Place) -> list[Row]:
    """Kill the import of a coding agent's sessions."""
    source = Source(
        lambda path, count: _filled(path, session, count),
        "from decklog.agents.history import HistoryImport; from decklog.agents.spool import Spool",
        f"HistoryImport(log, {name!r}, path, Spool(place + '.spool'))",
    )
    return kills(within, f"{LINES:,} lines of {name} or more", source, LINES, OTHER_KILLS)


def of_rows(system: str, source: Source, within: Place) -> list[Row]:
    """Kill the import of another system's source."""
    return kills(within, f"{OTHER_ROWS:,} rows of {system}", source, OTHER_ROWS, OTHER_KILLS)


SYSTEMS: dict[str, Callable[[Place], list[Row]]] = {
    **{system: partial(of_rows, system, source) for system, source in SOURCES.items()},
    "claude": partial(of_sessions, "claude", history.claude),
    "codex": partial(of_sessions, "codex", history.codex),
    # With lines among the issues that are none.
    "beads": lambda within: kills(within, f"{ISSUES:,} issues of beads", BEADS, ISSUES, KILLS),
    "bazinga": lambda within: kills(within, f"{LOG_ROWS:,} log rows of bazinga", BAZINGA, LOG_ROWS, KILLS),
}


def main(names: Sequence[str] = ()) -> list[Row]:
    """Kill imports; put each system's figures into benchmarks/results/import-kills.md."""
    rows: list[Row] = []
    # Loaded once, with the tables that texts of sessions need, for all that is forked.
    words = history.Words()
    redaction.clean_texts([words.printed() for _ in range(300)])
    on_postgres = "--postgres" in names
    for name in [name for name in names if name in SYSTEMS] or SYSTEMS:
        with (
            tempfile.TemporaryDirectory(prefix="decklog-bench-") as folder,
            places(Path(folder), on_postgres=on_postgres) as within,
        ):
            found = SYSTEMS[name](within)
        print(*(f"{item['name']}: {item['value']:.0f} {item.get('target', '')}" for item in found), sep="\n", flush=True)
        renew("import-kills", "Imports that are killed", found)
        rows += found
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
