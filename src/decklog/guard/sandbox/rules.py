"""Landlock's rules of a ground, made once and used by every command that stands on it.

To write them down takes longer than to start a command. They speak of files and not of paths: where a path has come to lead to
another file, they are made anew. A file that rules speak of keeps its number as long as there are the rules, so what comes in
its place is never taken for it.
"""

import os
from collections.abc import Callable

from decklog.core import fork_safety as forks
from decklog.guard.sandbox import landlock
from decklog.guard.sandbox.landlock import AllowedPaths

MOST_KEPT = 8


class LandlockRules:
    """Rules that were made. Whoever gets hold of `handle` can restrict itself by them, and add to them: no command ever does.

    The handle is open as long as somebody has this object.
    """

    def __init__(self, ground: AllowedPaths) -> None:
        self._paths = [path for _, path in ground.places()]
        self.handle, self._numbers = landlock.make_rules(ground)

    def still_hold(self) -> bool:
        """Return whether every path leads where it led when they were made."""
        return self._numbers == landlock.numbers_of(self._paths)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if hasattr(self, "handle"):
            close(self.handle)


_lock = forks.lock()
# By what they were made of, those used last at the end.
_kept: dict[tuple[object, ...], LandlockRules] = {}


def rules_of(ground: AllowedPaths) -> LandlockRules:
    """Return the rules of a ground, as its paths lead now."""
    key = (ground.network, *ground.places())
    with _lock:
        rules = _kept.pop(key, None)
        if rules is None or not rules.still_hold():
            rules = LandlockRules(ground)
        _kept[key] = rules
        while len(_kept) > MOST_KEPT:
            del _kept[next(iter(_kept))]
    return rules
