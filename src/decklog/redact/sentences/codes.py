"""Codes and keys that are given out in groups: seeds of one-time codes, licences, shares of a master key, lists of codes."""

from collections.abc import Iterator

from decklog.prepared import prepared
from decklog.redact import phrases, values
from decklog.redact.patterns.pattern import Span

_SEED = prepared(r"(?i)[a-z2-7]{16,}=*")
_HEX_SHARE = prepared(r"[0-9a-f]{32,66}")
# By which the key of somebody who signs is known.
_FINGERPRINT = prepared(r"[0-9A-F]{40}")
# What lies between two codes of a list, on one line or on two.
_BETWEEN = prepared(
    r"[\"'`]?(?:[ \t]*[,;/|]?[ \t]+(?:(?:and|or)[ \t]+)?|[,;]?[ \t]*\n[ \t]*)"
    r"(?:(?:\d{1,2}[.):]|[-*•])[ \t]+(?:\[[ x]?\][ \t]+)?)?[\"'`]?"
)
# The rest of a heading, an empty line or a rule or a sentence below it, and the first item of the list.
LISTED = (
    r"(?:[^\n.=({]|\.(?=\w)){0,60}(?:\([^\n()={}]{1,100}\)[ \t:]*)?\n(?:[ \t=~_-]*\n){0,2}"
    r"(?:[A-Z][^\n]{8,120}[.:]\n(?:[ \t]*\n)?)?"
    r"[ \t>|]{0,8}(?:(?:\d{1,2}[.):]|[-*•+])[ \t]+(?:\[[ x]?\][ \t]+)?)?[\"'`]?"
    r"([A-Za-z0-9]{3,10}(?:(?:-[A-Za-z0-9]{3,10}){1,4}|(?: [A-Za-z0-9]{3,10}){1,4})|[A-Za-z0-9]{8,16})"
    r"[\"'`]?,?(?=[ \t]*\n|[ \t]*$|[ \t]{2,})"
)
_LISTED = prepared(LISTED)
HEADING = r"codes|c[óo]digos|codici|codes? de"
_HEADING = prepared(f"(?i){HEADING}")
_YEAR = prepared(r"(?:19|20)\d\d(?:[- ](?:19|20)\d\d|[01]\d[0-3]\d)")
_MOST_ITEMS = 64


def is_seed(_text: str, _start: int, value: str) -> bool:
    """Tell whether what is called the key of an authenticator is one, in one piece or in groups of four."""
    if " " not in value:
        return bool(_SEED.fullmatch(value)) and (value.isupper() or any(map(str.isdigit, value)))
    return any(map(str.isdigit, value)) or phrases.is_unspoken(value)


def is_share(_text: str, _start: int, value: str) -> bool:
    """Tell whether what is called a part of a master key is one."""
    if _HEX_SHARE.fullmatch(value):
        return not value.isdigit() and not value.isalpha()
    return values.is_jumbled_key(value) and not values.is_harmless(value) and not _FINGERPRINT.fullmatch(value)


def is_licence(_text: str, _start: int, value: str) -> bool:
    """Tell whether groups of letters are a licence's, rather than crosses that stand for one."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and len(set(value)) > 6 and is_grouped(value)


def is_recovery(_text: str, _start: int, value: str) -> bool:
    """Tell whether groups that are called a key to recover something by are drawn, rather than crosses that stand for one."""
    return any(map(str.isdigit, value)) and len(set(value)) > 4


def is_grouped(value: str) -> bool:
    """Tell whether groups of one length, joined by hyphens, are no words: `k4pz-1xqm`, `mfkq-zxbw`."""
    groups = value.split("-")
    if len(groups) < 2 or len(set(map(len, groups))) > 1 or not 3 < len(groups[0]) < 9 or not all(map(str.isalnum, groups)):
        return False
    if value.replace("-", "").isalpha():
        return phrases.is_unspoken(value.replace("-", " ").lower(), least=1 if len(groups) > 2 else 2)
    return any(not group.isalpha() and not group.isdigit() for group in groups) or len(groups) > 2


def alike_behind(text: str, end: int, value: str) -> Iterator[Span]:
    """Give the places of the other codes of a list, each of which is written as the first one is."""
    for _ in range(_MOST_ITEMS):
        between = _BETWEEN.match(text, end)
        if not between:
            return
        start = between.end()
        end = start + len(value)
        if not _is_alike(text[start:end], value) or text[end : end + 1].isalnum() or text[end : end + 1] in ("-", "_", "="):
            return
        yield start, end


def _is_alike(other: str, value: str) -> bool:
    if len(other) != len(value) or not ("-" in other or any(map(str.isdigit, other))):
        return False
    return all(one == two or (one.isalnum() and two.isalnum()) for one, two in zip(other, value, strict=True))


def find_listed(text: str, opened: list[Span]) -> Iterator[Span]:
    """Find the codes in a list below a heading that says what they are."""
    for start, end in opened:
        last = end + len(text[end : end + 1].strip(" \t:=\n"))
        if not _HEADING.search(text, start, last):
            continue
        listed = _LISTED.match(text, end)
        if listed and _is_listed(listed[1]):
            yield listed.span(1)
            yield from alike_behind(text, listed.end(1), listed[1])


def _is_listed(value: str) -> bool:
    """Tell whether the item of a list is a code: groups of one length with numbers among them, and no years."""
    groups = value.replace("-", " ").split(" ")
    if is_grouped(value):
        return True
    if not any(map(str.isdigit, value)) or len(set(map(len, groups))) > 1 or _YEAR.fullmatch(value):
        return False
    if len(groups) == 1:
        return value.isdigit() or values.is_told(value)
    return "-" in value or all(any(map(str.isdigit, group)) for group in groups)
