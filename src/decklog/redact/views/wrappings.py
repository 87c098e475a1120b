"""Lines without what a tool put before each: numbers, the name of a file, the sign of a change, a stamp, a speaker.

What is found in the view of a text is still found there. This one is searched besides, and has no more of the text than the
lines that have something before them, some that surround them, and strings of JSON with lines of their own.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from decklog.prepared import prepared
from decklog.redact.patterns.pattern import Span
from decklog.redact.view import View, to_bytes

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
# How such a line begins: one look that says no to most others, at a fifth of what it takes to tell all kinds apart.
_MAY_BE_HEADED = (
    r"[ \t]{0,8}+[\d⎿└├│┃]|(?=[^ \t\n])(?:[\w.@+~/\\-]{2,200}+(?::|[ \t]{0,24}+\|)|[\w.@+~/\\-]{2,200}?-\d{1,6}-|[>\[<+@`-]"
    r"|[A-Za-z]:[\\/]|[A-Z][a-z]{2} [ \d]\d \d\d:)"
)
_STAMP = rf"\[?{_DAY}\]?[ \t]+{_LEVEL}|[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d (?:[\w.-]+ )?(?:[\w./-]+(?:\[\d+\])?: )?"
_NUMBERED = rf"[ \t]{{0,8}}+(\d{{1,6}})(?:\t|→|: ?| ?[|│](?: |{_ENDS})|{_ENDS})"
# What a forge's client puts before each line of a job's log: the job, its step, and the stamp.
_OF_JOB = r"[^\t\n]{1,60}+\t[^\t\n]{1,80}+\t"


def _head(stamp: str, may_be: str) -> re.Pattern[str]:
    """Match what stands before a line; none of them takes the break behind it, with which the next line begins."""
    return prepared(
        rf"\n(?={may_be})(?:(?P<stamp>{stamp})|(?P<numbered>{_NUMBERED})|{_ALONE}"
        rf"|(?P<near>(?P<beside>[\w.@+~/\\-]{{2,200}}?)-\d{{1,6}}-)|(?P<file>(?P<whole>{_FILE}):(?![/\\\d \t]))"
        rf"|(?P<added>\+(?!\+))|(?P<taken>-(?![-\s]))|(?P<hunk>@@ -\d)"
        rf"|(?P<service>(?P<name>[\w.-]{{2,40}}+)[ \t]{{0,24}}+\|(?: |{_ENDS}))|(?P<fence>```[\w.+-]{{0,16}}[ \t]*{_ENDS}))"
    )


_JOB_STAMP = rf"(?:{_OF_JOB})?{_DAY}[ \t]+{_LEVEL}"
_HEAD, _JOB_HEAD = _head(_STAMP, _MAY_BE_HEADED), _head(_JOB_STAMP, rf"{_OF_JOB}\d{{4}}-|{_MAY_BE_HEADED}")
# These often stand before many lines one below the other, which then need not be told from all other kinds.
_ALIKE = {"stamp": prepared(rf"\n({_JOB_STAMP}|{_STAMP})[^\n]*+"), "numbered": prepared(rf"\n({_NUMBERED})[^\n]*+")}
_FIRST = prepared(f"(?:{_ALONE})")
_OPENING = frozenset(">[<")
# A file and the number of a line have two colons, a speaker one.
_COLONS_OF_FILE = 2
_COLONS_OF = dict.fromkeys("UuHhAaSsTt", 1)
_ALONE_KINDS = frozenset(("quote", "said", "hung", "fence"))
# By what of it each kind is known to go on in the next line, and those that have the name of a file there.
_SHARED = {"found": "path", "near": "beside", "file": "whole", "service": "name"}
_FILES = frozenset(("found", "near", "file"))
_BOTH = frozenset(("found", "near"))
_CHANGED = ("+", "-", " ", "\\")
_KEY_LINE = prepared(r"-{4,5} ?(?:BEGIN|END) ")
_BOLD = prepared(r"\*\*(?<![\w*]\*\*)(?=[^\s*])([^*\n]{1,120}+(?:\*(?!\*)[^*\n]{0,60}+){0,3})(?<=\S)\*\*(?![\w*])")
# What lies between two pieces of the text: nothing goes on across it.
APART = "\n\n\x01\n\n"
_LINES_BEFORE, _LINES_BEHIND = 3, 6
# Where no more ends of lines lie between, those around the one reach those around the other.
_LINES_BETWEEN = _LINES_BEFORE + _LINES_BEHIND - 1
_BEFORE_STRING = frozenset(" \t\n:,[({=")
_BEHIND_STRING = frozenset(" \t\n,])};\\")
_SHORTEST_STRING = 12


def is_headed(line: str) -> bool:
    """Tell whether a text of one line has something before it, or around its words, that need not be on other lines too."""
    if "**" in line:
        return True
    first = line[:1]
    if first not in _OPENING and line.count(":") < _COLONS_OF.get(first, _COLONS_OF_FILE) and line.isascii():
        # None of them is without all of these, which takes less to see.
        return False
    head = _FIRST.match(line)
    return head is not None and (head["path"] is None or _is_file(head["path"]))


def peeled(text: str, view: View) -> View | None:
    """View what is wrapped in a text without its wrapping, as a part of its view; None if nothing is wrapped."""
    strings = list(_strings(text, view)) if "\\n" in text and not view.is_plain else []
    shown = _apart(view.text, strings) if strings else view.text
    dropped = _heads(shown)
    is_before_lines = not strings
    if "**" in shown:
        bold = [span for word in _BOLD.finditer(shown) for span in ((word.start(), word.start(1)), (word.end(1), word.end()))]
        if bold:
            dropped, is_before_lines = _without_overlaps([*dropped, *bold]), False
    if not dropped and not strings:
        return None
    wrapped = sorted([*dropped, *strings]) if strings else dropped
    return _pieced(shown, dropped, _regions(shown, wrapped, is_before_lines=is_before_lines))


def _strings(text: str, view: View) -> Iterator[Span]:
    """Give where the strings of JSON are that have lines of their own: its quotes have one backslash less than its breaks."""
    reached = 0
    for place, first, last in view.undone():
        width = last - first - 1
        if place < reached or text[first] != "\\" or text[last - 1] != "n":
            continue
        if view.text[place + 1 : place + 2] == '"' and view.width(place + 1) == width:
            # The string ends here.
            continue
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


def _heads(shown: str) -> list[Span]:
    """Give where something stands before a line that is no part of it."""
    dropped, reached, is_given = list[Span](), 0, False
    # What was before the line above: of which kind it is, by what it is known to go on, and where.
    above, known_by, first, last = "", "", 0, 0
    # With a break before it, so that each place is one before that of the line.
    text, place = f"\n{shown}", 0
    head = _JOB_HEAD if "\t20" in shown else _HEAD
    while match := head.search(text, place):
        start, place, kind = match.start(), match.end(), match.lastgroup or ""
        if start < reached:
            continue
        if kind in _ALIKE:
            alike, place = _alike(text, start, kind)
            dropped += alike
            above = ""
        elif kind in _ALONE_KINDS:
            dropped.append((start, place - (kind != "fence" or place == len(text))))
        elif kind == "hunk":
            dropped += _changed(shown, start)
            reached, above = dropped[-1][1] if dropped else 0, ""
        else:
            shared, end = match[_SHARED[kind]] if kind in _SHARED else "", place - 1
            is_file = kind not in _FILES or _is_file(shared)
            if not is_file and (kind not in _BOTH or not shared[0].isalpha()):
                continue
            is_same = (kind == above or (kind in _BOTH and above in _BOTH)) and shared == known_by
            is_next = is_same and shown.find("\n", last) + 1 == start
            if is_next and not is_given:
                dropped.append((first, last))
            # A name without a dot or a folder is a file's if the next line has it too.
            is_given = is_next or (is_file and kind == "found")
            if is_given:
                dropped.append((start, end))
            above, known_by, first, last = kind, shared, start, end
    return dropped


def _alike(text: str, start: int, kind: str) -> tuple[list[Span], int]:
    """Give what stands before lines that are stamped, or have the next number, if there are several; and where they end."""
    line_at, spans, numbers = _ALIKE[kind].match, list[Span](), list[int]()
    while line := line_at(text, start):
        places = line.regs
        # A place in the text with a break before it is one less in the text that is looked at.
        spans.append((start, places[1][1] - 1))
        start = places[0][1]
        if kind == "numbered":
            numbers.append(int(line[2]))
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        follow = [False, *(one + 1 == two for one, two in pairwise(numbers)), False]
        return [span for span, pair in zip(spans, pairwise(follow), strict=True) if any(pair)], start
    return spans if len(spans) > 1 else [], start


def _changed(shown: str, place: int) -> list[Span]:
    """Give where the signs of a change are, below the head of it."""
    signs = list[Span]()
    place = shown.find("\n", place) + 1
    while place and shown.startswith(_CHANGED, place):
        # The dashes of a key's first line are its own: with the sign of a change there is one more.
        if not _KEY_LINE.match(shown, place):
            signs.append((place, place + 1))
        place = shown.find("\n", place) + 1
    return signs


def _without_overlaps(spans: list[Span]) -> list[Span]:
    kept = list[Span]()
    for span in sorted(spans):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def _regions(shown: str, wrapped: list[Span], *, is_before_lines: bool) -> list[Span]:
    """Give the parts of a text that are wrapped, with the lines around them."""
    regions = list[Span]()
    first, end = wrapped[0]
    # Most often each of many lines has something before it: then so few others lie between all that no two can be far apart.
    if is_before_lines and shown.count("\n", end + 1, wrapped[-1][0]) <= len(wrapped) - 3 + _LINES_BETWEEN:
        return [(_line_before(shown, first), _line_behind(shown, wrapped[-1][1]))]
    for start, last in wrapped:
        if shown.count("\n", end + 1, start) > _LINES_BETWEEN:
            regions.append((_line_before(shown, first), _line_behind(shown, end)))
            first = start
        end = max(end, last)
    return [*regions, (_line_before(shown, first), _line_behind(shown, end))]


def _line_before(shown: str, place: int) -> int:
    for _ in range(_LINES_BEFORE):
        place = max(0, shown.rfind("\n", 0, place))
    return place


def _line_behind(shown: str, place: int) -> int:
    for _ in range(_LINES_BEHIND):
        place = shown.find("\n", place + 1)
        if place < 0:
            return len(shown)
    return place


def _pieced(shown: str, dropped: list[Span], regions: list[Span]) -> View:
    """View these regions of a text without what is dropped: a place in the view for each place where something is left out."""
    pieces, starts, origins, size, position, index = list[str](), [0], [0], 0, 0, 0
    for first, last in regions:
        if first > position:
            starts += (size, size + len(APART))
            origins += (position, first)
            pieces.append(APART)
            size += len(APART)
        until = bisect_left(dropped, (last, 0), index)
        for start, end in dropped[index:until]:
            pieces.append(shown[first:start])
            size += start - first
            starts += (size, size)
            origins += (start, end)
            first = end
        pieces.append(shown[first:last])
        size += last - first
        index, position = until, last
    text = "".join(pieces)
    return View(text, to_bytes(text), [*starts, size], [*origins, position])
