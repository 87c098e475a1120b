"""Session values in Cookie and Set-Cookie headers."""

from collections.abc import Iterator

from decklog.prepared import prepared
from decklog.redact import values
from decklog.redact.patterns.pattern import Pattern
from decklog.redact.placeholders import word_set
from decklog.redact.view import Found, View

_LINE = Pattern(r"[^\n\r\"'`]*")
_ENDS = (":", "=", " ", "\t", '"', "'", "`", "2")
_PAIR = prepared(r"([\w.%!#$&*+^|~-]+)=([^;,\s]+)")
_ATTRIBUTES = word_set("path domain expires max-age samesite secure httponly priority version comment")
_SESSION = prepared(r"(?i)sess|sid$|auth|token|jwt|csrf|xsrf|login|remember|secret|ticket|identity|_id$")


def is_header(text: str, start: int) -> bool:
    """Tell whether a name is that of a cookie header, rather than one like `cookie_secret`."""
    return text[start : start + 6].lower() == "cookie" and text[start + 6 : start + 7] in _ENDS


def line_end(view: View, start: int) -> int:
    """Give the place where a header's value ends."""
    return _LINE.end_at(view.data, start, len(view.data))


def find_in_line(view: View, start: int) -> Iterator[Found]:
    """Find the values in the rest of a cookie header that let someone in."""
    for pair in _PAIR.finditer(view.text, start, line_end(view, start)):
        if _lets_in(pair.group(1), pair.group(2)):
            yield Found(pair.start(2), pair.end(2), "cookie")


def _lets_in(name: str, value: str) -> bool:
    if name.lower() in _ATTRIBUTES or len(value) < 6 or values.is_placeholder(value) or values.is_word(value):
        return False
    return bool(_SESSION.search(name)) or (len(value) >= 16 and values.looks_random(value))
