"""Values that could be nothing but a secret, beside a word that has to do with secrets, however the two are tied.

Here the value comes first: it is looked at whether anybody would write it but as a secret. If so, a word near it is enough: the
name of the call that takes it, an argument beside it, a comment, the other half of a sentence.
"""

from collections.abc import Callable, Iterator

from decklog.prepared import prepared
from decklog.redact import values
from decklog.redact.made import is_made, is_name, is_signed_last, is_signed_once, is_two
from decklog.redact.names import known_kind
from decklog.redact.patterns.pattern import Pattern, Span
from decklog.redact.placeholders import word_set
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
    r"|\bpdo\b|jdbc|account\(|database\(|keychain|engine\(|option key|key_?material|pragma|wireless|wi-?fi|wlan|psk"
)
_FAMILY = Pattern(f"(?i){_WORDS}")
# Words for a password, beside which a word without quotes may be one.
_PASSWORDS = (
    r"pass(?:word|phrase|code|wd)|\bpass\b|pwd|\bpw|_pw\b|pgpass|\bcred(?:ential)?s?\b|\blog[ -]?(?:in|on)\b|\bsecrets?\b"
    r"|\bunlock|\bvpn\b|identifiant|zugangsdaten|credencial|credenzial|psk|<<<"
    r"|\bcommunity\b|pptpd|l2tpd|chap\b|wi-?fi|wlan|wireless|basic[_-]?auth|auth_|[_-]auth\b|authenticat|\b[0-9a-f]{32}:"
    # An option that takes a user's name and more, and a line of the file that has all users.
    rf"|[ \t]-{{1,2}}[a-z]+[ =][\"']?[\w.@-]{{1,32}}:|ftp>|\bftp -|\buser [\w.]{{1,32}} using\b|[ \t]/p[ :]"
    rf"|:\d{{1,6}}:\d{{1,6}}:|{languages.WORDS}"
)
# Words of those who get in and what they get in by: what stands beside them has to have a sign, which ids do not have.
_PLACES = r"\b(?:smb|s?ftp|ldap|psql|mysql|i?sql|curl|ssh|user|root|admin|decrypt|impacket|winrm|smtp|imap|mail)"
# Words for what a program makes: long, of all kinds of characters, and nothing else beside such a word.
_KEYS = r"token|[ _-]key\b|\bkey (?:is|was)|secret|bearer|licen[cs]e"
_ODD = (
    r"[0-9][\w.-]*[!#$%^&*+~?@]|[!#$%^&*+~?@][\w.-]*[0-9]|[0-9][A-Za-z0-9]*(?-i:[A-Z])|[a-z][A-Za-z]*[0-9]+(?-i:[A-Z])"
    r"|(?-i:[A-Z][a-z]+(?:_[a-z]+[0-9]{3}|[0-9]{3}[a-z]))|-(?-i:[A-Z][a-z]+)-?[0-9]{2}|(?-i:[A-Z]{2}[a-z]+|[a-z][A-Z]{2})[A-Za-z]*[0-9]"
)
_ANY = f"(?:{_PASSWORDS}|{_PLACES}|{_KEYS})"
_STRONG = Pattern(f"(?i){_ANY}")
_STRONGEST = Pattern(f"(?i){_PASSWORDS}")
_GETTING_IN = Pattern(f"(?i){_PLACES}")
_KEYED = Pattern(f"(?i){_KEYS}")
_HAS_ODD = Pattern(f"(?i){_ODD}")
# What a text must have that is looked at, and what it must have beside: the first needs small tables, and most have none of it.
SHAPE = rf"(?i:{_ODD}|[\"'`][^\s\"'`]*(?:[0-9][a-z]+[0-9]|(?-i:[A-Z])[^\s\"'`]*[0-9]))"
# A block of its own below a paragraph that leads to it: "… was set to the value", an empty line, and the value.
_LEADING = r"\b(?:value|to|is|was|this|be|below|following)\n{1,2}"
# Nothing goes on across the sign that lies between texts which are looked at together.
SIGN = (
    rf"(?i)(?:(?:{_WORDS})[^\x01]*{_QUOTED}|{_QUOTED}[^\x01]*(?:{_WORDS})"
    rf"|{_ANY}[^\n\x01]*\n?[^\n\x01]*(?:{_ODD})|(?:{_ODD})[^\n\x01]*{_ANY}|{_LEADING}[ \t]{{2,}}[^\n\x01]*(?:{_ODD}))"
)
# Without any of these words none is beside anything.
NAMES = f"(?i)(?:{_WORDS}|{_ANY}|{_LEADING})"
_SHAPED = Pattern(SHAPE)
_HEX_KEY = prepared(r"(?:0x)?(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{48}|[0-9a-fA-F]{64}|[0-9a-fA-F]{128})")
# What documents set apart by backticks is the short id of a commit, as every list of changes has it.
_COMMIT = prepared(r"[0-9a-f]{7,12}")
_TAKES_KEY = prepared(r"(?i)hmac|cipher|crypt|wallet|private|secret|aes")
_OF_DIGEST = prepared(r"(?i)hash(?!ed_?mac)|digest\b|checksum|etag|fingerprint|commit|integrity|md5|public|address|\bid\b")
# The name that a text is given to at once: if it is none of a secret's, the rules for names have said so already.
# It is read backwards: from the front every word before it would have to be tried.
_OWNER = prepared(r"[\w@]{0,2}[ \t]*(?:=:|>=|[=:])(?:[ \t]*[\w.\[\]]{1,24}[ \t]*:)?[ \t]*[\"'\])]{0,2}([\w.$-]+)")
# Small letters and digits by turns, as programs make them up.
_MADE_ID = prepared(rb"(?<![A-Za-z0-9])(?=[a-z]*(?:[0-9]+[a-z]+){3})[a-z0-9]{16,}(?![A-Za-z0-9])")
_SEQUENCE = ("0123456", "123456789", "abcdef", "ABCDEF")
_ANYTHING = word_set(
    """
    value val default data text string key auth code x s v k p tmp given expected actual result keymaterial license licence
    bearer is it this priv
    """
)
_BEFORE, _BEHIND = 240, 120
_MOST_LINES = 3
_OPEN_ENDS = ("=>", "(", "[", "{", ",", "=", "\\", "+")
_MOST_KNOWN = 4_096
_LONGEST_LINE = 400
_BARE = prepared(r"(?<![\w!#$%^&*+~?@./\\{<-])[A-Za-z0-9!#$%^*][\w!#$%^&*+~?@.-]{6,31}(?![\w!#$%^&*+~?@(\[/\\=>-])")
_KEY = prepared(r"(?<![\w!#$%^&*+~?@./\\{<=-])[A-Za-z0-9][\w~+-]{23,95}=*(?![\w!#$%^&*+~?@(\[/\\>.-]|[ \t]*=)")
_NO_KEYS = prepared(
    r"(?i)\bcached?\b|\b(?:publish\w*|sample|host|next|partition|idempotency|primary|foreign|sort)[ _-]?(?:key|token)"
)
# A noun whose number or id comes next.
_COUNTED_BY = prepared(
    r"(?i)\b(?:session|request|trace|build|commit|id|ref|rev|version|model|device|user|host|job|run|task|order|ticket|pod|node|on)"
    r"[ \t#:=]+$"
)
# A user's name before a password: `ana / …`.
_PAIRED = prepared(r"(?:^|[\s(,\"'])[A-Za-z][\w.@+-]{1,31}[ \t]+/[ \t]+$")
# An address has rules of its own.
_IN_ADDRESS = prepared(r"://[^\s\"'<>]*$")
_FIELD = prepared(r"([\w.-]+)[\"']?(=|:[ \t]*)[\"']?$")
_ID = prepared(
    r"(?i)(?:id|secure|sealed|encrypted|ciphertext|cursor|trace|span|etag|sha\d*|hash|digest|ref|build|version|commit|nonce|arn|number|model|host|serial)$"
)
# Encrypted in place, and the number by which a token is looked up.
_NO_SECRET_BEHIND = prepared(r"\bENC\[[A-Z0-9_]{3,20},[^\]\s]{0,200}$|-accessor[ =]$")
_VALUE_BELOW = prepared(r"\n[ \t]*[\"']?value[\"']?:")
_LEADS = prepared(rf"(?i){_LEADING}\Z")
_ALONE = prepared(r"[ \t]{2,}\S+[ \t]*(?:\n|$)")
# What a test is called with, by an attribute or an annotation of it: `[InlineData("ana", "…")]`.
_CALLED_WITH = prepared(r"[ \t]*[@\[][A-Za-z][\w.]*\(")
# How a test's runner begins the lines about what did not hold.
_ASSERTED = "E   "
_OPENS = ("[", "@", " ", "\t")


# Who said it and when, and that it is what was asked for.
_REPLY = prepared(
    r"(?:\[[^\]\n]{4,20}\][ \t]+)?<?@?[\w. -]{1,24}[>:][ \t]+(?:[a-z]{2,8},? ){0,2}?"
    r"(?i:it'?s|it is|that'?s|try|use|new one|here)\b[ \t:]+"
)
_LONGEST_ANSWER = 100


class _Words:
    """The places of some words in a text, asked for from the front to the back."""

    def __init__(self, words: Pattern, data: bytes) -> None:
        self._words = words
        self._data = data
        self._from = 0
        self.place = words.find(data, 0)

    def may_be_in(self, start: int, end: int) -> bool:
        """Tell whether one of them begins between two places, or whether that can't be told: they lie before the last ones."""
        if start < self._from:
            return True
        if self.place is not None and self.place[0] < start:
            self._from, self.place = start, self._words.find(self._data, start)
        return self.place is not None and self.place[0] < end


def find(view: View) -> Iterator[Found]:
    """Find every value that could be nothing but a secret and has a word near it that says so."""
    # Lasts for one text: secrets must not linger in the process.
    known: dict[str, bool] = {}
    yield from _find_quoted(view, known)
    yield from _find_bare(view, {})


def _find_quoted(view: View, known: dict[str, bool]) -> Iterator[Found]:
    text, data, position = view.text, view.data, 0
    words = _Words(_FAMILY, data)
    while words.place and (span := _CANDIDATE.find(data, position)):
        start, end = span[0] + 1, span[1] - 1
        position = end
        if data[span[0]] != data[end]:
            continue
        first, last = _statement(text, start, end)
        owner = _OWNER.match(text[max(first, start - 80) : start - 1][::-1])
        # What is soonest told comes first, and what the value is at last.
        if (owner and not _may_own(owner[1][::-1])) or not words.may_be_in(first, last):
            continue
        value = text[start:end]
        if text[end] == "`" and _COMMIT.fullmatch(value):
            continue
        if owner and _is_of_other(text, owner[1][::-1], value, start):
            continue
        # What the look before the rules passes over must not depend on what else the text has.
        if _SHAPED.find(data[span[0] : span[1]], 0) is None:
            continue
        if _is_known(known, value, _is_unlike_others) and _is_beside(view, (first, start, end, last), value):
            yield Found(start, end, "secret")
            position = end + 1


def _is_of_other(text: str, owner: str, value: str, start: int) -> bool:
    """Tell whether what a text is given to says that it is a digest, an entry's key or one of the numbers of a public key."""
    if values.is_assembly_token(owner, value) or _is_of_public_key(text, owner, start):
        return True
    return values.is_entry_key(value) and known_kind(owner) == "key"


def _is_of_public_key(text: str, owner: str, start: int) -> bool:
    """Tell whether a text is one of the numbers of a public key: `"kty": "EC", "x": "…", "y": "…"`."""
    return owner in ("x", "y", "n", "e") and '"kty"' in text[max(0, start - _BEFORE) : start + _BEHIND]


def _is_known(known: dict[str, bool], value: str, judge: Callable[[str], bool]) -> bool:
    if value not in known:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[value] = judge(value)
    return known[value]


def _is_unlike_others(value: str) -> bool:
    """Tell whether a text in quotes is neither words nor a name, a number or an address of anything."""
    if any(map(value.__contains__, _SEQUENCE)) or "[redacted:" in value or "=" in value.rstrip("=") or values.is_digest(value):
        return False
    if _HEX_KEY.fullmatch(value):
        return True
    if values.is_service_id(value):
        return False
    return is_made(value) or (is_plainly_one("password", value) and not is_name(value))


def _is_beside(view: View, places: tuple[int, int, int, int], value: str) -> bool:
    """Tell whether a word near a value, in the same statement, has to do with secrets."""
    first, start, end, last = places
    before, behind = view.data[first : start - 1], view.data[end + 1 : last]
    if not _speaks_of_secrets(before) and not _speaks_of_secrets(behind):
        return False
    if not _HEX_KEY.fullmatch(value):
        return True
    around = f"{view.text[first:start]} {view.text[end:last]}"
    return bool(_TAKES_KEY.search(around)) and not _OF_DIGEST.search(around)


def _speaks_of_secrets(data: bytes) -> bool:
    """Tell whether a word has to do with secrets, other than by chance in the middle of an id: log_01m7kaph9nbt339ftpv9353xhr."""
    ids: list[Span] | None = None
    place = _FAMILY.find(data, 0)
    while place is not None:
        ids = [found.span() for found in _MADE_ID.finditer(data)] if ids is None else ids
        if not any(first <= place[0] and place[1] <= last for first, last in ids):
            return True
        place = _FAMILY.find(data, place[1])
    return False


def _may_own(name: str) -> bool:
    """Tell whether what has this name may be a secret: it is one's name, or that of anything."""
    return known_kind(name) is not None or name.rpartition(".")[2].lower() in _ANYTHING


def _statement(text: str, start: int, end: int) -> tuple[int, int]:
    """Give where the statement around a place begins and ends: its line, and those before it that leave a bracket open."""
    limit = max(0, start - _BEFORE)
    first = text.rfind("\n", limit, start)
    for _ in range(_MOST_LINES):
        if first < 0 or not (text[limit:first].rstrip().endswith(_OPEN_ENDS) or text.startswith(_ASSERTED, first + 1)):
            break
        first = text.rfind("\n", limit, first)
    last = text.find("\n", end, end + _BEHIND)
    first = limit if first < 0 else first + 1
    if last >= 0 and text.startswith(_OPENS, first) and _CALLED_WITH.match(text, first):
        # The names of what a test is called with stand in the line below.
        last = text.find("\n", last + 1, end + 2 * _BEHIND)
        return first, min(len(text), end + 2 * _BEHIND) if last < 0 else last
    return first, (min(len(text), end + _BEHIND) if last < 0 else last)


def _find_bare(view: View, known: dict[str, bool]) -> Iterator[Found]:
    """Find the words without quotes in a line that speaks of passwords, which nobody would write but as one."""
    text, data, position = view.text, view.data, 0
    words = _Words(_STRONG, data)
    leaped_to: Span | None = None
    while words.place and (span := _HAS_ODD.find(data, position)):
        first = max(text.rfind("\n", max(0, span[0] - _LONGEST_LINE), span[0]) + 1, span[0] - _LONGEST_LINE, position)
        last = text.find("\n", span[1], span[1] + _LONGEST_LINE)
        last = min(len(text), span[1] + _LONGEST_LINE) if last < 0 else last
        before = _line_above(text, first)
        position = max(last, span[1])
        if not words.may_be_in(before, last):
            if words.place and words.place != leaped_to:
                # On to the line that has the next such word; once, since the line may be as long as the text.
                leaped_to = words.place
                position = max(position, text.rfind("\n", position, leaped_to[0]) + 1)
        elif _STRONG.find(data[before:last], 0) is not None:
            yield from _in_line(view, (before, first, last), known)


def _line_above(text: str, first: int) -> int:
    """Give where the line before begins, if what stands below belongs to it: behind a colon, a bracket or a question."""
    is_alone = text[first : first + 2].isspace() and _ALONE.match(text, first)
    if is_alone and (leads := _LEADS.search(text, max(0, first - 12), first)):
        above = text.rfind("\n", max(0, first - _LONGEST_LINE), leads.start())
        return max(text.rfind("\n", max(0, first - _LONGEST_LINE), max(0, above)) + 1, first - _LONGEST_LINE)
    if first < 2 or text[first - 1] != "\n" or not (text[first - 2] in ":{[(?" or _VALUE_BELOW.match(text, first - 1)):
        return _line_replied_to(text, first)
    if text[first - 2] == "?" and len(text[first : first + _LONGEST_ANSWER].partition("\n")[0]) == _LONGEST_ANSWER:
        return first
    return max(text.rfind("\n", max(0, first - _LONGEST_LINE), first - 1) + 1, first - _LONGEST_LINE)


def _line_replied_to(text: str, first: int) -> int:
    """Give where the line before begins, if this one replies to it in a chat: `[10:03] ana: its …`."""
    if first < 2 or text[first - 1] != "\n" or not _REPLY.match(text, first):
        return first
    return max(text.rfind("\n", max(0, first - _LONGEST_LINE), first - 1) + 1, first - _LONGEST_LINE)


def _in_line(view: View, places: tuple[int, int, int], known: dict[str, bool]) -> Iterator[Found]:
    """Find the words in a line that are made by somebody; the first place is that of the line which it belongs to."""
    before, first, last = places
    text, line = view.text, view.data[before:last]
    is_strong = _STRONGEST.find(line, 0) is not None
    for word in _BARE.finditer(text, first, last):
        value = word[0].rstrip(".")
        if not _is_known(known, value, is_made):
            is_given = is_signed_once(value) and _is_given(text, (before, first, last), word.start(), len(value))
            if is_strong and (is_given or (is_signed_last(value) and not _is_owned(text, first, word.start()))):
                yield Found(word.start(), word.start() + len(value), "told-password")
            continue
        # Names of things look like two words and a number: a word for a key is not enough beside them.
        is_plain = value.isalnum() or (is_two(value) and _GETTING_IN.find(line, 0) is None)
        if not is_strong and is_plain and not _PAIRED.search(text, max(first, word.start() - 48), word.start()):
            continue
        if not _is_owned(text, first, word.start()) and not (value.isalnum() and _COUNTED_BY.search(text, first, word.start())):
            yield Found(word.start(), word.start() + len(value), "told-password")
    if _KEYED.find(line, 0) is None or _OF_DIGEST.search(text, first, last) or _NO_KEYS.search(text, first, last):
        return
    for word in _KEY.finditer(text, first, last):
        owner = _FIELD.search(text, max(first, word.start() - 80), word.start())
        is_other = _NO_SECRET_BEHIND.search(text, max(first, word.start() - 240), word.start())
        if not is_other and (owner is None or _may_own(owner[1])) and _is_key(word[0]):
            yield Found(word.start(), word.end(), "token")


def _is_given(text: str, places: tuple[int, int, int], start: int, length: int) -> bool:
    """Tell whether a word stands behind a user's name, or is all that answers the question in the line above."""
    before, first, last = places
    if _PAIRED.search(text, max(first, start - 48), start):
        return True
    is_reply = before < first and (text[first - 2] == "?" or bool(_REPLY.match(text, first)))
    return is_reply and not text[start + length : last].strip(" \t.!,)")


def _is_key(value: str) -> bool:
    if values.is_service_id(value):
        return False
    return values.is_mixed_key(value) and not values.is_path(value) and not values.is_public(value)


def _is_owned(text: str, first: int, place: int) -> bool:
    """Tell whether a word is a part of an address, or the value of a field that says what else it is."""
    before = max(first, place - 80)
    if _IN_ADDRESS.search(text, before, place) or _NO_SECRET_BEHIND.search(text, max(first, place - 240), place):
        return True
    owner = _FIELD.search(text, before, place)
    return owner is not None and not _may_own(owner[1]) and (owner[2] == "=" or bool(_ID.search(owner[1])))
