"""Values that could be nothing but a secret, beside a word that has to do with secrets, however the two are tied.

Here the value comes first: it is looked at whether anybody would write it but as a secret. If so, a word near it is enough: the
name of the call that takes it, an argument beside it, a comment, the other half of a sentence.
"""

from collections.abc import Callable, Iterator

from decklog.prepared import prepared
from decklog.redact import expressions, values
from decklog.redact.names import known_kind
from decklog.redact.patterns.pattern import Pattern
from decklog.redact.placeholders import BENIGN_WORDS, word_set
from decklog.redact.sentences import languages
from decklog.redact.statements import is_plainly_one
from decklog.redact.view import Found, View

# A text without blanks that has a number in it.
_QUOTED = r"[\"'`][^\s\"'`0-9]{0,64}[0-9][^\s\"'`]{0,96}[\"'`]"
_CANDIDATE = Pattern(_QUOTED)
# What has to do with secrets: their names, and the calls that take one without naming it.
_WORDS = (
    r"pass(?:w|phrase|code)|pwd|(?:\b|_)pw(?:\b|_)|secret|token(?:[^i]|$)|api[_-]?key|private[_-]?key|cred|auth|log_?[io]n"
    r"|sign_?in|bearer|jwt|hmac|cipher|crypt|wallet|mnemonic|[th]otp|ftp|smtp|imap|ldap|sequelize|connect|datasource|mysql"
    r"|\bpdo\b|jdbc|keychain|engine\(|option key|key_?material|pragma|wireless|wi-?fi|wlan|psk"
)
_FAMILY = Pattern(f"(?i){_WORDS}")
# Words for a password, beside which a word without quotes may be one.
_PASSWORDS = (
    r"pass(?:word|phrase|code|wd)|pwd|\bpw|_pw\b|pgpass|\bcred(?:ential)?s?\b|\blog[ -]?(?:in|on)\b|\bsecrets?\b|psk|<<<"
    r"|\bcommunity\b|pptpd|l2tpd|chap\b|wi-?fi|wlan|wireless|basic[_-]?auth|auth_|_auth\b|authenticat|\b[0-9a-f]{32}:"
    # An option that takes a user's name and more, and a line of the file that has all users.
    rf"|[ \t]-{{1,2}}[a-z]+[ =][\w.@-]{{1,32}}:|:\d{{1,6}}:\d{{1,6}}:|{languages.WORDS}"
)
# Words of those who get in and what they get in by: what stands beside them has to have a sign, which ids do not have.
_PLACES = r"\b(?:smb|s?ftp|ldap|psql|mysql|sql|curl|vpn|ssh|user|root|admin|decrypt|unlock|impacket|winrm|smtp|imap|mail)"
_ODD = (
    r"[0-9][\w.-]*[!#$%^&*+~?@]|[!#$%^&*+~?@][\w.-]*[0-9]"
    r"|(?-i:[A-Z])[A-Za-z0-9-]*[a-z][A-Za-z0-9-]*[0-9]|[0-9][A-Za-z0-9]*(?-i:[A-Z])|[a-z][A-Za-z]*[0-9]+(?-i:[A-Z])"
)
_STRONG = Pattern(f"(?i){_PASSWORDS}|{_PLACES}")
_STRONGEST = Pattern(f"(?i){_PASSWORDS}")
# Nothing goes on across the sign that lies between texts which are looked at together.
SIGN = (
    rf"(?i)(?:(?:{_WORDS})[^\x01]*{_QUOTED}|{_QUOTED}[^\x01]*(?:{_WORDS})"
    rf"|(?:{_PASSWORDS}|{_PLACES})[^\n\x01]*\n?[^\n\x01]*(?:{_ODD})|(?:{_ODD})[^\n\x01]*(?:{_PASSWORDS}|{_PLACES}))"
)
_HEX_KEY = prepared(r"(?:0x)?(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{48}|[0-9a-fA-F]{64}|[0-9a-fA-F]{128})")
_TAKES_KEY = prepared(r"(?i)hmac|cipher|crypt|wallet|private|secret|aes")
_OF_DIGEST = prepared(r"(?i)hash(?!ed_?mac)|digest\b|checksum|etag|fingerprint|commit|integrity|md5|public|address|\bid\b")
# Words and numbers joined by signs: models, versions, files, resources.
_NAMED = prepared(r"(?:[A-Za-z]*\d{0,8}[a-z]{0,3}[-_.:/@+])*[A-Za-z]*\d{0,8}[a-z]{0,3}")
# The name that a text is given to at once: if it is none of a secret's, the rules for names have said so already.
_OWNER = prepared(r"([\w.$-]+)[\"'\])]{0,2}[ \t]*(?::[ \t]*[\w.\[\]]{1,24}[ \t]*)?(?::=|=>|[=:])[ \t]*[\w@]{0,2}$")
_PIECES = prepared(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SEQUENCE = ("0123456", "123456789", "abcdef", "ABCDEF")
_ANYTHING = word_set("value val default data text string key auth code x s v k p tmp given expected actual result keymaterial")
_BEFORE, _BEHIND = 240, 120
_MOST_LINES = 3
_OPEN_ENDS = ("=>", "(", "[", "{", ",", "=", "\\", "+")
_MOST_KNOWN = 4_096
_LONGEST_LINE = 400
_BARE = prepared(r"(?<![\w!#$%^&*+~?@./\\{<-])[A-Za-z0-9!#$%^*][\w!#$%^&*+~?@.-]{6,31}(?![\w!#$%^&*+~?@(\[/\\=>-])")
_INNER_SIGN = prepared(r"[A-Za-z0-9][!#$%^&*+~?@]+[A-Za-z0-9]")
_JOINED = prepared(r"[A-Za-z]{3,}[-_.][A-Z][a-z]{2,}\d{2,4}[!?#$%^*+~]")
# An address has rules of its own.
_IN_ADDRESS = prepared(r"://[^\s\"'<>]*$")
_FIELD = prepared(r"([\w.-]+)[\"']?(=|:[ \t]+)[\"']?$")
_ID = prepared(
    r"(?i)(?:id|cursor|trace|span|etag|sha\d*|hash|digest|ref|build|version|commit|nonce|arn|number|model|host|serial)$"
)
_VALUE_BELOW = prepared(r"\n[ \t]*[\"']?value[\"']?:")
_LAST_SIGNS = "!#$%^*~"
_COUNTED = prepared(r"[A-Z][a-z]{2,}\d{3}[a-z]{3,}[!?#]?")
# Of a mail, a host or a package's version; and a number as programs write it.
_ADDRESS = prepared(
    r"[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}|[a-z]+\d?@[a-z][a-z0-9-]*|[\w.-]+@[\^~]?v?\d+(?:\.[\w-]+)*|0[xX]\w+|RFC\d+#\w+"
)


def find(view: View) -> Iterator[Found]:
    """Find every value that could be nothing but a secret and has a word near it that says so."""
    # Lasts for one text: secrets must not linger in the process.
    known: dict[str, bool] = {}
    yield from _find_quoted(view, known)
    yield from _find_bare(view, {})


def _find_quoted(view: View, known: dict[str, bool]) -> Iterator[Found]:
    data, position = view.data, 0
    while span := _CANDIDATE.find(data, position):
        start, end = span[0] + 1, span[1] - 1
        position = end
        value = view.text[start:end]
        if data[span[0]] == data[end] and _is_known(known, value, _is_unlike_others) and _is_beside(view, start, end, value):
            yield Found(start, end, "secret")
            position = end + 1


def _is_known(known: dict[str, bool], value: str, judge: Callable[[str], bool]) -> bool:
    if value not in known:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[value] = judge(value)
    return known[value]


def _is_unlike_others(value: str) -> bool:
    """Tell whether a text in quotes is neither words nor a name, a number or an address of anything."""
    if any(map(value.__contains__, _SEQUENCE)) or "[redacted:" in value or "=" in value.rstrip("="):
        return False
    if _HEX_KEY.fullmatch(value):
        return True
    return _is_made(value) or (is_plainly_one("password", value) and not _NAMED.fullmatch(value) and not _is_type(value))


def _is_type(value: str) -> bool:
    """Tell whether a value is words of a name with a short number among them: `R2BucketMount`."""
    pieces = _PIECES.findall(value)
    numbers = "".join(filter(str.isdigit, pieces))
    words = [len(piece) for piece in pieces if piece.isalpha()]
    short, long = sum(length < 3 for length in words), sum(length > 3 for length in words)
    return value.isidentifier() and len(numbers) < 3 and short < 3 and (short < 2 or long > 1)


def _is_beside(view: View, start: int, end: int, value: str) -> bool:
    """Tell whether a word near a value, in the same statement, has to do with secrets."""
    first, last = _statement(view.text, start, end)
    owner = _OWNER.search(view.text, max(first, start - 80), start - 1)
    if owner and (not _may_own(owner[1]) or values.is_assembly_token(owner[1], value)):
        return False
    before, behind = view.data[first : start - 1], view.data[end + 1 : last]
    if _FAMILY.find(before, 0) is None and _FAMILY.find(behind, 0) is None:
        return False
    if not _HEX_KEY.fullmatch(value):
        return True
    around = f"{view.text[first:start]} {view.text[end:last]}"
    return bool(_TAKES_KEY.search(around)) and not _OF_DIGEST.search(around)


def _may_own(name: str) -> bool:
    """Tell whether what has this name may be a secret: it is one's name, or that of anything."""
    return known_kind(name) is not None or name.rpartition(".")[2].lower() in _ANYTHING


def _statement(text: str, start: int, end: int) -> tuple[int, int]:
    """Give where the statement around a place begins and ends: its line, and those before it that leave a bracket open."""
    limit = max(0, start - _BEFORE)
    first = text.rfind("\n", limit, start)
    for _ in range(_MOST_LINES):
        if first < 0 or not text[limit:first].rstrip().endswith(_OPEN_ENDS):
            break
        first = text.rfind("\n", limit, first)
    last = text.find("\n", end, end + _BEHIND)
    return (limit if first < 0 else first + 1), (min(len(text), end + _BEHIND) if last < 0 else last)


def _find_bare(view: View, known: dict[str, bool]) -> Iterator[Found]:
    """Find the words without quotes in a line that speaks of passwords, which nobody would write but as one."""
    text, position = view.text, 0
    while span := _STRONG.find(view.data, position):
        first = max(text.rfind("\n", max(0, span[0] - _LONGEST_LINE), span[0]) + 1, span[0] - _LONGEST_LINE, position)
        last = text.find("\n", span[1], span[1] + _LONGEST_LINE)
        last = min(len(text), span[1] + _LONGEST_LINE) if last < 0 else last
        if text[last - 1] in ":{[(" or _VALUE_BELOW.match(text, last):
            # What stands below belongs to it.
            last = text.find("\n", last + 1, last + _LONGEST_LINE) % (len(text) + 1)
        is_strong = _STRONGEST.find(view.data[first:last], 0) is not None
        for word in _BARE.finditer(text, first, last):
            value = word[0].rstrip(".")
            if (
                _is_known(known, value, _is_made)
                and (is_strong or not value.isalnum())
                and not _is_owned(text, first, word.start())
            ):
                yield Found(word.start(), word.start() + len(value), "told-password")
        position = max(last, span[1])


def _is_owned(text: str, first: int, place: int) -> bool:
    """Tell whether a word is a part of an address, or the value of a field that says what else it is."""
    before = max(first, place - 80)
    if _IN_ADDRESS.search(text, before, place):
        return True
    owner = _FIELD.search(text, before, place)
    return owner is not None and not _may_own(owner[1]) and (owner[2] == "=" or bool(_ID.search(owner[1])))


def _is_made(value: str) -> bool:
    """Tell whether a person made a word, to get in by: no name, version or term is like it."""
    if not any(map(str.isdigit, value)) or not any(map(str.islower, value)) or _ADDRESS.fullmatch(value):
        return False
    if not (_is_signed(value) or _is_spelled(value) or _COUNTED.fullmatch(value) or _is_joined(value)):
        return False
    if values.is_harmless(value) or values.is_public(value) or "[redacted" in value:
        return False
    return value.rstrip("0123456789!?").lower() not in BENIGN_WORDS


def _is_signed(value: str) -> bool:
    """Tell whether a word has a sign among its letters and numbers, or behind words that are joined: `Basil!maple4`."""
    if _JOINED.fullmatch(value):
        return True
    if not _INNER_SIGN.search(value) and (value[-1] not in _LAST_SIGNS or _NAMED.fullmatch(value, 0, len(value) - 1)):
        return False
    is_mixed = values.has_all_kinds(value) or len(expressions.SIGNS.intersection(value)) > 1
    return is_mixed and not expressions.is_code(value, "")


def _is_spelled(value: str) -> bool:
    """Tell whether letters and numbers change as in no name: `C0metH4rb0r120`, `e50cn3kgGR`."""
    bare = expressions.NUMBERED_TERMS.sub("term", value)
    if not value.isalnum() or len(value) < 8 or not values.has_all_kinds(bare) or _is_type(bare):
        return False
    letters = bare.rstrip("0123456789")
    return values.is_jumble(bare) or (letters.isalpha() and not expressions.is_identifier(letters))


def _is_joined(value: str) -> bool:
    """Tell whether words in small letters and with capitals are joined with a number, as no name of a thing is."""
    parts = value.rstrip("!?#").split("-")
    words = [part for part in parts if part.isalpha()]
    if len(parts) < 3 or len(words) < 2 or not all(part.isalpha() or part.isdigit() for part in parts):
        return False
    are_mixed = words[0].islower() and any(map(str.istitle, words)) and all(len(word) > 2 for word in words)
    return are_mixed and len(words) < len(parts) and BENIGN_WORDS.isdisjoint(map(str.lower, words))
