"""Waiting for commits of others, on SQLite."""

import os
import threading
from pathlib import Path

from decklog import Decklog


def test_watcher_is_woken_by_every_commit_of_others(tmp_path: Path) -> None:
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
