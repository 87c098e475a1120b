"""Choose files by glob: `*`, `?`, `[…]`, `**` and `{a,b}`."""

from collections.abc import Callable, Iterator

from decklog.core.errors import Invalid
from decklog.guard.files.gitignore import IgnoreFile, compile_regex
from decklog.guard.files.path_spelling import denied
from decklog.guard.globs import glob_regex

MOST_ALTERNATIVES = 1000


def full_match(pattern: str) -> Callable[[str], bool]:
    """Make a test of whole relative paths: `*.py` is a file right here, `**/*.py` one at any depth."""
    pattern = pattern.removeprefix("./")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise denied("outside", pattern, "list")
    expressions = [glob_regex(one) for one in alternatives(pattern)]
    usable = [expression for expression in expressions if expression]
    if not usable:
        raise Invalid(f"{pattern!r} is not a glob", hint="Close its brackets; escape with a backslash.", glob=pattern)
    compiled = compile_regex(f"(?s){'|'.join(usable)}")
    return lambda path: compiled.fullmatch(path) is not None


def name_match(pattern: str | None) -> Callable[[str], bool]:
    """Make a test of paths from the root: without a slash it is for the name, a leading `!` excludes."""
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
    """Write out a glob's `{a,b}` parts, innermost first, as a list of globs without them."""
    done: list[str] = []
    pending = [pattern]
    while pending:
        one = pending.pop()
        expanded = list(_expand_first(one))
        if expanded == [one]:
            done.append(one)
        else:
            pending.extend(reversed(expanded))
        if len(done) + len(pending) > MOST_ALTERNATIVES:
            raise Invalid("The glob has too many alternatives", hint="Use fewer braces.", glob=pattern)
    return done


def _expand_first(pattern: str) -> Iterator[str]:
    close = _unescaped(pattern, "}")
    start = max((at for at in _positions(pattern[: max(close, 0)], "{")), default=-1)
    if close < 0 or start < 0:
        yield pattern
        return
    for choice in pattern[start + 1 : close].split(","):
        yield pattern[:start] + choice + pattern[close + 1 :]


def _unescaped(pattern: str, char: str) -> int:
    return next(_positions(pattern, char), -1)


def _positions(pattern: str, char: str) -> Iterator[int]:
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == char:
            yield at
        at += 1
