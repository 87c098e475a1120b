"""Lines without what a tool put before each: numbers, the name of a file, the sign of a change, a stamp, a speaker.

What is found in the view of a text is still found there. This one is searched besides, and has no more of the text than the
lines that have something before them, some that surround them, and strings of JSON with lines of their own.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from decklog.prepared import prepared
from decklog.redact.patterns.pattern import Span
from decklog.redact.view import View, pieced

# How far a name goes is counted: one that does not end where it should is then tried no more often than that.
_FILE = r"(?:[A-Za-z]:)?[\w.@+~/\\-]{2,200}+"
_DAY = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?[\d.,]{0,10}(?:Z|[+-]\d\d:?\d\d)?"
_LEVEL = r"(?:(?:stdout|stderr) [FP] |\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|TRACE|NOTICE)\]?:?[ \t]+)?"
_ENDS = r"(?=\n|\Z)"
# These need not be on other lines too.
_ALONE = (
    rf"(?P<found>(?P<path>{_FILE}):\d{{1,6}}:)|(?P<quote>>(?:[ \t]?>){{0,3}}(?:[ \t]|{_ENDS}))"
    r"|(?P<said>\[\d{1,2}:\d\d(?: ?[AaPp][Mm])?\][ \t]+(?:<?[\w.@-]{1,24}>?:[ \t]+)?|\[\d\d:\d\d:\d\d\][ \t]+"
    r"|(?:[Uu]ser|[Hh]uman|[Aa]ssistant|[Ss]ystem|[Tt]ool):[ \t]+|<[\w.-]{1,24}>[ \t]+)"
    r"|(?P<hung>[ \t]{0,8}+[⎿└├│┃]─*[ \t]{1,4})"
)
_HEAD = prepared(
    rf"\n(?:(?P<stamp>\[?{_DAY}\]?[ \t]+{_LEVEL}|[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d (?:[\w.-]+ )?(?:[\w./-]+(?:\[\d+\])?: )?)"
    rf"|(?P<numbered>[ \t]{{0,8}}+(?P<number>\d{{1,6}})(?:\t|→|: ?| ?[|│](?: |{_ENDS})|{_ENDS}))|{_ALONE}"
    rf"|(?P<near>(?P<beside>[\w.@+~/\\-]{{2,200}}?)-\d{{1,6}}-)|(?P<file>(?P<whole>{_FILE}):(?![/\\\d \t]))"
    rf"|(?P<added>\+(?!\+))|(?P<taken>-(?![-\s]))|(?P<hunk>@@ -\d)"
    rf"|(?P<service>(?P<name>[\w.-]{{2,40}}+)[ \t]{{0,24}}+\|(?: |{_ENDS}))|(?P<fence>```[\w.+-]{{0,16}}[ \t]*(?:\n|\Z)))"
)
# How such a line begins: one look that says no to most others, at a fifth of what it takes to tell all kinds apart.
_MAY_BE_HEADED = prepared(
    r"\n(?:[ \t]{0,8}+[\d⎿└├│┃]|(?=[^ \t\n])(?:[\w.@+~/\\-]{2,200}+(?::|[ \t]{0,24}+\|)|[\w.@+~/\\-]{2,200}?-\d{1,6}-|[>\[<+@`-]"
    r"|[A-Za-z]:[\\/]|[A-Z][a-z]{2} [ \d]\d \d\d:))"
)
_FIRST = prepared(f"(?:{_ALONE})")
_ALONE_KINDS = frozenset(("quote", "said", "hung", "fence"))
_SHARED = {"found": "path", "near": "beside", "file": "whole", "service": "name"}
_CHANGED = ("+", "-", " ", "\\")
_BOLD = prepared(r"\*\*(?<![\w*]\*\*)(?=[^\s*])([^*\n]{1,120}+(?:\*(?!\*)[^*\n]{0,60}+){0,3})(?<=\S)\*\*(?![\w*])")
# What lies between two pieces of the text: nothing goes on across it.
APART = "\n\n\x01\n\n"
_LINES_BEFORE, _LINES_BEHIND = 3, 6
_BEFORE_STRING = frozenset(" \t\n:,[({=")
_BEHIND_STRING = frozenset(" \t\n,])};\\")
_SHORTEST_STRING = 12


class _Head(NamedTuple):
    """What stands before a line: where, of which kind it is, and by what it is known to go on in the next line."""

    start: int
    end: int
    kind: str
    shared: str

    def goes_on(self, following: "_Head") -> bool:
        """Tell whether the next line has the same before it, or the next number."""
        if self.kind == "numbered" == following.kind:
            return int(following.shared) == int(self.shared) + 1
        is_same_kind = self.kind == following.kind or {self.kind, following.kind} == {"found", "near"}
        return is_same_kind and self.shared == following.shared


def is_headed(line: str) -> bool:
    """Tell whether a text of one line has something before it, or around its words, that need not be on other lines too."""
    head = _FIRST.match(line)
    return "**" in line or (head is not None and (head["path"] is None or _is_file(head["path"])))


def peeled(text: str, view: View) -> View | None:
    """View what is wrapped in a text without its wrapping, as a part of its view; None if nothing is wrapped."""
    strings = list(_strings(text, view)) if "\\n" in text and not view.is_plain else []
    shown = _apart(view.text, strings) if strings else view.text
    dropped = list(_heads(shown))
    if "**" in shown:
        dropped += [span for bold in _BOLD.finditer(shown) for span in ((bold.start(), bold.start(1)), (bold.end(1), bold.end()))]
        dropped = _without_overlaps(dropped)
    if not dropped and not strings:
        return None
    return _pieced(shown, dropped, _regions(shown, dropped, strings))


def _strings(text: str, view: View) -> Iterator[Span]:
    """Give where the strings of JSON are that have lines of their own: its quotes have one backslash less than its breaks."""
    reached = 0
    for place, first, last in view.undone():
        if place < reached or text[first] != "\\" or text[last - 1] != "n" or view.text[place + 1 : place + 2] == '"':
            continue
        width = last - first - 1
        line = max(view.text.rfind("\n", 0, place) + 1, reached)
        # No string goes on behind a break that is written as it is.
        limit = place + (text.find("\n", last) % (len(text) + 1)) - last + 1
        start = _quote_before(view, line, place, width)
        end = _quote_behind(view, place, limit, width) if start >= 0 else -1
        # The next break is looked at anew only if it is in another line: each character is gone over once.
        reached = (end if start >= 0 and end >= 0 else place) + 1
        if start >= 0 and end - start > _SHORTEST_STRING and view.text[place:end].strip():
            yield start + 1, end


def _quote_before(view: View, line: int, place: int, width: int) -> int:
    quote = view.text.rfind('"', line, place)
    while quote >= 0:
        if view.width(quote) == width and (quote == 0 or view.text[quote - 1] in _BEFORE_STRING):
            return quote
        quote = view.text.rfind('"', line, quote)
    return -1


def _quote_behind(view: View, place: int, limit: int, width: int) -> int:
    quote = view.text.find('"', place, limit)
    while quote >= 0:
        if view.width(quote) == width:
            return quote if view.text[quote + 1 : quote + 2] in ("", *_BEHIND_STRING) else -1
        quote = view.text.find('"', quote + 1, limit)
    return -1


def _apart(text: str, strings: list[Span]) -> str:
    """Put a line break for the quotes of each string: a place in what it gives is one in the text."""
    pieces, position = [], 0
    for start, end in strings:
        pieces += [text[position : start - 1], "\n", text[start:end], "\n"]
        position = end + 1
    return "".join([*pieces, text[position:]])


def _is_file(name: str) -> bool:
    return "/" in name or "." in name or "\\" in name


def _heads(shown: str) -> Iterator[Span]:
    """Give where something stands before a line that is no part of it."""
    last, is_given, reached = None, False, 0
    for match in _matched(f"\n{shown}"):
        kind = match.lastgroup or ""
        head = _Head(match.start(), match.end() - 1, kind, match[_SHARED.get(kind, "number")] or "")
        if head.start < reached:
            continue
        if kind == "hunk":
            for reached in _changed(shown, head.start):
                yield reached, reached + 1
            last = None
            continue
        if kind in _SHARED and kind != "service" and not _is_file(head.shared):
            continue
        if kind in _ALONE_KINDS:
            yield head.start, head.end
            continue
        is_next = last is not None and last.goes_on(head) and shown.find("\n", last.end) + 1 == head.start
        if is_next and last and not is_given:
            yield last.start, last.end
        is_given = is_next or kind == "found"
        if is_given:
            yield head.start, head.end
        last = head


def _matched(text: str) -> Iterator[re.Match[str]]:
    for place in _MAY_BE_HEADED.finditer(text):
        if match := _HEAD.match(text, place.start()):
            yield match


def _changed(shown: str, place: int) -> Iterator[int]:
    """Give where the lines of a change begin, below the head of it."""
    place = shown.find("\n", place) + 1
    while place and shown.startswith(_CHANGED, place):
        yield place
        place = shown.find("\n", place) + 1


def _without_overlaps(spans: list[Span]) -> list[Span]:
    kept = list[Span]()
    for span in sorted(spans):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def _regions(shown: str, dropped: list[Span], strings: list[Span]) -> list[Span]:
    """Give the parts of a text that are wrapped, with the lines around them."""
    regions = list[Span]()
    for start, end in sorted([*dropped, *strings]):
        if regions and end <= regions[-1][1] and shown.find("\n", end) < 0:
            continue
        first = start
        for _ in range(_LINES_BEFORE):
            first = max(0, shown.rfind("\n", 0, first))
        last = end
        for _ in range(_LINES_BEHIND):
            last = shown.find("\n", last + 1) % (len(shown) + 1)
        if regions and first <= regions[-1][1]:
            regions[-1] = (regions[-1][0], max(last, regions[-1][1]))
        else:
            regions.append((first, last))
    return regions


def _pieced(shown: str, dropped: list[Span], regions: list[Span]) -> View:
    kept, original, position, index = [""], [""], 0, 0
    for first, last in regions:
        if first > position:
            kept += [APART, ""]
            original += [shown[position:first], ""]
        position = first
        while index < len(dropped) and dropped[index][0] < last:
            start, end = dropped[index]
            kept[-1] += shown[position:start]
            original[-1] += shown[position:start]
            kept += ["", ""]
            original += [shown[start:end], ""]
            position, index = end, index + 1
        kept[-1] += shown[position : max(last, position)]
        original[-1] += shown[position : max(last, position)]
        position = max(last, position)
    return pieced(kept, original)
