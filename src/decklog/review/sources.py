"""Changed files as the rules read them: old and new text, changed lines, and code without comments or strings."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

from decklog.conductor.git.changes import DiffLine, lines_of
from decklog.guard.files.gitignore import IgnoreFile
from decklog.review.change import Change

# Documents and data: code in them is shown, not run.
_DOCUMENTS = frozenset(
    (".md", ".txt", ".rst", ".adoc", ".diff", ".patch", ".svg", ".csv", ".tsv", ".po", ".ipynb", ".map", ".snap")
)
# Usual names of tests, for languages the repository's settings do not mention.
_TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|testing|e2e|cypress)/"
    r"|(?:^|/)(?:test_[^/]*|[^/]*_test|[^/]*_spec|[^/]*[.-](?:test|spec|cy)|[^/]*Tests?|[^/]*Spec|[^/]*IT|conftest)\.\w+$"
)

# Comment and string syntax by family of languages.
_BLOCK = r"/\*.*?(?:\*/|\Z)"
_DOUBLE = r'"(?:\\.|[^"\\\n])*"'
_SINGLE = r"'(?:\\.|[^'\\\n])*'"
_CHARACTER = r"'(?:\\.[^'\n]{0,8}|[^'\\\n])'"
_TRIPLE = r'"""(?:\\.|[^\\])*?(?:"""|\Z)' + r"|'''(?:\\.|[^\\])*?(?:'''|\Z)"
_TICKS = r"`(?:\\.|[^`\\])*`"
_FAMILIES = {
    "c": (rf"//[^\n]*|{_BLOCK}", rf"{_TRIPLE}|{_DOUBLE}|{_CHARACTER}|{_TICKS}"),
    "script": (rf"(?<!:)//[^\n]*|{_BLOCK}", rf"{_DOUBLE}|{_SINGLE}|{_TICKS}"),
    "sql": (rf"--[^\n]*|{_BLOCK}", rf"{_DOUBLE}|{_SINGLE}"),
    "python": (r"\#[^\n]*", rf"{_TRIPLE}|{_DOUBLE}|{_SINGLE}"),
    "shell": (r"(?:(?<=\s)|^)\#[^\n]*", rf"{_DOUBLE}|{_SINGLE}"),
    "markup": (r"<!--.*?(?:-->|\Z)", r"(?!)"),
    "json": (r"(?!)", _DOUBLE),
}
_SYNTAX = {
    name: re.compile(f"(?P<text>{texts})|(?P<note>{notes})", re.DOTALL | re.MULTILINE)
    for name, (notes, texts) in _FAMILIES.items()
}
_SUFFIXES = {
    "c": "go rs java kt kts scala swift c h cc cpp cxx hpp cs proto zig sol m mm",
    "script": "js jsx mjs cjs ts tsx mts cts vue svelte php dart groovy gradle css scss less jsonc",
    "sql": "sql lua hs elm",
    "python": "py pyi",
    "markup": "html htm xml j2 erb jinja",
    "json": "json",
}
_FAMILY_OF = {f".{suffix}": name for name, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
# Generated lines are too long to read; searching them costs more than it can find.
_LONG_LINE = re.compile(r"[^\n]{2000,}")


@dataclass(frozen=True)
class Text:
    """A text in the views that rules match: `line` as it is, `code` without comments, `bare` without strings too."""

    line: str
    code: str
    bare: str
    comments: str

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(row) + 1 for row in self.line.split("\n")), initial=0))

    def line_at(self, position: int) -> int:
        """Return the number of the line at a position."""
        return bisect_right(self._starts, position)


def read_text(text: str, suffix: str) -> Text:
    """Split a text into its views; what a view leaves out is blank, so positions stay the same."""
    code, bare, comments = list(text), list(text), [" " if char != "\n" else char for char in text]
    for found in _SYNTAX[_FAMILY_OF.get(suffix, "shell")].finditer(text):
        first, last = found.span()
        if found["note"] is not None:
            comments[first:last] = found["note"]
            _blank(code, first, last)
            _blank(bare, first, last)
        else:
            edge = 3 if found[0][:3] in ('"""', "'''") and last - first >= 6 else 1
            _blank(bare, first + edge, last - edge)
    for found in _LONG_LINE.finditer(text):
        for view in (code, bare, comments):
            # No rule matches this character, and none spends time on it as on white space.
            view[found.start() : found.end()] = "\x01" * len(found[0])
    return Text(text, "".join(code), "".join(bare), "".join(comments))


def _blank(view: list[str], first: int, last: int) -> None:
    view[first:last] = [char if char == "\n" else " " for char in view[first:last]]


def suffix_of(path: str) -> str:
    """Return the suffix of a path in lower case with its dot; without one, the file name."""
    name = path.rpartition("/")[2].lower()
    return f".{name.rpartition('.')[2]}" if "." in name else name


@dataclass(frozen=True)
class Source:
    """A text file that a change adds lines to or removes lines from."""

    path: str
    after: str
    before: str
    lines: tuple[DiffLine, ...]
    is_test: bool

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2].lower()

    @property
    def is_document(self) -> bool:
        return suffix_of(self.path) in _DOCUMENTS

    @cached_property
    def added(self) -> frozenset[int]:
        return frozenset(line.number for line in self.lines if line.sign == "+")

    @cached_property
    def new(self) -> Text:
        return read_text(self.after, suffix_of(self.path))

    @cached_property
    def old(self) -> Text:
        return read_text(self.before, suffix_of(self.path))

    def find_added(self, pattern: re.Pattern[str], view: str) -> Iterator[tuple[int, str]]:
        """Yield each match that touches an added line: its first line, and the text of its lines and the one before."""
        text: str = getattr(self.new, view)
        rows = self.after.split("\n")
        for match in pattern.finditer(text) if self.added else ():
            start = match.start() + len(match[0]) - len(match[0].lstrip())
            first, last = self.new.line_at(start), self.new.line_at(max(start, match.end() - 1))
            if not self.added.isdisjoint(range(first, last + 1)):
                yield first, "\n".join(rows[max(0, first - 2) : last])


def sources(change: Change, tests: Sequence[str]) -> tuple[Source, ...]:
    """Return the text files of a change that are not too large to look at."""
    return _sources(change, tuple(tests))


@lru_cache(maxsize=1)
def _sources(change: Change, tests: tuple[str, ...]) -> tuple[Source, ...]:
    # Cached: two stages read the same files one after the other.
    return tuple(_read(change, IgnoreFile(tests)))


def _read(change: Change, test_paths: IgnoreFile) -> Iterator[Source]:
    lines: dict[str, list[DiffLine]] = {}
    for line in lines_of(change.short_diff):
        lines.setdefault(line.path, []).append(line)
    for one in change.paths:
        after = change.content(one.path) if one.status != "D" else b""
        before = change.content(one.path, at_base=True) if one.status != "A" else b""
        if after is None or before is None or b"\0" in after[:8000]:
            continue
        yield Source(
            path=one.path,
            after=after.decode(errors="replace").replace("\r\n", "\n"),
            before=before.decode(errors="replace").replace("\r\n", "\n"),
            lines=tuple(line for line in lines.get(one.path, ()) if line.sign in "+-"),
            is_test=test_paths.covers(one.path) or _TEST_PATH.search(one.path) is not None,
        )
