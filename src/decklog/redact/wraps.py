"""Tokens that a terminal or an editor broke across lines."""

import re

from decklog.redact.pattern import Pattern, Span
from decklog.redact.table import RULES
from decklog.redact.view import View, pieced

_PREFIXES = tuple(
    sorted(
        {word for rule in RULES for word in rule.keywords if len(word) > 2 and word[-1] in "-_." and not rule.keep}
        | {"eyj", "akia", "asia", "aiza"}
    )
)
_BEGINNINGS = frozenset(word[:3] for word in _PREFIXES)
_TOKEN = r"[A-Za-z0-9_+/=.~-]"
# Inside a token a break has digits or capitals near it and a few characters on each side; between words it rarely has.
_BREAK = Pattern(
    rf"[A-Z0-9]{_TOKEN}{{0,9}}\n[ \t]*{_TOKEN}{{3}}|{_TOKEN}{{5}}\n[ \t]*{_TOKEN}{{0,9}}[A-Z0-9]{_TOKEN}"
)
_RUN = re.compile(rf"{_TOKEN}+")
_BREAK_HERE = re.compile(r"\n[ \t]*")
_ANY_BREAK = re.compile(rf"(\n(?<={_TOKEN}\n)[ \t]*)(?={_TOKEN})(?!(?i:" + "|".join(map(re.escape, _PREFIXES)) + "))")
_INDENT = re.compile(r"[ \t]*")
_MOST_LINES = 200
_REACH = 600
_MOST_BREAKS = 8_000


def joined(view: View) -> View | None:
    """View the wrapped tokens of a text put together again, and nothing else; None if there can't be any."""
    breaks = _breaks(view)
    if not breaks:
        return None
    if len(breaks) > _MOST_BREAKS:
        return _joined_whole(view.text)
    return pieced(*_around(view.text, breaks))


def _joined_whole(text: str) -> View:
    """Put together all lines of a text that is full of breaks, which is cheaper than looking at each."""
    pieces = _ANY_BREAK.split(text)
    kept = pieces[:]
    kept[1::2] = [""] * (len(pieces) // 2)
    return pieced(kept, pieces)


def _starts_token(line: str) -> bool:
    return line[:3] in _BEGINNINGS and line.startswith(_PREFIXES)


def _breaks(view: View) -> list[Span]:
    """Find the line breaks that could be inside a token, each with the indentation after it."""
    text, found, position = view.text, [], 0
    while (span := _BREAK.find(view.data, position)) and len(found) <= _MOST_BREAKS:
        start = text.index("\n", span[0])
        end = position = start + 1
        if text[end] in " \t":
            end = position = _INDENT.match(text, end).end()  # type: ignore[union-attr]
        if not _starts_token(text[end : end + 16].lower()):
            found.append((start, end))
    return found


def _around(text: str, breaks: list[Span]) -> tuple[list[str], list[str]]:
    """Keep what surrounds each break, without the break, and one line break for all that lies between."""
    kept, original, position = [""], [""], 0
    for index, (start, end) in enumerate(breaks):
        first = max(text.rfind("\n", max(0, start - _REACH), start) + 1, start - _REACH, position)
        if first > position:
            kept += ["\n", ""]
            original += [text[position:first], ""]
        following = breaks[index + 1][0] if index + 1 < len(breaks) else len(text)
        stop = min(text.find("\n", end) % (len(text) + 1), end + _REACH, following)
        kept[-1] += text[first:start]
        original[-1] += text[first:start]
        kept += ["", text[end:stop]]
        original += [text[start:end], text[end:stop]]
        position = stop
    return kept, original


def extended(text: str, start: int, end: int) -> int:
    """Give the end of a token that goes on in the next lines, or its end as it is."""
    for _ in range(_MOST_LINES):
        gap = _BREAK_HERE.match(text, end)
        run = gap and _RUN.match(text, gap.end())
        if not run or end - start < 16 or _starts_token(run.group()[:16].lower()) or not _goes_on(run.group(), text[run.end() : run.end() + 1]):
            return end
        end = run.end()
    return end


def _goes_on(run: str, after: str) -> bool:
    """Tell whether the first run of a line reads as the rest of a token rather than as a word."""
    if after in (":", "=", "(", "[", "{", "<") or len(run) < 2:
        return False
    digits = sum(map(str.isdigit, run))
    letters = sum(map(str.isalpha, run))
    upper = sum(map(str.isupper, run))
    if after not in ("", "\n", "\r", '"', "'", "`", "\\", "&", ","):
        return digits >= 2 and letters >= 4 and "-" not in run and "." not in run
    if digits and letters:
        return not re.match(r"\d{4}-\d\d|\d+\.\d", run)
    return len(run) >= 12 or (upper > 1 and letters - upper > 1 and not run.istitle())
