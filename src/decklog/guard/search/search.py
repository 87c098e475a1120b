"""Search the files beneath a root for lines that match a regular expression.

The dialect is RE2's: no look-around and no back-references, and in return no pattern and no file can make a search slow.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from decklog.core.errors import DecklogError, Denied, Invalid, NotFound
from decklog.guard.files.access import Op, build_denial
from decklog.guard.files.gitignore import IgnoreFile, Ignores, compile_regex, with_parents
from decklog.guard.files.root import LARGEST_FILE, Root, translate_errors
from decklog.guard.globs import glob_regex

MOST_ALTERNATIVES = 1000
# The first closing brace and the last opening one before it; a backslash takes the meaning of the next character.
_BRACES = re.compile(r"((?:\\.|[^\\}])*)\{((?:\\.|[^\\{}])*)\}(.*)", re.DOTALL)


def full_match(pattern: str) -> Callable[[str], bool]:
    """Return a test for whole relative paths: `*.py` matches at the top level, `**/*.py` at any depth."""
    pattern = pattern.removeprefix("./")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise build_denial("outside", pattern, "list")
    expressions = [glob_regex(one) for one in alternatives(pattern)]
    usable = [expression for expression in expressions if expression]
    if not usable:
        raise Invalid(f"{pattern!r} is not a glob", hint="Close its brackets; escape with a backslash.", glob=pattern)
    compiled = compile_regex(f"(?s){'|'.join(usable)}")
    return lambda path: compiled.fullmatch(path) is not None


def name_match(pattern: str | None) -> Callable[[str], bool]:
    """Return a test for paths from the root: without a slash it tests the name, a leading `!` excludes."""
    if pattern is None:
        return lambda _: True
    excludes = pattern.startswith("!")
    patterns = IgnoreFile(tuple(_literal(one) for one in alternatives(pattern[excludes:])))
    if not patterns.has_any:
        raise Invalid(f"{pattern!r} is not a glob", hint="Close its brackets; escape with a backslash.", glob=pattern)
    return lambda path: patterns.covers(path) != excludes


def _literal(pattern: str) -> str:
    # Only an ignore file has comments.
    return f"\\{pattern}" if pattern.startswith(("#", "!")) else pattern.removeprefix("./")


def alternatives(pattern: str) -> list[str]:
    """Expand a glob's `{a,b}` parts, innermost first, to a list of globs without them."""
    done: list[str] = []
    pending = [pattern]
    while pending:
        one = pending.pop()
        found = _BRACES.match(one)
        if found is None:
            done.append(one)
        else:
            pending += [found[1] + choice + found[3] for choice in reversed(found[2].split(","))]
        if len(done) + len(pending) > MOST_ALTERNATIVES:
            raise Invalid("The glob has too many alternatives", hint="Use fewer braces.", glob=pattern)
    return done


NEVER_WALKED = frozenset({".git", ".decklog"})
IGNORE_FILE = ".gitignore"
LARGEST_IGNORE_FILE = 1024 * 1024


@dataclass(frozen=True)
class SkippedPath:
    """A path that a tool skipped, with the reason."""

    path: str
    reason: str


@dataclass(frozen=True)
class WalkResult:
    """The files that a walk found, as paths relative to the root, and the paths that it skipped."""

    files: tuple[str, ...]
    links: tuple[str, ...]
    skipped: tuple[SkippedPath, ...]


def walk(root: Root, path: str = ".", *, recursive: bool = True, with_ignored: bool = False) -> WalkResult:
    """Find all files beneath a directory (or the file itself), except for those listed in `.gitignore` files.

    `.git` and `.decklog` are never entered. Links are given apart and not followed.
    """
    place = root.place(path, Op.LIST)
    if place.found is None:
        with translate_errors(path, Op.LIST):
            raise FileNotFoundError(2, os.strerror(2), path)
    return _Walk(root, with_ignored=with_ignored).run(place.path, recursive=recursive)


class _Walk:
    def __init__(self, root: Root, *, with_ignored: bool) -> None:
        self.root = root
        self.with_ignored = with_ignored
        self.files: list[str] = []
        self.links: list[str] = []
        self.skipped: list[SkippedPath] = []

    def run(self, start: str, *, recursive: bool) -> WalkResult:
        pending: list[tuple[str, Ignores]] = [(start, self._ignores_above(start))]
        while pending:
            directory, ignores = pending.pop()
            below = list(self._enter(directory, ignores))
            pending.extend(below if recursive else ())
        skipped = sorted(self.skipped, key=lambda one: one.path)
        return WalkResult(tuple(sorted(self.files)), tuple(sorted(self.links)), tuple(skipped))

    def _ignores_above(self, start: str) -> Ignores:
        ignores = Ignores()
        if start == "." or self.with_ignored:
            return ignores
        for directory in (".", *list(with_parents(start))[:-1]):
            text = self._ignore_text("" if directory == "." else f"{directory}/")
            ignores = ignores.entering("" if directory == "." else directory, text)
        return ignores

    def _enter(self, directory: str, ignores: Ignores) -> Iterator[tuple[str, Ignores]]:
        try:
            fd = self.root.open_exact(directory, os.O_RDONLY | os.O_DIRECTORY)
        except NotADirectoryError:
            self.files.append(directory)
            return
        except OSError as error:
            self.skipped.append(SkippedPath(directory, f"can't be opened: {error.strerror}"))
            return
        try:
            with os.scandir(fd) as entries:
                found = list(entries)
            yield from self._sort_out(directory, found, ignores)
        finally:
            os.close(fd)

    def _sort_out(self, directory: str, entries: list[os.DirEntry[str]], ignores: Ignores) -> Iterator[tuple[str, Ignores]]:
        prefix = "" if directory == "." else f"{directory}/"
        if not self.with_ignored and any(entry.name == IGNORE_FILE for entry in entries):
            ignores = ignores.entering(prefix[:-1], self._ignore_text(prefix))
        for entry in entries:
            path = prefix + entry.name
            is_dir = entry.is_dir(follow_symlinks=False)
            is_never_walked = entry.name.lower() in NEVER_WALKED or path == self.root.rules.git_home
            if is_never_walked or ignores.covers(path, is_dir=is_dir):
                continue
            if not _is_utf8(entry.name):
                shown = os.fsencode(path).decode("utf-8", "replace")
                self.skipped.append(SkippedPath(shown, "its name is not valid UTF-8"))
            elif is_dir:
                yield path, ignores
            elif entry.is_symlink():
                self.links.append(path)
            elif entry.is_file(follow_symlinks=False):
                self.files.append(path)

    def _ignore_text(self, prefix: str) -> str | None:
        try:
            fd = self.root.open_exact(prefix + IGNORE_FILE, os.O_RDONLY)
        except OSError:
            # Missing, a link (git ignores those too) or not readable: no rules.
            return None
        try:
            return os.read(fd, LARGEST_IGNORE_FILE).decode("utf-8", "replace")
        except OSError:
            return None
        finally:
            os.close(fd)


def _is_utf8(name: str) -> bool:
    return name.isascii() or not any("\ud800" <= char <= "\udfff" for char in name)


LONGEST_LINE_SHOWN = 2000
SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")


@dataclass(frozen=True)
class Match:
    """A matching line, with the lines around it. A very long line is shortened to the part around the match."""

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
    skipped: tuple[SkippedPath, ...]


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


def _in_order(skipped: list[SkippedPath]) -> tuple[SkippedPath, ...]:
    return tuple(sorted(skipped, key=lambda one: one.path))


def _searchable(root: Root, path: str, glob: str | None) -> tuple[list[str], list[SkippedPath]]:
    wanted = name_match(glob)
    walked = walk(root, path)
    files: list[str] = []
    skipped = list(walked.skipped)
    for file in walked.files:
        if not wanted(file):
            continue
        reason = _reason_to_skip(root, file)
        if reason:
            skipped.append(SkippedPath(file, reason))
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


def _matches(root: Root, files: Sequence[str], finder: "Finder", context: int, skipped: list[SkippedPath]) -> Iterator[Match]:
    for file in files:
        try:
            data = root.read(file).data
        except NotFound:
            continue
        except DecklogError as error:
            skipped.append(SkippedPath(file, error.message))
            continue
        if b"\0" not in data:
            yield from finder.matches(file, data, context)


class Finder:
    """Finder of the lines in a file's bytes that match a pattern."""

    def __init__(self, pattern: str, *, case_sensitive: bool = True) -> None:
        self._line = _compiled(pattern, case_sensitive=case_sensitive)
        # Over the whole file the anchors must mean the line's ends, and no match may cross one.
        multiline = f"(?m:{pattern})" if _is_line_wise(pattern) else None
        self._file = _compiled(multiline, case_sensitive=case_sensitive) if multiline else None

    def matches(self, path: str, data: bytes, context: int = 0) -> Iterator[Match]:
        """Yield each matching line once, in order; CRLF counts as one line ending."""
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


def list_files(
    root: Root, path: str = ".", pattern: str | None = None, recursive: bool = True, *, with_ignored: bool = False
) -> list[str]:
    """List the files beneath a directory, sorted, as paths from the root.

    `pattern` is a glob for the name, or for the path from the root if it has a slash. What `.gitignore`
    lists is left out unless `with_ignored`; `.git` always is.
    """
    wanted = name_match(pattern)
    found = _files(root, path, recursive=recursive, with_ignored=with_ignored)
    return [file for file in found if wanted(file)]


def glob(root: Root, pattern: str, path: str = ".", *, with_ignored: bool = False) -> list[str]:
    """Find the files whose path from `path` matches a glob, sorted, as paths from the root.

    `*` stays within a directory and `**` crosses any number of them. Directories themselves are not given.
    """
    matches = full_match(pattern)
    start = root.place(path, Op.LIST).path
    skip = 0 if start == "." else len(start) + 1
    return [file for file in _files(root, path, with_ignored=with_ignored) if matches(file[skip:])]


def _files(root: Root, path: str, *, recursive: bool = True, with_ignored: bool = False) -> list[str]:
    walked = walk(root, path, recursive=recursive, with_ignored=with_ignored)
    return sorted([*walked.files, *(link for link in walked.links if _leads_to_file(root, link))])


def _leads_to_file(root: Root, link: str) -> bool:
    try:
        found = root.place(link, Op.READ).found
    except Denied:
        return False
    return found is not None and stat.S_ISREG(found.st_mode)
