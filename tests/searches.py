"""How tests search for examples: the same ones each time by default, new ones when exploring."""

import os

from hypothesis import settings

EVERY_TIME = "every-time"
EXPLORE = "explore"
# Everything at the size that the documents speak of: `make test-full`.
FULL = "DECKLOG_TEST_FULL" in os.environ
_OFTEN = 100
_FEWEST = 20


def _each_time(count: int) -> int:
    """A search that tries the same examples as yesterday finds nothing by trying more of them."""
    return count if FULL else min(count, max(_FEWEST, count // 4))


# No deadlines: how long an example takes says more about the machine than about the code.
settings.register_profile(EVERY_TIME, derandomize=True, deadline=None, print_blob=True, max_examples=_each_time(_OFTEN))
settings.register_profile(EXPLORE, derandomize=False, deadline=None, print_blob=True, max_examples=_OFTEN)
settings.load_profile(EVERY_TIME)


def examples(count: int) -> int:
    """Give how many examples to try where a search for new ones tries so many."""
    return _each_time(count) if settings.default is None or settings.default.derandomize else count
