"""The rules about added and removed code: read from `rules.toml` and matched against changed files.

A rule matches added lines unless it compares the file before and after: `fewer` counts distinct matches that are gone,
`replaced` looks for lines that matched `before` and now match `pattern` instead, `up` and `down` compare numbers.
"""

import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import accumulate
from typing import Any

from decklog.conductor.git.changes import DiffLine, parse_lines
from decklog.guard.files.gitignore import IgnoreFile
from decklog.review.change import Change
from decklog.review.result import Finding, Severity

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


# Cached: two stages read the same files one after the other.
@lru_cache(maxsize=1)
def sources(change: Change, tests: tuple[str, ...]) -> tuple[Source, ...]:
    """Return the text files of a change, without too large ones."""
    return tuple(_read(change, IgnoreFile(tests)))


def _read(change: Change, test_paths: IgnoreFile) -> Iterator[Source]:
    lines: dict[str, list[DiffLine]] = {}
    for line in parse_lines(change.short_diff):
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


MESSAGE = "message"
_DECLARED = re.compile(r"\b(?:def|class|function|func|fn|fun|interface|struct)\s+(\w+)")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule of the table. `scope` is `tests`, `code` or `any`; `unless` is searched in the lines of a match."""

    id: str
    kind: str
    stage: int
    severity: Severity
    message: str
    remedy: str
    pattern: re.Pattern[str]
    view: str
    scope: str
    compare: str = ""
    files: tuple[str, ...] = ()
    before: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    documents: bool = False

    def applies(self, source: Source) -> bool:
        """Return whether the rule applies to a file by its name and role."""
        if self.view == MESSAGE or (source.is_document and not self.documents):
            return False
        if self.scope != "any" and source.is_test is not (self.scope == "tests"):
            return False
        return not self.files or any(fnmatchcase(source.name, pattern) for pattern in self.files)

    def finding(self, path: str | None, line: int | None) -> Finding:
        return Finding(severity=self.severity, kind=self.kind, text=self.message, file=path, line=line, remedy=self.remedy)


@cache
def load_table() -> Mapping[str, Any]:
    """Return the shipped table of rules."""
    return tomllib.loads(files("decklog.review").joinpath("rules.toml").read_text(encoding="utf-8"))


@cache
def load_rules() -> tuple[Rule, ...]:
    """Return the shipped rules."""
    table = load_table()
    return tuple(build_rule(row, table["groups"], table["kinds"]) for row in table["rule"])


def build_rule(row: Mapping[str, Any], groups: Mapping[str, list[str]], kinds: Mapping[str, Mapping[str, Any]]) -> Rule:
    """Build a rule from its row; missing fields come from its kind."""
    given = {"severity": "minor", "scope": "any", "view": "code", **kinds[row["kind"]], **row}
    names = [name for one in given.get("files", ()) for name in (groups[one[1:]] if one.startswith("@") else [one])]
    return Rule(
        **{key: given[key] for key in ("id", "kind", "stage", "message", "remedy", "view", "scope")},
        severity=Severity(given["severity"]),
        pattern=re.compile(given["pattern"], re.MULTILINE),
        compare=given.get("compare", ""),
        files=tuple(names),
        before=re.compile(given["before"], re.MULTILINE) if "before" in given else None,
        unless=re.compile(given["unless"]) if "unless" in given else None,
        documents=given.get("documents", False),
    )


def find_by_rules(sources: Sequence[Source], stage: int, rules: Sequence[Rule] | None = None) -> list[Finding]:
    """Return the findings of a stage's rules in changed files, each kind at most once a line."""
    found: dict[tuple[str, str, int], Finding] = {}
    for rule in load_rules() if rules is None else rules:
        if rule.stage != stage:
            continue
        for source in sources:
            for line in _lines(rule, source, sources) if rule.applies(source) else ():
                found.setdefault((source.path, rule.kind, line), rule.finding(source.path, line))
    return sorted(found.values(), key=lambda one: (one.file or "", one.line or 0, one.kind))


def find_in_message(message: str, stage: int) -> list[Finding]:
    """Return the findings of the rules about commit messages."""
    rules = [rule for rule in load_rules() if rule.view == MESSAGE and rule.stage == stage]
    return [rule.finding(None, None) for rule in rules if rule.pattern.search(message)]


def _lines(rule: Rule, source: Source, sources: Sequence[Source]) -> Iterator[int]:
    """Yield the lines of a file that match a rule."""
    match rule.compare:
        case "":
            for line, text in source.find_added(rule.pattern, rule.view):
                if rule.unless is None or not rule.unless.search(text):
                    yield line
        case "fewer":
            yield from _fewer(rule, source, sources)
        case "replaced":
            yield from _replaced(rule, source)
        case _:
            yield from _moved_numbers(rule, source)


# Comparisons of a file before and after


def _keys(rule: Rule, text: str) -> Counter[str]:
    """Count the matches of a rule in a text, by their first group or the whole match."""
    return Counter(next(filter(None, match.groups()), match[0]).strip() for match in rule.pattern.finditer(text))


def _fewer(rule: Rule, source: Source, sources: Sequence[Source]) -> Iterator[int]:
    """Yield a line if matches were removed without replacement. Moved matches and those in removed code do not count."""
    before, after = (_keys(rule, getattr(text, rule.view)) for text in (source.old, source.new))
    gone, come = before - after, after - before
    if gone.total() <= come.total():
        return
    others = [one for one in sources if one is not source and rule.applies(one)]
    for other in others:
        gone -= _keys(rule, getattr(other.new, rule.view)) - _keys(rule, getattr(other.old, rule.view))
    removed = _removed_names(sources)
    lost = [key for key in gone.elements() if not any(name in key for name in removed)]
    if len(lost) > come.total():
        yield next((max(1, line.number) for line in source.lines if line.sign == "-"), 1)


def _removed_names(sources: Sequence[Source]) -> set[str]:
    """Return the functions and classes that a change removes."""
    before = {name for one in sources if not one.is_test for name in _DECLARED.findall(one.before) if len(name) > 2}
    return before - {name for one in sources for name in _DECLARED.findall(one.after)}


def _replaced(rule: Rule, source: Source) -> Iterator[int]:
    """Yield the first added line that matches where lines that matched `before` became fewer."""
    assert rule.before is not None
    exact = rule.before
    gone, come = ([line for line in source.lines if line.sign == sign] for sign in "-+")
    was, now = ([line for line in some if exact.search(line.text)] for some in (gone, come))
    weak = [line for line in come if rule.pattern.search(line.text) and not exact.search(line.text)]
    if weak and len(now) < len(was) and not any(rule.pattern.search(line.text) and line not in was for line in gone):
        yield weak[0].number


def _moved_numbers(rule: Rule, source: Source) -> Iterator[int]:
    """Yield the lines whose number moved in the direction of the rule, compared by name and in order."""
    gone, come = (
        [
            (match["name"].lower(), float(match["value"]), line.number)
            for line in source.lines
            if line.sign == sign
            for match in rule.pattern.finditer(line.text[:2000])
        ]
        for sign in "-+"
    )
    for name, value, _ in gone:
        new = next((one for one in come if one[0] == name), None)
        if new is not None:
            come.remove(new)
            if new[1] > value if rule.compare == "up" else new[1] < value:
                yield new[2]
