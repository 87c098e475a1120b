"""A fork and what other threads are in the middle of."""

import os
import threading
from collections.abc import Callable

import pytest

from decklog import forks, redact
from decklog.redact import batch, engine
from tests.waiting import wait_until

TEXT = "export " + "PASS" + "WORD=" + "tulip-Harbour-41x"

LOOKS: dict[str, tuple[object, str, Callable[[], object]]] = {
    "a text": (engine, "_is_plainly_clean", lambda: redact.scan_by_rules(TEXT)),
    "a value": (engine, "_signs", lambda: redact.scan_value({"said": [TEXT]})),
    "many texts": (batch, "clean_ones", lambda: redact.clean_among([TEXT])),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_fork_waits_for_a_look_for_secrets_that_is_under_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """RE2 holds locks within it, and a child that found them held would wait for ever at its first look."""
    module, part, look = LOOKS[name]
    is_inside, goes_on, original = threading.Event(), threading.Event(), getattr(module, part)

    def slowly(*arguments: object) -> object:
        is_inside.set()
        goes_on.wait(20)
        return original(*arguments)

    redact.scan_by_rules(TEXT)  # loads what is patched
    monkeypatch.setattr(module, part, slowly)
    looking = threading.Thread(target=look)
    looking.start()
    assert is_inside.wait(20)
    ending = threading.Timer(0.2, goes_on.set)
    ending.start()
    child = os.fork()
    if child == 0:
        # What is patched goes on at once by now, and so does the look.
        os._exit(0 if goes_on.is_set() and look() is not None else 1)
    assert os.waitpid(child, 0)[1] == 0
    for thread in (looking, ending):
        thread.join(20)
    assert forks._inside == {}


def test_a_look_that_comes_while_a_fork_is_under_way_waits_for_its_end() -> None:
    done: list[tuple[str, bool]] = []
    forks._forking.acquire()
    looking = threading.Thread(target=lambda: done.append(redact.scan_by_rules(TEXT)))
    looking.start()
    wait_until(lambda: looking.is_alive() and forks._inside == {}, 20)
    assert done == []
    forks._forking.release()
    looking.join(20)
    assert done[0][1]
