"""Values that people and programs make to get in by: no name, version, number or term is like them."""

from decklog.prepared import prepared
from decklog.redact import expressions, lookalikes, values
from decklog.redact.placeholders import BENIGN_WORDS

# Words and numbers joined by signs: models, versions, files, resources.
# Each part can be read in one way only: what can be read in two takes twice as long with every part.
_NAMED = prepared(r"(?:[A-Za-z]*(?:\d{1,8}[a-z]{0,3})?[-_.:/@+])*[A-Za-z]*(?:\d{1,8}[a-z]{0,3})?")
_PIECES = prepared(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_INNER_SIGN = prepared(r"[A-Za-z0-9][-_.]?[!#$%^&*+~?@]+[-_.]?[A-Za-z0-9]")
_JOINED = prepared(r"(?:[A-Za-z]{3,}[-_.]|[A-Z][a-z]{2,})[A-Z][a-z]{2,}\d{2,4}[!?#$%^*+~]")
# What a program has from its surroundings: `process.env.E2E_PASSWORD!`.
_CONSTANT = prepared(r"(?:[A-Za-z_]\w*\??\.)+[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+[!?]?")
_SIGNED_ONCE = prepared(r"[A-Za-z]{3,}(?:[!@#$%&*]\d{2,6}[!?]?|\d{2,6}[!@#$%&*]+)")
_SIGNED_LAST = prepared(r"[A-Za-z]{3,}\d{3,6}[#$%&*]|[A-Z][a-z]{2,}[$%&]\d{3,6}")
# What a pattern has between its brackets.
_RANGES = prepared(r"[aA]-[zZ]|0-9")
_LAST_SIGNS = "!#$%^&*~@"
_COUNTED = prepared(r"[A-Z][a-z]{2,}\d{3}[a-z]{3,}[!?#]?")
# Two words that are joined, the first with a capital, and a number behind them: `Maple_otter407`, `Maple-otter-47X`.
_TWO_WORDS = prepared(r"([A-Z][a-z]{2,})(?:-([a-z]{3,})-?\d{2,4}[A-Z]|_([a-z]{3,})(?!19\d\d|20\d\d)\d{3,4})[!?#]?")
# Of a mail, a host or a package's version; and a number as programs write it.
_ADDRESS = prepared(
    r"[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}|[a-z]+\d?@[a-z][a-z0-9-]*|[\w.-]+@[\^~]?v?\d+(?:\.[\w-]+)*|0[xX]\w+|RFC\d+#\w+|\d+\*\$?[A-Za-z_][\w.]*|\w+&&[A-Za-z_]\w*(?:\.\w+)+"
    # Licences.
    r"|[AL]?GPLv?\d[\d.]*\+?(?:_(?:or|and)_[AL]?GPLv?\d[\d.]*\+?)*"
)


def is_made(value: str) -> bool:
    """Tell whether a person made a word, to get in by: no name, version or term is like it."""
    if not any(map(str.isdigit, value)) or not any(map(str.islower, value)) or _ADDRESS.fullmatch(value):
        return False
    if not (_is_signed(value) or _is_spelled(value) or _COUNTED.fullmatch(value) or _is_joined(value) or is_two(value)):
        return False
    if "-" in value and _RANGES.search(value):
        return False
    if values.is_harmless(value) or values.is_public(value) or "[redacted" in value or _CONSTANT.fullmatch(value):
        return False
    return value.rstrip("0123456789!?").lower() not in BENIGN_WORDS


def is_signed_once(value: str) -> bool:
    """Tell whether a word has a number and one sign, as a password of a pair or an answer has: `Ember@8562`, `Canyon1668!`."""
    return bool(_SIGNED_ONCE.fullmatch(value)) and not values.is_placeholder(value)


def is_signed_last(value: str) -> bool:
    """Tell whether a word and a number have a sign behind or between them that ends no sentence: `Velvet733#`, `Maple$804`."""
    return bool(_SIGNED_LAST.fullmatch(value)) and value.rstrip("0123456789#$%&*").lower() not in BENIGN_WORDS


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


def is_two(value: str) -> bool:
    """Tell whether two words are joined with a number, none of which names a thing in systems."""
    two = _TWO_WORDS.fullmatch(value)
    words = {word.lower() for word in two.groups() if word} if two else set()
    return bool(words) and BENIGN_WORDS.isdisjoint(words) and lookalikes.THINGS.isdisjoint(words)


def _is_type(value: str) -> bool:
    """Tell whether a value is words of a name with a short number among them: `R2BucketMount`."""
    pieces = _PIECES.findall(value)
    numbers = "".join(filter(str.isdigit, pieces))
    words = [len(piece) for piece in pieces if piece.isalpha()]
    short, long = sum(length < 3 for length in words), sum(length > 3 for length in words)
    return value.isidentifier() and len(numbers) < 3 and short < 3 and (short < 2 or long > 1)


def is_name(value: str) -> bool:
    """Tell whether a value is words and numbers as a name, a version or a type has them."""
    return (bool(_NAMED.fullmatch(value)) and value[-1] not in "-_+@") or _is_type(value)
