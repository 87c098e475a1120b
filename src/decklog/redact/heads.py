"""What stands before a named value: `DB_PASSWORD=`, `"api_key": "`, `--token `, `<secret>`."""

import re
from typing import NamedTuple

from decklog.redact.names import kind_of
from decklog.redact.patterns.pattern import Pattern

_STEM = (
    r"(?:pass(?:word|wd|phrase|code|wort|w)?|p(?:s?wd|sk|sw|word|w)|kennwort|senha|contrasena|secret|token|key"
    r"|(?:api|secret|access|private) key|jwt|auth|cred(?:ential)?s?|bearer|pat|pepper)"
)
_QUOTE = r"[\"'`]"
# The last character of a match is the first of the value: where nothing follows, nothing need be asked.
HEAD = Pattern(
    rf"(?i)(?:-[\w.-]*?{_STEM}[\w-]*[ \t]+{_QUOTE}?"
    rf"|\b(?:ENV|ARG|setx|config(?:ure)? set)[ \t]+[\w./:-]*?{_STEM}\w*[ \t]+{_QUOTE}?"
    rf"|\bcookie2?{_QUOTE}?[ \t]*[:=][ \t]*{_QUOTE}?"
    rf"|[\w.$@-]*?{_STEM}[\w.-]*"
    rf"(?:{_QUOTE}?[\])]{{0,2}}[ \t]*(?::=|=>|={{1,3}}|:)"
    rf"(?:\s*[bfru@$]{{0,2}}{_QUOTE}{{1,3}}|[ \t]*)"
    rf"|{_QUOTE}[ \t]*,[ \t]*(?:value[ \t]*[=:][ \t]*)?{_QUOTE}"
    rf"|[ \t]+(?:is[ \t:]+)?{_QUOTE}"
    rf"|{_QUOTE}[ \t]+value[ \t]*=[ \t]*{_QUOTE}"
    rf"|\([ \t]*{_QUOTE}"
    r"|[ \t]+is[ \t:]+"
    r"|>))[^\s<]"
)
_PARTS = re.compile(
    r"(?is)(?:(env|arg|setx|config(?:ure)? set)[ \t]+(?:[\w./:-]*[/:])?)?"
    r"((?:(?:api|secret|access|private) (?=key))?[\w.$@-]*)(.*)"
)
_LONGEST = 160
_MOST_KNOWN = 4_096


class Head(NamedTuple):
    """A name that announces a secret, how a value is tied to it, and how that is quoted."""

    kind: str
    name: str
    tie: str
    quote: str
    marks: int
    is_spaced: bool
    is_quoted: bool
    is_set: bool


_known: dict[str, Head | None] = {}


def read(source: str) -> Head | None:
    """Take a head apart, remembering those seen before; None if its name announces nothing."""
    source = source[-_LONGEST:]
    if source not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[source] = _parse(source)
    return _known[source]


def _parse(source: str) -> Head | None:
    parts = _PARTS.match(source)
    setter, name, tie = parts.groups() if parts else ("", "", "")
    kind = kind_of(name.rstrip(".-"))
    if kind is None:
        return None
    quote = tie[-1] if tie and tie[-1] in "\"'`" else ""
    marks = len(tie) - len(tie.rstrip("\"'`"))
    bare = tie.strip("\"'`[]()bfruBFRU@$")
    is_set = bool(setter) or name.startswith("-")
    return Head(kind, name, bare.strip(), quote, marks, bare[:1].isspace(), tie[:1] in ('"', "'", "`"), is_set)
