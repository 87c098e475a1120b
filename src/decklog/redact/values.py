"""Which values can be a secret: not a placeholder, not a variable, not a word of prose."""

import re
from binascii import a2b_base64

from decklog.redact.placeholders import BENIGN_WORDS, STOP_WORDS

_MASK = frozenset("*xX.•-_#?0…●•· ")
_PLACEHOLDER = re.compile(
    r"""(?ix)
    ^[<\[({] [^>\])}]* [>\])}]+ $          # <token>, [token], {token}
    | ^\{ | ^[\^~<>=v]*\d+(?:\.\d+)+(?:[-+][\w.]+)?$
    | ^\$ | ^%[\w(]+[%)s]? | ^[{#@]\{ | \$\{ | \{\{ | \{%\s | <%= | ^%\w$
    | ^(?:!\w+|enc\[|enc\(|vault:|arn:|op://|ssm:|env[:.]|secrets?[.:/]|file:|ref\+|keyring:|pass:|\$ansible)
    | ^\[?redacted | ^\*{2} | \[redacted: | ^<redacted
    | (?:\b|_)(?:(?:your|my)[-_ .]?|(?:the|some|an?|insert|enter|put|replace|add|paste|fill|change|use)[-_ .])
      (?:[a-z]+[-_ .]){0,3}
      (?:pass(?:word|wd)?|secret|token|key|api[-_ ]?key|apikey|credentials?|here|value|me|this|it)\b
    | ^(?:change|replace|fill|update|rotate|set)[-_ ]?(?:me|this|it|in)\w*$
    | ^(?:placeholder|example|dummy|sample|todo|tbd|fixme)(?:$|[-_ .:])
    | (?:[-_ ](?:here|placeholder|goes[-_ ]here|example))$
    | \(\?[:=!P<] | \[\^ | \[a-z | \[0-9 | \\[wdsbW][+*]?   # a pattern
    | ^\#[0-9a-f]{3,8}$
    | ^(?:x{3,}|\.{2,}|_{2,}|\?+|…+)$
    """
)
_CODE = re.compile(
    r"""(?x)
    ^(?:os|process|env|self|this|args|config|cfg|settings|ctx|req|request|opts?|options|params?|props|var|local
      |data|secrets|inputs|github|steps|module|import\.meta|Deno|System|crypto)\.
    | ^(?:ENV|await|new|lambda|async|func|fn|Optional|Union|List|Dict|String|SecretStr|None|str|bytes
      |int|bool)\b
    | ^(?:std::|uuid|random|get[A-Z_]|generate)
    | ^[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)+[\]\)\};,]*$     # dotted chain
    | ^[&*!]*[A-Za-z_]+\d?(?:(?:\.|->|::)[A-Za-z_]+\d?)*\[     # subscript
    | ^[&*!]*[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)*\(     # call
    | ^\(\w* | ^[&*]+\w+$
    | ^(?:f|r|b|rb|u)?["']$ | ^\(\s*$ | ^[\[{(|<>=&+,;:!?]+$
    """
)
_PATH = re.compile(r"^(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[\w.@ +-]+[/\\])*[\w.@ +-]*$|^(?:[\w.-]+/)+[\w-]+\.\w{1,6}$")
_URL = re.compile(r"^[a-z][a-z0-9+.-]*://", re.I)
_PROSE_WORD = re.compile(r"^[\"'(]?[A-Za-z][a-z'’-]*[.,;:!?)\"']*$|^[A-Z]{2,}[.,;:!?]*$|^[&/—–-]+$|^\d{1,6}[+.,]?$")
_KINDS = str.maketrans(
    dict.fromkeys("0123456789", "d")
    | dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "l")
    | dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "u")
)
_WORDY = re.compile(r"(?:[A-Z]{0,5}[a-z]{2,}|[A-Z]{2,6}|\d{1,4})+$")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=]{8,}")
_SEGMENTS = re.compile(r"[^A-Za-z0-9]+")


def is_placeholder(value: str) -> bool:
    """Tell whether a value only stands where a secret will be: `<token>`, `${VAR}`, `***`, `changeme`."""
    bare = value.strip().strip("\"'`").rstrip(",;")
    if not bare or bare.lower() in BENIGN_WORDS:
        return True
    if _MASK.issuperset(bare[:256]) and bare not in ("x", "X", "0"):
        return True
    if len(bare) < 4 and not bare.isascii():
        return True
    if len(set(bare[:64])) <= 2 and len(bare) >= 6 and not bare.isdigit():
        return True
    return bool(_PLACEHOLDER.search(bare[:96]))


def is_harmless(value: str) -> bool:
    """Tell whether a value is no secret whatever its name: a placeholder, a path, an address, a sentence."""
    return is_placeholder(value) or is_path(value) or is_url(value) or is_prose(value)


def is_code(value: str) -> bool:
    """Tell whether an unquoted value is an expression: a variable's attribute, a call, a subscript."""
    return bool(_CODE.search(value[:256]))


def is_path(value: str) -> bool:
    """Tell whether a value is a place in a file system."""
    return len(value) <= 400 and bool(_PATH.match(value)) and not _has_random_segment(value)


def is_url(value: str) -> bool:
    """Tell whether a value is an address; a password inside it is found by another rule."""
    return bool(_URL.match(value))


def is_prose(value: str) -> bool:
    """Tell whether a value is a few words of a sentence or a label, not a passphrase."""
    if " " not in value.strip():
        return False
    tokens = value[:300].split()
    plain = sum(1 for token in tokens if _PROSE_WORD.match(token))
    if plain < len(tokens) * 0.75:
        return False
    lowered = {token.lower().strip(".,;:!?()\"'") for token in tokens}
    return bool(lowered & STOP_WORDS) or value[0].isupper() or value.rstrip()[-1] in ".!?:"


def is_word(value: str) -> bool:
    """Tell whether a value is made of letters alone, joined by - _ or . at most."""
    return value.replace("-", "").replace("_", "").replace(".", "").isalpha()


def is_type_name(value: str) -> bool:
    """Tell whether a value is written like a class: `PKCS7PrivateKey`."""
    return value[0].isupper() and value.isalnum() and value[-1].islower() and not _has_random_segment(value)


def is_place(value: str) -> bool:
    """Tell whether a value is a place in a store, such as `uploads/9fceb02d.png`."""
    return "/" in value and value.split("/", 1)[0].isalpha()


def is_numbered_word(value: str, *, is_spaced: bool) -> bool:
    """Tell whether a value is a variable called after what it holds, such as `password1` in an assignment."""
    return is_spaced and value.rstrip("0123456789").lower() in BENIGN_WORDS


def looks_random(value: str) -> bool:
    """Tell whether a value can't be a name or words: digits among letters, or case that words don't have."""
    if _has_random_segment(value):
        return True
    letters = sum(map(str.isalpha, value[:200]))
    digits = sum(map(str.isdigit, value[:200]))
    return len(value) >= 16 and digits >= 4 and letters >= 4


def _has_random_segment(value: str) -> bool:
    return any(len(segment) >= 8 and _is_jumbled(segment[:64]) for segment in _SEGMENTS.split(value[:400]))


def _is_jumbled(segment: str) -> bool:
    """Tell whether letters and digits change kind faster than they do in names; `Word` counts as one run."""
    kinds = segment.translate(_KINDS)
    runs = 1 + sum(map(kinds.count, ("ud", "du", "ld", "dl", "lu")))
    if runs < 4 or len(segment) > 5.5 * runs:
        return False
    return len(segment) <= 3.4 * runs or (len(segment) >= 16 and not _WORDY.match(segment))


def is_jumble(value: str) -> bool:
    """Tell whether a value is plainly random, so that nothing else need be asked about it."""
    return len(value) >= 8 and value.isalnum() and value.isascii() and _is_jumbled(value[:64])


_STAND_IN = re.compile(
    r"(?i)your[-_]|[-_]here\b|placeholder|xxxxx|redacted|replace[-_]?me|example[-_]|[-_]goes[-_]|\*\*\*|0{12}|123456789012"
)


def is_stand_in(token: str) -> bool:
    """Tell whether a token with a provider's mark only shows what one looks like."""
    return bool(_STAND_IN.search(token[:256]))


def is_basic_pair(encoded: str) -> bool:
    """Tell whether base64 text decodes to `user:password`."""
    try:
        decoded = a2b_base64(encoded + "=" * (-len(encoded) % 4))
    except ValueError:
        return False
    return b":" in decoded and decoded.isascii() and decoded.decode().isprintable()


def has_key_body(block: str) -> bool:
    """Tell whether a key block has anything between its first and its last line."""
    body = block.split("-----", 2)[-1].rsplit("-----END", 1)[0]
    return bool(_KEY_BODY.search(body))
