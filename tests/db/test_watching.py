"""Waiting for commits of others, on SQLite."""

import os
import threading
from pathlib import Path

from decklog import Decklog
from decklog.db.sqlite.watcher import pause_after


def test_whoever_watches_is_woken_by_every_commit_of_others(tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "log.db") as log, Decklog.open(tmp_path / "log.db") as other:
        run, woken = other.runs.start("x"), threading.Event()
        stop = log.db.watch(None, woken.set)
        for number in range(5):
            assert woken.wait(60)
            woken.clear()
            if number % 2:
                # The counter of commits counts, not the time of the file.
                before = os.stat(tmp_path / "log.db-wal").st_mtime_ns
                other.journal.append(run.id, "said")
                os.utime(tmp_path / "log.db-wal", ns=(before, before))
            else:
                other.journal.append(run.id, "said")
        assert woken.wait(60)
        stop()


def test_looks_are_fewer_the_longer_nothing_was_written() -> None:
    assert [pause_after(seconds) for seconds in (0, 0.5, 10, 60)] == [0.01, 0.01, 0.02, 0.04]
