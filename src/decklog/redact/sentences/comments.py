"""Secrets that are named behind them: by the comment at the end of a line, or by the end of a sentence."""

from collections.abc import Iterator

from decklog.prepared import prepared
from decklog.redact import expressions, lookalikes, phrases, values
from decklog.redact.names import known_kind
from decklog.redact.patterns.pattern import Pattern
from decklog.redact.view import Found, View

_LONGEST_LINE = 400
_LONGEST_WORD = 80
_OWNERS = "the|my|your|our|his|her|their"
_ENDS_SENTENCE = (
    r"(?:[ \t]*[.,;!?)\n]|[ \t]+(?:and|for|to|but|on|in|at|of|until|then|when|now|here|there|so|since|because)\b|[ \t]*$)"
)
_COMMENTS = Pattern(
    r"(?i)[\"']\.toCharArray|[\"'](?:,[ \t]*[\"'][\w-]{1,12}[\"'])?[)\];,!? \t]*(?:\.\w+\(\)[)\];, \t]*)?"
    r"(?:#|//|--|/\*)[ \t]*(?:[a-z0-9-]{1,16},?[ \t]){0,3}"
    r"(?:password|passwd|passphrase|pwd|secret|token"
    r"|(?:api|master|signing|encryption|aes|aes-?\d{3}|hmac|cipher|private|access|session) key)\b"
    r"|[!-~],?[ \t]+(?:<-{1,2}[ \t]+)?(?:that|it|this|which)(?:'s|[ \t]+(?:is|was))[ \t]+"
    r"(?:(?:the|my|your|our|his|her|their|an?|old|new)[ \t]+)"
    r"(?:[a-z]+[ \t]+){0,2}(?:password|passphrase|pwd|pw)\b|[!-~][ \t]+as[ \t]+(?:(?:the|my|your|our|its|his|her|their"
    r"|a|new|root|admin|db|default|temporary|initial)[ \t]+){0,3}(?:[a-z][\w.-]{1,24}[ \t]+)?"
    rf"(?:password|passphrase|passcode|passwd|pwd|pw){_ENDS_SENTENCE}"
    r"|[!-~][ \t]+\((?:(?:that|it|this)(?:'s|[ \t]+is)[ \t]+|=[ \t]*)?(?:the|my|your|our)[ \t]+(?:[a-z]+[ \t]+){0,2}"
    r"(?:password|passphrase|pwd|pw)\b"
    r"|[!-~],?[ \t]+(?:the[ \t]+)?same[ \t]+(?:old[ \t]+)?(?:password|passphrase|pwd|pw)\b"
    rf"|[!-~][ \t]+(?:is|was|(?:should|must|will|used[ \t]to)[ \t]be)[ \t]+(?:{_OWNERS})[ \t]+(?:[a-z]+[ \t]+){{0,2}}"
    rf"(?:password|passphrase|passcode|passwd|pwd|pw){_ENDS_SENTENCE}"
)
SIGN = _COMMENTS.source
_SAID_BEHIND = prepared(
    r"(?i)[ \t]+(?:(?:as|is|was|should|must|will|used)[ \t]|\()"
    r"|,?[ \t]+(?:<-{1,2}[ \t]+)?(?:that|it|this|which|(?:the[ \t]+)?same)\b"
)
_QUOTED_BEFORE = prepared(r"[\"'`]([^\"'`\n]{8,64})[\"'`]$")
_STRING = prepared(r"(\w[ \t]*(?::|=>?)[ \t]*)?([\"'])([^\"'\n]*)\2")
_LISTING = prepared(r"[^\n\"']{0,24}?(?:#|//|--|/\*)[ \t]*([a-zA-Z][\w ,-]{4,80})")
_NAMES_PHRASE = prepared(
    r"(?i)[^\n\"']{0,32}?(?:#|//|--|/\*)[ \t]*(?:[a-z-]{1,16}[ \t]){0,3}pass(?:word|phrase)[ \t]*(?:\n|$|\*/)"
)
_MOST_ITEMS = 6


def find(view: View) -> Iterator[Found]:
    """Find the text before a comment that says what it is: `login(user, "…")  # password`."""
    text, position = view.text, 0
    while span := _COMMENTS.find(view.data, position):
        quote, position = span[0], span[1]
        if text[quote + 1 : quote + 2] in (" ", "\t", ",") and _SAID_BEHIND.match(text, quote + 1):
            yield from _find_used(view, quote + 1)
            continue
        listing = _LISTING.match(text, quote + 1)
        if listing and "," in text[listing.start(1) : position]:
            # What it names last need not be what stands last.
            yield from _listed(text, quote, listing[1].split(","))
            continue
        start = text.rfind(text[quote], max(0, quote - _LONGEST_LINE), quote) + 1
        if start and _is_named(text, quote, text[start:quote]):
            yield Found(start, quote, "told-password")


def _is_named(text: str, quote: int, value: str) -> bool:
    """Tell whether a text is the secret that a comment calls it."""
    is_word = not any(map(str.isspace, value)) and values.is_told(value) and not expressions.is_field_name(value)
    if is_word and not values.is_numbered_id(value):
        return True
    if value.count(" ") > 1 and phrases.is_odd_phrase(value):
        return True
    if text.startswith(".toCharArray", quote + 1) and lookalikes.is_word_phrase(value):
        return True
    return lookalikes.is_joined_phrase(value) and bool(_NAMES_PHRASE.match(text, quote + 1))


def _listed(text: str, quote: int, items: list[str]) -> list[Found]:
    """Find the arguments that a comment names one by one: `connect("…", "…")  // user, password`."""
    line = max(text.rfind("\n", max(0, quote - _LONGEST_LINE), quote) + 1, quote - _LONGEST_LINE)
    given = [string for string in _STRING.finditer(text, line, quote + 1) if not string[1]]
    if not len(items) <= min(len(given), _MOST_ITEMS):
        return []
    named = zip(given[-len(items) :], items, strict=True)
    secrets = [string for string, item in named if known_kind(item.strip().replace(" ", "_")) and _is_argument(string[3])]
    return [Found(*string.span(3), "told-password") for string in secrets]


def _is_argument(value: str) -> bool:
    return (values.is_told(value) or values.looks_random(value)) and not expressions.is_field_name(value)


def _find_used(view: View, end: int) -> Iterator[Found]:
    """Find the word that was used as a password: `I typed … as the password`."""
    before = view.text[max(0, end - _LONGEST_WORD) : end]
    words = before.split()
    value = words[-1].strip("\"'`") if words else ""
    if (phrase := _QUOTED_BEFORE.search(before)) and lookalikes.is_phrase(phrase[1]):
        yield Found(end - len(before) + phrase.start(1), end - len(before) + phrase.end(1), "told-password")
    elif values.is_told_plainly(value) or lookalikes.is_signed(value) or lookalikes.is_joined_phrase(value):
        start = view.text.rindex(value, 0, end)
        yield Found(start, start + len(value), "told-password")
