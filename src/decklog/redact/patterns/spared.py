"""What is no secret for what stands around it: public blocks, names of things that a tool reports on, keys called public."""

from bisect import bisect_right
from collections.abc import Iterable

from decklog.prepared import prepared
from decklog.redact import phrases, values
from decklog.redact.placeholders import is_chord
from decklog.redact.view import Found

# Lines of nothing but base64 below the head of a block; one of a private key has rules of its own.
_BLOCK = prepared(
    r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,3}(?:CERTIFICATE(?: REQUEST)?|PUBLIC KEY(?: BLOCK)?|X509 CRL|DH PARAMETERS|EC PARAMETERS"
    r"|PKCS7|CMS|SIGNATURE|(?:PGP )?MESSAGE|PGP SIGNED MESSAGE) ?-{4,5}[ \t\r]*\n"
    r"(?:[ \t#>|*]{0,16}(?:[A-Z][A-Za-z]{2,12}: [^\n]{0,80}|[A-Za-z0-9+/=]{0,100}),?[ \t\r]*(?:\n|$))+"
)
# The public half of a pair as OpenSSH writes it, pictures and fonts in a page, and digests as lock files have them.
_RUN = prepared(
    r"(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp\d{3}|sk-[a-z0-9-]{5,24}@openssh\.com)[ \t]+AAAA[A-Za-z0-9+/=]+"
    r"|data:(?:image|font|audio|video)/[\w.+-]{2,24}(?:;[\w=-]{1,24})?;base64,[A-Za-z0-9+/=]+"
    r"|sha(?:1-[A-Za-z0-9+/]{27}=|256-[A-Za-z0-9+/]{43}=|384-[A-Za-z0-9+/]{64}|512-[A-Za-z0-9+/]{86}==)"
)
_NAMING = prepared(r"(?i)(?:^|[^\w-])(?:sealed|external)?secrets?(?:\.[a-z.]{1,40})?(?:/|[ \t]+[\"'`]?)\Z")
_NAME = prepared(r"[a-z0-9](?:[a-z0-9./-]*[a-z0-9])?")
_REPORTED = prepared(
    r"[\"'`]?[ \t]+(?:(?:was|has been|successfully|is)[ \t]+)?(?:deleted|created|configured|unchanged|patched"
    r"|annotated|label+ed|replaced|edited|updated|pruned|restored|synced|mounted|serverside-applied"
    r"|already exists|not found|forbidden|unlabel+ed|immutable)\b"
)
_CALLED_PUBLIC = prepared(r"(?i)(?:#|//|--|/\*|<!--|;|\()[^\n]{0,80}?\bpublic(?:[ -](?:key|half|part|verification)|\W{0,6}$)")
# Bytes of a key that everybody may have, however many words lie between.
_PUBLIC_BYTES = prepared(r"(?i)(?:public|verif\w{1,8}|peer|host|server)[ _-]?key[^\n]{0,40}\Z")
# The name that a value is given to says that everybody may have it.
_PUBLIC_NAME = prepared(
    r"(?i)(?:verify|verifying|verification|verifier|public|pub)[_-]?key(?:[_-]?(?:hex|b64|base64|pem|bytes))?[\"'\]]{0,2}[ \t]*"
    r"(?::[ \t]*[\w<>\[\]&]{1,24}[ \t]*)?(?::=|=>|[:=])[ \t]*(?:[\w.:]{1,32}\()?b?[\"'`]?\Z"
)
_NOT_PUBLIC = prepared(r"(?i)private|secret|passw|token|\bnot\b|n't\b|never")
# The names of secrets that a service is to be given, and how many there were of something and by what it grew.
_BY_NAME = prepared(r"--(?:set|update|build)-secrets?[ =][\"']?\S*\Z")
_NAMED = prepared(r"[\w./-]+(?::(?:latest|\d{1,4}))?(?:,\S*)?")
# A list of words and their numbers: the line before or behind is one of them too.
_WORD_BEFORE = prepared(r"(?:\A|\n)[+ -]?[#▁]{0,2}[a-z]+\t\Z")
_NUMBERED_LINE = r"[+ -]?[^\s\t]{1,40}\t\d{1,8}"
_LINE_ABOVE, _LINE_BELOW = prepared(rf"(?:\A|\n){_NUMBERED_LINE}\Z"), prepared(rf"\n{_NUMBERED_LINE}(?:\n|\Z)")
# When a secret was changed, as it is listed; what a cache calls something of a user's; and by what a key is looked up.
_OF_PLACE = {
    "directive-password": prepared(r"\d{4}-\d\d-\d\d"),
    "listed-password": prepared(r"\d{4}-\d\d-\d\d"),
    "auth": prepared(r"[a-z]+:\d+(?::[a-z]+)+"),
    "directive-key": prepared(r"[a-z_]{0,24}id=\w+"),
}
# A file of messages in some language: the key has dots, and the message several words.
_TRANSLATED, _MESSAGE = prepared(r"(?:^|[\s→])[a-z][\w-]*(?:\.[\w-]+)+=\Z"), prepared(r"(?: [^\W\d_]+)+[.!?…]*(?:\n|\Z)")
# By which the key of somebody who signs is known.
_SIGNER = prepared(r"[0-9A-F]{40}")
_OF_SIGNER = prepared(r"(?i)(?:gpg|pgp)_?(?:keys?|id|fingerprint)[\"']?[ \t]*[=:]?[ \t]*[\"']?\Z")
_COUNTED = prepared(r"[ \t]*\([+-]?\d[\d.,]*[ \t]?%\)")
# What was released, by its version and its build; what a vault writes instead of a token; what decides of a module that asks for
# a password; how long one is to be; what a template puts there; to whom one encrypts; how a language assigns;
# how a build names a style; what an account's line has instead.
_NO_VALUE = prepared(
    r"[\w./-]+@v?\d+(?:\.\d+){1,3}[+-][\w.-]+|hmac-sha256:[0-9a-f]{64}|\[[a-z_]{2,24}=[a-z0-9]{1,8}\]?|[a-z_]{2,24}=\d{1,4}|\}\}@\S*"
    r"|age1[0-9a-z]{50,70}|0x[0-9a-fA-F]{40}|\$ENV\{|[<>:=-]{1,3}|\[(?:removed|stripped|hidden|filtered|omitted|masked)|\)\.\w+\(\S*"
    r"|[a-z][\w-]*__\w*(?i:passw|token|secret|key|pin|code)\w*_[A-Za-z0-9_-]{5}|(?:\d+:)?(?:[a-z_][\w.-]*:)?x:\d+:\d+:\S*"
    # What a lock file knows a provider by, and a job the files that it keeps.
    r"|zh:[0-9a-f]{64}|h1:[A-Za-z0-9+/]{43}=|(?:Linux|macOS|Windows)(?:-[\w.]+)*-[0-9a-f]{64}"
    # A class of characters, and what a pattern has behind one.
    r"|\^?\(?\[[^\s\]]*(?:a-z|A-Z|0-9)[^\s\]]*\](?:[+*?)$|]|\{\d+(?:,\d*)?\}|\[[^\s\]]*\]|\\[A-Za-z.])*"
)
# Words of a language that is not cased, in a list of such; and the page of a manual that something is passed on to.
_LISTED_WORD, _IN_LIST = prepared(r"[*/][A-Z]{3,12}"), prepared(r"\"[*/]?[A-Z]+\",[ \t]*\"\Z")
_MANUAL, _PASSED_TO = prepared(r"[a-z_][\w.]*\(\d[a-z]?"), prepared(r"(?i)\bpass(?:es|ed|ing)?[ \t][\w \t]{1,40}[ \t]to[ \t]\Z")
# Where a shell asks for the next command, by its folder or at the beginning of a line; and where a program was connected to.
_SHELL = prepared(r"[a-z_][\w.-]*@[a-z][a-z0-9.-]*(:[~/][\w./~-]*)?[$#%>]")
_STAMP = prepared(r"(?:^|\n)[\d:.,TZ+\[\] -]{0,40}\Z")
_PORT_OF_HOST = prepared(r"(?:[a-z0-9-]+\.)+[a-z]{2,12}:\d{2,5}")
# Without these in its line, or in the one above, what was found is of something else: a combination that opens no lock, a
# value that a comment goes on with, what somebody has set something to.
_ABOUT = {
    "lock-code": prepared(r"(?i)\b(?:safe|lock(?! ?file)|locker|padlock|vault|cabinet|strongbox|key ?box|dial)\b"),
    "continued-key": prepared(
        r"(?i)\b(?:the|our|your|my|api|access|secret|private|signing|auth|partner|test|live) (?:key|token|secret)\b"
        r"[^\n.:;=]{0,60}\n"
    ),
    "set-password": prepared(r"(?i)\b(?:login|log in|password|account)\b"),
}
# What is named after a digest, and what a manager of packages wrote down of one.
_OF_DIGEST = prepared(
    r"(?i)(?:hash|integrity|checksum|digest|sha\d{1,3})[\"']?[ \t]*[:=][ \t]*[\"']?\Z|\{:hex, :\w{1,60}, [^\n]{0,200}\Z"
)
_NUMBERED_NAME = prepared(r"[a-z]{2,16}(?:-[a-z]{2,16})*-\d{1,3}")
_TOLD = frozenset(("told-password", "printed-secret"))
_KEYS = frozenset(("key", "api-key", "encryption-key", "signing-secret", "secret", "token"))
# By which a row is known.
_SHORT_NUMBER = 12
# How far around a value is looked.
_NEAR = 160


def not_spared(text: str, found: Iterable[Found]) -> list[Found]:
    """Give those that were found without what is no secret for what stands around it."""
    left = [one for one in found if not _is_spared(text, one)]
    if not left or not ("BEGIN " in text or "AAAA" in text or "base64," in text or "sha" in text):
        return left
    blocks, runs = ([match.span() for match in pattern.finditer(text)] for pattern in (_BLOCK, _RUN))
    return [one for one in left if not (_is_within(one, blocks) or _is_within(one, runs))]


def _is_within(one: Found, places: list[tuple[int, int]]) -> bool:
    place = bisect_right(places, (one.start, len(places) and places[-1][1])) - 1
    return place >= 0 and places[place][0] <= one.start and one.end <= places[place][1]


def _is_spared(text: str, one: Found) -> bool:
    value = text[one.start : one.end]
    if values.is_documented(value) or _NO_VALUE.fullmatch(value):
        return True
    if one.kind in _TOLD and (_PORT_OF_HOST.fullmatch(value) or _is_prompt(text, one)):
        return True
    if one.kind in _ABOUT and not _ABOUT[one.kind].search(text, _line_above(text, one), one.start):
        return True
    if is_chord(value) or (_NAME.fullmatch(value) and _is_reported(text, one)):
        return True
    if value.isdigit() and (_COUNTED.match(text, one.end) or _is_in_vocabulary(text, one)):
        return True
    if one.kind in _OF_PLACE and _OF_PLACE[one.kind].fullmatch(value):
        return True
    if _NAMED.fullmatch(value) and _BY_NAME.search(text, max(0, one.start - 200), one.start):
        return True
    if _is_beside_others(text, one, value) or (one.kind == "password" and value.istitle() and _is_message(text, one)):
        return True
    if _SIGNER.fullmatch(value) and _OF_SIGNER.search(text[max(0, one.start - 40) : one.start]):
        return True
    if one.kind not in _KEYS:
        return False
    if one.kind == "key" and value.isdigit() and len(value) < _SHORT_NUMBER:
        return True
    before = text[max(0, one.start - 240) : one.start]
    if _OF_DIGEST.search(before) or (one.kind == "token" and _NUMBERED_NAME.fullmatch(value)):
        return True
    if _PUBLIC_NAME.search(before) or (one.kind == "encryption-key" and _PUBLIC_BYTES.search(before)):
        return True
    return _is_called_public(text, one)


def _is_beside_others(text: str, one: Found, value: str) -> bool:
    """Tell whether a value is one of a list of words, or the page of a manual, by what stands before it."""
    before = text[max(0, one.start - 64) : one.start]
    if _LISTED_WORD.fullmatch(value):
        return bool(_IN_LIST.search(before))
    return bool(_MANUAL.fullmatch(value)) and text[one.end : one.end + 1] == ")" and bool(_PASSED_TO.search(before))


def _is_message(text: str, one: Found) -> bool:
    """Tell whether the line is a message in some language under a key with dots, of which the value is the first word."""
    message = _MESSAGE.match(text, one.end)
    if not message or not _TRANSLATED.search(text[max(0, one.start - _NEAR) : one.start]):
        return False
    return phrases.is_sentence(text[one.start : message.end()])


def _is_in_vocabulary(text: str, one: Found) -> bool:
    """Tell whether a number is that of a word in a list of words."""
    before = text[max(0, one.start - _NEAR) : one.start]
    if not _WORD_BEFORE.search(before):
        return False
    above = before[: before.rfind("\n")] if "\n" in before else ""
    return bool(_LINE_ABOVE.search(above) or _LINE_BELOW.match(text, one.end))


def _is_reported(text: str, one: Found) -> bool:
    """Tell whether a tool says what it did to the thing of this name: `secret "mail-relay-x7k2p" deleted`."""
    return bool(_REPORTED.match(text, one.end)) and bool(_NAMING.search(text[max(0, one.start - 64) : one.start]))


def _is_prompt(text: str, one: Found) -> bool:
    """Tell whether a shell asks here for the next command: `ana@db1:~$ `, or `ana@edge1# ` where a line begins."""
    prompt = _SHELL.fullmatch(text, one.start, one.end)
    if not prompt or text[one.end : one.end + 1] not in ("", " ", "\n"):
        return False
    return bool(prompt[1]) or bool(_STAMP.search(text, max(0, one.start - 48), one.start))


def _is_called_public(text: str, one: Found) -> bool:
    """Tell whether a comment behind a key, in its line, calls it public, and nothing in the line speaks of a secret."""
    first, last = _line(text, one)
    return bool(_CALLED_PUBLIC.search(text, one.end, last)) and not _NOT_PUBLIC.search(text, first, last)


def _line_above(text: str, one: Found) -> int:
    """Give where the line before that of a value begins, or how far is looked."""
    near = max(0, one.start - _NEAR)
    first = text.rfind("\n", near, one.start)
    return max(near, text.rfind("\n", near, max(near, first)) + 1)


def _line(text: str, one: Found) -> tuple[int, int]:
    """Give where the line around a value begins and ends, or how far is looked."""
    near = max(0, one.start - _NEAR)
    first, last = text.rfind("\n", near, one.start), text.find("\n", one.end, one.end + _NEAR)
    return near if first < 0 else first + 1, min(len(text), one.end + _NEAR) if last < 0 else last
