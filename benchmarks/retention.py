"""Dropping old entries on PostgreSQL: a detached partition compared with deleted rows, and what both write to the WAL.

    python -m benchmarks.retention --entries 500000

DECKLOG_TEST_POSTGRES names the programs of another version of PostgreSQL.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from tests.databases import named
from tests.db.test_partitions import small_ranges
from tests.postgres import Server, programs, version_of

from benchmarks.measure import Row, row, write
from benchmarks.search_scale import fill
from decklog import Decklog
from decklog.journal.verify import Verification
from decklog.transfer.archive import Archive, Manifest
from decklog.transfer.prune import Prune

_IN_A_RUN = 500
_NOTES = (
    "Each way works on its own copy of one database: the entries of one partition, indexed for search. All runs have ended.",
    "Deleting is `delete` and `vacuum` of the entries and their search text by SQL. Detaching is the transaction that drops the "
    "partition and deletes its search text. Both are timed with their commit; the archive's file is written before.",
    "Bytes dropped are the size of the partition with its indexes.",
    "PostgreSQL as it comes: fsync and full_page_writes are on.",
)


class TimedArchive(Archive):
    """Measures the transaction that drops a partition."""

    def __init__(self, log: Decklog, folder: str, url: str) -> None:
        super().__init__(log, folder)
        self._url = url
        self.seconds = self.wal = self.bytes = 0.0

    def _note(self, manifest: Manifest) -> None:
        super()._note(manifest)
        self.bytes = _one(self._url, f"select pg_total_relation_size('entries_{manifest.first_no}')")
        self._begin, self._lsn = time.perf_counter(), _lsn(self._url)

    def measured(self, log: Decklog) -> None:
        """Archive all that has ended."""
        assert len(self.create(log.clock.now() + timedelta(days=1)).files) == 1
        self.seconds, self.wal = time.perf_counter() - self._begin, _lsn(self._url) - self._lsn


def _one(url: str, sql: str) -> float:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(sql.encode()).fetchone()
    assert found is not None
    return float(found[0])


def _lsn(url: str) -> float:
    return _one(url, "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn")


def _timed(url: str, work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds and the WAL of some work."""
    before, begin = _lsn(url), time.perf_counter()
    work()
    return time.perf_counter() - begin, _lsn(url) - before


def build(url: str, entries: int) -> None:
    """Fill one partition with ended runs, and begin the next."""
    Decklog.open(url, migrate=True).close()
    runs = entries // _IN_A_RUN
    small_ranges(url, runs)
    with Decklog.open(url, durability="relaxed") as log:
        fill(log, 0, entries)
        for run in log.runs.find(limit=runs):  # newest first
            log.runs.finish(run.id, status="cancelled", force=True, reason="measured")  # type: ignore[arg-type]
        log.runs.start("goes on")
        log.journal.index()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")
        connection.execute("checkpoint")


def delete(url: str, first: int, end: int) -> None:
    """Delete the entries of a range and their search text, and vacuum."""
    span = [first << 32, end << 32]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")
        with connection.transaction():
            connection.execute("delete from entries where pos >= %s and pos < %s", span)
            connection.execute("delete from entry_text where entry_pos >= %s and entry_pos < %s", span)
            connection.execute("delete from entry_text_marks where stream_no >= %s and stream_no < %s", [first, end])
        connection.execute("vacuum entries, entry_text")


def measure(server: Server, entries: int, folder: str) -> list[Row]:
    url = named(server.url, "source")
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("create database source")
        build(url, entries)
        for name in ("deleted", "pruned"):
            connection.execute(f"create database {name} template source".encode())
        connection.execute("checkpoint")
    deleted, pruned = named(server.url, "deleted"), named(server.url, "pruned")
    with psycopg.connect(url) as connection:
        [[first, end]] = connection.execute("select first_no, end_no from entry_ranges where first_no > 0 limit 1").fetchall()
    delete_seconds, delete_wal = _timed(deleted, lambda: delete(deleted, first, end))
    with Decklog.open(pruned) as log:
        prune_seconds, prune_wal = _timed(pruned, lambda: Prune(log, timedelta(0)).run(apply=True))
    with Decklog.open(url) as log:
        archive = TimedArchive(log, folder, url)
        seconds, _ = _timed(url, lambda: archive.measured(log))
        [file] = Path(folder).glob("*.gz")
        result = Verification()
        verify_seconds, _ = _timed(url, lambda: archive.verify(result))
        assert not result.problems
        size = file.stat().st_size
        restore_seconds, _ = _timed(url, lambda: archive.restore(str(file)))
    return [
        row("detach a partition, compared with delete and vacuum", archive.seconds, "s", floor=delete_seconds, target="<= 0.1"),
        row("WAL of detaching, per byte dropped", archive.wal / archive.bytes, "bytes", target="<= 2"),
        row("WAL of delete and vacuum, per byte dropped", delete_wal / archive.bytes, "bytes"),
        row("WAL of `prune --apply`, per byte of the partition", prune_wal / archive.bytes, "bytes"),
        row("`prune --apply`", entries / prune_seconds, "entries/s"),
        row("archive: write the file and drop the partition", entries / seconds, "entries/s"),
        row("archive: size of the file", size / entries, "bytes each"),
        row("archive: verify", entries / verify_seconds, "entries/s"),
        row("archive: restore", entries / restore_seconds, "entries/s"),
    ]


def main() -> list[Row]:
    """Measure; write benchmarks/results/retention-VERSION.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=500_000)
    given: Any = parser.parse_args()
    with Server(shared_buffers="256MB") as server, tempfile.TemporaryDirectory(prefix="decklog-bench-") as folder:
        rows = measure(server, given.entries, folder)
    version = version_of(programs())
    write(f"retention-{version}", f"Dropping {given.entries:,} entries on PostgreSQL {version}", rows, _NOTES)
    return rows


if __name__ == "__main__":
    main()
