"""Match paths against `.gitignore` patterns, the way git reads them.

The search tools use them to skip files, and the path rules to restrict the files that a task may use.
They run on RE2, so a repository's own ignore file can't make a search slow.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import re2

from decklog.guard.globs import glob_regex


def compile_regex(expression: str, *, ignore_case: bool = False) -> Any:
    """Compile a regular expression with RE2 without logging: the caller reports the error."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    return re2.compile(expression, options)


@dataclass(frozen=True)
class IgnorePattern:
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
        """Return whether this pattern matches a path relative to the ignore file's directory."""
        return (is_dir or not self.directories_only) and self._compiled.fullmatch(path) is not None


def read_pattern(line: str, *, ignore_case: bool = False) -> IgnorePattern | None:
    """Parse one line of an ignore file; None for a comment, a blank line or a pattern that can't match."""
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
    return IgnorePattern(line, regex, negated, directories_only, ignore_case)


def _without_trailing_spaces(line: str) -> str:
    kept = line.rstrip(" ")
    slashes = len(kept) - len(kept.rstrip("\\"))
    # An escaped space stays: an odd number of backslashes before it means the last one escapes it.
    return line[: len(kept) + 1] if slashes % 2 and len(kept) < len(line) else kept


@dataclass(frozen=True)
class IgnoreFile:
    """An ignore file: an ordered list of patterns. The last matching pattern decides."""

    lines: tuple[str, ...]
    base: str = ""
    ignore_case: bool = False
    _patterns: tuple[IgnorePattern, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        read = (read_pattern(line, ignore_case=self.ignore_case) for line in self.lines)
        object.__setattr__(self, "_patterns", tuple(pattern for pattern in read if pattern))

    @classmethod
    def parse(cls, text: str, base: str = "") -> "IgnoreFile":
        """Parse the text of an ignore file in the directory `base` (empty for the root)."""
        return cls(tuple(text.removeprefix("\ufeff").split("\n")), base)

    @property
    def has_any(self) -> bool:
        """Return whether at least one line is a pattern."""
        return bool(self._patterns)

    @cached_property
    def _any(self) -> Any:
        # Common case: no line matches the path.
        return compile_regex(f"(?s){'|'.join(p.regex for p in self._patterns)}", ignore_case=self.ignore_case)

    @cached_property
    def _any_above(self) -> Any:
        listed = "|".join(p.regex for p in self._patterns)
        return compile_regex(f"(?s)(?:{listed})(?:/.*)?", ignore_case=self.ignore_case)

    def verdict(self, path: str, *, is_dir: bool) -> bool | None:
        """Return whether the path is listed (True), listed as an exception (False) or not matched (None)."""
        if self.base:
            path = path[len(self.base) + 1 :]
        if not self._patterns or self._any.fullmatch(path) is None:
            return None
        for pattern in reversed(self._patterns):
            if pattern.matches(path, is_dir=is_dir):
                return not pattern.negated
        return None

    def covers(self, path: str, *, is_dir: bool = False) -> bool:
        """Return whether the path, or one of its parent directories, is listed."""
        if not self._patterns or self._any_above.fullmatch(path) is None:
            return False
        return any(self.verdict(part, is_dir=is_dir or part != path) for part in with_parents(path))


def with_parents(path: str) -> Iterator[str]:
    """Yield the parent directories of a path, outermost first, and then the path."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path


class Ignores:
    """The ignore files that apply in a directory: its own, and those of its parents up to the root."""

    def __init__(self, chain: Iterable[IgnoreFile] = ()) -> None:
        self._chain = tuple(chain)

    def entering(self, directory: str, text: str | None) -> "Ignores":
        """Return the ignore files of a subdirectory; `text` is the content of its ignore file, if any."""
        return self if text is None else Ignores((*self._chain, IgnoreFile.parse(text, directory)))

    def covers(self, path: str, *, is_dir: bool) -> bool:
        """Return whether a file or directory is ignored; the innermost matching ignore file decides."""
        for patterns in reversed(self._chain):
            verdict = patterns.verdict(path, is_dir=is_dir)
            if verdict is not None:
                return verdict
        return False
