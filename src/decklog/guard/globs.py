"""The one translation of globs to regular expressions, for the policy's path lists, ignore files and search."""

import re

_LARGEST = chr(0x10FFFF)
_NEVER = f"[^\0-{_LARGEST}]"
_POSIX_CLASSES = {
    "alnum": "09AZaz",
    "alpha": "AZaz",
    "blank": "\t\t  ",
    "cntrl": "\x00\x1f\x7f\x7f",
    "digit": "09",
    "graph": "!~",
    "lower": "az",
    "print": " ~",
    "punct": "!/:@[`{~",
    "space": "\t\r  ",
    "upper": "AZ",
    "xdigit": "09AFaf",
}
_STARS = re.compile(r"\*+")
Range = tuple[str, str]


def glob_regex(pattern: str) -> str | None:
    """Translate a glob with `*`, `?`, `[…]` and `**` to a regular expression; None if it can't match."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            piece, at = _stars(pattern, at)
        elif char == "?":
            piece, at = "[^/]", at + 1
        elif char == "[":
            found = _class(pattern, at + 1)
            if found is None:
                return None
            piece, at = found
        elif char == "\\":
            if at + 1 >= len(pattern):
                return None
            piece, at = re.escape(pattern[at + 1]), at + 2
        else:
            piece, at = re.escape(char), at + 1
        parts.append(piece)
    return "".join(parts)


def _stars(pattern: str, at: int) -> tuple[str, int]:
    found = _STARS.match(pattern, at)
    assert found is not None
    end = found.end()
    if end - at == 2 and (at == 0 or pattern[at - 1] == "/"):
        if pattern[end : end + 1] == "/":
            return "(?:.*/)?", end + 1
        if end == len(pattern):
            return (".+" if at else ".*"), end
    return "[^/]*", end


def _class(pattern: str, at: int) -> tuple[str, int] | None:
    """Translate a bracket expression; None if it is not closed."""
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    ranges: list[Range] = []
    first = True
    while first or pattern[at : at + 1] != "]":
        step = _member(pattern, at)
        if step is None:
            return None
        members, at = step
        ranges += members
        first = False
    return _class_regex(ranges, negated=negated), at + 1


def _member(pattern: str, at: int) -> tuple[list[Range], int] | None:
    """Read one character, range or named class."""
    if pattern.startswith("[:", at) and (end := pattern.find(":]", at + 2)) > 0:
        bounds = _POSIX_CLASSES.get(pattern[at + 2 : end])
        return None if bounds is None else (list(zip(bounds[::2], bounds[1::2], strict=True)), end + 2)
    low, at = _char(pattern, at)
    high = low
    if low and pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
        high, at = _char(pattern, at + 1)
    return ([(low, high)], at) if low and high else None


def _char(pattern: str, at: int) -> tuple[str, int]:
    at += pattern[at : at + 1] == "\\"
    return pattern[at : at + 1], at + 1


def _class_regex(ranges: list[Range], *, negated: bool) -> str:
    # A class never matches a slash: that keeps a pattern within one directory.
    if negated:
        kept = [*ranges, ("/", "/")]
    else:
        kept = [piece for low, high in ranges for piece in ((low, min(high, ".")), (max(low, "0"), high))]
    body = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in kept if low <= high)
    return (f"[^{body}]" if negated else f"[{body}]") if body else _NEVER
