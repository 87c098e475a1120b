"""Passwords and codes that a person tells another: "log in with admin / …", "the PIN is …", "unlock code …"."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from decklog.redact import lookalikes, next_lines, values
from decklog.redact.patterns.pattern import Pattern, Span
from decklog.redact.placeholders import BENIGN_WORDS, STOP_WORDS, word_set
from decklog.redact.view import Found, View

_MOST_KNOWN = 4_096
_QUOTE = r"[\"'`]?"
_VALUE = r"([^\s\"'`,<>]{4,64})"
_USERS = (
    r"(?:\w{0,16}admin\w{0,10}|root|user\w{0,8}|test\w{0,8}|demo|guest|ops|pi|postgres|sa|ubuntu|deploy|operator|support"
    r"|service|svc)"
)
_PLACES = "door|gate|alarm|safe|entry|entrance|garage|locker|lock|building|office"
_LOCKS = (
    "unlock|access|activation|recovery|backup|rescue|emergency|verification|security|2fa|mfa|otp|totp|login|sign-?in"
    "|pairing|scratch"
)
_SET = re.compile(r"(?i)\b(?:set|reset|changed?|rotated?|updated?|made)\b[^.\n]{0,40}$")
_USER_BEFORE = re.compile(
    r"(?i)(?:\b(?:user(?:name)?|login|e-?mail|account|as)\b[ \t:=]*[\"'`]?[\w.@+-]+|@[\w.-]+)[\"'`]?"
    r"(?:[ \t]*[,;/|]|[ \t]+(?:and|with))[ \t]*(?:the[ \t]+)?$"
)
_SENTENCE_ENDS = ("", "\n", ".", ",", ";", "!", ")", '"')
_LED_IN = re.compile(r"(?i)(?:(?:with|using|shared|same|the|and|use|has|have|old|default|,|:)[ \t]+)$")
_CAMEL_COUNTED = re.compile(r"[a-z]{3,}[A-Z][a-z]{2,}\d{1,4}")
_GROUPS = re.compile(r"\d{2,6}(?:-\d{2,6})+")
_OWNED = re.compile(r"(?i)\b(?:my|the|your|his|her|our|their|sim|card|door)[ \t]+$")
_PURPOSES = word_set(
    """
    expire match require prevent include contain avoid allow get make keep protect comply satisfy meet follow log
    connect unlock never always something anything whatever another someone everyone nothing ensure improve increase
    test check validate work open
    """
)
_ASKED = word_set("user users answer answers question questions field column string hashed encrypted stored see read")
_LONGEST_LINE = 400
_LONGEST_WORD = 80


class Telling(NamedTuple):
    """A way of telling a secret: how it opens, what can come next, the rest with the value, and what makes that one."""

    kind: str
    opening: str
    following: str
    rest: str
    is_one: Callable[[str, int, str], bool]


def _is_told(_text: str, _start: int, value: str) -> bool:
    return values.is_told(value)


def _is_partner(text: str, start: int, value: str) -> bool:
    """Tell whether a word after a user's name is the password, rather than the rest of a path or a port."""
    if "/" in value or ":" in value or value.count("$") > 1:
        return False
    if _CAMEL_COUNTED.fullmatch(value):
        return True
    is_pair = text[start : start + 4].lower() == "cred"
    if is_pair and (lookalikes.is_leet(value) or lookalikes.is_counted(value) or lookalikes.is_signed(value)):
        return not values.is_placeholder(value)
    if text[start : start + 6].lower() == "login:" and lookalikes.is_hyphened(value):
        return True
    return values.is_told_plainly(value) if is_pair else values.is_told(value)


def _is_told_plainly(_text: str, _start: int, value: str) -> bool:
    return values.is_told_plainly(value)


def _is_beside_user(text: str, start: int, value: str) -> bool:
    """Tell whether a word after "password" is one, as it is where a user's name or address comes before."""
    return bool(_USER_BEFORE.search(text, max(0, start - 100), start)) and values.is_told_plainly(value)


def _is_key(text: str, start: int, value: str) -> bool:
    """Tell whether what a key or a token is said to be is random, and no number of a request or a commit."""
    if "public" in text[max(0, start - 8) : start].lower() or values.is_numbered_id(value):
        return False
    return values.is_jumbled_key(value) and not values.is_harmless(value)


def _is_quoted_phrase(_text: str, _start: int, value: str) -> bool:
    return _are_unrelated(value.split(), least=3)


def _is_said(_text: str, _start: int, value: str) -> bool:
    """Tell whether what somebody says a password is can be one: a number, a sign or a hyphen no description has."""
    if values.is_placeholder(value) or values.is_path(value) or values.is_url(value):
        return False
    if values.is_told_plainly(value) or lookalikes.is_signed(value) or lookalikes.is_hyphened(value):
        return True
    return value[0].isupper() and lookalikes.is_counted(value)


def _is_given_alone(text: str, start: int, value: str) -> bool:
    """Tell whether a word right after "password" ends its sentence, and has a number in it: `the shared password d0cstring.`."""
    place = text.find(value, start) + len(value)
    if text[place : place + 1] not in _SENTENCE_ENDS and text[place : place + 5] not in (" and ", " for "):
        return False
    if not _LED_IN.search(text, max(0, start - 24), start):
        return False
    return (lookalikes.is_leet(value) or lookalikes.is_counted(value)) and not values.is_placeholder(value)


def _is_set_to(text: str, start: int, value: str) -> bool:
    """Tell whether what a password was set to is one; a sentence about passwords leads "to" other things too."""
    if values.is_told(value):
        return True
    is_odd = lookalikes.is_leet(value) or lookalikes.is_counted(value) or lookalikes.is_signed(value)
    return is_odd and bool(_SET.search(text, max(0, start - 60), start)) and not values.is_placeholder(value)


def _is_asked_for(_text: str, _start: int, value: str) -> bool:
    return values.is_odd(value)


def _is_owned_secret(_text: str, _start: int, value: str) -> bool:
    return values.is_told_plainly(value) or (values.is_odd(value) and "-" in value)


def _is_typed(text: str, start: int, value: str) -> bool:
    """Tell whether words behind a prompt were typed there: an answer of the program talks about it."""
    is_asked = text[max(0, start - 6) : start].lower() in ("enter ", "\nenter", "enter\t")
    return is_asked and values.is_typed_phrase(value)


def _is_phrase(text: str, start: int, value: str) -> bool:
    """Tell whether words that a password was set to are no purpose: `correct horse battery staple`."""
    words = value.split()
    return bool(_SET.search(text, max(0, start - 60), start)) and _are_unrelated(words, least=3)


def _are_unrelated(words: Sequence[str], *, least: int) -> bool:
    if len(words) < least or words[0] in _PURPOSES:
        return False
    if any(word in STOP_WORDS or word in _PURPOSES for word in words):
        return False
    return sum(word in BENIGN_WORDS for word in words) < 2


def _is_passphrase(text: str, start: int, value: str) -> bool:
    if values.is_told_phrase(value):
        return True
    return text[start : start + 10].lower() == "passphrase" and _are_unrelated(value.split(), least=4)


def _is_answer(_text: str, _start: int, value: str) -> bool:
    words = value.lower().rstrip(".;, ").split()
    if len(words) > 5 or _ASKED.intersection(words) or (len(words) == 1 and words[0] in BENIGN_WORDS):
        return False
    return words[0] not in ("is", "was", "must", "required", "not", "none", "null") and not values.is_placeholder(value)


def _is_pin(text: str, start: int, _value: str) -> bool:
    return text[start : start + 3] == "PIN" or bool(_OWNED.search(text, max(0, start - 8), start))


def _is_any(_text: str, _start: int, _value: str) -> bool:
    return True


def _is_code(_text: str, _start: int, value: str) -> bool:
    bare = value.rstrip("#.")
    return bare.isdigit() or bool(_GROUPS.fullmatch(bare)) or values.is_told(value)


def _is_mixed(text: str, start: int, value: str) -> bool:
    """Tell whether what follows a word for a secret is random in all three kinds of characters; a public key is none."""
    has_all = any(map(str.isupper, value)) and any(map(str.islower, value)) and any(map(str.isdigit, value))
    if not has_all or value.startswith("AAAA") or values.is_path(value):
        return False
    return (
        "public" not in text[max(0, start - 8) : start].lower()
        and values.looks_random(value)
        and not values.is_placeholder(value)
    )


def _is_node_cookie(text: str, start: int, value: str) -> bool:
    if text[start : start + 6].lower() == "cookie" and text[start - 1 : start] != "-":
        return value.isalpha() and value.isupper() and len(value) >= 16
    return values.is_told(value) or (value.isupper() and len(value) >= 12) or (len(value) >= 20 and not values.is_word(value))


_NAMED = r"pass(?:word|phrase|code|wd)?|pwd|pw"
_WHOSE = (
    r"(?:you|we|i|they|he|she|it|that|which|used|set|given|agreed|everyone|everybody|has|was|got|will|changed|updated|rotated"
    r"|reset|now)\b"
)
_BEING = (
    r"(?:is|was|are|were|remains|stays|equals|became|will be|used to be|has (?:always )?been|ends up being|turned out to be)"
    r"(?: (?:now|still|currently|always|just|simply|only|literally|again))*"
)
_LOGGING = r"(?:log|sign)(?:ged|ging)?[ -]?[io]n(?:to)?|login|ssh in|credentials?|creds?|zugangsdaten|account"
TELLINGS: tuple[Telling, ...] = (
    Telling("told-password", _NAMED, ",", rf",[^\n:=\"']{{0,60}}:[ \t]*{_QUOTE}{_VALUE}", _is_told),
    Telling(
        "told-password",
        _NAMED,
        " \t",
        rf"[ \t]+(?:for|of|on|to|at|from|under)[ \t][^\n:=\"']{{1,48}}?(?:[ \t]*[:=]|[ \t](?:is|was))[ \t]*{_QUOTE}{_VALUE}",
        _is_told,
    ),
    Telling("told-password", _NAMED, " \t", rf"[ \t]+(?:{_BEING})[ \t:]+[\"'`*]{{0,3}}{_VALUE}", _is_said),
    Telling("told-password", _NAMED, " \t", rf"[ \t]+{_QUOTE}{_VALUE}", _is_given_alone),
    Telling(
        "told-password",
        _NAMED,
        " \t",
        rf"[ \t]+(?:(?:for|of|on|to|at|from)[ \t][^\n:=\"']{{1,48}}?|\([^)\n]{{1,40}}\))(?:[ \t]*[:=]"
        rf"|[ \t](?:{_BEING}))[ \t]*[\"'`*]{{0,3}}{_VALUE}",
        _is_said,
    ),
    Telling(
        "told-password",
        _NAMED,
        " \t",
        r"[ \t]+(?:is|was)[ \t:]+[\"'`]([a-z]{2,}(?: [a-z]{2,}){2,9})[\"'`]",
        _is_quoted_phrase,
    ),
    Telling(
        "pin",
        r"pin",
        " \tc",
        rf"(?:[ -]?code)?[ \t]+(?:for|of|on|to|at|from)[ \t][^\n:=\"'\d]{{1,40}}?(?:[ \t]*[:=]|[ \t](?:is|was"
        rf"|being))[ \t]*{_QUOTE}(\d{{4,8}})(?:[^\w.:/-]|\.(?:\s|$)|$)",
        _is_any,
    ),
    Telling("told-password", _NAMED, "'", rf"'s[ \t]+(?:now[ \t]+)?{_QUOTE}{_VALUE}", _is_told_plainly),
    Telling("told-password", _NAMED, " \t", rf"[ \t]+{_QUOTE}{_VALUE}", _is_beside_user),
    Telling(
        "told-password",
        _NAMED,
        " \t",
        rf"[ \t]+{_WHOSE}[^\n:=\"]{{0,60}}?(?:[ \t]*[:=]|(?:[ \t](?:is|was)|(?:[ \t]it)?'s)(?:[ \t]now)?)[ \t]+"
        rf"{_QUOTE}{_VALUE}",
        _is_told_plainly,
    ),
    Telling(
        "told-password",
        "passphrase",
        " \t:=",
        r"(?:[ \t]*[:=]|[ \t]+(?:is|was))?[ \t]*[\"']([a-z]{2,}(?: [a-z]{2,}){3,9})[\"']",
        _is_quoted_phrase,
    ),
    Telling(
        "told-password",
        _NAMED,
        " \t:",
        r"(?:[ \t]+for[ \t][^\n:]{1,120})?:[ \t]+([a-z0-9]+(?: [a-z0-9]+){3,9})[ \t]*(?:\n|$)",
        _is_typed,
    ),
    Telling(
        "told-password",
        _NAMED,
        " \t",
        rf"[ \t]+(?:(?:will|should)[ \t]be|es|ist|est|-|\([^)\n]{{1,40}}\)[ \t]*[:=])[ \t]+{_QUOTE}{_VALUE}",
        _is_told,
    ),
    Telling("told-password", _NAMED, " \t-", rf"[ \t]*->[ \t]*{_QUOTE}{_VALUE}", _is_told),
    Telling("told-password", _NAMED, " \t", rf"[ \t]+(?:[a-z]+[ \t]+){{0,3}}to[ \t:]+{_QUOTE}{_VALUE}", _is_set_to),
    Telling("told-password", _NAMED, " \t", rf"[ \t]+for[ \t]+['\"][^'\"\n]{{1,120}}['\"]:[ \t]+{_VALUE}", _is_asked_for),
    Telling(
        "told-password",
        _NAMED,
        " \t",
        r"[ \t]+(?:is|was|has been)[ \t]+(?:generated|created|set|assigned|issued)[^\n:]{0,48}:[ \t]+([^\s\"'`]{4,64})",
        _is_told,
    ),
    Telling(
        "told-password",
        _NAMED,
        " \t",
        r"[ \t]+to[ \t:]+([a-z]{3,}(?: [a-z]{3,}){2,5}?)(?: (?:for|until|temporarily|today)\b|[.,;\n]|$)",
        _is_phrase,
    ),
    Telling(
        "told-password",
        _NAMED,
        " \t:=",
        rf"[ \t]*[:=][ \t]*{_QUOTE}([a-z][a-z0-9]*(?: [a-z0-9]+[!?]?){{2,9}}){_QUOTE}[ \t]*(?:\n|$)",
        _is_passphrase,
    ),
    Telling(
        "told-password",
        _LOGGING,
        " \t:=",
        rf"(?:[ \t]*[:=]|[ \t]+(?:are|is))?[ \t]*(?:(?:with|as|using|via|by|to)[ \t]+)?(?:user[ \t]+)?"
        rf"{_QUOTE}[\w.@+-]{{1,40}}{_QUOTE}[ \t]*[/:][ \t]*{_QUOTE}{_VALUE}",
        _is_partner,
    ),
    Telling(
        "told-password",
        _LOGGING,
        " \t",
        rf"[ \t]+as[ \t]+{_QUOTE}[\w.@+-]{{2,40}}{_QUOTE},?[ \t]+(?:with|using)[ \t]+"
        rf"(?:(?:the[ \t]+)?pass\w*[ \t]+)?{_QUOTE}{_VALUE}",
        _is_partner,
    ),
    Telling(
        "told-password",
        rf"(?:use|using|try)[ \t]+{_QUOTE}{_USERS}",
        " \t/:\"'`",
        rf"{_QUOTE}[ \t]*[/:][ \t]*{_QUOTE}{_VALUE}",
        _is_partner,
    ),
    Telling(
        "told-password",
        "root|admin|administrator|postgres|ubuntu|oracle|guest",
        " \t",
        rf"[ \t]+/[ \t]+{_QUOTE}{_VALUE}",
        _is_partner,
    ),
    Telling("told-password", "root|admin|administrator|guest", ":", rf":{_QUOTE}{_VALUE}", _is_partner),
    Telling(
        "secret-answer",
        r"(?:secret|security)[ _-]answer|answer to the (?:secret|security) question",
        " \t:=",
        r"[ \t]*(?:[:=]|is\b)[ \t]*[\"']?([^\s\"'<>{$\[(][^\n\"'<>]{2,48}?)(?:[\"'\n]|$)",
        _is_answer,
    ),
    Telling(
        "pin", "pin", " \t:=-c", rf"(?:[ -]?code)?[ \t]*(?:[:=]|is\b)[ \t]*{_QUOTE}(\d{{4,8}})(?:[^\w.:/-]|\.(?:\s|$)|$)", _is_pin
    ),
    Telling(
        "code",
        rf"(?:{_PLACES}|{_LOCKS}|one[ -]time)[ _-](?:pass)?codes?",
        " \t:=",
        rf"(?:[ \t]*[:=]|[ \t]+(?:is|was))?[ \t]*{_QUOTE}(\d{{4,10}}#?|[\w.!-]{{6,40}})(?:[^\w:/-]|$)",
        _is_code,
    ),
    Telling(
        "code",
        "otp|totp|one[ -]time password",
        " \t:=",
        rf"(?:[ \t]*[:=]|[ \t]+(?:is|was))[ \t]*{_QUOTE}(\d{{6,8}})(?:[^\w.:/-]|\.(?:\s|$)|$)",
        _is_code,
    ),
    Telling(
        "token",
        r"credentials?|tokens?|api[ _-]?keys?|access keys?|secrets?",
        " \t",
        r"[ \t]+[\"'(]?([\w.~+/=-]{16,})",
        _is_mixed,
    ),
    Telling(
        "token",
        r"tokens?|api[ _-]?keys?|(?:access|secret) keys?|secrets?",
        " \t",
        r"[ \t]+(?:[a-zI']+[ \t]+){0,6}[a-zI']+(?:[ \t]*:|[ \t]+(?:is|was))[ \t]+[\"']?([\w.~+/=-]{16,})",
        _is_key,
    ),
    Telling(
        "secret",
        r"tokens?|api[ _-]?keys?|(?:access|secret) keys?|secrets?",
        " \t",
        rf"[ \t]+(?:for|of|on|to|at|from)[ \t][^\n:=\"']{{1,48}}?(?:[ \t]*[:=]|[ \t](?:is|was))[ \t]*[\"'`]{_VALUE}",
        _is_owned_secret,
    ),
    Telling("token", r"tokens?|api[ _-]?keys?|secrets?", " \t-", r"[ \t]*->[ \t]*[\"']?([\w.~+/=-]{16,})", _is_key),
    Telling(
        "token",
        r"(?:the|your|my|this|our|unseal|master|new) key",
        " \t:",
        r"(?:[ \t]+\d{1,2}|(?:[ \t]+[a-zI']+){0,6})?(?:[ \t]*:|[ \t]+is)[ \t]+[\"']?([\w.~+/=-]{16,})",
        _is_mixed,
    ),
    Telling(
        "connection-password",
        r"login\(|log_in\(|sign_?in\(|logon\(|authenticate\(|auth\(|set_?credentials\(|(?:set_?)?basic_?auth\(|connect\(",
        "",
        r"[ \t]*(?:(?:[\w.$]{1,64}|\"[^\"\n]{1,64}\"|'[^'\n]{1,64}'),[ \t]*){1,3}[\"']([^\"'\n\s]{6,64})[\"']",
        _is_partner,
    ),
    Telling("node-cookie", r"setcookie|cookie", " \t", r"[ \t]+[\"']?([A-Za-z0-9_]{8,64})(?:[\"'\s]|$)", _is_node_cookie),
    Telling(
        "node-cookie",
        r"release_cookie|erlang[._ ]cookie",
        " \t:=",
        r"[ \t]*[:=][ \t]*[\"']?([A-Za-z0-9_]{8,64})(?:[\"'\s]|$)",
        _is_node_cookie,
    ),
)
# Of two openings at one place the first is taken: the one with a bracket is the longer.
_BY_LENGTH = sorted(dict.fromkeys(telling.opening for telling in TELLINGS), key=lambda opening: "\\(" not in opening)
_OPENINGS = Pattern(rf"(?i)\b(?:{'|'.join(_BY_LENGTH)}|{next_lines.ANNOUNCING})")
_COMMENTS = Pattern(
    r"(?i)[\"']\.toCharArray|[\"'][)\];, \t]*(?:#|//|--|/\*)[ \t]*(?:[a-z-]{1,16}[ \t]){0,3}"
    r"(?:password|passwd|passphrase|pwd|secret|api key|token)\b"
    r"|[!-~],?[ \t]+(?:that|it|this|which)(?:'s|[ \t]+(?:is|was))[ \t]+(?:(?:the|my|your|our|his|her|their|an?|old|new)[ \t]+)"
    r"(?:[a-z]+[ \t]+){0,2}(?:password|passphrase|pwd|pw)\b|[!-~][ \t]+as[ \t]+(?:(?:the|my|your|our|its|his|her|their"
    r"|a|new|root|admin|db|default|temporary|initial)[ \t]+){0,3}"
    r"(?:password|passphrase|passcode|passwd|pwd|pw)"
    r"(?:[ \t]*[.,;!?)\n]|[ \t]+(?:and|for|to|but|on|in|at|until|then|when|now)\b|[ \t]*$)"
)
_AS = re.compile(r"(?i)[ \t]+as[ \t]|,?[ \t]+(?:that|it|this|which)\b")
_QUOTED_BEFORE = re.compile(r"[\"'`]([^\"'`\n]{8,64})[\"'`]$")
_EACH_OPENING = [re.compile(f"(?i)(?:{telling.opening})") for telling in TELLINGS]
_rests: dict[int, Pattern] = {}
_known: dict[bytes, tuple[int, ...]] = {}
_together: dict[tuple[int, ...], Pattern] = {}
_GROUP = re.compile(r"(?<!\\)\((?!\?)")


def find(view: View) -> Iterator[Found]:
    """Find what a sentence, a call or the comment behind it tells to be a secret."""
    opened = _opened(view)
    yield from _find_told(view, opened)
    if opened or b"toCharArray" in view.data:
        # Its words are among those that open a telling.
        yield from _find_commented(view)
    if opened and (b"INSERT" in view.data or b"insert into" in view.data):
        yield from next_lines.find_inserted(view, [start for start, _ in opened])
    if "\n" in view.text:
        yield from next_lines.find(view, [start for start, _ in opened])


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
                break


def _any_of(candidates: tuple[int, ...]) -> Pattern:
    """Give what matches if one of these ways goes on so: most places are none of them, and need one look only."""
    if candidates not in _together:
        _together[candidates] = Pattern("|".join(f"(?:{_GROUP.sub('(?:', _rest(index))})" for index in candidates))
    return _together[candidates]


def _rest(index: int) -> str:
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


def _match(view: View, index: int, start: int, place: int) -> Found | None:
    telling = TELLINGS[index]
    if index not in _rests:
        _rests[index] = Pattern(_rest(index))
    spans = _rests[index].group_at(view.data, place)
    if spans is None:
        return None
    first, last = spans[1]
    value = view.text[first:last].rstrip(".,;:)")
    if not value or "[redacted:" in view.text[start : last + 1] or not telling.is_one(view.text, start, value):
        return None
    return Found(first, first + len(value), telling.kind)


def _find_commented(view: View) -> Iterator[Found]:
    """Find the text before a comment that says what it is: `login(user, "…")  # password`."""
    text, position = view.text, 0
    while span := _COMMENTS.find(view.data, position):
        quote, position = span[0], span[1]
        if text[quote + 1 : quote + 2] in (" ", "\t", ",") and _AS.match(text, quote + 1):
            yield from _find_used(view, quote + 1)
            continue
        start = text.rfind(text[quote], max(0, quote - _LONGEST_LINE), quote) + 1
        value = text[start:quote]
        if start and not any(map(str.isspace, value)) and values.is_told(value) and not values.is_field_name(value):
            yield Found(start, quote, "told-password")


def _find_used(view: View, end: int) -> Iterator[Found]:
    """Find the word that was used as a password: `I typed … as the password`."""
    before = view.text[max(0, end - _LONGEST_WORD) : end]
    words = before.split()
    value = words[-1].strip("\"'`") if words else ""
    if (phrase := _QUOTED_BEFORE.search(before)) and lookalikes.is_phrase(phrase[1]):
        yield Found(end - len(before) + phrase.start(1), end - len(before) + phrase.end(1), "told-password")
    elif values.is_told_plainly(value) or lookalikes.is_signed(value):
        start = view.text.rindex(value, 0, end)
        yield Found(start, start + len(value), "told-password")
