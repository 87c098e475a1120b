"""Passwords of users that are listed under a heading, each beside the user's name: `chpasswd:`, `basic:`, `passwords:`."""

from collections.abc import Iterator

from decklog.prepared import prepared
from decklog.redact import lookalikes, made, values
from decklog.redact.placeholders import word_set
from decklog.redact.view import Found, View

# What heads a list of users, besides the words for a password.
HEADING = r"chpasswd:|basic(?:[_-]?auth)?:"
HEAD = r"(?:chpasswd|basic(?:[_-]?auth)?|passwords|htpasswd|credentials)[\"']?:[ \t]*\n"
_HEAD = prepared(rf"(?i)([ \t]*)(?:- )?[\"']?[\w.-]{{0,24}}{HEAD}")
_USER = prepared(r"([ \t]+)(?:- )?[\"']?([\w.@-]{1,40})[\"']?:[ \t]{0,8}[\"']?([^\s\"'#]{6,64})[\"']?,?[ \t]*(?:\n|$)")
# A heading in the words of a sentence, and lines of a user and a password below it, numbered or not.
SAID_HEAD = r"\b(?:logins|passwords|passwörter|accounts|credentials|creds|zugänge)\b[^\n:={}()\[\]\"'<>]{0,40}:?[ \t]*\n"
_SAID_HEAD = prepared(rf"(?i)[^\n:={{}}()\[\]\"'<>]{{0,40}}{SAID_HEAD}")
SAID_USER = (
    r"[ \t]*(?:\d{1,2}[.)][ \t]+|[-*•][ \t]+)?([\w.@+-]{2,64})[ \t]*(?::|->|→|=|/|-)[ \t]+"
    r"[\"'`]?([^\s\"'`]{6,64})[\"'`]?[ \t]*(?:\n|$)"
)
_SAID_USER = prepared(SAID_USER)
_LINE = prepared(r"([ \t]*)[^\n]*(?:\n|$)")
_MOST_LINES = 40
_LONGEST_HEADING = 92
_NO_HEADING = frozenset("={}()[]<>")
# Fields of such a section that are no user.
_FIELDS = word_set(
    """
    realm type name file path url uri host hostname port header scheme method issuer audience scope id client_id secret_name
    secretname image version key_id kid alg algorithm hash digest sha256 checksum salt ref username user email login expire
    """
)


def find(view: View, places: list[int]) -> Iterator[Found]:
    """Find the passwords below the headings at some places."""
    text, position, seen = view.text, 0, set[int]()
    for place in places:
        line = text.rfind("\n", max(0, place - 64), place) + 1
        if place < position or line in seen:
            continue
        seen.add(line)
        if not _may_be_heading(text[line : text.find("\n", line) + 1]):
            continue
        if heading := _HEAD.match(text, line):
            position = heading.end()
            yield from _listed(text, position, len(heading[1]))
        elif said := _SAID_HEAD.match(text, line):
            position = said.end()
            yield from _told(text, position)


def _may_be_heading(line: str) -> bool:
    """Tell whether a line has nothing that no heading has: most are longer, or code, which takes far less to see."""
    return bool(line) and len(line.strip()) <= _LONGEST_HEADING and _NO_HEADING.isdisjoint(line)


def _listed(text: str, place: int, indent: int) -> Iterator[Found]:
    for _ in range(_MOST_LINES):
        line = _LINE.match(text, place)
        if not line or line.end() == place or (len(line[1]) <= indent and line[0].strip()):
            return
        user = _USER.match(text, place)
        if user and user[2].lower() not in _FIELDS and _is_password(user[3]):
            yield Found(*user.span(3), "listed-password")
        place = line.end()


def _told(text: str, place: int) -> Iterator[Found]:
    for _ in range(_MOST_LINES):
        user = _SAID_USER.match(text, place)
        if not user:
            return
        is_odd = lookalikes.is_unmistakable(user[2]) or values.is_told(user[2])
        if user[1].lower() not in _FIELDS and (is_odd or _is_password(user[2])):
            yield Found(*user.span(2), "listed-password")
        place = user.end()


def _is_password(value: str) -> bool:
    if values.is_harmless(value) or "[redacted" in value:
        return False
    return made.is_made(value) or made.is_signed_once(value) or values.is_jumble(value) or lookalikes.is_coined(value)
