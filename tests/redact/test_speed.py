"""Redaction takes time in proportion to the text, whatever the text."""

import subprocess
import sys
import time
from functools import cache

import pytest

from decklog.redact import may_hold_secret, scan
from tests.redact.hostile import texts
from tests.searches import FULL

# Enough to tell a square from a line: four times the text would take sixteen times as long.
_SIZE = 100_000 if FULL else 60_000


@cache
def _texts() -> dict[str, str]:
    return texts(_SIZE)


def _seconds(text: str) -> float:
    start = time.process_time()
    scan(text)
    return time.process_time() - start


@pytest.mark.parametrize("name", texts(8))
def test_no_text_can_make_it_slow_and_time_grows_no_faster_than_the_text(name: str) -> None:
    text = _texts()[name]
    scan(text[:1000])
    # The whole first: it also builds the matcher's tables for such a text, which must not make the quarter seem slow.
    whole, quarter = _seconds(text), _seconds(text[: _SIZE // 4])
    for _ in range(3):
        if _is_fast(whole, quarter):
            return
        # Once more, since processor time too is longer on a machine where others are at work.
        whole, quarter = min(whole, _seconds(text)), min(quarter, _seconds(text[: _SIZE // 4]))
    assert _is_fast(whole, quarter), (whole, quarter)


def _is_fast(whole: float, quarter: float) -> bool:
    # A megabyte within a second is a tenth of a second for this; the rest is for a busy machine, whose speed a plain loop tells.
    return (whole < 0.5 or whole < 16 * _seconds_of_loop()) and whole < 0.025 + 12 * quarter


def _seconds_of_loop() -> float:
    """Take the time of what takes a thirtieth of a second on an idle machine."""
    start = time.process_time()
    assert sum(number % 7 for number in range(400_000)) > 0
    return time.process_time() - start


def test_an_ordinary_sentence_is_passed_over_in_microseconds() -> None:
    sentence = "The agent ran the suite after the change, and every test passed on the second attempt. " * 4
    times = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(500):
            assert not may_hold_secret(sentence[:300])
        times.append(time.process_time() - start)
    # On a machine that is slower at the moment, so much longer as a plain loop takes.
    assert min(times) / 500 < max(30e-6, _seconds_of_loop() / 1_000)


def test_importing_the_package_loads_neither_the_matcher_nor_the_rules() -> None:
    code = "import sys, decklog.redact as r; r.scan('plain words'); print(*sys.modules)"
    path = {"PYTHONPATH": ":".join(sys.path)}
    shown = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=path)
    assert not {"re2", "re", "json", "typing", "decklog.redact.rules.table"} & set(shown.stdout.split())
