"""Passwords that are told in other languages than English: `hasło: …`, `le mot de passe est …`, `密码是 …`."""

import re
from collections.abc import Iterator

from decklog.redact import values
from decklog.redact.patterns.pattern import Pattern
from decklog.redact.view import Found, View

# The bytes that the matcher reads have a question mark for every letter that one alphabet lacks.
_LATIN = Pattern(
    r"(?i)has[?l]o|contrase[\xf1\xd1n]a|mot de passe|passwort|kennwort|senha|palavra-passe|wachtwoord|l[\xf6\xd6o]senord|passord"
    r"|\bclave|\bmdp|adgangskode|salasana|parol[a?e]|parool|hesl[oa]|lozinka|geslo"
    r"|jelsz[\xf3\xd3o]|[?s]ifre|m[?]t kh[?]u|kata sandi|password(?: \xe8|[ \t]*[?\x97])"
)
_OTHER = (
    *("парол", "Парол", "κωδικ", "Κωδικ", "סיסמ", "كلمة", "رمز", "पासवर्ड", "รหัสผ่าน"),
    *("密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호"),
)
_LETTERS = re.compile(rb"\?+")
_WORD = (
    r"clave|mdp|has[łl]o|contrase[ñn]a|mot de passe|passwort|kennwort|senha|palavra-passe|wachtwoord|l[öo]senord(?:et)?"
    r"|passordet|passord|adgangskoden?"
    r"|salasana|parol[aăeė]|parool|hesl[oa]|lozinka|geslo|jelsz[óo]|[şs]ifre(?:si)?"
    r"|mật khẩu|kata sandi|password(?= è|[ \t]*[→⇒—])"
    r"|парол[ья]|κωδικ[όο]ς|סיסמ[הא]|كلمة (?:المرور|السر)|رمز عبور|पासवर्ड|รหัสผ่าน|密码|密碼|口令|パスワード|暗証番号|비밀번호|암호"
)
_COPULA = r"(?<![a-z])(?:ist|lautet|est|es|é|è|is|är|er|on|jest|to|este|je|van|là|это)(?![a-z])|—|–|->|→|⇒|是|为|為|は|는|은"
_TOLD = re.compile(
    rf"(?i)(?:{_WORD})([^\n:：=\d\"]{{0,32}}[:：=]|[^\n:：=\d\"'.,]{{0,24}}?(?:{_COPULA}))?"
    r"[ \t\u3000]*[\"'«„“「]?"
    r"([^\s\"'«»„“”「」、。，；]{4,64})"
)
_ENDS = ".,;:)\"'»”」"
# What a sentence ends with that has no blank before it.
_SENTENCE_END = re.compile("(?:です(?:よ|ね)?|でした|입니다|이에요|예요)[。.!]?$")
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_COUNTERS = re.compile(r"[位个個字自자文年月日天次回分秒时時]|\d[-~～至到]\d")
_NUMBER_OR_SIGN = re.compile(r"\d{3}|[!@#$%^&*+~?_-]")


def find(view: View) -> Iterator[Found]:
    """Find the passwords that stand after the word for one."""
    for place in _places(view):
        match = _TOLD.match(view.text, place)
        if match and _is_told(value := _SENTENCE_END.sub("", match.group(2)).rstrip(_ENDS), is_tied=bool(match.group(1))):
            yield Found(match.start(2), match.start(2) + len(value), "told-password")


def _is_told(value: str, *, is_tied: bool) -> bool:
    """Tell whether what comes after the word for a password is one, rather than the rest of the sentence."""
    if _IDEOGRAPHS.search(value):
        # There are no blanks between words: a number in one is counted with what is counted beside it.
        is_odd = bool(_NUMBER_OR_SIGN.search(value)) and any(map(str.isdigit, value))
        return is_tied and is_odd and not _COUNTERS.search(value)
    return values.is_told_plainly(value) if is_tied else values.is_told(value)


def _places(view: View) -> Iterator[int]:
    """Give the places of the words for a password."""
    position = 0
    while span := _LATIN.find(view.data, position):
        position = span[1]
        yield span[0]
    yield from _other_places(view)


def _other_places(view: View) -> Iterator[int]:
    """Give the places of words in other alphabets, looked for only where letters of such stand."""
    start = view.data.find(b"??")
    while start >= 0 and (letters := _LETTERS.match(view.data, start)):
        position = letters.end()
        place, start = start, view.data.find(b"??", position)
        if view.text[place:position].isascii():
            continue
        for word in _OTHER:
            found = view.text.find(word, place, position)
            while found >= 0:
                yield found
                found = view.text.find(word, found + len(word), position)
