"""Redaction takes time in proportion to the text."""

import time
from functools import cache

import pytest

from decklog.redaction import scan
from tests.redaction.hostile import texts
from tests.searches import FULL

_SIZE = 100_000 if FULL else 50_000
# Seconds of CPU for 100 kB on an idle machine.
_MOST = 0.5


@cache
def _texts() -> dict[str, str]:
    return texts(_SIZE)


def _seconds(text: str) -> float:
    start = time.process_time()
    scan(text)
    return time.process_time() - start


def _slowness() -> float:
    """Return how many times longer than on an idle machine a plain loop takes now."""
    start = time.process_time()
    assert sum(number % 7 for number in range(400_000)) > 0
    return max(1.0, (time.process_time() - start) / 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", texts(8))
def test_hostile_text_is_scanned_in_time(name: str) -> None:
    text = _texts()[name]
    scan(text[:1000])
    seconds = _seconds(text)
    for _ in range(3):
        if seconds <= _MOST * _SIZE / 100_000 * _slowness():
            return
        seconds = min(seconds, _seconds(text))
    assert seconds <= _MOST * _SIZE / 100_000 * _slowness()
