"""Search the files beneath a root for lines that match a regular expression.

The dialect is RE2's: no look-around and no back-references, and in return no pattern and no file can make a search slow.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from decklog.core.errors import DecklogError, Invalid, NotFound
from decklog.guard.files.root import LARGEST_FILE, Root
from decklog.guard.search.globs import name_match
from decklog.guard.search.walk import Skipped, walk

LONGEST_LINE_SHOWN = 2000
SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")


@dataclass(frozen=True)
class Match:
    """A line that matches, and the lines around it. A very long line is cut to the part that matters."""

    path: str
    line_number: int
    column: int
    line_text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Matches:
    """The matching lines by path and line; `truncated` is true if there are more."""

    matches: tuple[Match, ...]
    truncated: bool
    skipped: tuple[Skipped, ...]


def grep(
    root: Root,
    pattern: str,
    path: str = ".",
    glob: str | None = None,
    case_sensitive: bool = True,
    max_matches: int = 100,
    context: int = 0,
) -> Matches:
    """Find the lines that match a regular expression (RE2), sorted by path and line.

    `glob` chooses files by name, or by path from the root if it has a slash; a leading `!` excludes. What
    `.gitignore` lists, `.git`, binary files and links are left out; files that may hold secrets, hard links
    and very large files too, and those are named in `skipped`.
    """
    if max_matches < 0 or context < 0:
        raise Invalid("max_matches and context can't be negative", hint="Give 0 or more.")
    finder = Finder(pattern, case_sensitive=case_sensitive)
    files, skipped = _searchable(root, path, glob)
    matches: list[Match] = []
    for match in _matches(root, files, finder, context, skipped):
        if len(matches) == max_matches:
            return Matches(tuple(matches), True, _in_order(skipped))
        matches.append(match)
    return Matches(tuple(matches), False, _in_order(skipped))


def _in_order(skipped: list[Skipped]) -> tuple[Skipped, ...]:
    return tuple(sorted(skipped, key=lambda one: one.path))


def _searchable(root: Root, path: str, glob: str | None) -> tuple[list[str], list[Skipped]]:
    wanted = name_match(glob)
    walked = walk(root, path)
    files: list[str] = []
    skipped = list(walked.skipped)
    for file in walked.files:
        if not wanted(file):
            continue
        reason = _reason_to_skip(root, file)
        if reason:
            skipped.append(Skipped(file, reason))
        else:
            files.append(file)
    return files, skipped


def _reason_to_skip(root: Root, file: str) -> str | None:
    if not root.rules.may_read(file):
        return "it may hold secrets"
    try:
        found = os.stat(file, dir_fd=root.fd, follow_symlinks=False)
    except OSError:
        return "it vanished"
    if found.st_nlink > 1 and not root.rules.allow_hardlinks:
        return "it is a hard link"
    return f"it is larger than {LARGEST_FILE} bytes" if found.st_size > LARGEST_FILE else None


def _matches(root: Root, files: Sequence[str], finder: "Finder", context: int, skipped: list[Skipped]) -> Iterator[Match]:
    for file in files:
        try:
            data = root.read(file).data
        except NotFound:
            continue
        except DecklogError as error:
            skipped.append(Skipped(file, error.message))
            continue
        if b"\0" not in data:
            yield from finder.matches(file, data, context)


class Finder:
    """A compiled pattern that finds the matching lines of a file's bytes."""

    def __init__(self, pattern: str, *, case_sensitive: bool = True) -> None:
        self._line = _compiled(pattern, case_sensitive=case_sensitive)
        # Over the whole file the anchors must mean the line's ends, and no match may cross one.
        multiline = f"(?m:{pattern})" if _is_line_wise(pattern) else None
        self._file = _compiled(multiline, case_sensitive=case_sensitive) if multiline else None

    def matches(self, path: str, data: bytes, context: int = 0) -> Iterator[Match]:
        """Yield each matching line once, in order; CRLF is an ending as a whole."""
        # RE2 alone would take an encoded surrogate for a character; it is none.
        data = SURROGATE.sub(b"\xff\xff", data.replace(b"\r\n", b"\n"))
        lines: list[bytes] | None = None
        number, counted = 1, 0
        for start, end, column in self._lines(data):
            number += data.count(b"\n", counted, start)
            counted = start
            if context and lines is None:
                lines = data.removesuffix(b"\n").split(b"\n")
            before, after = _around(lines, number, context) if lines else ((), ())
            shown, place = _shown(data[start:end], column)
            yield Match(path, number, place, shown, before, after)

    def _lines(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        start = 0
        while start < len(data):
            if self._file is not None:
                found = self._file.search(data, start)
                if found is None:
                    return
                start = data.rfind(b"\n", 0, found.start()) + 1
                if start >= len(data):
                    return
            end = data.find(b"\n", start)
            end = len(data) if end < 0 else end
            match = self._line.search(data[start:end])
            if match is not None:
                yield start, end, match.start()
            start = end + 1


def _compiled(pattern: str, *, case_sensitive: bool) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    options.case_sensitive = case_sensitive
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args else "unknown"
        raise Invalid(
            f"The pattern is not a regular expression: {reason}",
            hint="RE2 has no look-around and no back-references; escape with a backslash.",
            pattern=pattern,
        ) from None
    except UnicodeEncodeError:
        raise Invalid("The pattern is not valid Unicode", hint="Use valid text.") from None


def _is_line_wise(pattern: str) -> bool:
    # Flags and anchors of the whole text mean something else over many lines than over one.
    return not any(sign in pattern for sign in ("\\A", "\\z", "\\Q", "\\C")) and (
        pattern.count("(?") == pattern.count("(?:") + pattern.count("(?P<") + pattern.count("(?i)") + pattern.count("(?i:")
    )


def _around(lines: list[bytes], number: int, context: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    before = lines[max(0, number - 1 - context) : number - 1]
    after = lines[number : number + context]
    return tuple(_shown(line, 0)[0] for line in before), tuple(_shown(line, 0)[0] for line in after)


def _shown(line: bytes, column: int) -> tuple[str, int]:
    text = line.decode("utf-8", "replace")
    place = len(line[:column].decode("utf-8", "replace"))
    start = max(0, place - LONGEST_LINE_SHOWN // 4) if len(text) > LONGEST_LINE_SHOWN else 0
    return text[start : start + LONGEST_LINE_SHOWN], place + 1
