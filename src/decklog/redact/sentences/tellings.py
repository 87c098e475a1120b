"""The ways of telling a secret: "log in with admin / …", "the PIN is …", "unlock code …"."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from decklog.prepared import prepared
from decklog.redact import expressions, lookalikes, phrases, values
from decklog.redact.placeholders import BENIGN_WORDS, STOP_WORDS, word_set

_QUOTE = r"[\"'`]?"
_VALUE = r"([^\s\"'`,<>]{4,64})"
# With a number or a sign in it, which the words of a sentence do not have.
_PLAIN_SIGN = r"[^\s\"'`,<>=/:(0-9!#$%^&*+~?]"
_ODD_SIGN = r"[0-9!#$%^&*+~?]"
_ODD_VALUE = rf"((?:{_PLAIN_SIGN}{{3,32}}{_ODD_SIGN}[^\s\"'`,<>]{{0,48}}|{_PLAIN_SIGN}{{0,2}}{_ODD_SIGN}[^\s\"'`,<>]{{3,48}}))"
_USERS = (
    r"(?:\w{0,16}admin\w{0,10}|root|user\w{0,8}|test\w{0,8}|demo|guest|ops|pi\b|postgres|sa|ubuntu|deploy|operator|support"
    r"|service|svc)"
)
_PLACES = "door|gate|alarm|safe|entry|entrance|garage|locker|lock|building|office"
_LOCKS = (
    "unlock|access|activation|recovery|backup|rescue|emergency|verification|security|2fa|mfa|otp|totp|login|sign-?in"
    "|pairing|scratch"
)
_SET = prepared(r"(?i)\b(?:set|reset|changed?|rotated?|updated?|made)\b[^.\n]{0,40}$")
_USER_BEFORE = prepared(
    r"(?i)(?:\b(?:user(?:name)?|login|e-?mail|account|as)\b[ \t:=]*[\"'`]?[\w.@+-]+|@[\w.-]+)[\"'`]?"
    r"(?:[ \t]*[,;/|]|[ \t]+(?:and|with))[ \t]*(?:the[ \t]+)?$"
)
_SENTENCE_ENDS = ("", "\n", ".", ",", ";", "!", ")", '"')
_LED_IN = prepared(r"(?i)(?:(?:with|using|shared|same|the|and|use|has|have|old|default|,|:)[ \t]+)$")
_CAMEL_COUNTED = prepared(r"[a-z]{3,}[A-Z][a-z]{2,}\d{1,4}")
_GROUPS = prepared(r"\d{2,6}(?:-\d{2,6})+")
_OWNED = prepared(r"(?i)\b(?:my|the|your|his|her|our|their|sim|card|door)[ \t]+$")
_PURPOSES = word_set(
    """
    expire match require prevent include contain avoid allow get make keep protect comply satisfy meet follow log
    connect unlock never always something anything whatever another someone everyone nothing ensure improve increase
    test check validate work open
    """
)
_ASKED = word_set("user users answer answers question questions field column string hashed encrypted stored see read")
_HEX_KEY = prepared(r"[0-9a-f]{32}|[0-9a-f]{48}|[0-9a-f]{64}")
_DIGEST_OF = prepared(r"(?i)\b(?:hash|md5|sha\d*|\w*sum|digest|fingerprint)\b[\w ]{0,12}$")
_TRIED = prepared(
    r"(?i)\b(?:tr(?:y|ied|ies|ying)|us(?:e|ed|es|ing)|enter(?:ed|ing)?|typ(?:ed|e|ing)|guess(?:ed|es)?|sen[dt]|g[ai]ve|with|sets?|got"
    r"|told|shared|leaked|found|cracked|accept(?:ed|s)?|reject(?:ed|s)?)[ \t]+"
    r"(?:(?:him|her|them|me|us|the|my|his|their|our|a|root|admin|old|new|same|default)[ \t]+){0,3}$"
)
_WORKED = prepared(
    r"[\"'`]?[ \t]+(?:work|accept|reject|leak|burn|expos|for |was |is |did|does|fail|still|got|open|unlock|has |expire|let )"
)
_AFTER_USER = prepared(r"(?:[\w.@+-]{2,32},|>|\b(?:login|user|username|account)[ \t]+[\w.@+-]{2,32})[ \t]*$")
_WIRED = prepared(r"(?i)(?:gpio|connect|wire|solder|header|chip|board|output|input|i/o)[\w ]{0,12}$")
_PIN_GIVEN = prepared(
    r"(?i)(?:\b(?:set|use[ds]?|using|enter(?:ed)?|typ(?:e|ed)|try|tried|my|new|old|sim"
    r"|card|door|bank|with|is)|'s)[ \t]+(?:(?:the|a|my|new)[ \t]+)?$"
)
_PIN_WORKS = prepared(r"(?i)[ \t]+(?:open|unlock|work|still|for the (?:door|card|safe|gate))")
_VERSION = prepared(r"\d+[.:+-]")
_ROUND = prepared(r"1024|2048|4096|8192|\d+00")


class Telling(NamedTuple):
    """A way of telling a secret: how it opens, what can come next, the rest with the value, and what makes that one."""

    kind: str
    opening: str
    following: str
    rest: str
    is_one: Callable[[str, int, str], bool]


def _is_told(_text: str, _start: int, value: str) -> bool:
    return values.is_told(value)


def _is_random(_text: str, _start: int, value: str) -> bool:
    return values.looks_random(value) and values.is_told(value)


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
    if _HEX_KEY.fullmatch(value):
        return not value.isdigit() and not value.isalpha() and not _DIGEST_OF.search(text, max(0, start - 24), start)
    return values.is_jumbled_key(value) and not values.is_harmless(value)


def _is_quoted_phrase(_text: str, _start: int, value: str) -> bool:
    return _are_unrelated(value.split(), least=3)


def _is_odd_phrase(_text: str, _start: int, value: str) -> bool:
    return " " in value and phrases.is_odd_phrase(value)


def _is_odd_line(text: str, start: int, value: str) -> bool:
    """Tell whether the words to the end of a line are a password; those behind "pass" may be a runner's of tests."""
    return text[start + 4 : start + 5].isalpha() and phrases.is_bare_phrase(value)


def _is_set_in(_text: str, _start: int, value: str) -> bool:
    """Tell whether a word set in commas or brackets behind "password" is one: `his password, …, expired`."""
    is_version = value[0].isdigit() and bool(_VERSION.match(value))
    return not is_version and (values.is_told_plainly(value) or lookalikes.is_signed(value)) and not values.is_placeholder(value)


def _is_tried(text: str, start: int, value: str) -> bool:
    """Tell whether a word behind "password" is one, as it is where somebody tries it or it works."""
    if not (values.is_told(value) or (values.is_told_plainly(value) and lookalikes.is_signed(value))):
        return False
    place = text.find(value, start) + len(value)
    before = max(0, start - 48)
    return bool(_TRIED.search(text, before, start) or _AFTER_USER.search(text, before, start) or _WORKED.match(text, place))


def _is_pin_given(text: str, start: int, value: str) -> bool:
    """Tell whether a number behind "PIN" is somebody's, rather than that of a wire."""
    if _ROUND.fullmatch(value) or _WIRED.search(text, max(0, start - 24), start):
        return False
    place = text.find(value, start)
    if not text[start + 3 : place].isspace():
        return True
    return bool(_PIN_GIVEN.search(text, max(0, start - 24), start) or _PIN_WORKS.match(text, place + len(value)))


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


def _is_right_behind(text: str, start: int, value: str) -> bool:
    """Tell whether a word right behind "password" is one, by what stands before the two or after them."""
    return _is_given_alone(text, start, value) or _is_beside_user(text, start, value) or _is_tried(text, start, value)


def _is_unmistakable(_text: str, _start: int, value: str) -> bool:
    return lookalikes.is_unmistakable(value) and not values.is_harmless(value) and not expressions.is_code(value, "")


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
    if values.is_told_phrase(value) or phrases.is_in_fours(value):
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
_KEYS = r"tokens?|api[ _-]?keys?|(?:access|secret) keys?|secrets?"
_WHOSE = (
    r"(?:you|we|i|they|he|she|it|that|which|used|set|given|agreed|everyone|everybody|has|was|got|will|changed|updated|rotated"
    r"|reset|now)\b"
)
_BEING = (
    r"(?:is|was|are|were|remains|stays|equals|became|will be|used to be|has (?:always )?been|ends up being|turned out to be)"
    r"(?: (?:now|still|currently|always|just|simply|only|literally|again))*"
)
_WHOM = r"['\"][^'\"\n]{1,120}['\"]"
_LOGGING = r"(?:log|sign)(?:ged|ging)?[ -]?[io]n(?:to)?|login|ssh in|credentials?|creds?|zugangsdaten|account"
_QUOTED_WORDS = (
    rf"(?:[ \t]+(?:for|of|on|to|at|from|under|in|we|i|you)[ \t][^\n:=\"'`]{{1,48}}?|[ \t]*\([^)\n]{{1,40}}\))?"
    rf"(?:[ \t]*[:=]|[ \t]+(?:{_BEING}))[ \t:]*[\"'`?\xab]([^\"'`?\xbb\n]{{4,64}})[\"'`?\xbb]"
)
TELLINGS: tuple[Telling, ...] = (
    Telling("told-password", _NAMED, " \t:=", _QUOTED_WORDS, _is_odd_phrase),
    Telling(
        "told-password",
        _NAMED,
        " \t:=",
        r"(?:[ \t]+(?:for|of|on|to|at|from|under)[ \t][^\n:=\"'`]{1,48}?|[ \t]*\([^)\n]{1,40}\))?[ \t]*[:=][ \t]+"
        r"([^\s\"'`]+(?: [^\s\"'`]+){1,7})[ \t]*(?:\n|$)",
        _is_odd_line,
    ),
    Telling("told-password", _NAMED, ",", rf",[ \t]+{_QUOTE}{_VALUE}[\"'`]?,", _is_set_in),
    Telling(
        "told-password", _NAMED, " \t(", r"[ \t]*\((?:(?:it|which)[ \t]+)?(?:(?:is|was)[ \t]+)?([^\s()\"'`,]{5,64})\)", _is_set_in
    ),
    Telling("told-password", _NAMED, " \t", r"(?:[ \t]+[a-z']{1,14}){1,6}[ \t]*\(([^\s()\"'`,]{7,64})\)", _is_random),
    Telling("told-password", _NAMED, " \t", rf"[ \t]+from[ \t]+\S{{4,64}}[ \t]+to[ \t]+{_QUOTE}{_ODD_VALUE}", _is_set_in),
    Telling("told-password", _NAMED, " \t", rf"[ \t]+from[ \t]+{_QUOTE}{_ODD_VALUE}[\"'`]?[ \t]+to[ \t]", _is_set_in),
    Telling(
        "pin",
        "pin",
        " \t'",
        r"(?:'s|[ \t]+(?:is|was|now|to|i chose:|\xe8|ist|est|es)(?:[ \t]+now)?)?[ \t]+(\d{4,8})(?:[^\w.:/-]|\.(?:\s|$)|$)",
        _is_pin_given,
    ),
    Telling("told-password", _NAMED, ",", rf",[^\n:=\"']{{0,60}}:[ \t]*{_QUOTE}{_VALUE}", _is_told),
    Telling(
        "told-password",
        _NAMED,
        " \t",
        rf"[ \t]+(?:for|of|on|to|at|from|under)[ \t][^\n:=\"']{{1,48}}?(?:[ \t]*[:=]|[ \t](?:is|was))[ \t]*{_QUOTE}{_VALUE}",
        _is_told,
    ),
    Telling("told-password", _NAMED, " \t", rf"[ \t]+(?:{_BEING})[ \t:]+[\"'`*]{{0,3}}{_VALUE}", _is_said),
    Telling("told-password", _NAMED, " \t", rf"[ \t]+{_QUOTE}{_ODD_VALUE}", _is_right_behind),
    Telling("told-password", _NAMED, " \t,", rf",?[ \t]+(?:[a-z.]{{1,14}}[ \t]+){{0,4}}{_QUOTE}{_ODD_VALUE}", _is_unmistakable),
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
    Telling("told-password", _NAMED, " \t", rf"[ \t]+(?:[a-z]+[ \t]+){{0,6}}to[ \t:]+{_QUOTE}{_VALUE}", _is_set_to),
    Telling(
        "told-password", _NAMED, " \t", rf"[ \t]+for[ \t]+{_WHOM}(?::|[a-z \t]*[ \t]to)[ \t]+{_QUOTE}{_VALUE}", _is_asked_for
    ),
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
        _KEYS,
        " \t",
        r"(?:[ \t]+[A-Za-z']+){0,7}(?:[ \t]*[:=]|[ \t]+(?:is|was)(?: now)?)[ \t]+[\"']?([\w.~+/=-]{16,})",
        _is_key,
    ),
    Telling(
        "secret",
        _KEYS,
        " \t",
        rf"[ \t]+(?:for|of|on|to|at|from)[ \t][^\n:=\"']{{1,48}}?(?:[ \t]*[:=]|[ \t](?:is|was))[ \t]*[\"'`]{_VALUE}",
        _is_owned_secret,
    ),
    Telling(
        "token",
        _KEYS,
        " \t([",
        r"[ \t]*[(\[][^)\]\n]{1,40}[)\]][ \t]*[:=-][ \t]*[\"'`]?([\w.~+/=-]{16,})",
        _is_key,
    ),
    Telling("secret", "secrets?", " \t:=", _QUOTED_WORDS, _is_odd_phrase),
    Telling(
        "told-password",
        "credentials?|creds?",
        " \t:=",
        rf"[ \t:=]+(?:[\w.@-]{{1,20}},?[ \t]+){{0,5}}{_QUOTE}{_ODD_VALUE}",
        _is_unmistakable,
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
    Telling("connection-password", r"auth\(", "", r"[ \t]*[\"']([^\"'\n\s]{8,64})[\"'][ \t]*\)", _is_random),
    Telling("node-cookie", r"setcookie|cookie", " \t", r"[ \t]+[\"']?([A-Za-z0-9_]{8,64})(?:[\"'\s]|$)", _is_node_cookie),
    Telling(
        "node-cookie",
        r"release_cookie|erlang[._ ]cookie",
        " \t:=",
        r"[ \t]*[:=][ \t]*[\"']?([A-Za-z0-9_]{8,64})(?:[\"'\s]|$)",
        _is_node_cookie,
    ),
)
