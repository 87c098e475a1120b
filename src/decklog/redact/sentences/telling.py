"""What a way of telling a secret is, and the pieces that many of them have."""

from collections.abc import Callable
from typing import NamedTuple

NAMED = r"pass(?:word| ?phrase|code|wd)?|pwd|pw"
KEYS = r"tokens?|api[ _-]?keys?|(?:access|secret) keys?|secrets?"
QUOTE = r"[\"'`]?"
# What ends a number that is no part of another.
END = r"(?:[^\w.:/-]|\.(?:[\s\"'<)*\\]|$)|$)"
VALUE = r"([^\s\"'`,<>]{4,64})"
# With a number or a sign in it, which the words of a sentence do not have.
_PLAIN_SIGN = r"[^\s\"'`,<>=/:(0-9!#$%^&*+~?]"
_ODD_SIGN = r"[0-9!#$%^&*+~?]"
ODD_VALUE = rf"((?:{_PLAIN_SIGN}{{3,32}}{_ODD_SIGN}[^\s\"'`,<>]{{0,48}}|{_PLAIN_SIGN}{{0,2}}{_ODD_SIGN}[^\s\"'`,<>]{{3,48}}))"


class Telling(NamedTuple):
    """A way of telling a secret: how it opens, what can come next, the rest with the value, and what makes that one."""

    kind: str
    opening: str
    following: str
    rest: str
    is_one: Callable[[str, int, str], bool]
