"""Lists of path patterns, matched against paths and against patterns a command itself uses."""

import re
from fnmatch import fnmatchcase
from functools import cache

_GLOB = re.compile(r"[*?\[]")
_WILD = re.compile(r"\*\*/|/\*\*$|\*|\?")
_MOST_KNOWN = 4_096


def translate(pattern: str) -> str:
    """Turn a path pattern into a regular expression.

    `**` crosses directories; a pattern without a slash matches in any directory.
    """
    if "/" not in pattern:
        pattern = "**/" + pattern
    out = ""
    for part in re.split(r"(\*\*/|/\*\*$|\*|\?)", pattern):
        match part:
            case "**/":
                out += r"(?:.*/)?"
            case "/**":
                out += r"(?:/.*)?"
            case "*":
                out += r"[^/]*"
            case "?":
                out += r"[^/]"
            case _:
                out += re.escape(part)
    return out


def needle(pattern: str) -> str:
    """Give the longest text that every path has which a pattern matches."""
    return max(_WILD.split(pattern.removeprefix("**/").removesuffix("/**")), key=len).casefold()


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a path pattern, once."""
    return re.compile(translate(pattern), re.IGNORECASE)


def _parts(pattern: str) -> tuple[str, ...]:
    """Split a pattern at its slashes; one without any matches in every directory."""
    return tuple((pattern if "/" in pattern else f"**/{pattern}").split("/"))


def _overlaps(path: str, pattern: tuple[str, ...]) -> bool:
    """Tell whether a pattern of a command could expand to a hidden file or folder that a listed pattern names."""
    return _overlap(tuple(path.split("/")), pattern)


def _overlap(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern or not parts:
        # `dir/**` also names the folder itself.
        return not parts and pattern in ((), ("**",))
    if pattern[0] == "**":
        return _overlap(parts, pattern[1:]) or _overlap(parts[1:], pattern)
    return _could_be(parts[0], pattern[0]) and _overlap(parts[1:], pattern[1:])


def _could_be(part: str, name: str) -> bool:
    """Tell whether a part of a path is a listed name, or a pattern that starts with the same dot and could expand to it."""
    if not _GLOB.search(part):
        return fnmatchcase(part.lower(), name.lower())
    return part.startswith(".") and name.startswith(".") and not _GLOB.search(name) and fnmatchcase(name, part)


class Globs:
    """A list of path patterns."""

    def __init__(self, patterns: list[str]) -> None:
        self.patterns = patterns
        self._needles = [(needle(pattern), pattern) for pattern in patterns]
        self._known: dict[str, bool] = {}
        self._hidden = [_parts(pattern) for pattern in patterns if "/." in pattern or pattern.startswith(".")]
        self._literals = [pattern.removeprefix("**/") for pattern in patterns if not _GLOB.search(pattern)]

    def covers(self, path: str) -> bool:
        """Tell whether a path matches as it is written."""
        # To compile a pattern costs a thousand times what it costs to see that a path can't match it. Letters that are equal
        # but for their case are more outside of ASCII than this knows.
        text = path.casefold() if path.isascii() else None
        return any(_compiled(pattern).fullmatch(path) for part, pattern in self._needles if text is None or part in text)

    def match(self, path: str) -> bool:
        """Tell whether a path matches, or a pattern in a command could expand to one that does; the answers are remembered."""
        known = self._known.get(path)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self.covers(path) or (bool(_GLOB.search(path)) and self._could_expand(path))
            self._known[path] = known
        return known

    def _could_expand(self, path: str) -> bool:
        """Tell whether a pattern with at least two plain characters in its last part covers a listed path."""
        if any(_overlaps(path, pattern) for pattern in self._hidden):
            return True
        name = path.rsplit("/", 1)[-1]
        if len(re.sub(r"[*?\[\]]", "", name)) < 2 or name.startswith("*"):
            return False
        return any(fnmatchcase(literal, path) if "/" in literal else fnmatchcase(literal, name) for literal in self._literals)
