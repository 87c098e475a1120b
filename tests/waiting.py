"""Waits for what another process or thread does: there is no clock of theirs to move."""

import time
from collections.abc import Callable


def wait_until(happened: Callable[[], object], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"it did not come in {seconds:g} s"
        time.sleep(0.005)
