"""Secrets given away by the name beside them: `password=x`, `"api_key": "x"`, `--token x`, `<secret>x</secret>`."""

from collections.abc import Iterator
from typing import NamedTuple

from decklog.redact import values
from decklog.redact.found import Found
from decklog.redact.names import kind_of
from decklog.redact.pattern import compiled
from decklog.redact.view import View

_STEM = (
    r"(?:pass(?:word|wd|phrase|code|wort|w)?|p(?:s?wd|sk|sw|word)|kennwort|senha|contrasena|secret|token|key|jwt|auth|cred(?:ential)?s?"
    r"|bearer|pat|pepper)"
)
_TAIL = r"[\w.-]{0,40}"
_QUOTE = r"[\"'`]"
_HEAD = compiled(
    rf"(?i)(?:[ \t\"'`=;,(\[]|^)--?[\w-]{{0,40}}{_STEM}[\w-]{{0,20}}[ \t]{{1,4}}{_QUOTE}?"
    rf"|(?:\bENV|\bARG|\bsetx)[ \t]{{1,4}}\w{{0,40}}{_STEM}\w{{0,20}}[ \t]{{1,4}}{_QUOTE}?"
    rf"|{_STEM}{_TAIL}"
    rf"(?:{_QUOTE}?[\])]{{0,2}}[ \t]{{0,20}}(?::=|=>|={{1,3}}|:)(?:\s{{0,40}}[bfru@$]{{0,2}}{_QUOTE}{{1,3}}|[ \t]{{0,20}})"
    rf"|{_QUOTE}[ \t]{{0,20}},[ \t]{{0,20}}(?:value[ \t]*[=:][ \t]*)?{_QUOTE}"
    rf"|[ \t]{{1,20}}(?:is[ \t:]{{1,4}})?{_QUOTE}"
    rf"|{_QUOTE}[ \t]{{1,20}}value[ \t]*=[ \t]*{_QUOTE}"
    rf"|\([ \t]{{0,4}}{_QUOTE}"
    r"|[ \t]{1,20}is[ \t:]{1,4}"
    r"|>)"
)
_QUOTED = {mark: compiled(rf"[^{mark}\n]*") for mark in "\"'`"}
_BARE = compiled(r"[^\s\"'`<>]*")
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
    data, position, end = view.data, 0, len(view.data)
    while position < end and (match := _HEAD.search(data, position)):
        position = match.end()
        head = _read_head(view.text, match.start(), match.end())
        if head is None:
            continue
        found = _read_value(view, head)
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
    kind = kind_of(name)
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
    match = reader.match(data, start, min(len(data), start + _LONGEST_DOUBT))
    end = match.end() if match else start
    if not head.quote:
        end = _trim(view.text, start, end)
    value = view.text[start:end]
    if not value or not is_secret(head, value, view.text[end : end + 1], view.text, start):
        return None
    if end == start + _LONGEST_DOUBT and (whole := reader.match(data, start)):
        end = whole.end()
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


def is_secret(head: _Head, value: str, after: str, text: str, start: int) -> bool:
    """Decide whether a named value is a secret."""
    if (
        values.is_placeholder(value)
        or values.is_path(value)
        or values.is_url(value)
        or values.is_prose(value)
    ):
        return False
    if head.quote:
        return _is_opened(head, value, after) and _quoted_is_secret(head, value)
    if values.is_code(value) or after in ("(", "[") or text.startswith("...", start + len(value)):
        return False
    if head.tie == ">" and after != "<":
        return False
    if head.named_quoted and head.tie in (":", "=>", ","):
        return values.looks_random(value) and not value.isdigit()
    return _bare_is_secret(head, value, after, text, start)


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


def _bare_is_secret(head: _Head, value: str, after: str, text: str, start: int) -> bool:
    if head.tie == "" and not _is_flag(head):
        return False
    if values.looks_random(value):
        return True
    if head.kind in _DOUBTFUL:
        return False
    if head.kind == "password":
        return _bare_password(head, value, after, text, start)
    if head.tie == "=" and not head.spaced:
        return _mixes(value) and len(value) >= 6 or (len(value) >= 16 and value.isalnum())
    return (
        len(value) >= 8 and any(map(str.isdigit, value)) and _mixes(value) and not values.is_type_name(value)
    )


def _bare_password(head: _Head, value: str, after: str, text: str, start: int) -> bool:
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
        and _starts_line(text, start, head)
    )


def _is_flag(head: _Head) -> bool:
    return head.name.startswith("-") or head.name.isupper()


def _starts_line(text: str, start: int, head: _Head) -> bool:
    line = text.rfind("\n", 0, start) + 1
    return text[line:start].strip().lstrip("- ").startswith(head.name)


def _mixes(value: str) -> bool:
    """Tell whether a value has both letters and something else."""
    return any(map(str.isalpha, value)) and not value.replace("_", "").isalpha()


def _has_oddity(value: str) -> bool:
    """Tell whether a value has a digit or a sign that names do not have."""
    return any(char.isdigit() or not (char.isalpha() or char in "-_./:") for char in value) and any(
        map(str.isalnum, value)
    )
