"""The lock between processes is handed on by time: who comes back to it at once keeps it for a moment."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog.db.sqlite import fair_lock
from decklog.db.sqlite.fair_lock import FairLock
from tests.waiting import wait_until


class Site:
    """The lock of one process, that of another, and a probe."""

    def __init__(self, path: Path) -> None:
        self.ours, self.theirs = FairLock(str(path), 10), FairLock(str(path), 10)
        self._descriptor = os.open(path, os.O_RDWR)

    def is_free(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return True

    def wait_for_ours(self) -> None:
        """Take the lock that the other has, who gives it back soon."""
        self.theirs.acquire()
        giving = threading.Timer(0.02, self.theirs.release)
        giving.start()
        self.ours.acquire()
        giving.join()

    def come_back_at_once(self) -> None:
        self.ours.release()
        self.ours.acquire()

    def wait_as_one_who_comes_back(self) -> None:
        self.wait_for_ours()
        self.come_back_at_once()
        self.ours.release()
        self.wait_for_ours()

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()
        os.close(self._descriptor)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    # A busy machine may pause a thread for longer than the real limits.
    monkeypatch.setattr(fair_lock, "_PAUSE_SECONDS", 0.25)
    monkeypatch.setattr(fair_lock, "TURN_SECONDS", 5.0)
    found = Site(tmp_path / "log-lock")
    yield found
    found.close()


def test_lock_without_waiters_is_released_at_once(site: Site) -> None:
    for _ in range(3):
        site.ours.acquire()
        assert not site.is_free()
        site.ours.release()
        assert site.is_free()


def test_waiter_that_returns_at_once_keeps_the_lock(site: Site) -> None:
    site.wait_as_one_who_comes_back()
    for _ in range(3):
        site.ours.release()
        assert not site.is_free()
        site.ours.acquire()
        assert not site.is_free()


def test_lock_is_released_at_the_end_of_a_turn(site: Site) -> None:
    site.wait_as_one_who_comes_back()
    site.ours.release()
    assert not site.is_free()
    began = time.monotonic()
    wait_until(site.is_free)
    assert time.monotonic() - began < fair_lock.TURN_SECONDS
    site.ours.acquire()
    site.ours.release()
    assert site.is_free()


def test_pause_between_writes_releases_the_lock(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_lock, "_PAUSE_SECONDS", 0.0)
    site.wait_as_one_who_comes_back()
    site.ours.release()
    assert site.is_free()


def test_lock_is_released_if_no_thread_can_start(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.wait_as_one_who_comes_back()

    def refuse(**_: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(fair_lock, "Thread", refuse)
    site.ours.release()
    assert site.is_free()


def test_a_turn_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_lock, "TURN_SECONDS", 0.05)
    site.wait_as_one_who_comes_back()
    got = threading.Event()

    def wait() -> None:
        site.theirs.acquire()
        got.set()
        site.theirs.release()

    other = threading.Thread(target=wait)
    other.start()
    deadline = time.monotonic() + 10
    while not got.is_set() and time.monotonic() < deadline:
        site.come_back_at_once()
    site.ours.release()
    other.join()
    assert got.is_set()


def test_a_lock_that_is_kept_is_free_once_it_is_closed(tmp_path: Path, site: Site) -> None:
    site.wait_as_one_who_comes_back()
    site.ours.release()
    assert not site.is_free()
    site.ours.close()
    assert site.is_free()
    site.ours = FairLock(str(tmp_path / "log-lock"), 10)


def test_a_child_leaves_the_lock_that_is_kept_to_its_parent(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_lock, "_PAUSE_SECONDS", 60.0)
    site.wait_as_one_who_comes_back()
    site.ours.release()
    if not (child := os.fork()):
        site.ours.close_in_child()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert not site.is_free()
    site.come_back_at_once()
