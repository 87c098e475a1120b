"""What speaks for and against a value being a secret: its shape, the words near it, and what ties them.

Each piece of evidence is a short name; what it weighs has been learned. Names begin with the group of the value where the same
words mean another thing beside a number, a digest or a password that somebody chose.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from re import Match

from decklog.prepared import prepared
from decklog.redact.learned.family import families, is_in_family
from decklog.redact.learned.kinds import class_of, group_of, shape_of, words_in
from decklog.redact.learned.pieces import Piece, Value
from decklog.redact.placeholders import word_set

# Words of what is like a secret and is none.
OTHERS = word_set(
    """
    public pub pubkey kid id ids uid gid guid uuid hash hashes hashed sha sha1 sha256 sha512 md5 digest checksum sum
    fingerprint thumbprint commit commits rev revision ref refs etag trace span request correlation serial number version
    build signature signed verify verified cert certificate integrity resolved publishable channel sid object node instance
    image layer docker blob tree parent checkout merge cherry blame index cache cached partition idempotency foreign primary
    sort column field label placeholder example sample dummy mask masked encrypted bcrypt argon2 scrypt pbkdf2 arn region
    bucket host hostname path file filename url uri port name username email type schema model class method function test
    tests line lines page row rows size length len count max min limit ttl timeout expires expired invalid missing required
    policy rotate rotated rotation reset forgot scanning alerts color colour theme locale nonce iv cursor shard offset
    """
)
_LINKING = word_set(
    """
    is was to for of the a an and or as with in on at by from it be this that your my our use set new old now using has are
    which here
    """
)
# So many numbers in hex of one of these lengths, side by side, are a list of digests.
_DIGESTS, _A_LIST = ("hex32", "hex40", "hex64", "hex128"), 3
_WORD = prepared(r"[^\W\d_]+")
_BETWEEN = prepared(r"[^\W\d_]+|\d+|\s+|[^\w\s]|_")
_SEVERAL = prepared(r"(?:w )+w")
_NO_SIGN = prepared(r"[\w\s]")
_OWNER = prepared(r"([\w.$@-]+)[\"'\]]{0,2}[ \t]*(?::=|=>|->|[=:])[ \t]*[\"'`]?$")
_CALL = prepared(r"([\w.:]+)\([^()]*$")
# What may stand between a name's sign and its value, and the signs.
_MAY_STAND_BETWEEN, _GIVING = " \t\"'`", ("=", ":", ">")
_BEFORE, _BEHIND = 160, 100
# Four digits are a year or a wire of a board as often as they are a PIN: those are left to the rules.
_NAMES = frozenset(("upper", "camel", "alpha", "digits4"))
_FEW_DIGITS = 3
# Of a pattern.
_RANGES = ("0-9", "a-z", "A-Z")
_LENGTHS = (4, 5, 6, 7, 8, 10, 12, 15, 19, 23, 31, 39, 63, 95)
_KEY_LENGTHS = (16, 20, 24, 31, 32, 39, 40, 43, 44, 63, 64, 95)
_DISTANCES = (1, 2, 3, 5, 8, 12, 20, 35, 60, 100)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]


class Tongue:
    """How often letters follow each other in words, and the words of programs: what a name is made of."""

    def __init__(self, pairs: str, words: Iterable[str]) -> None:
        """Take a digit for each pair of letters, the higher the rarer, and the words."""
        self._rarity = {
            f"{first}{second}": int(pairs[26 * i + j]) for i, first in enumerate(_LETTERS) for j, second in enumerate(_LETTERS)
        }
        self.words = frozenset(words)

    def rarity(self, words: list[str]) -> int:
        """Give how rare the pairs of letters in some words are, from 0 to 9."""
        total = sum(self._rarity.get(word[place : place + 2], 9) for word in words for place in range(len(word) - 1))
        return round(total / sum(len(word) - 1 for word in words))


class Context:
    """A piece, read once for all the values in it."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.line = piece.read
        self.family: list[Match[str]] = families(self.line)
        self.words: list[Match[str]] = list(_WORD.finditer(self.line))
        self._starts = [word.start() for word in self.words]

    def between(self, start: int, end: int) -> slice:
        """Give which words stand from one place to another."""
        return slice(bisect_left(self._starts, start), bisect_left(self._starts, end))

    @cached_property
    def parts(self) -> list[list[str]]:
        """Give each word and the words that it is made of."""
        return [_parts(word[0]) for word in self.words]

    @cached_property
    def above(self) -> list[str]:
        """Give the evidence of the nearest line above that has to do with secrets."""
        for number, piece in enumerate(self.piece.above, 1):
            line = piece.read[-200:]
            if groups := {match.lastgroup for match in families(line)}:
                words = {word.lower() for word in _WORD.findall(line)}
                found = [f"fu{number}:{group}" for group in groups] + [f"u:{word}" for word in words if len(word) > 1]
                return [*found, f"fu:{number}", f"fuend{number}:{line.rstrip()[-1:]}", f"uo:{min(2, len(OTHERS & words))}"]
        return []

    @cached_property
    def below(self) -> list[str]:
        """Give the evidence of the line below."""
        line = self.piece.below.read[:200] if self.piece.below else ""
        return [f"fd:{match.lastgroup}" for match in families(line)]


def _parts(word: str) -> list[str]:
    if word.islower() and word.isascii():
        return [word] if len(word) > 1 else []
    return [part for part in {word.lower(), *words_in(word)} if len(part) > 1]


def worth_asking(piece: Piece, tongue: Tongue) -> list[Value]:
    """Give the values of a piece that could be a secret at all."""
    texts = {one: piece.read[one.start : one.end] for one in piece.values()}
    kinds = {one: piece.kind(text) for one, text in texts.items() if _is_worth_asking(text, piece.kind(text), tongue)}
    times = Counter(kinds.values())
    listed = {kind for kind in _DIGESTS if times[kind] >= _A_LIST}
    return [one for one, kind in kinds.items() if kind not in listed]


def _is_worth_asking(text: str, kind: str, tongue: Tongue) -> bool:
    """Tell whether a value is no name of a thing: most are, and to read a line costs more than a look at them."""
    if kind in _NAMES or group_of(kind) == "N" or any(map(text.__contains__, _RANGES)):
        return False
    if group_of(kind) in ("M", "D") or not text.replace("_", "").replace("-", "").replace(".", "").replace(" ", "").isalnum():
        return True
    parts = words_in(text)
    words = [part for part in parts if len(part) > 2 and part[0].isalpha()]
    known = sum(word in tongue.words for word in words)
    if group_of(kind) == "W":
        return kind == "groups" or 2 * known < len(words)
    # A term with a number: `sha256`, `user-42`.
    return known < len(words) or not words or sum(len(part) for part in parts if part.isdigit()) > _FEW_DIGITS


def evidence(context: Context, value: Value, tongue: Tongue) -> set[str]:
    """Give all that speaks for or against a value in its context."""
    text = context.line[value.start : value.end]
    kind = context.piece.kind(text)
    group = group_of(kind)
    found = ["", f"k:{kind}", f"g:{group}", f"k:{kind};{value.how}"]
    if group == "M":
        found.append(f"len:{_step(len(text), _KEY_LENGTHS)}")
    elif group != "D":
        found += _of_value(text, kind, group, tongue)
    before = context.line[max(0, value.start - _BEFORE) : value.start]
    behind = context.line[value.end : value.end + _BEHIND]
    found += _of_signs(context.line, text, before, behind, group)
    found += _of_words(context, value, group)
    found += _of_owner(before, kind, group)
    found += _of_family(context, value, kind, group)
    return set(found)


def _of_value(text: str, kind: str, group: str, tongue: Tongue) -> list[str]:
    shape = shape_of(text)
    parts = words_in(text)
    words = [part for part in parts if len(part) > 2 and part[0].isalpha()]
    numbers = [part for part in parts if part.isdigit()]
    found = [
        f"{group};len:{_step(len(text), _LENGTHS)}",
        f"sh:{shape[:8]}",
        f"cls:{''.join(sorted(set(shape)))}",
        f"chg:{min(len(shape), 15)}",
        f"{group};chg:{10 * len(shape) // len(text)}",
        f"{group};words:{min(len(words), 6)}",
        f"num:{min(sum(map(len, numbers)), 7)}/{min(len(numbers), 4)}",
        f"v0:{_edge(text[0])}",
        f"v9:{_edge(text[-1])}",
        *(f"vs:{char}" for char in set(text) if not char.isalnum()),
        *(f"vw:{word}" for word in set(words) & tongue.words),
    ]
    if words:
        known = sum(word in tongue.words for word in words)
        found += [f"{group};rare:{tongue.rarity(words)}", f"{group};known:{10 * known // len(words)}"]
        found.append(f"{kind};known:{min(known, 3)}/{min(len(words), 4)}")
        if not OTHERS.isdisjoint(words):
            found.append("vo")
        if is_in_family(text):
            found.append("vf")
    return found


def _of_signs(line: str, text: str, before: str, behind: str, group: str) -> list[str]:
    first, second = before[-1:], before[-2:]
    start = line.lstrip()
    begins = next((sign for sign in ("#", "//", "$ ", *"+->|│*@{[<\"'") if start.startswith(sign)), "w")
    found = [
        f"p1:{first}",
        f"p2:{'w' if second.isalnum() else second}",
        f"n1:{behind[:1]}",
        f"n2:{behind[:1]}w" if behind[1:2].isalnum() else f"n2:{behind[:2]}",
        f"{group};pn:{first}{behind[:1]}",
        f"line:{begins}",
        f"{group};alone:{start.strip(chr(34) + chr(39) + '`,; ') == text}",
    ]
    if "|" in line or "│" in line:
        found.append(f"{group};table")
    if start.rstrip()[-1:] in (";", "{", "}", ")"):
        found.append(f"{group};code")
    return found


def _of_words(context: Context, value: Value, group: str) -> list[str]:
    upto, since = context.between(value.start - _BEFORE, value.start), context.between(value.end, value.end + _BEHIND)
    before, behind = context.words[upto], context.words[since]
    last = before[-1][0].lower() if before else "^"
    first, second = set[str]().union(*context.parts[upto]), set[str]().union(*context.parts[since])
    nearest = set[str]().union(*context.parts[upto][-3:])
    found = [f"b:{word}" for word in first] + [f"a:{word}" for word in second] + [f"{group};l:{word}" for word in first | second]
    return [
        *found,
        f"pw:{last}",
        f"{group};pw:{last}",
        f"pw2:{' '.join([word[0] for word in before[-2:]]).lower()}",
        f"nw:{behind[0][0].lower() if behind else '$'}",
        f"{group};o:{min(len(OTHERS & (first | second)), 3)}",
        f"{group};ob:{len(OTHERS & nearest) > 0}",
    ]


def _of_owner(before: str, kind: str, group: str) -> list[str]:
    found = []
    # To search takes long, and to see that there is none takes a look at the end.
    if before.rstrip(_MAY_STAND_BETWEEN)[-1:] in _GIVING and (owner := _OWNER.search(before[-80:])):
        parts = words_in(owner[1])
        last = parts[-1] if parts else ""
        found += [f"{group};owned", f"own9:{last}", f"{group};own9:{last}", *(f"own:{part}" for part in set(parts))]
        found.append(f"ownf:{is_in_family(owner[1])};{kind}")
        found.append(f"{group};owno:{last in OTHERS:d}{not OTHERS.isdisjoint(parts):d}")
    if before.rfind("(") > before.rfind(")") and (call := _CALL.search(before[-120:])):
        found += [f"{group};call", *(f"call:{part}" for part in set(words_in(call[1])))]
    return found


def _of_family(context: Context, value: Value, kind: str, group: str) -> list[str]:
    before = [match for match in context.family if value.start - _BEFORE <= match.start() and match.end() <= value.start]
    behind = [match for match in context.family if value.end <= match.start() < value.end + _BEHIND]
    found = []
    if before:
        found += _of_name(context.line, before[-1], value, kind, group)
    if behind:
        near = behind[0]
        name, gap = near.lastgroup, context.line[value.end : near.start()]
        found += [f"{group};fa:{name}", f"fa:{name};{_step(len(gap), _DISTANCES)}", f"fa:{name};{kind}", f"faw:{near[0].lower()}"]
        found.append(f"tia:{_tie(gap)[:8]}")
    groups = "".join(sorted({match.lastgroup or "" for match in (*before, *behind)}))
    found += [f"{group};fl:{name}" for name in groups] + [f"{group};fls:{groups}"]
    found += [f"{group};{one}" if one.startswith("f") else one for one in context.above]
    if not groups:
        found += [f"{group};{one}" for one in (*context.above[-3:], *context.below)]
    return found


def _of_name(line: str, near: Match[str], value: Value, kind: str, group: str) -> list[str]:
    """Give the evidence of the nearest word before a value that has to do with secrets, and of what lies between."""
    name, word, gap = near.lastgroup, near[0].lower(), line[near.end() : value.start]
    distance, tie = _step(len(gap), _DISTANCES), _tie(gap)[:10]
    glued = (line[max(0, near.start() - 1) : near.start()], gap[:1])
    within = "".join(f"{bool(sign) and (sign.isalnum() or sign in '_-.'):d}" for sign in glued)
    signs = "".join(sorted(set(_NO_SIGN.sub("", gap))))[:5]
    return [
        f"{group};fb:{name}", f"fb:{name};{distance}", f"fb:{name};{kind}", f"{group};fbw:{word}", f"{group};fbd:{distance}",
        f"tie:{tie}", f"{group};tie:{tie}", f"tie:{name};{tie}", f"{group};in:{within}", f"{group};signs:{signs}",
    ]  # fmt: skip


def _tie(gap: str) -> str:
    """Give what ties a name to a value: its signs as they are, and its words by whether they link others."""
    tie: list[str] = []
    for token in _BETWEEN.findall(gap[:60]):
        short = token.lower()
        if token.isspace():
            short = " "
        elif token.isdigit():
            short = "0"
        elif short[0].isalpha() and short not in _LINKING:
            short = "w"
        if not tie or tie[-1] != short or short not in "w 0":
            tie.append(short)
    return _SEVERAL.sub("W", "".join(tie))


def _edge(char: str) -> str:
    name = class_of(char)
    return char if name in "!-" else name


def _step(number: int, steps: tuple[int, ...]) -> str:
    return str(next((step for step in steps if number <= step), "+"))
