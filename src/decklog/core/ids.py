"""Identifiers: a typed prefix and a time-ordered part, growing within a process."""

import os
import re
from collections.abc import Callable

from decklog.core import fork_safety as forks
from decklog.core.clock import Clock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 80
_KINDS = frozenset(
    (
        *("apr", "art", "budget", "call", "charge", "chk", "comment", "contradiction", "edit", "eff", "fb"),
        *("learning", "lesson", "log", "mend", "msg", "note", "out", "pass", "pkg", "proc", "proposal", "reservation"),
        *("review", "rule", "run", "sched", "sighting", "task", "tc", "use", "verdict", "wf"),
    )
)
# Ids that model providers and agents give to answers, calls and sessions, and the keys of entries with such ids. They are random
# and no secrets, and every entry of a session has three.
_THEIR_NUMBER = r"(?:(?:toolu|msg|req|call|resp)_[0-9A-Za-z]{8,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_THEIRS = rf"(?:[a-z]{{2,8}}:)?{_THEIR_NUMBER}(?::(?:{_THEIR_NUMBER}|[0-9]{{1,4}})?)?"
_MOST_THEIRS = 160
# The shortest id, ours or theirs: a prefix of three letters, an underscore and eight characters.
SHORTEST_ID = 12
# One of them as a whole string of a JSON text.
_THEIRS_QUOTED = rf'"{_THEIR_NUMBER}"'


def is_ours(text: str) -> bool:
    """Return whether a text is an id created by Decklog, which is no secret."""
    return text[-27:-26] == "_" and text[:-27] in _KINDS and text[-26] in "01234567" and not text[-25:].strip(_ALPHABET)


def is_theirs(text: str) -> bool:
    """Return whether a text is an id of a provider or an agent."""
    return len(text) <= _MOST_THEIRS and " " not in text and ("_" in text or "-" in text) and bool(re.fullmatch(_THEIRS, text))


def without_theirs(text: str) -> str:
    """Replace each string of a JSON text that is an id of a provider or an agent by `"id"`."""
    return re.sub(_THEIRS_QUOTED, '"id"', text)


def _base32(number: int) -> str:
    """Encode 130 bits as 26 characters."""
    return "".join([_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5)])


class Ids:
    """Creates ids such as `run_06fq2v8k3c…`: 48 bits of milliseconds, then 80 random bits; each is greater than the last."""

    def __init__(self, clock: Clock, chance: Callable[[int], bytes] = os.urandom) -> None:
        self._clock = clock
        self._chance = chance
        self._lock = forks.create_lock()
        self._last = 0
        self._pid = os.getpid()

    def new(self, prefix: str) -> str:
        milliseconds = int(self._clock.now().timestamp() * 1000)
        with self._lock:
            number = self._next(milliseconds)
        return f"{prefix}_{_base32(number)}"

    def several(self, prefix: str, count: int) -> list[str]:
        """Return `count` new ids, each greater than the one before."""
        milliseconds = int(self._clock.now().timestamp() * 1000)
        with self._lock:
            numbers = [self._next(milliseconds) for _ in range(count)]
        return [f"{prefix}_{_base32(number)}" for number in numbers]

    def _next(self, milliseconds: int) -> int:
        if self._pid != os.getpid():
            # A forked child must not go on counting from its parent's last number.
            self._pid, self._last = os.getpid(), 0
        if milliseconds > self._last >> _RANDOM_BITS:
            self._last = milliseconds << _RANDOM_BITS | int.from_bytes(self._chance(10), "big") >> 1
        else:
            self._last += 1 + int.from_bytes(self._chance(4), "big")
        return self._last
