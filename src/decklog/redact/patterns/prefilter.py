"""A cheap look at a text: could it hold a secret at all?

It runs before anything is loaded, on every text that is recorded, so it is written for speed: a few passes in
C over the whole text, and Python only for the few places they point at. It says yes to whatever the rules would find something
in; most of them have a word of their own, and what is asked here is about the others.
"""

from decklog.redact.patterns.keywords import BY_PAIR, PAIRS
from decklog.redact.patterns.signs import (
    CODES,
    GETTING_IN,
    KEY_NOUNS,
    MARKS,
    NEARBY,
    ORDINARY,
    OTHER_ALPHABETS,
    SURE_MARKS,
    TRYING,
    WEAK_NAMES,
)

# Past this size the rules themselves are faster than looking for their beginnings one by one.
_LONG = 4_096
_INVISIBLE = "\x00\xad\u200b\u200c\u200d\u2060\ufeff"
_RUN_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/=.~%$:@"
_OTHER_CHARS = bytes(range(256)).translate(None, _RUN_CHARS)
_AS_WORDS = bytes.maketrans(_OTHER_CHARS, b" " * len(_OTHER_CHARS))
_AS_RUNS = _AS_WORDS.translate(bytes.maketrans(_RUN_CHARS, b"a" * len(_RUN_CHARS)))
SHORTEST_TOKEN = 15
# What is as long and has no mark may still be a token.
LONGEST_USUAL = 40
_RUN = b"a" * SHORTEST_TOKEN
_DIGITS = b"0123456789"
_DIGITS_OR_SIGNS = _DIGITS + b"!#$%^&*+~"
# What a value has, or what stands around it.
_VALUED = _DIGITS + b'=:"|<>{}$#*!~^&+?%@'
_AROUND_NUMBERS = ".,;:!?()[]\"'`*#「」«»„“”"
_ODD_SIGNS = "\"'`!#$%^&*+~?@"
_HEX = b"0123456789abcdef-"
# What the first three of four characters in base64 may be where they stand for plain text.
_FIRST = b"CIJKLMNOPQRSTUVWXYZabcdef"
_SECOND = b"ABCDEFGHQRSTUVWXghijklmnwxyz0123"
_THIRD = b"ABEFIJMNQRUVYZcdghklopstwx014589"
_BEFORE_LINES = ">#*|/-+"
# The fewest words of a wallet's seed.
_SEED_WORDS = 11
# Lines of a browser's file of cookies.
_COOKIE_FLAGS = ("\ttrue\t", "\tfalse\t")


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
    if "\t" in text and any(map(text.lower().__contains__, _COOKIE_FLAGS)):
        return True
    if "\n" in text or "\r" in text or "**" in text:
        return any(map(_may_hold, _readings(text)))
    return _may_hold(text)


def _readings(text: str) -> list[str]:
    """Give the lines that a text may be read as."""
    readings = [text]
    if "\n" in text or "\r" in text:
        lines = [line.strip() for line in text.splitlines()]
        # A token goes on in the next line, a word does not.
        readings = [" ".join(lines), "".join(lines)]
        if any(line[:1] in _BEFORE_LINES for line in lines[1:] if line):
            # What a mail or a comment puts before each line may stand between two words.
            readings.append(" ".join([line.lstrip(_BEFORE_LINES).lstrip() for line in lines]))
    return [*readings, text.replace("**", " ")] if "**" in text else readings


def _may_hold(text: str) -> bool:
    """Tell whether a line could hold a secret."""
    # What ends a sentence is no part of its last word.
    words = text.replace(". ", " ").split()
    text = f" {' '.join([word for word in words if word not in ORDINARY])} "
    low = text.lower()
    data = low.encode("latin-1", "replace")
    if "pass" in low or "pw" in low or _has_word(data, low):
        return True
    if not text.isascii() and any(map(low.__contains__, OTHER_ALPHABETS)):
        return True
    if _has_weak_name(text, low) and _could_be_given(text, data):
        return True
    if _is_hashed(text) or _is_placed(text, low) or (len(words) > _SEED_WORDS and "words" in low):
        return True
    if (len(data.translate(None, _DIGITS_OR_SIGNS)) != len(data) or _has_joined_words(text)) and _is_told(text, low, data):
        return True
    return _RUN in data.translate(_AS_RUNS) and _has_token(text.encode("latin-1", "replace"), low)


def _has_word(data: bytes, low: str) -> bool:
    """Tell whether one of the words is there without which most of the rules find nothing."""
    pairs = PAIRS.intersection(memoryview(data if len(data) % 2 == 0 else data + b" ").cast("H").tolist())
    words = [word for pair in pairs for word in BY_PAIR[pair].split(",")]
    # As bytes have it, with a question mark for each letter that one alphabet lacks.
    return any(map((low if low.isascii() else data.decode("latin-1")).__contains__, words))


def _could_be_given(text: str, data: bytes) -> bool:
    """Tell whether there is a number, a sign, a quote or a capital that no plain sentence has."""
    if len(data.translate(None, _VALUED)) != len(data) or text.count("'") > 1 or text.count("`") > 1:
        return True
    return _has_joined_words(text) or any(map(_has_capital_inside, text.split()))


def _has_joined_words(text: str) -> bool:
    return max(text.count("-"), text.count("_"), text.count(".")) > 2


def _has_capital_inside(word: str) -> bool:
    return not word.islower() and not word.istitle() and not word.isupper()


def _has_weak_name(text: str, low: str) -> bool:
    """Tell whether a name is there that sentences have too."""
    if any(map(low.__contains__, WEAK_NAMES)) or ("auth" in low and "auth" in low.replace("author", "")):
        return True
    return _names_pat(text, low)


def _names_pat(text: str, low: str) -> bool:
    """Tell whether a name ends with the short word for a personal token, as `path` does not."""
    if "pat" not in low:
        return False
    is_whole = any(not part[:1].isalpha() for part in low.split("pat")[1:])
    return is_whole or any(part[:1].isupper() for part in text.replace("Pat", "pat").split("pat")[1:])


def is_one_word(text: str) -> bool:
    """Tell whether a text is a single word, as keys and ids are."""
    return text.replace("-", "").replace("_", "").isalnum() and text.isascii()


def _is_hashed(text: str) -> bool:
    """Tell whether a password may stand here in the form that systems keep."""
    return "$" in text and any(map(text.__contains__, ("$1$", "$5$", "$6$", "$2", "$y$", "$7$", "$a", "$sc", "$pb", "$bc")))


def _is_placed(text: str, low: str) -> bool:
    """Tell whether the place of a rule may be there whose own words are part of any text."""
    if ":" in text and _has_fields(text, low):
        return True
    if "@" in text and ((" -" in text and ":" in text) or ".py " in low or ("conn" in low and "/" in text)):
        return True
    if "code" in low and (_names_code(low) or ("codes" in low and ("backup" in low or "recovery" in low))):
        return True
    if "act." in low and ("!" in low or "*" in low):
        return True
    if ("7z" in low or "rar" in low) and " -" in low:
        return True
    if "value" in low and "name" in low and ('"' in text or "'" in text):
        return True
    return (" add " in low or " save " in low) and any(
        len(word) > 11 for word in text.split() if not (word.isalpha() and word.islower())
    )


def _has_fields(text: str, low: str) -> bool:
    """Tell whether fields with colons between them may be there: a host, a port, a user, and what comes last."""
    if "]:" in text or ("/" in text and ("box " in low or "host " in low)):
        return True
    count = text.count(":")
    return (count > 3 and _has_port(text)) or (count > 1 and _has_port_and_user(text))


def _has_port(text: str) -> bool:
    return any((len(part) in (4, 5) and part.isdigit()) or part == "*" for part in text.split(":"))


def _has_port_and_user(text: str) -> bool:
    """Tell whether a user's name follows a port, as in `smtp.example.org:587 ana:`."""
    return any(part[:2].isdigit() and len(part.split()) == 2 for part in text.split(":")[1:-1])


def _is_told(text: str, low: str, data: bytes) -> bool:
    """Tell whether somebody may be told what to get in by, which has a number, a sign or joined words in it."""
    if "code" in low and any(map(_is_short_number, low.split())):
        return True
    return any(map(low.__contains__, GETTING_IN)) or _tries(low) or _is_renewed(low) or _has_odd_word(text, low, data)


def _is_short_number(word: str) -> bool:
    return 2 < len(bare := word.strip(_AROUND_NUMBERS)) < 12 and bare.replace("-", "").isdigit()


def _is_renewed(low: str) -> bool:
    """Tell whether an old value may stand beside a new one."""
    return ("alt" in low or "old" in low) and ("neu" in low or "new" in low)


def _names_code(low: str) -> bool:
    spaced = f" {low}".replace("-", " ").replace("_", " ").replace(" passcode", " code")
    return any(part.endswith(CODES) for part in spaced.split(" code")[:-1])


def _tries(low: str) -> bool:
    """Tell whether somebody may be told by which user and what to get in."""
    return ("/" in low or ":" in low) and any(map(low.replace("entry ", "").__contains__, TRYING))


def _has_odd_word(text: str, low: str, data: bytes) -> bool:
    """Tell whether a word has a number and a sign, a capital or quotes, and there is another that has to do with secrets."""
    if len(data.translate(None, _DIGITS)) == len(data):
        return False
    words = text.split()
    return any(map(_is_odd, words)) and (any(map(low.__contains__, NEARBY)) or (":" in low and _has_user(low, words)))


def _has_user(low: str, words: list[str]) -> bool:
    """Tell whether a user's name may stand before a colon: behind an option, in a list of users, or before a digest."""
    return " -" in low or low.count(":") > 2 or max(map(len, words)) > 32


def _is_odd(word: str) -> bool:
    if len(word) < 6 or not any(map(word.__contains__, "0123456789")):
        return False
    return not word.islower() or any(map(word.__contains__, _ODD_SIGNS))


def _has_token(data: bytes, text: str) -> bool:
    """Tell whether one of the long runs of characters could be a token."""
    # The sign of a line that a change takes away is no part of it.
    runs = [word.lstrip(b"-+") for word in data.translate(_AS_WORDS).split() if len(word) >= SHORTEST_TOKEN]
    if any(run[-34:-32] == b"AC" for run in runs):
        # An account's id: its token is all hex, as a digest is.
        return True
    words = list(filter(_is_unusual, runs))
    if any(map(_is_encoded, runs)):
        return True
    if len(words) < len(runs) and any(_begins_token(run.lower().decode("latin-1")) for run in runs):
        return True
    if not words:
        # A digest is none, but a key that is told may look like one.
        return any(len(run) in (32, 40, 48, 64) for run in runs) and any(map(text.__contains__, KEY_NOUNS))
    if "bearer" in text or any(map(text.__contains__, KEY_NOUNS)):
        return True
    low = b" ".join(words).lower().decode("latin-1")
    return any(len(word) >= LONGEST_USUAL or _is_base64(word) for word in words) or any(map(low.__contains__, MARKS))


def _begins_token(run: str) -> bool:
    """Tell whether a mark that no name has begins a run, or a word of it."""
    for mark in filter(run.__contains__, SURE_MARKS):
        place = run.find(mark)
        while place >= 0:
            if not run[:place][-1:].isalnum():
                return True
            place = run.find(mark, place + 1)
    return False


def _is_unusual(word: bytes) -> bool:
    """Tell whether a run is anything but a path, an identifier in lower case or a digest."""
    low = word.lower()
    if low == word and len(word) < LONGEST_USUAL and len(word.translate(None, _DIGITS)) == len(word):
        return b"bearer" in low
    return bool(low.strip(_HEX)) or (b"-" in word and len(word) != 36)


def _is_base64(word: bytes) -> bool:
    """Tell whether a part of a run has capitals among other characters, as base64 and most tokens do."""
    for part in word.replace(b":", b"=").replace(b".", b"=").split(b"="):
        if len(part) > 15 and part != part.lower() and not (part.isalpha() and part.isupper()):
            return True
    return False


def _is_encoded(run: bytes) -> bool:
    """Tell whether four groups in a row, at any place, decode to plain text."""
    firsts = [place for place in range(len(run) - 3) if run[place] in _FIRST]
    groups = {place for place in firsts if run[place + 1] in _SECOND and run[place + 2] in _THIRD}
    return any({place + 4, place + 8, place + 12} <= groups for place in groups)


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
