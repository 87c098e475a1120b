"""JSON for processes that have to start fast.

The module `json` brings `re` with it, and that one `enum`, `functools` and `collections`: together as much as an interpreter
that does nothing. What it has in C needs none of them.
"""

from _json import encode_basestring_ascii as quoted
from _json import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WORDS = {True: "true", False: "false", None: "null"}


class _Plainly:
    """How values are read: as `json` does where nothing else is said."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


# It is written in C, and typed as if it were only used by the module that it was written for.
_scan: "Any" = make_scanner(_Plainly)  # type: ignore[arg-type]


def dumps(value: "Any") -> str:
    """Write dictionaries, lists, texts, numbers, truth values and None to the letter as `json.dumps` does."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{" + ", ".join([f"{quoted(name)}: {dumps(item)}" for name, item in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([dumps(item) for item in value]) + "]"
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, (int, float)):
        return repr(value)
    raise TypeError(f"{type(value).__name__} has no plain JSON")


def loads(text: str) -> "Any":
    """Read one value; nothing but white space may stand around it."""
    text = text.strip(" \t\n\r")
    try:
        value, end = _scan(text, 0)
    except StopIteration as stopped:
        raise ValueError(f"no JSON at character {stopped.value}") from None
    if end != len(text):
        raise ValueError(f"something follows at character {end}")
    return value
