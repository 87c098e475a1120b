"""Session values in Cookie and Set-Cookie headers."""

import re
from collections.abc import Iterator

from decklog.redact import values
from decklog.redact.found import Found
from decklog.redact.pattern import compiled
from decklog.redact.view import View

_HEAD = compiled(r"(?i)\bcookie2?[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?")
_LINE = compiled(r"[^\n\r\"'`]*")
_PAIR = re.compile(r"([\w.%!#$&*+^|~-]+)=([^;,\s]+)")
_ATTRIBUTES = frozenset(
    "path domain expires max-age samesite secure httponly priority version comment".split()
)
_SESSION = re.compile(r"(?i)sess|sid$|auth|token|jwt|csrf|xsrf|login|remember|secret|ticket|identity|_id$")


def find(view: View) -> Iterator[Found]:
    """Find the values in a cookie header that let someone in."""
    position = 0
    while match := _HEAD.search(view.data, position):
        line = _LINE.match(view.data, match.end())
        position = max(line.end() if line else match.end(), match.end())
        for pair in _PAIR.finditer(view.text, match.end(), position):
            if _lets_in(pair.group(1), pair.group(2)):
                yield Found(pair.start(2), pair.end(2), "cookie")


def _lets_in(name: str, value: str) -> bool:
    if name.lower() in _ATTRIBUTES or len(value) < 6 or values.is_placeholder(value):
        return False
    return bool(_SESSION.search(name)) or (len(value) >= 16 and values.looks_random(value))
