"""The lines of a text that stand near a word which has to do with secrets, and the values in them that could be one."""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from decklog.prepared import prepared
from decklog.redact.learned.family import STAND_FOR_LETTERS
from decklog.redact.learned.kinds import kind_of
from decklog.redact.patterns.pattern import Pattern, Sign
from decklog.redact.view import to_bytes

# Words without which nothing is asked; the bytes have a question mark for every letter that one alphabet lacks.
_FAMILY = (
    r"pass(?:w|phrase|code|key|ord|e\b|\b)|pwd|\bpw\b|_pw\b|psk\b|secret|token|credential|\bcreds?\b|api.?key|[_ -]key\b"
    r"|\bkey[ :=\"'(]|\bkeys\b|[a-z]Key\b|\bpin\b|\bpuk\b|totp|\botp|\b2fa\b|_2fa|2fa_|mfa|recovery|backup code|access code"
    r"|one.time|authenticator|unlock|unseal|login|log in|logon|sign.?in|crypt|cipher|hmac|wallet|mnemonic|seed"
    r"|keystore|bearer|jwt|wi-?fi|wpa|\bvpn\b|basic.?auth"
    r"|passwort|kennwort|senha|contrase|mot de passe|\bmdp\b|clave|has[?l]o|wachtwoord|l[\xf6o]senord|adgangskode|salasana|parol"
    r"|hesl[oa]|lozink|geslo|jelsz|sifre|sandi|schl[\xfcu]ssel|chiave|zugangsdaten|identifiant|credencia"
    r"|\bcode (?:is|was|for)\b|codes?:|code pin|c[\xf3o]digo|codice|\?{3}"
)
# Of every value that is asked about: letters beside numbers, numbers alone, words that are joined, and groups.
_SHAPE = (
    r"[a-z][0-9]|[0-9][a-z]|[0-9]{4}|[0-9][^\s\w\x01][a-z]|[a-z][^\s\w\x01][0-9]"
    r"|[a-z]{3}[-_.][a-z]{3,}[-_.][a-z]{3,}[-_.][a-z]{3}|[a-z]{4} [a-z]{4} [a-z]{4} [a-z]{4}"
)
SIGN = rf"(?i)(?:(?:{_FAMILY})[^\x01]*(?:{_SHAPE})|(?:{_SHAPE})[^\x01]*(?:{_FAMILY}))"
_IN_FAMILY = Pattern(f"(?i){_FAMILY}")
_SHAPED = Pattern(f"(?i){_SHAPE}")
_HAS_BOTH = Sign(SIGN)
_IS_SHAPED = prepared(f"(?i:{_SHAPE})")
_QUOTED = prepared(
    r"\"([^\"\n]{4,160})\"|'([^'\n]{4,160})'|`([^`\n]{4,160})`|“([^”\n]{4,160})”|«\s?([^»\n]{4,160}?)\s?»|„([^“”\n]{4,160})[“”]|「([^」\n]{4,160})」"
)
_BARE = prepared(r"[^\s\"'`“”«»„「」│┃|,;(){}\[\]<>]{4,160}")
_GROUPS = prepared(r"(?<![\w-])[A-Za-z0-9]{3,6}(?: [A-Za-z0-9]{3,6}){2,11}(?![\w-])")
# To read a line for groups takes long, and each has three of the same length in it.
_THREE_ALIKE = Pattern("|".join(rf"\b{one}(?: {one}){{2}}\b" for one in (f"[A-Za-z0-9]{{{length}}}" for length in range(3, 7))))
_TIE = prepared(r"(?:[A-Za-z_][\w.\-\[\]$]*|--?[A-Za-z][\w-]*)(?::=|=>|->|==|=|:)(?=.)")
_NUMBER = prepared(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_MARKER = prepared(r"\[redacted:[\w-]+\]")
_SENTENCE_ENDS = ".,;:!?)]}>*_~…。，、"
_NEVER_LAST = ".,;:)]}>…。，、"
_LONGEST, _SHORTEST_VALUE, _LONGEST_VALUE = 400, 4, 128
# Bounds what a line that is full of values costs.
_MOST_VALUES = 16
_ABOVE, _BELOW = 3, 1
_FEWEST_WORDS, _MOST_WORDS = 3, 12


class Value(NamedTuple):
    """A value in a piece, and how it stands there: in quotes, bare, behind a colon, in groups."""

    start: int
    end: int
    how: str

    def within(self, piece: "Piece") -> tuple[int, int]:
        """Give where it begins and ends in the text that the piece is of."""
        return piece.start + self.start, piece.start + self.end


class Piece:
    """A line, or a part of a long one, where it begins, and the pieces before it and behind."""

    def __init__(self, text: str, start: int, *, is_part: bool = False) -> None:
        self.text = text
        self.start = start
        # Of a long line, where a word says nothing of what stands far from it.
        self.is_part = is_part
        self.above: list[Piece] = []
        self.below: Piece | None = None
        self._kinds: dict[str, str] = {}

    @cached_property
    def read(self) -> str:
        """Give the text without what has been redacted, which would speak of secrets itself."""
        if "[redacted:" not in self.text:
            return self.text
        return _MARKER.sub(lambda marker: " " * len(marker[0]), self.text)

    def kind(self, value: str) -> str:
        """Give the kind of a value, which is asked for more than once."""
        if value not in self._kinds:
            self._kinds[value] = kind_of(value)
        return self._kinds[value]

    def values(self) -> list[Value]:
        """Give the values that could be a secret, each place once."""
        places: dict[tuple[int, int], str] = {}
        shapes = _Shapes(self.read)
        for how, start, end in (*_quoted(self.read, shapes), *_bare(self.read, shapes), *_groups(self.read, shapes)):
            if not _SHORTEST_VALUE <= end - start <= _LONGEST_VALUE or _is_number_of_json(self.read, start, end):
                continue
            if _IS_SHAPED.search(self.read, start, end):
                places.setdefault((start, end), how)
                if len(places) == _MOST_VALUES:
                    break
        return [Value(start, end, how) for (start, end), how in places.items()]


class _Shapes:
    """Where the next shape of a value may begin in a line: most words have none, and need not be read."""

    def __init__(self, line: str) -> None:
        self.data = to_bytes(line)
        # A few letters of no alphabet here stand for one where case does not matter, and only the text shows them.
        self._are_told = line.isascii() or not any(map(line.__contains__, STAND_FOR_LETTERS))
        self._asked = self._next = -1

    def may_be_in(self, start: int, end: int) -> bool:
        """Tell whether there may be one from a start to an end."""
        if not self._are_told:
            return True
        if not self._asked <= start <= self._next:
            found = _SHAPED.find(self.data, start)
            self._asked, self._next = start, len(self.data) if found is None else found[0]
        return self._next < end


def near_family(text: str, data: bytes) -> Iterator[Piece]:
    """Give the pieces that have a value in them and stand near a word which has to do with secrets."""
    for start, end in _regions(text, data):
        # What is found here is found by the look at the whole text too, since that asks for no more.
        if not _HAS_BOTH.look(data[start:end]):
            continue
        pieces = list(_cut(text, start, end))
        for number, piece in enumerate(pieces):
            own = data[piece.start : piece.start + len(piece.text)]
            if _SHAPED.find(own, 0) is not None and not (piece.is_part and _IN_FAMILY.find(own, 0) is None):
                piece.above = pieces[max(0, number - _ABOVE) : number][::-1]
                piece.below = pieces[number + 1] if number + 1 < len(pieces) else None
                yield piece


def _regions(text: str, data: bytes) -> Iterator[tuple[int, int]]:
    """Give where lines begin and end that stand near a word of the family, those that touch each other together."""
    first = last = -1
    found = _IN_FAMILY.find(data, 0)
    while found is not None:
        start = text.rfind("\n", 0, found[0]) + 1 if found[0] >= last else first
        end = _line_end(text, found[1])
        above = text.rfind("\n", last + 1 if last > 0 else 0, max(start - 1, 0)) + 1
        below = end
        for _ in range(_ABOVE):
            below = _line_end(text, min(below + 1, len(text)))
        if above <= last and last >= 0:
            last = below
        else:
            if last >= 0:
                yield first, last
            first, last = above, below
        found = _IN_FAMILY.find(data, end)
    if last >= 0:
        yield first, last


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _cut(text: str, start: int, last: int) -> Iterator[Piece]:
    """Cut a part of a text into its lines, and long ones at their blanks."""
    for line in text[start:last].split("\n"):
        place, end = start, start + len(line)
        while end - place > _LONGEST:
            blank = text.rfind(" ", place + 1, place + _LONGEST)
            following = blank if blank > 0 else place + _LONGEST
            yield Piece(text[place:following], place, is_part=True)
            place = following
        yield Piece(text[place:end], place, is_part=len(line) > _LONGEST)
        start = end + 1


def _quoted(line: str, shapes: _Shapes) -> Iterator[tuple[str, int, int]]:
    for match in _QUOTED.finditer(line):
        start, end = match.span(match.lastindex or 0)
        if not shapes.may_be_in(start, end):
            continue
        words = line.count(" ", start, end) + 1
        # What lies between two texts in quotes is no text in quotes.
        is_between = line[start] in " :,=)]}" or line[end - 1] in " :,=([{"
        if not is_between and (words == 1 or _FEWEST_WORDS <= words <= _MOST_WORDS):
            yield "q", start, end


def _bare(line: str, shapes: _Shapes) -> Iterator[tuple[str, int, int]]:
    for match in _BARE.finditer(line):
        start, last = match.span()
        if not shapes.may_be_in(start, last):
            continue
        while tie := _TIE.match(line, start, last):
            start = tie.end()
        while start < last and line[start] in "*_~":
            start += 1
        end = last
        while end > start and line[end - 1] in _SENTENCE_ENDS:
            end -= 1
        how = "q" if start and line[start - 1] in "\"'`" and line[last : last + 1] in ("'", '"', "`") else "b"
        if end < last and line[last - 1] not in _NEVER_LAST:
            # A password may end with what ends a sentence: the longer one is taken if both are.
            yield how, start, last
        yield how, start, end
        yield from _behind_user(line, start, end)


def _behind_user(line: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Give what stands behind a user's name and a sign: `ana/…`, `ana:…`."""
    if (colon := line.find(":", start, end)) >= 0:
        yield "c", colon + 1, end
    elif line.count("/", start, end) == 1:
        yield "b", line.find("/", start, end) + 1, end


def _is_number_of_json(line: str, start: int, end: int) -> bool:
    """Tell whether a value is a number in a list or a field: a marker in its place would be no JSON."""
    if not _NUMBER.fullmatch(line, start, end):
        return False
    before = line[:start].rstrip()
    return before.endswith(("[", ",")) or before.replace(" ", "").endswith(('":', "':"))


def _groups(line: str, shapes: _Shapes) -> Iterator[tuple[str, int, int]]:
    if _THREE_ALIKE.find(shapes.data, 0) is None:
        return
    for match in _GROUPS.finditer(line):
        if shapes.may_be_in(*match.span()) and len(set(map(len, match[0].split(" ")))) == 1:
            yield "g", *match.span()
