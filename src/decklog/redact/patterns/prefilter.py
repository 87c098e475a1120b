"""A cheap look at a text: could it hold a secret at all?

It runs before anything is loaded, on every text that is recorded, so it is written for speed: a few passes in
C over the whole text, and Python only for the few places they point at.
"""

from operator import add

from decklog.redact.patterns.keywords import KEYWORDS
from decklog.redact.patterns.signs import (
    BY_TABS,
    CALLS,
    CODES,
    COMMANDS,
    FOREIGN,
    GETTING_IN,
    GIVING,
    GIVING_WITH,
    KEY_NOUNS,
    MARKS,
    NAMES,
    NEARBY,
    PASS_DIRECTIVES,
    PIPED_TO,
    PLACES,
    TELLING_ALONE,
    TRIED_USERS,
    TRYING,
    USERS,
)

# Past this size the rules themselves are faster than looking for their beginnings one by one.
_LONG = 4_096
_INVISIBLE = "\x00\xad\u200b\u200c\u200d\u2060\ufeff"
_RUN_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/=.~%$:@"
_AS_RUNS = bytes(97 if byte in _RUN_CHARS else 32 for byte in range(256))
_AS_WORDS = bytes(byte if byte in _RUN_CHARS else 32 for byte in range(256))
SHORTEST_TOKEN = 15
_RUN = b"a" * SHORTEST_TOKEN
_DIGITS = b"0123456789"
_SIGNS = b"!#$%^&*+~"
_DIGITS_OR_SIGNS = _DIGITS + _SIGNS
_ODD = b"\"'`!#$%^&*+~?@"
_HEX = b"0123456789abcdef-"
# What stands between a name and its value.
_TIES = ("=", ":", '"', ">", "`", "@", " -", "--", " '", "('", "|", "ENV ")
# Marks by their first two characters: a short text has few pairs of characters, and only their marks can be in it.
_BY_PAIR: dict[str, list[str]] = {}
for _mark in MARKS:
    _BY_PAIR.setdefault(_mark[:2], []).append(_mark)
_PAIRS = frozenset(_BY_PAIR)
_MANY_PAIRS = 600


def may_hold_secret(text: str) -> bool:
    """Tell whether a text, or the value it is the JSON of, could hold a secret; False is certain."""
    if len(text) > _LONG:
        return True
    if len(text) < SHORTEST_TOKEN and is_one_word(text):
        return False  # too short for a token, and nothing stands before it
    if "\\" in text or "\n" in text or "\x1b" in text or "%" in text or "&" in text or not text.isascii():
        if _is_disguised(text):
            return True
        text = _plain(text)
    if "\t" in text and any(map(text.lower().__contains__, BY_TABS)):
        return True
    if "\n" not in text and "\r" not in text:
        return _may_hold(text)
    # A token goes on in the next line, a word does not.
    lines = [line.strip() for line in text.splitlines()]
    return _may_hold(" ".join(lines)) or _may_hold("".join(lines))


def _may_hold(text: str) -> bool:
    """Tell whether a line could hold a secret."""
    text = f" {' '.join(text.split())} "
    low = text.lower()
    if any(map(low.__contains__, KEYWORDS)):
        return True
    if any(map(text.__contains__, _TIES)):
        if _has_name(text, low) or _has_place(text, low):
            return True
    elif "$" in text or "{" in text or ("pass" in low and ("passw" in low or "repass" in low)):
        return True
    data = text.encode("latin-1", "replace")
    is_odd = len(data.translate(None, _DIGITS_OR_SIGNS)) != len(data)
    if _directs(low) or _is_placed(text, low) or (is_odd and _is_placed_oddly(low)):
        return True
    if _tells(text, low, data) or _has_odd_word(text, low, data):
        return True
    return _RUN in data.translate(_AS_RUNS) and _has_token(data, low)


def is_one_word(text: str) -> bool:
    """Tell whether a text is a single word, as keys and ids are."""
    return text.replace("-", "").replace("_", "").isalnum() and text.isascii()


def _directs(low: str) -> bool:
    """Tell whether a word stands in the text after which a password may come without a sign."""
    # Written out, since this is asked of every text; a single character is found much faster than a word.
    if "pass" in low and any(map(low.__contains__, PASS_DIRECTIVES)):
        return True
    if "auth" in low and ("auth " in low or "masterauth" in low):
        return True
    if "x" in low and ("setx " in low or "expect " in low):
        return True
    if "y" in low and ("identify " in low or "community" in low):
        return True
    if "w" in low and ("pw " in low or "pwd " in low or "wpa" in low):
        return True
    if "/" in low and ("/p:" in low or "/rp " in low or " /p " in low):
        return True
    if ("<" in low and "<<<" in low) or ("q" in low and "rabbitmqctl " in low) or ("v" in low and "setenv " in low):
        return True
    if ("_" in low and "fastcgi_param " in low) or ("-" in low and "samba-tool" in low):
        return True
    if "log" in low and ("login " in low or "sonar.login" in low):
        return True
    if "*" in low and (" *" in low or "\t*" in low) and low.rstrip()[-1] == "*":
        return True
    if "ftp" in low and ("ftp>" in low or "ftp -" in low):
        return True
    if "obscure " in low or "user-secrets" in low or "snmp-" in low:
        return True
    if ":" in low and ("]:" in low or ":587" in low or ":465" in low or ":25" in low or "encryption:" in low):
        return True
    if "/" in low and ("signtool" in low or ("conn" in low and "@" in low) or _has_box(low)):
        return True
    if "secret" in low and ("secret_id" in low or "secret-id" in low or "secretid" in low):
        return True
    if "phrase se" in low or "phrase de" in low or "frase" in low:
        return True
    return "net use" in low or "alias set " in low or "secret " in low or "enable " in low or "username " in low


def _has_box(low: str) -> bool:
    """Tell whether a host may be told with who gets in there by what: `box db1.example.org: ana/…`."""
    return ":" in low and ("box " in low or "box\t" in low or "host " in low or "host\t" in low)


def _tells(text: str, low: str, data: bytes) -> bool:
    """Tell whether somebody may be telling a password or a code, in any language."""
    if ("answer" in low or "question" in low or "setcookie" in low) and any(map(low.__contains__, TELLING_ALONE)):
        return True
    if ("-" in low or "_" in low or "." in low) and _tells_joined_words(low):
        return True
    if low.count(" ") > 11 and ("words" in low or "wallet" in low or "seed" in low):
        return True
    if len(data.translate(None, _DIGITS)) == len(data):
        # A sign does for a number only in the sentences of other alphabets: those of English are full of both.
        return not text.isascii() and len(data.translate(None, _SIGNS)) != len(data) and any(map(low.__contains__, FOREIGN))
    if any(map(low.__contains__, GIVING)):
        return True
    for shared, words in GIVING_WITH:
        if shared in low and any(map(low.__contains__, words)):
            return True
    if text.isascii():
        return False
    return "password" in low or any(map(low.__contains__, FOREIGN))


def _tells_joined_words(low: str) -> bool:
    """Tell whether words may be joined to a phrase behind a question for one, or behind a key of a network."""
    if max(low.count("-"), low.count("_"), low.count(".")) < 3:
        return False
    return (
        " key" in low
        or "shared" in low
        or "unlock" in low
        or ("pass" in low and " as " in low)
        or ("?" in low and ("phrase?" in low or "word?" in low or "code?" in low or "pw" in low))
    )


def _has_odd_word(text: str, low: str, data: bytes) -> bool:
    """Tell whether a word has a number and a sign or quotes, and there is another that has to do with secrets."""
    if len(data.translate(None, _DIGITS)) == len(data) or len(data.translate(None, _ODD)) == len(data):
        return False
    return any(map(_is_odd, text.split())) and any(map(low.__contains__, NEARBY))


def _is_odd(word: str) -> bool:
    if len(word) < 7 or word.isalnum():
        return False
    has_sign = any(map(word.__contains__, "\"'`!#$%^&*+~?@"))
    return has_sign and any(map(word.__contains__, "0123456789")) and any(map(str.isalpha, word))


def _names_code(low: str) -> bool:
    spaced = f" {low}".replace("-", " ").replace("_", " ").replace(" passcode", " code")
    return any(part.endswith(CODES) for part in spaced.split(" code")[:-1])


def _names_password(low: str) -> bool:
    """Tell whether a word for a password is there; that tests passed is said in many texts."""
    if "pw" in low:
        return True
    return "pass" in low and "pass" in low.replace("passed", "").replace("passes", "").replace("passing", "")


def _is_placed(text: str, low: str) -> bool:
    """Tell whether the place of a rule may be there whose own words are part of any text."""
    if any(map(low.__contains__, PLACES)) or (" -x" in low or " * " in low):
        return True
    if ("<" in low or "{" in low) and any(map(low.__contains__, ("secret", "token", "pass", "key"))):
        return True
    if "eap " in low and '"' in text:
        return True
    if "auth" in low and ("plain " in low or "oauth" in low):
        return True
    if "codes" in low and ("backup" in low or "recovery" in low):
        return True
    if "act." in low and ("!" in low or "*" in low):
        return True
    if " -" in low and (any(map(low.__contains__, ("security ", "variable "))) or _has_user_option(low)):
        return True
    if " -y" in low and ":" in low:
        return True
    return ('"' in text or "'" in text or "`" in text) and _names_password(low)


def _has_user_option(low: str) -> bool:
    """Tell whether an option that takes a user is there, and one that takes a password."""
    if not any(map(low.__contains__, (" -u", " -l", " -n", " --user", " --login"))):
        return False
    return " -p" in low or " -w" in low


def _is_placed_oddly(low: str) -> bool:
    """Tell the same where there is a number or a sign, without which these find nothing."""
    if _names_password(low) or _gets_in(low) or ("code" in low and _names_code(low)):
        return True
    if "user " in low or "your " in low or ("cat " in low and "auth" in low):
        return True
    if ("alt" in low or "old" in low) and ("neu" in low or "new" in low):
        return True
    return (" add " in low or " save " in low) and any(len(word) > 11 for word in low.split() if not word.isalpha())


def _gets_in(low: str) -> bool:
    """Tell whether somebody may be told by which user and what to get in."""
    if any(map(low.__contains__, GETTING_IN)):
        return True
    if not ("/" in low or ":" in low):
        return False
    if any(map(low.__contains__, USERS)):
        return True
    if not any(map(low.__contains__, TRYING)):
        return False
    return "/ " in low or " /" in low or any(map(low.__contains__, TRIED_USERS)) or _has_tight_colon(low)


def _has_tight_colon(low: str) -> bool:
    return any(part[:1] not in ("", " ", "/", "\\") for part in low.split(":")[1:])


def _is_disguised(text: str) -> bool:
    """Tell whether a text writes characters in a way that takes real work to undo."""
    if "\\u" in text and "\\u" in text.replace("\\u001b[", ""):
        return True
    if "%" in text and any(code in text for code in ("%2", "%3", "%4", "%5")):
        return True
    if "&" in text and any(entity in text for entity in ("&quot;", "&apos;", "&#")):
        return True
    if "\\x" in text or "\\033" in text or "\\e[" in text:
        return True
    return (not text.isascii() and any(char in text for char in _INVISIBLE)) or "\x00" in text


def _plain(text: str) -> str:
    """Undo colours and escapes, roughly but never hiding anything."""
    if "\\" in text:
        while "\\\\" in text:
            text = text.replace("\\\\", "\\")
        text = text.replace("\\u001b", "\x1b").replace("\\n", "\n").replace("\\r", "\n").replace("\\t", "\t").replace("\\", "")
    if "\x1b" in text:
        first, *rest = text.split("\x1b[")
        text = (first + "".join([piece.lstrip("0123456789;:?")[1:] for piece in rest])).replace("\x1b", "")
    return text


def _has_name(text: str, low: str) -> bool:
    """Tell whether a name that announces a secret stands before something that gives it a value."""
    if text.count(":") == 1 and "=" not in text and '"' not in text and " -" not in text:
        # One colon is a sentence; what could be a name is right before it.
        return "passw" in low or _is_near(text, low, text.find(":"))
    return any(_is_given(text, low, stem) for stem in filter(low.__contains__, NAMES))


def _is_near(text: str, low: str, place: int) -> bool:
    first = max(0, place - 64)
    text, low = text[first : place + 1], low[first : place + 1]
    return any(_is_given(text, low, stem) for stem in filter(low.__contains__, NAMES))


def _is_given(text: str, low: str, stem: str) -> bool:
    start = low.find(stem)
    while start >= 0:
        end = start + len(stem)
        if not _is_inside_word(text, low, stem, start, end) and _is_followed(text, low, start, end):
            return True
        start = low.find(stem, end)
    return False


def _is_inside_word(text: str, low: str, stem: str, start: int, end: int) -> bool:
    """Tell whether the stem only happens to be part of a word, as in `passed`, `tokens`, `monkey`."""
    if stem in ("key", "pat") and not (start and (text[start - 1].isalnum() or text[start - 1] in "_-. ")):
        return True
    after = text[end : end + 2]
    if not after[:1].isalpha() or low.startswith(NAMES[stem], end):
        return False
    return after[0].isupper() == text[end - 1].isupper() and not (after[0].isupper() and after[1:].islower())


def _is_followed(text: str, low: str, start: int, end: int) -> bool:
    """Tell whether an operator, a quote or a flag's value comes soon after a name."""
    ahead = text[end : end + 64]
    if any(mark in ahead for mark in "=:\"'`>,(|{") or " is" in ahead or " -" in ahead:
        return True
    behind = low[max(0, start - 64) : start]
    return "-" in behind or "env" in behind or "arg" in behind or "set" in behind


def _has_place(text: str, low: str) -> bool:
    """Tell whether the text has a place where secrets stand without a name: a URL, a command, a hash."""
    if "@" in text and ("://" in text or "impacket" in low or ".py " in low or "oracle:" in low or "sqlplus" in low):
        return True
    if "$" in text and any(map(text.__contains__, ("$1$", "$5$", "$6$", "$2", "$y$", "$7$", "$a", "$sc", "$pb", "$bc"))):
        return True
    if "{" in text and any(map(text.__contains__, ("{SHA", "{SSHA", "{MD5}", "{SMD5}", "{CRYPT}"))):
        return True
    if ("# " in text or "// " in text) and any(map(low.__contains__, ("passw", "passphr", "pwd", "secret", "token", " key"))):
        return True
    if '" "' in text or " * " in text or "<key>" in text or ("*" in text and ("\t*" in text or '" *' in text or "  *" in text)):
        return True
    if (count := text.count(":")) > 3 and _has_port(text):
        return True
    if count > 1 and _has_port_and_user(text):
        return True
    if "key=" in low and ("?key=" in low or "&key=" in low):
        return True
    if "otp" in low and any(map(low.__contains__, ('otp"', "otp'", "otp_code", "otp-code", "otpcode"))):
        return True
    if "(" in text and any(map(low.__contains__, CALLS)):
        return True
    if (" -" in text or "| " in text) and any(map(low.__contains__, COMMANDS)):
        return True
    return "| " in text and any(map(low.__contains__, PIPED_TO))


def _has_port(text: str) -> bool:
    return any((len(part) in (4, 5) and part.isdigit()) or part == "*" for part in text.split(":"))


def _has_port_and_user(text: str) -> bool:
    """Tell whether a user's name follows a port, as in `smtp.example.org:587 ana:`."""
    return any(part[:2].isdigit() and len(part.split()) == 2 for part in text.split(":")[1:-1])


def _has_token(data: bytes, text: str) -> bool:
    """Tell whether one of the long runs of characters could be a token."""
    runs = [word for word in data.translate(_AS_WORDS).split() if len(word) > 14]
    if any(run[-34:-32] == b"AC" for run in runs):
        # An account's id: its token is all hex, as a digest is.
        return True
    words = list(filter(_is_unusual, runs))
    if not words:
        # A digest is none, but a key that is told may look like one.
        return any(len(run) in (32, 40, 48, 64) for run in runs) and any(map(text.__contains__, (*KEY_NOUNS, "key")))
    if "bearer" in text or any(map(text.__contains__, KEY_NOUNS)):
        return True
    low = b" ".join(words).lower().decode("latin-1")
    return any(len(word) > 39 or _is_base64(word) for word in words) or _has_mark(low)


def _has_mark(low: str) -> bool:
    if len(low) > _MANY_PAIRS:
        return any(map(low.__contains__, MARKS))
    pairs = _PAIRS.intersection(map(add, low, low[1:]))
    return any(mark in low for pair in pairs for mark in _BY_PAIR[pair])


def _is_unusual(word: bytes) -> bool:
    """Tell whether a run is anything but a path, an identifier in lower case or a digest."""
    low = word.lower()
    if low == word and len(word) < 40 and len(word.translate(None, _DIGITS)) == len(word):
        return b"bearer" in low
    return bool(low.strip(_HEX)) or (b"-" in word and len(word) != 36)


def _is_base64(word: bytes) -> bool:
    """Tell whether four groups in a row, at any place, decode to plain text."""
    for part in word.replace(b":", b"=").replace(b".", b"=").split(b"="):
        if len(part) > 15 and part != part.lower() and part != part.upper():
            return True
    return False
