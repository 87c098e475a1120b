"""Secrets given away by the name beside them: `password=x`, `"api_key": "x"`, `--token x`, `<secret>x</secret>`."""

from collections.abc import Iterator
from typing import NamedTuple

from decklog.redact import cookies, values
from decklog.redact.found import Found
from decklog.redact.names import known_kind
from decklog.redact.pattern import Pattern
from decklog.redact.view import View

_STEM = (
    r"(?:pass(?:word|wd|phrase|code|wort|w)?|p(?:s?wd|sk|sw|word)|kennwort|senha|contrasena|secret|token|key|jwt|auth|cred(?:ential)?s?"
    r"|bearer|pat|pepper)"
)
_TAIL = r"[\w.-]{0,40}"
_QUOTE = r"[\"'`]"
_HEAD = Pattern(
    rf"(?i)(?:[ \t\"'`=;,(\[]|^)--?[\w-]{{0,40}}{_STEM}[\w-]{{0,20}}[ \t]{{1,4}}{_QUOTE}?"
    rf"|(?:\bENV|\bARG|\bsetx)[ \t]{{1,4}}\w{{0,40}}{_STEM}\w{{0,20}}[ \t]{{1,4}}{_QUOTE}?"
    rf"|\bcookie2?{_QUOTE}?[ \t]{{0,8}}[:=][ \t]{{0,8}}{_QUOTE}?"
    rf"|{_STEM}{_TAIL}"
    rf"(?:{_QUOTE}?[\])]{{0,2}}[ \t]{{0,20}}(?::=|=>|={{1,3}}|:)(?:\s{{0,40}}[bfru@$]{{0,2}}{_QUOTE}{{1,3}}|[ \t]{{0,20}})"
    rf"|{_QUOTE}[ \t]{{0,20}},[ \t]{{0,20}}(?:value[ \t]*[=:][ \t]*)?{_QUOTE}"
    rf"|[ \t]{{1,20}}(?:is[ \t:]{{1,4}})?{_QUOTE}"
    rf"|{_QUOTE}[ \t]{{1,20}}value[ \t]*=[ \t]*{_QUOTE}"
    rf"|\([ \t]{{0,4}}{_QUOTE}"
    r"|[ \t]{1,20}is[ \t:]{1,4}"
    r"|>)"
)
_QUOTED = {mark: Pattern(rf"[^{mark}\n]*") for mark in "\"'`"}
_BARE = Pattern(r"[^\s\"'`<>]*")
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$@:/[")
_SETTERS = ("ENV ", "ARG ", "SETX")
_LONGEST_DOUBT = 512
_DOUBTFUL = ("key", "credential", "auth")
_SPELT_OUT = ("password", "passwd", "passphrase", "pwd", "secret", "token", "key")


class _Head(NamedTuple):
    """What stands before a value: the name, how the value is tied to it, and how it is quoted."""

    kind: str
    name: str
    tie: str
    quote: str
    spaced: bool
    named_quoted: bool
    start: int


def find(view: View) -> Iterator[Found]:
    """Find every value that its name gives away."""
    text, data, position = view.text, view.data, 0
    while span := _HEAD.find(data, position):
        start, position = span
        if text[start] in "cC" and text[start : start + 6].lower() == "cookie":
            yield from cookies.find_in_line(view, position)
            position = cookies.line_end(view, position)
            continue
        head = _read_head(text, start, position)
        found = head and _read_value(view, head)
        if found:
            yield found
            position = max(position, found.end)


def _read_head(text: str, start: int, end: int) -> _Head | None:
    """Take a head apart; None if the name announces nothing."""
    start, stop = _name_bounds(text, start, end)
    name = text[start:stop].rstrip(".-")
    if "[redacted" in name or (
        text[stop : stop + 1] == "]" and "[redacted:" in text[max(0, start - 48) : start]
    ):
        return None
    kind = known_kind(name)
    if kind is None:
        return None
    tie = text[stop:end]
    quote = tie[-1] if tie and tie[-1] in "\"'`" else ""
    bare = tie.strip("\"'`[]()bfruBFRU@$")
    return _Head(
        kind, name, bare.strip(), quote, bare[:1].isspace(), tie[:1] in "\"'`" and tie[:1] != "", end
    )


def _name_bounds(text: str, start: int, end: int) -> tuple[int, int]:
    """Find where the whole name starts and stops, given any part of it."""
    while start < end and text[start] in " \t\"'`=;,([":
        start += 1
    if text[start : start + 4].upper() in _SETTERS:
        start = end - len(text[start:end].split(None, 1)[1])
    stop = start
    while stop < end and (text[stop].isalnum() or text[stop] in "_-."):
        stop += 1
    floor = max(0, start - 64)
    while start > floor and text[start - 1] in _NAME_CHARS:
        start -= 1
    return start, stop


def _read_value(view: View, head: _Head) -> Found | None:
    """Read the value after a head and decide; a long one is decided by its beginning."""
    start, data = head.start, view.data
    reader = _QUOTED[head.quote] if head.quote else _BARE
    limit = min(len(data), start + _LONGEST_DOUBT)
    end = reader.end_at(data, start, limit)
    if not head.quote:
        end = _trim(view.text, start, end)
    if end == start or not is_secret(head, view.text[start:end], view.text, end):
        return None
    if end == start + _LONGEST_DOUBT:
        end = reader.end_at(data, start, len(data))
    return Found(start, end, head.kind)


def _trim(text: str, start: int, end: int) -> int:
    """End an unquoted value where its surroundings go on."""
    value = text[start:end]
    for mark in "&;,|":
        cut = value.find(mark, 1)
        if cut > 0:
            value = value[:cut]
    while value and value[-1] in ")]},;:.\\" and not _opens(value):
        value = value[:-1]
    return start + len(value)


def _opens(value: str) -> bool:
    pairs = {")": "(", "]": "[", "}": "{"}
    opener = pairs.get(value[-1])
    return opener is not None and opener in value


def is_secret(head: _Head, value: str, text: str, end: int) -> bool:
    """Decide whether a named value is a secret."""
    after = text[end : end + 1]
    if (
        values.is_placeholder(value)
        or values.is_path(value)
        or values.is_url(value)
        or values.is_prose(value)
    ):
        return False
    if head.quote:
        return _is_opened(head, value, after) and _quoted_is_secret(head, value)
    if values.is_code(value) or after in ("(", "[") or text.startswith("...", end):
        return False
    if head.tie == ">" and after != "<":
        return False
    if head.named_quoted and head.tie in (":", "=>", ","):
        return values.looks_random(value) and not value.isdigit()
    return _bare_is_secret(head, value, after, text)


def _is_opened(head: _Head, value: str, after: str) -> bool:
    """Tell whether the quote before a value opens it, rather than closing what came before."""
    if head.named_quoted:
        return True
    if after != head.quote and not (value[0].isalnum() and _mixes(value) and " " not in value):
        return False
    return value[0] not in " )+,;:]}"


def _quoted_is_secret(head: _Head, value: str) -> bool:
    if head.tie == "" or head.tie.startswith(("is", ",")):
        # Words that merely stand near each other: only a value that is no word counts.
        return head.name.lower().endswith(_SPELT_OUT) and _has_oddity(value) and " " not in value
    if head.kind == "password":
        return True
    if head.kind in _DOUBTFUL:
        return values.looks_random(value)
    if head.named_quoted and head.tie in (":", "=>"):
        return not (values.is_word(value) and len(value) < 24 and not value.isalpha())
    if values.is_word(value):
        return len(value) >= 16 and value.isalpha()
    return len(value) >= 6 and _mixes(value) or value.isdigit()


def _bare_is_secret(head: _Head, value: str, after: str, text: str) -> bool:
    if head.tie == "" and not _is_flag(head):
        return False
    if values.looks_random(value):
        return True
    if head.kind in _DOUBTFUL:
        return False
    if head.kind == "password":
        return _bare_password(head, value, after, text)
    if head.tie == "=" and not head.spaced:
        return _mixes(value) and len(value) >= 6 or (len(value) >= 16 and value.isalnum())
    return (
        len(value) >= 8 and any(map(str.isdigit, value)) and _mixes(value) and not values.is_type_name(value)
    )


def _bare_password(head: _Head, value: str, after: str, text: str) -> bool:
    if value[0] in ":@" and head.spaced:
        return False
    if value.isdigit():
        return len(value) > 3
    if not values.is_word(value):
        return _mixes(value) or not value.isalnum()
    if head.tie == "=" and not head.spaced:
        return after not in (",", ")", ";", ".", "]", "}") and not any(mark in value for mark in "_.")
    if head.tie != ":":
        return False
    return (
        after in ("", "\n")
        and value.islower()
        and value.isalpha()
        and len(value) >= 6
        and _starts_line(text, head)
    )


def _is_flag(head: _Head) -> bool:
    return head.name.startswith("-") or head.name.isupper()


def _starts_line(text: str, head: _Head) -> bool:
    line = text.rfind("\n", max(0, head.start - 120), head.start) + 1
    return text[line : head.start].strip().lstrip("- ").startswith(head.name)


def _mixes(value: str) -> bool:
    """Tell whether a value has both letters and something else."""
    return any(map(str.isalpha, value)) and not value.replace("_", "").isalpha()


def _has_oddity(value: str) -> bool:
    """Tell whether a value has a digit or a sign that names do not have."""
    return any(char.isdigit() or not (char.isalpha() or char in "-_./:") for char in value) and any(
        map(str.isalnum, value)
    )
