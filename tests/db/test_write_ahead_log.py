"""The write-ahead log of a SQLite file: it does not grow without end, and shrinks again."""

import os
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread

import pytest

from decklog import Decklog
from decklog.db.sqlite import connections as checkpoints
from tests.searches import FULL

# As many commits of a quarter of the bytes, with bounds of a quarter.
PART = 1 if FULL else 4
PIECE = b"x" * (250_000 // PART)
SMALL = 64 * 1024 * 1024 // PART


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("_BYTES_KEPT", "_MANY_BYTES"):
        monkeypatch.setattr(checkpoints, name, getattr(checkpoints, name) // PART)
    with Decklog.open(tmp_path / "decklog.db") as log:
        log.runs.start("x", run_id="run_1")
    return tmp_path / "decklog.db"


def wal_bytes(path: Path) -> int:
    return os.path.getsize(f"{path}-wal")


def write(log: Decklog, megabytes: int) -> None:
    """Commit entries with blobs of some megabytes in all; texts would be scanned for secrets."""
    for number in range(megabytes * 4):
        content = b"%d of %d " % (number, megabytes) + PIECE
        with log.transaction():
            log.journal.append("run_1", f"{number} of {megabytes}")
            blob = {"digest": sha256(content).hexdigest(), "size": len(content), "bytes": content}
            log.db.count("insert into blobs (digest, size, bytes) values (:digest, :size, :bytes)", blob)


@pytest.mark.slow
def test_overlapping_readers_do_not_let_the_log_grow(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine a thread that reads may not get its turn within the time that a writer waits for it.
    monkeypatch.setattr(checkpoints, "_TRIES", 500)
    stop = Event()
    with Decklog.open(path) as log:
        turns = [Event(), Event()]

        def read(mine: Event, other: Event) -> None:
            log.db.one("select count(*) from streams", {})
            stop.wait(0.002)  # two that only hand over to each other would take the processor from the writer
            other.set()
            mine.wait(0.02)
            mine.clear()

        def keep_reading(mine: Event, other: Event) -> None:
            while not stop.is_set():
                log.db.read(lambda: read(mine, other))

        threads = [Thread(target=keep_reading, args=order) for order in (turns, turns[::-1])]
        for thread in threads:
            thread.start()
        write(log, 100)
        largest = wal_bytes(path)
        stop.set()
        for thread in threads:
            thread.join()
    assert largest < SMALL


@pytest.mark.slow
def test_it_shrinks_after_a_long_reader_is_done(path: Path) -> None:
    done, reading = Event(), Event()
    with Decklog.open(path) as log:

        def read_for_long() -> None:
            log.db.read(lambda: (log.db.one("select count(*) from streams", {}), reading.set(), done.wait(60)))

        reader = Thread(target=read_for_long)
        reader.start()
        reading.wait(20)
        write(log, 80)
        grown = wal_bytes(path)
        done.set()
        reader.join()
        assert grown > SMALL
        write(log, 30)
        assert wal_bytes(path) < SMALL
        assert log.journal.verify().ok
