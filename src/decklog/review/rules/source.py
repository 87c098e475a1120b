"""One file of a change as the rules read it: its text after and before, which lines are new, and which are gone."""

import ast
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

from decklog.conductor.git.changes import Line, lines_of
from decklog.core.python_source import parsed
from decklog.guard.files.gitignore import Patterns
from decklog.review.change import Change
from decklog.review.rules.blanking import Blanked, blanked
from decklog.review.rules.languages import suffix_of

# What people read: code in it is shown, and run by nobody.
_TEXTS = (".md", ".txt", ".rst", ".adoc", ".diff", ".patch", ".svg", ".csv", ".tsv", ".po", ".ipynb", ".map", ".snap")
# Where tests lie and how they are called in languages that a repository's own settings do not speak of.
_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|testing|e2e|cypress)/"
    r"|(?:^|/)(?:test_[^/]*|[^/]*_test|[^/]*_spec|[^/]*[.-](?:test|spec|cy)|[^/]*Tests?|[^/]*Spec|[^/]*IT|conftest)\.\w+$"
)
_AROUND = 60


@dataclass(frozen=True)
class Source:
    """A file that a change adds lines to, or takes lines from."""

    path: str
    text: str
    before: str
    added: frozenset[int]
    lines: tuple[Line, ...]
    is_test: bool

    @property
    def suffix(self) -> str:
        return suffix_of(self.path) or self.path.rpartition("/")[2].lower()

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def is_prose(self) -> bool:
        return self.suffix in _TEXTS

    @property
    def is_python(self) -> bool:
        return self.suffix in (".py", ".pyi")

    @cached_property
    def blanked(self) -> Blanked:
        return blanked(self.text, self.suffix)

    @cached_property
    def tree(self) -> ast.Module | None:
        return parsed(self.text.encode(errors="replace")) if self.is_python else None

    @cached_property
    def old_tree(self) -> ast.Module | None:
        return parsed(self.before.encode(errors="replace")) if self.is_python else None

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self.text.split("\n")), initial=0))

    @cached_property
    def _reach(self) -> tuple[int, int]:
        """Between which places something may begin or end that stands on a new line; what is far from them costs nothing."""
        starts = self._starts
        first, last = min(self.added, default=1) - _AROUND, max(self.added, default=1) + _AROUND
        return starts[max(0, first - 1)], starts[min(last, len(starts) - 1)]

    @cached_property
    def words(self) -> Counter[str]:
        """How often each word stands in the file, in whatever place."""
        return Counter(re.findall(r"\w+", self.text))

    @cached_property
    def rows(self) -> list[str]:
        return self.text.split("\n")

    def line_at(self, place: int) -> int:
        return bisect_right(self._starts, place)

    def is_new(self, first: int, last: int) -> bool:
        return not self.added.isdisjoint(range(first, last + 1))

    def found(self, pattern: re.Pattern[str], *, bare: bool = False) -> Iterator[tuple[int, re.Match[str]]]:
        """Find a pattern in the code where it stands on new lines; give the first line of each."""
        text = self.blanked.bare if bare else self.blanked.code
        for match in pattern.finditer(text, *self._reach):
            first, last = self.line_at(match.start()), self.line_at(max(match.start(), match.end() - 1))
            if self.is_new(first, last):
                yield first, match

    def notes(self) -> Iterator[tuple[int, str]]:
        """Give the comments that begin on new lines, each with its line."""
        for place, note in self.blanked.notes:
            line = self.line_at(place)
            if line in self.added:
                yield line, note

    def strings_of(self, match: re.Match[str]) -> str:
        """Give the text itself where a pattern was found among blanks."""
        return self.text[match.start() : match.end()]


def is_test_path(path: str) -> bool:
    """Say whether a file is a test by where it lies or how it is called, in whatever language."""
    return _TEST.search(path) is not None


def sources(change: Change, tests: Sequence[str]) -> tuple[Source, ...]:
    """Read the files of a change that are text and not too large."""
    return _sources(change, tuple(tests))


@lru_cache(maxsize=1)
def _sources(change: Change, tests: tuple[str, ...]) -> tuple[Source, ...]:
    """Read them once: three passes look at the same ones, one after another, and each would parse them anew."""
    return tuple(_read(change, Patterns(tests)))


def _read(change: Change, of_tests: Patterns) -> Iterator[Source]:
    lines: dict[str, list[Line]] = {}
    for line in lines_of(change.short_diff):
        if line.sign != " ":
            lines.setdefault(line.path, []).append(line)
    for one in change.paths:
        after = change.content(one.path) if one.status != "D" else b""
        before = change.content(one.path, at_base=True) if one.status != "A" else b""
        if after is None or before is None or b"\0" in after[:8000]:
            continue
        changed = tuple(lines.get(one.path, ())) if one.status != "D" else _gone(one.path, before)
        yield Source(
            path=one.path,
            text=after.decode(errors="replace").replace("\r\n", "\n"),
            before=before.decode(errors="replace").replace("\r\n", "\n"),
            added=frozenset(line.number for line in changed if line.sign == "+"),
            lines=changed,
            is_test=of_tests.covers(one.path) or is_test_path(one.path),
        )


def _gone(path: str, before: bytes) -> tuple[Line, ...]:
    return tuple(Line(path, "-", 1, text) for text in before.decode(errors="replace").splitlines())
