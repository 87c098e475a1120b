"""Tokens that a terminal or an editor broke across lines."""

import re

from decklog.redact.table import RULES
from decklog.redact.view import View, pieced

_PREFIXES = sorted(
    {
        word
        for rule in RULES
        for word in rule.keywords
        if len(word) >= 3 and word[-1] in "-_." and not rule.keep
    }
    | {"eyj", "akia", "asia", "aiza"}
)
_BREAK = re.compile(
    r"(\n(?<=[A-Za-z0-9_+/=.~-]\n)[ \t]*)(?=[A-Za-z0-9_+/=.~-])(?!(?i:"
    + "|".join(map(re.escape, _PREFIXES))
    + "))"
)
_RUN = re.compile(r"[A-Za-z0-9_+/=.~-]+")
_BREAK_HERE = re.compile(r"\n[ \t]*")
_MOST_LINES = 200


def joined(view: View) -> View | None:
    """View a text with its wrapped tokens put together again; None if no line could be a token's continuation."""
    pieces = _BREAK.split(view.text)
    if len(pieces) == 1:
        return None
    kept = pieces[:]
    kept[1::2] = [""] * (len(pieces) // 2)
    return pieced(kept, pieces)


def extended(text: str, start: int, end: int) -> int:
    """Give the end of a token that goes on in the next lines, or its end as it is."""
    for _ in range(_MOST_LINES):
        gap = _BREAK_HERE.match(text, end)
        run = gap and _RUN.match(text, gap.end())
        if not run or end - start < 16 or not _goes_on(run.group(), text[run.end() : run.end() + 1]):
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
