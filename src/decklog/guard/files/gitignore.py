"""Match paths against `.gitignore` patterns, the way git reads them.

The same patterns serve the search tools (what to leave out) and the path rules (what a task may touch).
They run on RE2, so a repository's own ignore file can't make a search slow.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import re2

LARGEST = 0x10FFFF
NEVER = f"[^\\x{{0}}-\\x{{{LARGEST:X}}}]"
POSIX_CLASSES = {
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


def compile_regex(expression: str, *, ignore_case: bool = False) -> Any:
    """Compile a regular expression for RE2, quietly: the error is the caller's to word."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    return re2.compile(expression, options)


def glob_regex(pattern: str) -> str | None:
    """Translate one glob with `*`, `?`, `[…]` and `**` to a regular expression; None if it can't match."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        step = _translate_at(pattern, at)
        if step is None:
            return None
        piece, at = step
        parts.append(piece)
    return "".join(parts)


def _translate_at(pattern: str, at: int) -> tuple[str, int] | None:
    char = pattern[at]
    if char == "*":
        return _translate_stars(pattern, at)
    if char == "?":
        return "[^/]", at + 1
    if char == "[":
        return _translate_class(pattern, at + 1)
    if char == "\\":
        return (re2.escape(pattern[at + 1]), at + 2) if at + 1 < len(pattern) else None
    return re2.escape(char), at + 1


def _translate_stars(pattern: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(pattern) and pattern[end] == "*":
        end += 1
    opens = at == 0 or pattern[at - 1] == "/"
    if end - at == 2 and opens and pattern[end : end + 1] == "/":
        return "(?:.*/)?", end + 1
    if end - at == 2 and opens and end == len(pattern):
        return (".+" if at else ".*"), end
    return "[^/]*", end


def _translate_class(pattern: str, at: int) -> tuple[str, int] | None:
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    ranges: list[tuple[int, int]] = []
    first = True
    while first or pattern[at : at + 1] != "]":
        step = _class_member(pattern, at)
        if step is None:
            return None
        members, at = step
        ranges.extend(members)
        first = False
    return _class_regex(ranges, negated=negated), at + 1


def _class_member(pattern: str, at: int) -> tuple[list[tuple[int, int]], int] | None:
    if pattern.startswith("[:", at) and (end := pattern.find(":]", at + 2)) > 0:
        bounds = POSIX_CLASSES.get(pattern[at + 2 : end])
        if bounds is None:
            return None
        return [(ord(a), ord(b)) for a, b in zip(bounds[::2], bounds[1::2], strict=True)], end + 2
    low, at = _class_char(pattern, at)
    if low is None:
        return None
    if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
        high, at = _class_char(pattern, at + 1)
        return None if high is None else ([(low, high)], at)
    return [(low, low)], at


def _class_char(pattern: str, at: int) -> tuple[int | None, int]:
    if pattern[at : at + 1] == "\\":
        at += 1
    return (ord(pattern[at]), at + 1) if at < len(pattern) else (None, at)


def _class_regex(ranges: list[tuple[int, int]], *, negated: bool) -> str:
    # A class never matches a slash, whatever it lists: that is what keeps a pattern within one directory.
    slash = ord("/")
    if negated:
        kept = [*ranges, (slash, slash)]
    else:
        kept = [piece for low, high in ranges for piece in ((low, min(high, slash - 1)), (max(low, slash + 1), high))]
    body = "".join(f"\\x{{{low:X}}}-\\x{{{high:X}}}" for low, high in kept if low <= high)
    if not body:
        return NEVER
    return f"[^{body}]" if negated else f"[{body}]"


@dataclass(frozen=True)
class Pattern:
    """One line of an ignore file."""

    source: str
    regex: str
    negated: bool
    directories_only: bool
    ignore_case: bool = False

    @cached_property
    def _compiled(self) -> Any:
        return compile_regex(f"(?s){self.regex}", ignore_case=self.ignore_case)

    def matches(self, path: str, *, is_dir: bool) -> bool:
        """Say whether this line speaks about the path, given relative to the ignore file's directory."""
        return (is_dir or not self.directories_only) and self._compiled.fullmatch(path) is not None


def read_pattern(line: str, *, ignore_case: bool = False) -> Pattern | None:
    """Read one line of an ignore file; None for a comment, a blank line or a pattern that can't match."""
    body = _without_trailing_spaces(line.removesuffix("\n").removesuffix("\r"))
    if not body or body.startswith("#"):
        return None
    negated = body.startswith("!")
    body = body[negated:]
    directories_only = body.endswith("/")
    body = body[:-1] if directories_only else body
    regex = glob_regex(body.removeprefix("/")) if body else None
    if not regex:
        return None
    if "/" not in body:
        regex = f"(?:.*/)?{regex}"
    return Pattern(line, regex, negated, directories_only, ignore_case)


def _without_trailing_spaces(line: str) -> str:
    kept = line.rstrip(" ")
    slashes = len(kept) - len(kept.rstrip("\\"))
    # An escaped space stays: an odd number of backslashes before it means the last one escapes it.
    return line[: len(kept) + 1] if slashes % 2 and len(kept) < len(line) else kept


@dataclass(frozen=True)
class Patterns:
    """An ignore file: an ordered list of patterns, of which the last that matches decides."""

    lines: tuple[str, ...]
    base: str = ""
    ignore_case: bool = False
    _patterns: tuple[Pattern, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        read = (read_pattern(line, ignore_case=self.ignore_case) for line in self.lines)
        object.__setattr__(self, "_patterns", tuple(pattern for pattern in read if pattern))

    @classmethod
    def parse(cls, text: str, base: str = "") -> "Patterns":
        """Read the text of an ignore file that lies in the directory `base` (empty for the root)."""
        return cls(tuple(text.removeprefix("\ufeff").split("\n")), base)

    @property
    def has_any(self) -> bool:
        """Whether at least one line is a pattern."""
        return bool(self._patterns)

    @cached_property
    def _any(self) -> Any:
        # One pass tells the common case, that no line speaks about the path.
        return compile_regex(f"(?s){'|'.join(p.regex for p in self._patterns)}", ignore_case=self.ignore_case)

    @cached_property
    def _any_above(self) -> Any:
        listed = "|".join(p.regex for p in self._patterns)
        return compile_regex(f"(?s)(?:{listed})(?:/.*)?", ignore_case=self.ignore_case)

    def verdict(self, path: str, *, is_dir: bool) -> bool | None:
        """Say whether the path is listed (True), listed as an exception (False) or not spoken of (None)."""
        if self.base:
            path = path[len(self.base) + 1 :]
        if not self._patterns or self._any.fullmatch(path) is None:
            return None
        for pattern in reversed(self._patterns):
            if pattern.matches(path, is_dir=is_dir):
                return not pattern.negated
        return None

    def covers(self, path: str, *, is_dir: bool = False) -> bool:
        """Say whether the path, or a directory it lies in, is listed."""
        if not self._patterns or self._any_above.fullmatch(path) is None:
            return False
        return any(self.verdict(part, is_dir=is_dir or part != path) for part in with_parents(path))


def with_parents(path: str) -> Iterator[str]:
    """Give each directory a path lies in, outermost first, and then the path."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path


class Ignores:
    """The ignore files in force in one directory: those of the root and of every directory down to it."""

    def __init__(self, chain: Iterable[Patterns] = ()) -> None:
        self._chain = tuple(chain)

    def entering(self, directory: str, text: str | None) -> "Ignores":
        """Give the ignores of a subdirectory, whose own ignore file (if any) has this text."""
        return self if text is None else Ignores((*self._chain, Patterns.parse(text, directory)))

    def covers(self, path: str, *, is_dir: bool) -> bool:
        """Say whether a file or directory met on a walk is ignored; the innermost ignore file decides."""
        for patterns in reversed(self._chain):
            verdict = patterns.verdict(path, is_dir=is_dir)
            if verdict is not None:
                return verdict
        return False
