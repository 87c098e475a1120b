"""Wait for other processes and threads, whose clocks tests can't move."""

import time
from collections.abc import Callable
from concurrent.futures import wait

from decklog import Decklog


def wait_until(happened: Callable[[], object], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"it did not come in {seconds:g} s"
        time.sleep(0.005)


def wait_for_background(log: Decklog) -> None:
    """Wait for the background jobs of a log, such as indexing."""
    log.db.submit(lambda: None).result()
    if log.db.engine == "postgres":
        wait(list(log.db._pending))
