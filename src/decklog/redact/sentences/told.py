"""Passwords and codes that a person tells another: "log in with admin / …", "the PIN is …", "unlock code …"."""

import re
from collections.abc import Collection, Iterator

from decklog.prepared import prepared
from decklog.redact import lookalikes, values
from decklog.redact.patterns.pattern import Pattern, Sign, Span
from decklog.redact.sentences import accounts, answers, codes, comments, languages, next_lines
from decklog.redact.sentences.tellings import TELLINGS
from decklog.redact.view import Found, View, plain

# The ways in which something is told, by numbers that are none of another way of finding secrets.
PARTS = range(32, 41)
IN_SENTENCE, BEHIND, INSERTED, WRAPPED, BELOW, LISTED, ANSWERED, CODES, FOREIGN = PARTS
# Letters that a pattern which does not ask for their case takes for letters of English, and what is drawn between the cells of a
# table: in bytes they are question marks, and a text that has any is searched in all ways.
UNTOLD = ("\u212a", "\u017f", "\u0130", "\u0131", "\u2502")
_MOST_KNOWN = 4_096
# Of two openings at one place the first is taken: the one with a bracket is the longer.
OPENINGS = sorted(dict.fromkeys(telling.opening for telling in TELLINGS), key=lambda opening: "\\(" not in opening)
_OPENINGS = Pattern(rf"(?i)(?:{languages.WORDS})|\b(?:{'|'.join(OPENINGS)}|{next_lines.ANNOUNCING}|{accounts.HEADING})")
# A line may tell what the next one is, which needs less of a sign.
SIGN_ABOVE = f"{_OPENINGS.source}|{answers.SIGN}"
_MAY_OPEN = Sign(SIGN_ABOVE)


def _tied() -> Iterator[str]:
    """Give each opening with the characters that may follow it."""
    following: dict[str, str] = {}
    for telling in TELLINGS:
        following[telling.opening] = following.get(telling.opening, "") + telling.following
    for opening, characters in following.items():
        # A word that other languages borrowed may have their letters behind it, or a long dash.
        ties = "".join(map(re.escape, dict.fromkeys(characters + "?\x97")))
        yield f"(?:{opening})[{ties}]" if characters else opening


# Without any of these a line has nothing to find: most places where something could be told go on in another way. Two letters of
# another alphabet are two question marks in a view's bytes.
SIGN = rf"(?i)(?:{languages.WORDS})|\b(?:{'|'.join(_tied())})|\)\s*values\s*\(|\?\?|toCharArray|{comments.SIGN}"
_EACH_OPENING = [prepared(f"(?i)(?:{telling.opening})") for telling in TELLINGS]
_rests: dict[int, Pattern] = {}
_known: dict[bytes, tuple[int, ...]] = {}
_together: dict[tuple[int, ...], Pattern] = {}
_GROUP = prepared(r"(?<!\\)\((?!\?)")
# The rest of a line of a sentence, and what a mail or a comment puts before the next one.
_WRAPPED = prepared(r"[^\n:=\"`(){}\[\]<>;]{0,72}(\n)[ \t]*(?:[>#*|]+|//+|--)?[ \t]*(?=[a-z])")
_BEHIND_SIGN = prepared(r"[,<>=]([^\s\"'`,<>=]{4,48})")
_ODD = prepared(r"[0-9!#$%^&*+~]")
_LONGEST_LINE = 120


def may_tell_below(data: bytes) -> bool:
    """Tell whether a line may tell what the next one is."""
    return bool(_MAY_OPEN.look(data))


def find(view: View, parts: Collection[int] = PARTS) -> Iterator[Found]:
    """Find what a sentence, a call or the comment behind it tells to be a secret, in the ways of these numbers."""
    opened = _opened(view)
    if IN_SENTENCE in parts:
        yield from _find_told(view, opened)
    if BEHIND in parts and _may_be_named_behind(view.data, opened):
        yield from comments.find(view)
    if INSERTED in parts and opened and (b"INSERT" in view.data or b"insert into" in view.data):
        yield from next_lines.find_inserted(view, [start for start, _ in opened])
    if "\n" in view.text:
        yield from _find_in_lines(view, opened, parts)
    if FOREIGN in parts:
        yield from languages.find(view, opened)


def _find_in_lines(view: View, opened: list[Span], parts: Collection[int]) -> Iterator[Found]:
    """Find what is told across lines."""
    if WRAPPED in parts:
        yield from _find_wrapped(view, opened)
    places = sorted([*(start for start, _ in opened), *languages.other_places(view)])
    if BELOW in parts:
        yield from next_lines.find(view, places)
    if LISTED in parts:
        yield from accounts.find(view, [start for start, _ in opened])
    if ANSWERED in parts:
        yield from answers.find(view, places)
    if CODES in parts:
        yield from (Found(*place, "code") for place in codes.find_listed(view.text, opened))


def _may_be_named_behind(data: bytes, opened: list[Span]) -> bool:
    """Tell whether a comment or the end of a sentence may name what stands before: by a word that opens a telling, or a key."""
    said = b" ".join([data[start:end] for start, end in opened]).lower()
    if b"passw" in said or b"passp" in said or b"passc" in said or b"pw" in said:
        return True
    if b"toCharArray" in data:
        return True
    is_named = b"secret" in said or b"token" in said or b" key" in data or b" Key" in data or b" KEY" in data
    return is_named and (b"#" in data or b"//" in data or b"--" in data or b"/*" in data)


def _opened(view: View) -> list[Span]:
    """Give the places where something is told, or announced for the next line."""
    places, position = [], 0
    while span := _OPENINGS.find(view.data, position):
        position = span[1]
        places.append(span)
    return places


def _find_told(view: View, opened: list[Span]) -> Iterator[Found]:
    data, position = view.data, 0
    for span in opened:
        if span[0] < position:
            continue
        candidates = _candidates(data[span[0] : span[1] + 1], span[1] - span[0])
        if not candidates or _any_of(candidates).end_at(data, span[1], len(data)) == span[1]:
            continue
        for index in candidates:
            found = _match(view, index, span[0], span[1])
            if found:
                position = max(position, found.end)
                yield found
                if found.kind == "code":
                    value = view.text[found.start : found.end]
                    yield from (Found(*place, "code") for place in codes.alike_behind(view.text, found.end, value))
                break


def _find_wrapped(view: View, opened: list[Span]) -> Iterator[Found]:
    """Find what a sentence tells that goes on in the next line, with the marks of a mail or a comment between."""
    text = view.text
    for start, end in opened:
        wrapped = _WRAPPED.match(text, end)
        if not wrapped:
            continue
        last = text.find("\n", wrapped.end(), wrapped.end() + _LONGEST_LINE)
        below = text[wrapped.end() : last if last >= 0 else wrapped.end() + _LONGEST_LINE]
        if not _ODD.search(below):
            continue
        above = text[start : wrapped.start(1)].rstrip() + " "
        sentence, length = plain(above + below), end - start
        for index in _candidates(sentence.data[: length + 1], length):
            found = _match(sentence, index, 0, length)
            if found and found.start >= len(above):
                offset = wrapped.end() - len(above)
                yield Found(found.start + offset, found.end + offset, found.kind)
                break


def _any_of(candidates: tuple[int, ...]) -> Pattern:
    """Give what matches if one of these ways goes on so: most places are none of them, and need one look only."""
    if candidates not in _together:
        _together[candidates] = Pattern("|".join(f"(?:{_GROUP.sub('(?:', rest_of(index))})" for index in candidates))
    return _together[candidates]


def rest_of(index: int) -> str:
    """Give what follows the opening of a telling."""
    telling = TELLINGS[index]
    return telling.rest if telling.kind == "token" else f"(?i:{telling.rest})"


def _candidates(beginning: bytes, length: int) -> tuple[int, ...]:
    """Give the ways of telling that begin so, remembering the beginnings seen before."""
    if beginning not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[beginning] = _possible(beginning[:length].decode("latin-1"), beginning[length:].decode("latin-1"))
    return _known[beginning]


def _possible(opening: str, following: str) -> tuple[int, ...]:
    opened = [index for index, pattern in enumerate(_EACH_OPENING) if pattern.fullmatch(opening)]
    return tuple(
        index for index in opened if not TELLINGS[index].following or (following and following in TELLINGS[index].following)
    )


def _goes_on_to(text: str, end: int) -> int:
    """Give the end of a value that has a comma or a bracket in it: what follows at once has numbers and signs as no word has."""
    rest = _BEHIND_SIGN.match(text, end)
    return rest.end() if rest and values.is_told(rest[1]) and lookalikes.is_unmistakable(rest[1]) else end


def _match(view: View, index: int, start: int, place: int) -> Found | None:
    telling = TELLINGS[index]
    if index not in _rests:
        _rests[index] = Pattern(rest_of(index))
    spans = _rests[index].group_at(view.data, place)
    if spans is None:
        return None
    first, last = spans[1]
    last = _goes_on_to(view.text, last)
    value = view.text[first:last].rstrip(".,;:)")
    if not value or "[redacted:" in view.text[start : last + 1] or not telling.is_one(view.text, start, value):
        return None
    return Found(first, first + len(value), telling.kind)
