"""A fork and what other threads are in the middle of."""

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from decklog import Decklog, ManualClock, redaction
from decklog.core import fork_safety as forks
from decklog.core.ids import Ids
from decklog.log import STORES
from decklog.redaction import redactor
from tests.waiting import wait_until

TEXT = "export " + "PASS" + "WORD=" + "tulip-Harbour-41x"

LOOKS: dict[str, tuple[object, str, Callable[[], object]]] = {
    "a text": (redactor, "normalize", lambda: redaction.scan(TEXT)),
    "a value": (redactor, "normalize", lambda: redaction.scan_json({"said": [TEXT]})),
    "many texts": (redactor, "normalize", lambda: redaction.clean_texts([TEXT])),
}


def fork_beside(
    act: Callable[[], object], is_inside: threading.Event, goes_on: threading.Event, holds: Callable[[], bool]
) -> None:
    """Fork while another thread is in the middle of something that ends soon; there is no child before, and in it all holds."""
    acting, ending = threading.Thread(target=act), threading.Timer(0.2, goes_on.set)
    acting.start()
    assert is_inside.wait(20)
    ending.start()
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if goes_on.is_set() and holds() else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    for thread in (acting, ending):
        thread.join(20)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOKS)
def test_fork_waits_for_a_running_scan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """RE2 holds locks within it, and a child that found them held would wait for ever at its first look."""
    module, part, look = LOOKS[name]
    is_inside, goes_on, original = threading.Event(), threading.Event(), getattr(module, part)

    def slowly(*arguments: object) -> object:
        is_inside.set()
        goes_on.wait(20)
        return original(*arguments)

    redaction.scan(TEXT)  # loads what is patched
    monkeypatch.setattr(module, part, slowly)
    # What is patched goes on at once in the child, and so does the look.
    fork_beside(look, is_inside, goes_on, lambda: look() is not None)


def test_scan_waits_for_the_end_of_a_fork() -> None:
    done: list[tuple[str, bool]] = []
    gate = forks._calls
    gate.shut()
    looking = threading.Thread(target=lambda: done.append(redaction.scan(TEXT)))
    looking.start()
    wait_until(lambda: looking.is_alive() and gate._inside == {}, 20)
    assert done == []
    gate.open()
    looking.join(20)
    assert done[0][1]


class _Slow:
    """Something with a part that takes long to make."""

    def __init__(self) -> None:
        self.is_inside, self.goes_on = threading.Event(), threading.Event()

    @forks.fork_safe_property
    def part(self) -> object:
        self.is_inside.set()
        self.goes_on.wait(20)
        return object()


def test_fork_waits_for_a_once_of_another_thread() -> None:
    slow = _Slow()
    fork_beside(lambda: slow.part, slow.is_inside, slow.goes_on, lambda: slow.part is vars(slow)["part"])


def test_once_is_called_by_one_thread() -> None:
    slow, found = _Slow(), list[object]()
    threads = [threading.Thread(target=lambda: found.append(slow.part)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert slow.is_inside.wait(20)
    slow.goes_on.set()
    for thread in threads:
        thread.join(20)
    assert found == [slow.part] * 4


def test_every_store_is_created_once() -> None:
    """What `functools` keeps has a lock of its own until Python 3.12."""
    assert all(isinstance(vars(Decklog)[name], forks.fork_safe_property) for name in STORES)


def test_fork_waits_for_locks_of_other_threads_without_deadlock() -> None:
    other, one = forks.create_lock(), forks.create_lock()
    is_held, goes_on = threading.Event(), threading.Event()

    def hold() -> None:
        with one:
            is_held.set()
            goes_on.wait(20)
            with other:
                pass

    def are_free() -> bool:
        found: list[bool] = []
        asking = threading.Thread(target=lambda: found.append(one.acquire(timeout=5) and other.acquire(timeout=5)))
        asking.start()
        asking.join()
        return found == [True]

    fork_beside(hold, is_held, goes_on, are_free)


@pytest.mark.slow
def test_child_creates_ids_while_threads_of_its_parent_do() -> None:
    ids, stop = Ids(ManualClock(datetime(2026, 1, 1, tzinfo=UTC))), threading.Event()

    def keep_making() -> None:
        while not stop.is_set():
            ids.new("x")

    threads = [threading.Thread(target=keep_making) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        child = os.fork()
        if child == 0:
            os._exit(len(ids.new("x")) != 28)
        wait_until(lambda child=child: os.waitpid(child, os.WNOHANG) == (child, 0), 20)
    stop.set()
    for thread in threads:
        thread.join(20)


def test_unused_lock_is_forgotten() -> None:
    before = len(forks._locks)
    lock = forks.create_lock()
    assert len(forks._locks) == before + 1
    del lock
    assert len(forks._locks) == before
