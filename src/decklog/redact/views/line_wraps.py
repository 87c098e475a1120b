"""Tokens that a terminal or an editor broke across lines."""

from itertools import accumulate

from decklog.prepared import prepared
from decklog.redact import expressions, values
from decklog.redact.finder import may_be_marked
from decklog.redact.patterns.pattern import Span
from decklog.redact.rules.table import RULES
from decklog.redact.view import View, pieced, to_bytes

_PREFIXES = tuple(
    sorted(
        {word for rule in RULES for word in rule.keywords if len(word) > 2 and word[-1] in "-_." and not rule.keep}
        | {"eyj", "akia", "asia", "aiza"}
    )
)
_BEGINNINGS = frozenset(word[:3] for word in _PREFIXES)
_TOKEN = r"[A-Za-z0-9_+/=.~$-]"
_NEAR = "|".join(rf"(?<=[A-Z0-9]{_TOKEN}{{{count}}}\n)" for count in range(10))
# Inside a token a break has digits or capitals near it and characters on each side; between words rarely.
# Its second group is empty before a line that begins as `goes_on` could say yes to, and missing before any other.
_BREAK = prepared(
    rf"(\n(?<={_TOKEN}\n)(?:(?:{_NEAR})[ \t]*(?={_TOKEN}{{3}})|(?<={_TOKEN}{{5}}\n)[ \t]*(?={_TOKEN}{{0,9}}[A-Z0-9]{_TOKEN})))"
    rf"(?:(?=(?!\d{{4}}-\d\d){_TOKEN}{{8}}|{_TOKEN}++(?:[\n\r\"'`\\&,;)]|\Z))())?"
)
_RUN = prepared(rf"{_TOKEN}+")
_BREAK_HERE = prepared(r"\n[ \t]*")
_ANY_BREAK = prepared(rf"(\n(?<={_TOKEN}\n)[ \t]*)(?={_TOKEN})")
_MOST_LINES = 200
_REACH = 600
SHORTEST = 6
_CLOSINGS = ("", "\n", "\r", '"', "'", "`", "\\", "&", ",", ";", ")")
_DATE = prepared(r"\d{4}-\d\d|\d+\.\d+\.|[0-9a-f]{8}-[0-9a-f]{4}-")
_NAME_PARTS = prepared(r"[.-]")
# A name that a value is given to, or the commit that the next line came with and its author.
_NAME_ENDS = prepared(r"[ \t]+[:=]|(?<=[0-9a-f]{7})[ \t]+\((?=[^()\n]{1,80}\d\))")
_MOST_BREAKS = 8_000
# So much text for each break is far more than what surrounds it.
_FAR = 512


def joined(view: View) -> View | None:
    """View the wrapped tokens of a text put together again, and nothing else; None if there can't be any."""
    text = view.text
    # The breaks that could be inside a token, with what lies between them and whether the next line could be the rest of one.
    pieces = _BREAK.split(text)
    if len(pieces) == 1:
        return None
    count, are_tokens = len(pieces) // 3, not _BEGINNINGS.isdisjoint([line[:3].lower() for line in pieces[3::3]])
    are_rests, are_few = "" in pieces[2::3], count * _FAR < len(text)
    # Most texts have no mark anywhere: where breaks are many, to ask that of the whole takes less than to take it apart.
    if not (are_tokens or are_rests or are_few or count > _MOST_BREAKS) and not may_be_marked(to_bytes("".join(pieces[::3]))):
        return None
    rests = pieces[2::3]
    del pieces[2::3]
    places = list(accumulate(map(len, pieces)))
    breaks = list(zip(places[::2], places[1::2], strict=False))
    following = [end for end, rest in zip(places[1::2], rests, strict=False) if rest is not None]
    if are_tokens:
        breaks = [span for span in breaks if not _begins_token(text, span[1])]
        following = [place for place in following if not _begins_token(text, place)]
    return _joined_at(text, breaks, following) if breaks else None


def _joined_at(text: str, breaks: list[Span], following: list[int]) -> View | None:
    """View what surrounds some breaks without them, if a line behind one may be a token's rest, or there is a mark."""
    if len(breaks) > _MOST_BREAKS:
        return _joined_whole(text)
    if any(_may_go_on(text, place) for place in following):
        return pieced(*_around(text, breaks))
    are_few = len(breaks) * _FAR < len(text)
    if not are_few and not may_be_marked(to_bytes(_without(text, breaks))):
        return None
    kept, original = _around(text, breaks)
    # A mark elsewhere in the text is found there, without any line being joined.
    is_marked = may_be_marked(to_bytes("".join(kept)))
    return pieced(kept, original) if is_marked and (not are_few or may_be_marked(to_bytes(_without(text, breaks)))) else None


def _may_go_on(text: str, place: int) -> bool:
    """Tell whether a line starts with the rest of a token, whatever comes before it."""
    run, after = _run_at(text, place)
    return bool(run) and ((after in _CLOSINGS and (_could_end(run) or _mixes_all(run))) or values.looks_random(run))


def _joined_whole(text: str) -> View:
    """Put together all lines of a text that is full of breaks, which is cheaper than looking at each."""
    pieces = _ANY_BREAK.split(text)
    kept = pieces[:]
    kept[1::2] = [""] * (len(pieces) // 2)
    view = pieced(kept, pieces)
    view.is_whole = True
    return view


def _starts_token(line: str) -> bool:
    return line[:3] in _BEGINNINGS and line.startswith(_PREFIXES)


def _begins_token(text: str, place: int) -> bool:
    """Tell whether a token begins at a place: a line that begins so is no rest of another."""
    return _starts_token(text[place : place + 16].lower())


def _without(text: str, breaks: list[Span]) -> str:
    """Give a text without these breaks."""
    starts, ends = zip(*breaks, strict=True)
    return "".join([text[first:last] for first, last in zip((0, *ends), (*starts, len(text)), strict=True)])


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
        if not gap or not goes_on(text, gap.end(), is_long=end - start > 15):
            return end
        end = _RUN.match(text, gap.end()).end()  # type: ignore[union-attr]
    return end


def goes_on(text: str, place: int, *, is_long: bool) -> bool:
    """Tell whether a line starts with the rest of a token rather than with a word."""
    run, after = _run_at(text, place)
    if not run:
        return False
    if values.looks_random(run):
        return is_long or "_" not in run or _mixes_all(run)
    return after in _CLOSINGS and (_could_end(run) if is_long else _mixes_all(run))


def _run_at(text: str, place: int) -> tuple[str, str]:
    """Give the characters of a token at a place and the one behind them; none if they are a name, a call or a date."""
    match = _RUN.match(text, place)
    if not match:
        return "", ""
    run, after = match.group(), text[match.end() : match.end() + 1]
    # What is soonest told comes first: in code most of them are a name.
    if after in ("(", "[", "{", "<") or (after in (":", "=") and len(run) < 20) or _NAME_ENDS.match(text, match.end()):
        return "", ""
    if _starts_token(run[:16].lower()) or _assigns(run) or _DATE.match(run) or values.is_service_id(run):
        return "", ""
    return run, after


def _assigns(run: str) -> bool:
    """Tell whether a run is a name and its value, rather than a token that ends in padding."""
    name, sign, value = run.lstrip("+-").partition("=")
    if not sign or not (value.strip("=") or "_" in name or run[0] in "+-"):
        return False
    return all(map(expressions.is_identifier, _NAME_PARTS.split(name)))


def _mixes_all(run: str) -> bool:
    """Tell whether a run has a small letter, a capital and a digit, or is long and mixes its letters."""
    capitals, digits = sum(map(str.isupper, run)), sum(map(str.isdigit, run))
    smalls = sum(map(str.islower, run))
    return smalls > 0 and capitals > 0 and (digits > 0 or (len(run) > 9 and capitals > 3 and smalls > 2))


def _could_end(run: str) -> bool:
    """Tell whether a short run at the end of a line could be the last of a token."""
    if any(map(str.isdigit, run)) and any(map(str.isalpha, run)):
        return True
    upper = sum(map(str.isupper, run))
    return len(run) >= 12 or (1 < upper < len(run) - 1 and not run.istitle())
