"""Passwords and codes that answer a question: a line of a talk asks for one, and the next line is the answer."""

from collections.abc import Iterator

from decklog.prepared import prepared
from decklog.redact import lookalikes, made, phrases, values
from decklog.redact.sentences import checks
from decklog.redact.view import Found, View

# Who speaks, and when, as chats and their exports write it.
WHO = (
    r"[ \t]*(?:[-*•>+][ \t]+)?(?:\[[^\]\n]{3,24}\][ \t]*|\d{1,2}:\d\d(?::\d\d)?[ \t]+"
    r"|\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])? - )?"
    r"(?:<[\w.@ -]{1,24}>|[\w.-]{2,20}>|[\w.-]{2,20}[ \t]{1,4}\d{1,2}:\d\d(?::|[ \t]{1,4})"
    r"|[^\W\d_][\w.@’' -]{0,28}(?:[ \t]?[\[(][^\])\n]{1,24}[\])])?[ \t]?[:：])[ \t]*"
)
_PASSWORDS = (
    r"passw|passphrase|passcode|\bpass\b|\bpw\b|\bpwd\b|\bcreds?\b|credential|\blogin\b|kennwort|mot de passe|contrase[ñn]"
    r"|senha|has[łl]o|wachtwoord|l[öo]senord|adgangskode|salasana|heslo|parol|парол|密码|密碼|パスワード|비밀번호|\bkey\b|schl[üu]ssel|clave"
)
_CODES = (
    r"\bcode\b|c[óo]digo|codice|\bkod\b|\bcod\b|\botp\b|\bpin\b|\btan\b|\bsms\b|код|пин|コード|暗証番号|验证码|驗證碼|인증번호"
)
ASKING = (
    r"[?？]|\b(?:pls|please|send|tell|read|give|needs?|asks?|enter|provide|changed|share|bitte|schick|nenn|gib|brauch|envoi|donne|dime|manda|dammi|podaj|prosz)"
    r"|назов|скаж|пришл|нуж|введи|请|多少|什么|什麼|告诉|教え|お願い|ください|알려"
)
_SPEAKER = prepared(WHO)
_IS_ASKING, _OF_PASSWORD, _OF_CODE = (prepared(f"(?i){words}") for words in (ASKING, _PASSWORDS, _CODES))
_SENTENCES = prepared(r"(?<=[.!])\s+(?=\S)|(?<=[。！])\s*(?=\S)")
# The words before what is asked for.
_LEADING = prepared(
    r"(?i)(?:(?:sure|yes|yep|ok|okay|no|nope|it'?s|it is|that'?s|that is|this is|try|use|type|enter|new one"
    r"|here(?: you go| it is)?|still|now|just|is|the|code|pin|password|pw|for \S+|on \S+|same as \S+|i think|should be"
    r"|der|das|die|ist|ja|klar|hier|c'est|le|la|voil[àa]|oui|es|claro|toma|aqu[íi]|é|è|ecco|certo|to|jest|tak|proszę|вот|это|да|是|那是|好的|はい|네)"
    r"(?![\w-])[ \t]*[,:：.–-]?[ \t]*){0,5}[\"'`„«“]?"
)
# What asks for a code has no word that tells a password. Letters that one alphabet lacks are question marks in a view's bytes.
SIGN = r"(?:\bcode\b|c[\xf3o]digo|codice|\bkod\b|\bsms\b)[^\n]{0,100}\n[^\n]{1,48}[:>][^\n]{0,24}[0-9]{3}"
_NUMBER = prepared(r"(\d{3}[ -]\d{3}|\d{4,8})(?![\w:/.-]*\d)")
_WORD = prepared(r"[^\s\"'`„“”«»]{6,64}")
_QUOTED = prepared(r"([^\"'`„“”«»\n]{8,64})[\"'`“”»]")
# Small words to the end of a line, and what an arrow points at there.
_SPOKEN = prepared(r"[a-z]{3,12}(?: [a-z]{3,12}){3,8}(?=[.!]?[ \t]*(?:\n|$))")
_POINTED = prepared(r"(?:→|->|⇒|=>)[ \t]*(\S{6,48})[ \t]*$")
_ENDS = ".,;:)"
_FAR, _LONGEST_FAILURE = 240, 24
_TRIED = prepared(
    r"(?i)\b(?:try|tried|typed|entered|used|mit|avec|con)[ \t]+[\"'`„]?([^\s\"'`“”,()]{8,40})(?=[^\n]{0,80}\n?[^\n]{0,60}?"
    r"(?:\binvalid|\bwrong\b|nicht mehr rein|denied|incorrect))"
)
_WORDS_OF_CODES = (
    *("code", "digo", "codice", "kod", "otp", "pin", "sms", "код", "пин"),
    *("コード", "暗証番号", "验证码", "驗證碼", "인증번호"),
)
_WORDS_OF_FAILURE = ("invalid", "wrong", "nicht mehr rein", "denied", "incorrect")
# What else is answered: a ticket, a host, a version, a time, a file.
_OTHER = prepared(
    r"[A-Z]{2,8}-\d+|[a-z]{1,12}(?:-[a-z]{1,12}){0,3}-?\d{1,4}(?:\.[\w.]+)?|v?\d+(?:[.:]\d+)+\w*|[\w./-]+\.[a-z]{1,4}|\S+@\S+\.\w+|\w+://\S+|#\d+"
)


def find(view: View, places: list[int]) -> Iterator[Found]:
    """Find the answers to questions for a password or a code, and what somebody tried and was told that it is wrong.

    The places are those of words for a secret.
    """
    text, reached = view.text, 0
    low = lowered if len(lowered := text.lower()) == len(text) else text
    places = sorted([*places, *_places_of(low, _WORDS_OF_CODES)])
    for place in places:
        # Each line is asked once.
        if place >= reached:
            reached = text.find("\n", place) + 1
            if not reached:
                break
            yield from _answered(text, text.rfind("\n", 0, place) + 1, reached)
    for place in _places_of(low, _WORDS_OF_FAILURE):
        yield from _tried(text, place)


def _places_of(low: str, words: tuple[str, ...]) -> Iterator[int]:
    """Give where these words stand; to look for each takes far less than a pattern of all."""
    for word in words:
        place = low.find(word)
        while place >= 0:
            yield place
            place = low.find(word, place + len(word))


def _answered(text: str, line: int, below: int) -> Iterator[Found]:
    """Find what the next line of a talk answers to a line that asks."""
    who = _SPEAKER.match(text, line)
    answering = _SPEAKER.match(text, below + 1 if text.startswith("\n", below) else below) if who else None
    if not who or not answering:
        return
    # What is told of one before the question is not what is asked for.
    asked = _SENTENCES.split(text[who.end() : below].strip())[-1]
    if not _IS_ASKING.search(asked):
        return
    end = text.find("\n", answering.end()) % (len(text) + 1)
    leading = _LEADING.match(text, answering.end(), end)
    start = leading.end() if leading else answering.end()
    if _OF_PASSWORD.search(asked):
        yield from _password(text, start, end)
    if _OF_CODE.search(asked) and (number := _NUMBER.match(text, start, end)):
        yield Found(*number.span(1), "code")


def _tried(text: str, place: int) -> Iterator[Found]:
    """Find what somebody tried, in the line that tells of its failure or in the one before."""
    first = max(0, place - _FAR)
    line = text.rfind("\n", first, max(first, text.rfind("\n", first, place))) + 1
    for tried in _TRIED.finditer(text, max(first, line), place + _LONGEST_FAILURE):
        value = tried[1].rstrip(_ENDS)
        if _is_answer(value, is_all=False):
            yield Found(tried.start(1), tried.start(1) + len(value), "told-password")


def _password(text: str, place: int, end: int) -> Iterator[Found]:
    quoted = _QUOTED.match(text, place, end) if text[place - 1] in "\"'`„«“" else None
    if quoted and " " in quoted[1]:
        if phrases.is_odd_phrase(quoted[1]) or (quoted[1].islower() and phrases.is_spoken_phrase(quoted[1])):
            yield Found(*quoted.span(1), "told-password")
        return
    if (spoken := _SPOKEN.match(text, place, end)) and checks.are_unrelated(spoken[0].split(), least=4):
        yield Found(*spoken.span(), "told-password")
        return
    pointed = _POINTED.search(text, place, end)
    place = pointed.start(1) if pointed else place
    word = _WORD.match(text, place, end)
    value = word[0].rstrip(_ENDS) if word else ""
    is_all = not text[place + len(value) : end].strip(" \t.\"'`“”»です")
    if value and _is_answer(value, is_all=is_all):
        yield Found(place, place + len(value), "told-password")


def _is_answer(value: str, *, is_all: bool) -> bool:
    if _OTHER.fullmatch(value) or values.is_harmless(value) or values.is_path(value):
        return False
    if (
        made.is_made(value)
        or made.is_signed_once(value)
        or made.is_signed_last(value)
        or lookalikes.is_unmistakable(value)
        or lookalikes.is_coined(value)
    ):
        return True
    if values.has_all_kinds(value) and values.looks_random(value):
        return True
    return is_all and (values.is_told(value) or lookalikes.is_signed(value) or lookalikes.is_word_phrase(value))
