"""Passwords that are told in other languages than English: `hasło: …`, `le mot de passe est …`, `密码是 …`."""

import re
from collections.abc import Iterator

from decklog.redact import values
from decklog.redact.patterns.pattern import Pattern
from decklog.redact.view import Found, View

# The bytes that the matcher reads have a question mark for every letter that one alphabet lacks.
_LATIN = Pattern(
    r"(?i)has[?l]o|contrase[\xf1\xd1n]a|mot de passe|passwort|kennwort|senha|palavra-passe|wachtwoord|l[\xf6\xd6o]senord|passord"
    r"|adgangskode|salasana|parol[a?e]|parool|hesl[oa]|lozinka|geslo"
    r"|jelsz[\xf3\xd3o]|[?s]ifre|m[?]t kh[?]u|kata sandi|password(?: \xe8|[ \t]*[?\x97])"
)
_OTHER = (
    *("парол", "Парол", "κωδικ", "Κωδικ", "סיסמ", "كلمة", "رمز", "पासवर्ड", "รหัสผ่าน"),
    *("密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호"),
)
_LETTERS = Pattern(r"[?]{2,}")
_WORD = (
    r"has[łl]o|contrase[ñn]a|mot de passe|passwort|kennwort|senha|palavra-passe|wachtwoord|l[öo]senord(?:et)?"
    r"|passordet|passord|adgangskoden?"
    r"|salasana|parol[aăeė]|parool|hesl[oa]|lozinka|geslo|jelsz[óo]|[şs]ifre(?:si)?"
    r"|mật khẩu|kata sandi|password(?= è|[ \t]*[→⇒—])"
    r"|парол[ья]|κωδικ[όο]ς|סיסמ[הא]|كلمة (?:المرور|السر)|رمز عبور|पासवर्ड|รหัสผ่าน|密码|密碼|口令|パスワード|暗証番号|비밀번호|암호"
)
_COPULA = r"ist|lautet|est|es|é|è|is|är|er|on|jest|to|este|je|van|—|–|->|→|⇒|是|为|は|는|은"
_TOLD = re.compile(
    rf"(?i)(?:{_WORD})(?:[^\n:：=\d\"]{{0,32}}[:：=]|[^\n:：=\d\"'.,]{{0,24}}?(?<![a-z])(?:{_COPULA})(?![a-z]))?"
    r"[ \t\u3000]*[\"'«„“「]?"
    r"([!-~¡-\u024f]{4,64})"
)
_ENDS = ".,;:)\"'»”」"


def find(view: View) -> Iterator[Found]:
    """Find the passwords that stand after the word for one."""
    for place in _places(view):
        match = _TOLD.match(view.text, place)
        if match and values.is_told(value := match.group(1).rstrip(_ENDS)):
            yield Found(match.start(1), match.start(1) + len(value), "told-password")


def _places(view: View) -> Iterator[int]:
    """Give the places of the words for a password."""
    position = 0
    while span := _LATIN.find(view.data, position):
        position = span[1]
        yield span[0]
    yield from _other_places(view)


def _other_places(view: View) -> Iterator[int]:
    """Give the places of words in other alphabets, looked for only where letters of such stand."""
    position = 0
    while span := _LETTERS.find(view.data, position):
        start, position = span
        if view.text[start:position].isascii():
            continue
        for word in _OTHER:
            place = view.text.find(word, start, position)
            while place >= 0:
                yield place
                place = view.text.find(word, place + len(word), position)
