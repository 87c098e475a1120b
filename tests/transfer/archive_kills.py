"""Kills at every point of migrating to partitions, of archiving and of restoring: nothing is lost, and nothing is there twice.

`python -m tests.transfer.archive_kills 200` kills that many times, on a server of its own.
"""

import random
import signal
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import psycopg

from decklog import Decklog
from decklog.journal.verify import Verification
from decklog.transfer.archive import Archive
from tests.databases import named
from tests.db import flat_logs
from tests.db.test_partitions import entries_of, small_ranges
from tests.fork_server import ROOT
from tests.postgres import get_server
from tests.waiting import wait_until

Rows = list[tuple[object, ...]]


def fill(url: str, runs: int = 6) -> None:
    """Write ended runs into small partitions, and one that goes on."""
    Decklog.open(url, migrate=True).close()
    small_ranges(url, 2)
    with Decklog.open(url) as log:
        for number in range(runs):
            log.runs.start("goal", run_id=f"run_{number}")
            log.journal.append_many([{"stream": f"run_{number}", "body": f"entry {n} " * 20, "key": f"k{n}"} for n in range(300)])
            log.runs.finish(f"run_{number}", status="cancelled", force=True, reason="enough")
        for number in range(2):
            log.runs.start("goal", run_id=f"last_{number}")


def job(what: str, url: str, folder: str) -> None:
    """Do one of the steps, in a process that is killed."""
    print("begun", flush=True)
    if what == "migrate":
        Decklog.open(url, migrate=True).close()
        return
    with Decklog.open(url) as log:
        if what == "create":
            Archive(log, folder).create(log.clock.now() + timedelta(days=1))
        else:
            for file in sorted(Path(folder).glob("*.gz")):
                Archive(log, folder).restore(str(file))


def kill_after(what: str, url: str, folder: str, seconds: float) -> bool:
    """Run a step and kill it after some time; return whether it was still running."""
    command = [sys.executable, "-m", "tests.transfer.archive_kills", what, url, folder]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    process.stdout.close()
    return process.wait() == -signal.SIGKILL


def rows_everywhere(url: str, folder: str) -> Rows:
    """List the entries of runs in the log and in the archives that the log names, sorted."""
    with Decklog.open(url) as log:
        found = [row for row in entries_of(url) if row[0] != "@archive"]
        archived = set(log.db.read(log.db.archived).values())
        result = Verification()
        Archive(log, folder).verify(result)
        assert [problem.what for problem in result.problems] == []
        assert log.journal.verify().problems == []
    from decklog.transfer.archive import _read_rows

    for name in archived:
        found += [(row[1], row[2], row[4]) for row in _read_rows(str(Path(folder, name)))]
    return sorted(found, key=str)


def wait_for_server(url: str) -> None:
    """Wait until the server has noticed that its clients are gone: what they had begun may still be committed."""
    sql = """
        select count(*) = 0 from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    """
    with psycopg.connect(url, autocommit=True) as connection:
        wait_until(lambda: connection.execute(sql).fetchone() == (True,))


def archive_and_restore(url: str, folder: str, kills: int, seed: int) -> int:
    """Kill archiving and restoring at random moments; some of the kills come too late."""
    fill(url)
    before = rows_everywhere(url, folder)
    chance, killed = random.Random(seed), 0
    # How long each takes on this machine.
    seconds = {"create": 1.0, "restore": 1.0}
    for turn in range(kills):
        what = "create" if turn // 2 % 2 == 0 else "restore"
        killed += kill_after(what, url, folder, chance.uniform(0, seconds[what]))
        wait_for_server(url)
        assert rows_everywhere(url, folder) == before
        if turn % 2 == 1:
            begun = time.monotonic()
            job(what, url, folder)
            seconds[what] = time.monotonic() - begun
            assert rows_everywhere(url, folder) == before
    return killed


def migrate(url: str, server: str, kills: int, seed: int) -> int:
    """Kill the migration of a flat log, each time of a fresh one."""
    chance, killed = random.Random(seed), 0
    flat_logs.fill(url)
    flat_logs.flatten(url)
    before = entries_of(url)
    name = url.partition("?")[0].rsplit("/", 1)[1]
    for turn in range(kills):
        copy = f"{name}_{turn}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"create database {copy} template {name}".encode())
        place = named(server, copy)
        killed += kill_after("migrate", place, "", chance.uniform(0, 0.6))
        wait_for_server(place)
        assert entries_of(place) == before
        with Decklog.open(place, migrate=True) as log:
            assert entries_of(place) == before
            assert log.journal.verify().problems == []
            log.runs.start("goal", run_id="new")
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"drop database {copy} with (force)".encode())
    return killed


def main(kills: int) -> None:
    with tempfile.TemporaryDirectory(prefix="decklog-kills-") as home:
        server = get_server(Path(home, "data"))
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create database archives")
            connection.execute("create database flat")
        archived = archive_and_restore(named(url, "archives"), str(Path(home, "archives")), kills * 2 // 3, seed=1)
        migrated = migrate(named(url, "flat"), url, kills - kills * 2 // 3, seed=2)
        print(f"{archived} kills while archiving and restoring, {migrated} while migrating: nothing lost, nothing twice")
        server.cleanup()


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(int(sys.argv[1]))
    else:
        job(*sys.argv[1:])
