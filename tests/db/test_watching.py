"""Waiting for what others write, on SQLite: the counter of commits is asked when something was written, and now and then."""

import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from decklog import Decklog
from decklog.db.sqlite import watcher
from decklog.db.sqlite.watcher import WrittenLately


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Move the time of the watcher: whatever is added to this has passed."""
    passed = [1000.0]
    monkeypatch.setattr(watcher, "time", SimpleNamespace(monotonic=lambda: sum(passed)))
    return passed


def is_asked_after(written: WrittenLately, passed: list[float], seconds: float) -> bool:
    passed.append(seconds)
    return written.is_worth_asking()


def test_whoever_watches_is_woken_by_every_commit_of_others(tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "log.db") as log, Decklog.open(tmp_path / "log.db") as other:
        run, woken = other.runs.start("x"), threading.Event()
        stop = log.db.watch(None, woken.set)
        for number in range(5):
            assert woken.wait(60)
            woken.clear()
            if number % 2:
                # As if nothing had been written: it is asked for all the same.
                before = os.stat(tmp_path / "log.db-wal").st_mtime_ns
                other.journal.append(run.id, "said")
                os.utime(tmp_path / "log.db-wal", ns=(before, before))
            else:
                other.journal.append(run.id, "said")
        assert woken.wait(60)
        stop()


def test_the_counter_is_asked_after_a_write_until_its_commit_shows(tmp_path: Path, passed: list[float]) -> None:
    file = tmp_path / "log.db-wal"
    file.write_bytes(b"one")
    written = WrittenLately(str(file))
    assert written.is_worth_asking()
    assert is_asked_after(written, passed, 0.9)
    assert is_asked_after(written, passed, 1.0)  # now and then
    assert not is_asked_after(written, passed, 0.02)
    file.write_bytes(b"two, which is longer")
    assert is_asked_after(written, passed, 0.02)
    assert is_asked_after(written, passed, 0.02)


def test_the_counter_is_asked_now_and_then_whatever_the_file_says(tmp_path: Path, passed: list[float]) -> None:
    file = tmp_path / "log.db-wal"
    file.write_bytes(b"one")
    written = WrittenLately(str(file))
    assert written.is_worth_asking()
    assert is_asked_after(written, passed, 60)
    assert [is_asked_after(written, passed, 0.2) for _ in range(6)] == [False, False, True, False, False, True]


def test_without_a_write_ahead_log_the_counter_is_asked_at_each_look(tmp_path: Path, passed: list[float]) -> None:
    written = WrittenLately(str(tmp_path / "log.db-wal"))
    assert all(is_asked_after(written, passed, 5) for _ in range(3))
    assert is_asked_after(written, passed, 0.001)


def test_looks_are_fewer_the_longer_nothing_was_written(tmp_path: Path, passed: list[float]) -> None:
    file = tmp_path / "log.db-wal"
    file.write_bytes(b"one")
    written = WrittenLately(str(file))
    pauses = []
    for seconds in (0, 0.5, 10, 60):
        is_asked_after(written, passed, seconds)
        pauses.append(written.pause())
    assert pauses == [0.01, 0.01, 0.02, 0.04]
    file.write_bytes(b"two, which is longer")
    written.is_worth_asking()
    assert written.pause() == 0.01
