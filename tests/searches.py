"""How tests search for examples: the same ones each time by default, new ones when exploring."""

import os
from typing import Any

from hypothesis import settings
from hypothesis.internal import charmap
from hypothesis.internal.conjecture import providers

EVERY_TIME = "every-time"
EXPLORE = "explore"
# Everything at the size that the documents speak of: `make test-full`.
FULL = "DECKLOG_TEST_FULL" in os.environ
_OFTEN = 100
_FEWEST = 20


def _each_time(count: int) -> int:
    """A search that tries the same examples as yesterday finds nothing by trying more of them."""
    return count if FULL else min(count, max(_FEWEST, count // 4))


# No deadlines: the time of an example depends on the machine.
settings.register_profile(EVERY_TIME, derandomize=True, deadline=None, print_blob=True, max_examples=_each_time(_OFTEN))
settings.register_profile(EXPLORE, derandomize=False, deadline=None, print_blob=True, max_examples=_OFTEN)
settings.load_profile(EVERY_TIME)


def examples(count: int) -> int:
    """Return how many examples to try, given the number for an exploring search."""
    return _each_time(count) if _is_each_time() else count


def list_characters() -> None:
    """Have all characters listed that a text can hold: it takes seconds, and those who come later find the list in a file."""
    charmap.intervals_from_codec("utf-8")


def _is_each_time() -> bool:
    return settings.default is None or settings.default.derandomize


# Hypothesis also tries texts and numbers that it reads in those of our modules that happen to be imported: the examples of a test
# would depend on the tests before it in the same process, and later imports have all of them sorted again.
_NOTHING_READ = providers._local_constants
_read = providers._get_local_constants


def _read_when_searching() -> Any:
    return _NOTHING_READ if _is_each_time() and not FULL else _read()


providers._get_local_constants = _read_when_searching
