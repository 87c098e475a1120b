"""Normalize a text: decode escapes, remove line prefixes and join wrapped lines, with offsets into the original."""

from bisect import bisect_right
from itertools import accumulate

from decklog.redaction.rules import Lazy

# A run of backslashes is one escape, so nested JSON of any depth stays balanced.
_ESCAPE = (
    r"\\(?!(?:(?<=[=>]\\)|(?<=: \\))[rbf][A-Za-z0-9])"
    r"(?:\\*(?:(?:u001[bB]|x1[bB]|033|e)\[(?!redacted:)[0-9;:?]*[A-Za-z]"
    r"|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|x[0-7][0-9a-fA-F]|\r?\n|r\\+n|[\"'/nrtbf])|\\+)"
)
# A separate pattern is much faster, because it begins with a literal.
_ESCAPES = Lazy(f"({_ESCAPE})")
_NOISE = Lazy(
    r"(\x1b(?:\[(?!redacted:)[0-9;:?]*[ -/]?[A-Za-z]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78cM])?"
    rf"|{_ESCAPE}"
    r"|%(?:2[2BbDdFf]|3[AaDd]|40|5[Ff])"
    r"|&(?:quot|apos|amp|lt|gt|#3[49]|#6[02]|#x2[27]|#x3[CEce]);"
    r"|\r\n|\x00+|\u00ad|\u200b|\u200c|\u200d|\u2060|\ufeff)"
)
_INVISIBLE = ("\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "f": " "}
_ENTITIES = {
    "&quot;": '"', "&apos;": "'", "&amp;": "&", "&lt;": "<", "&gt;": ">",
    "&#34;": '"', "&#39;": "'", "&#x22;": '"', "&#x27;": "'",
    "&#60;": "<", "&#62;": ">", "&#x3c;": "<", "&#x3e;": ">", "&#x3C;": "<", "&#x3E;": ">",
}  # fmt: skip
# After one of these characters, a backslash at the end of a line continues the value.
_CONTINUED = ("=", "Bearer ", "bearer ")


class TextView:
    """A text to search. `span` maps a range of the view to a range of the original text."""

    __slots__ = ("_origins", "_starts", "data", "text")

    def __init__(self, text: str, starts: list[int] | None = None, origins: list[int] | None = None) -> None:
        self.text = text
        # One byte per character: offsets in the bytes are offsets in the text.
        self.data = text.encode("latin-1", "replace")
        self._starts = starts
        self._origins = origins or []

    @property
    def is_plain(self) -> bool:
        """Return whether the view equals the original text."""
        return self._starts is None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the range in the original for a range of the view."""
        if self._starts is None:
            return start, end
        return self._origin(start), self._origin(end - 1, past=True)

    def width(self, position: int) -> int:
        """Return the length in the original of one character of the view."""
        if self._starts is None:
            return 1
        start, end = self.span(position, position + 1)
        return end - start

    def drops(self, place: int) -> bool:
        """Return whether the view omits the character at an offset of the original."""
        index = bisect_right(self._origins, place) - 1
        return (
            self._starts is not None
            and index % 2 == 1
            and index + 1 < len(self._starts)
            and self._starts[index] == self._starts[index + 1]
        )

    def _origin(self, position: int, *, past: bool = False) -> int:
        assert self._starts is not None
        index = bisect_right(self._starts, position) - 1
        if index % 2:
            return self._origins[index + 1] if past else self._origins[index]
        return self._origins[index] + position - self._starts[index] + past


def _from_pieces(kept: list[str], original: list[str]) -> TextView:
    """Build a view from pieces: those at even indexes are unchanged, those at odd indexes replace other text."""
    return TextView("".join(kept), [0, *accumulate(map(len, kept))], [0, *accumulate(map(len, original))])


def normalize(text: str) -> TextView:
    """Return the text without colour codes, with its escapes decoded."""
    has_noise = _has_noise(text)
    if not has_noise and "\\" not in text:
        return TextView(text)
    pieces = (_NOISE if has_noise else _ESCAPES).split(text)
    if len(pieces) == 1:
        return TextView(text)
    known: dict[str, str] = {}
    kept = pieces[:]
    for index in range(1, len(pieces), 2):
        noise = pieces[index]
        if noise == "\\\n" and pieces[index - 1].endswith(_CONTINUED):
            kept[index] = ""
            continue
        if noise not in known:
            known[noise] = _decode(noise)
        kept[index] = known[noise]
    return _from_pieces(kept, pieces)


def _has_noise(text: str) -> bool:
    if "\x1b" in text or "\r" in text or "\x00" in text:
        return True
    if "%" in text and ("%2" in text or "%3" in text or "%4" in text or "%5" in text):
        return True
    if "&" in text and ";" in text:
        return True
    return not text.isascii() and any(map(text.__contains__, _INVISIBLE))


def _decode(noise: str) -> str:
    """Return the character of an escape sequence, or nothing."""
    if noise[0] == "%":
        return chr(int(noise[1:], 16))
    if noise == "\r\n":
        return "\n"
    if noise[0] == "&":
        return _ENTITIES[noise]
    if noise[0] != "\\":
        return ""
    rest = noise.lstrip("\\")
    if not rest:
        return "\\"
    if "[" in rest:
        return ""
    if rest[-1] == "\n":
        # The command continues on the next line.
        return " "
    if rest[-1] == "n":
        return "\n"
    if rest[0] in "ux":
        char = chr(int(rest[1:], 16))
        return char if char >= " " or char in "\n\r\t" else ""
    return _LETTERS.get(rest, rest[-1])


# Prefixes that tools print before each line. Possessive quantifiers keep the time linear.
_FILE = r"(?:[A-Za-z]:)?[\w.@+~/\\-]{2,200}+"
_DAY = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?[\d.,]{0,10}(?:Z|[+-]\d\d:?\d\d)?"
_LEVEL = r"(?:(?:stdout|stderr) [FP] |\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|TRACE|NOTICE)\]?:?[ \t]+)?"
_PREFIX = Lazy(
    rf"(?P<stamp>(?:[^\t\n]{{1,60}}+\t[^\t\n]{{1,80}}+\t)?\[?{_DAY}\]?[ \t]+{_LEVEL}"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:[\w.-]+ )?(?:[\w./-]+(?:\[\d+\])?: )?)"
    r"|(?P<number>[ \t]{0,8}+\d{1,6}(?:\t|→|: ?| ?[|│](?: |$)|$))"
    rf"|(?P<match>{_FILE}:\d{{1,6}}:)|(?P<quote>>(?:[ \t]?>){{0,3}}(?:[ \t]|$))"
    r"|(?P<speaker>\[\d{1,2}:\d\d(?: ?[AaPp][Mm])?\][ \t]+(?:<?[\w.@-]{1,24}>?:[ \t]+)?|\[\d\d:\d\d:\d\d\][ \t]+"
    r"|(?:[Uu]ser|[Hh]uman|[Aa]ssistant|[Ss]ystem|[Tt]ool):[ \t]+|<[\w.-]{1,24}>[ \t]+)"
    r"|(?P<tree>[ \t]{0,8}+[⎿└├│┃]─*[ \t]{1,4})"
    rf"|(?P<near>[\w.@+~/\\-]{{2,200}}?-\d{{1,6}}-)|(?P<file>{_FILE}:(?![/\\\d \t]))"
    r"|(?P<added>\+(?!\+))|(?P<removed>-(?![-\s]))"
    r"|(?P<service>[\w.-]{2,40}+[ \t]{0,24}+\|(?: |$))"
)
# These prefixes are accepted on a single line; the others only on neighbouring lines.
_SINGLE_LINE_KINDS = frozenset(("match", "quote", "speaker", "tree"))
_NAMED = frozenset(("match", "near", "file"))
_MOST_BOLD = 2_001
_PLACE = Lazy(r":\d|:$|-\d+-$")
_KEY_LINE = Lazy(r"-{4,5} ?(?:BEGIN|END) ")


def strip_prefixes(view: TextView) -> TextView | None:
    """Return the text without line prefixes of tools, or else without bold marks; None if it has neither."""
    lines = view.text.split("\n")
    prefixes = [_prefix(line) for line in lines]
    kept, original = [""], [""]
    has_any = False
    for index, line in enumerate(lines):
        length = _accepted(prefixes, index, line)
        if index:
            kept[-1] += "\n"
            original[-1] += "\n"
        if length:
            has_any = True
            kept += ["", line[length:]]
            original += [line[:length], line[length:]]
        else:
            kept[-1] += line
            original[-1] += line
    if has_any:
        return _from_pieces(kept, original)
    return _strip_bold(view.text) if "**" in view.text else None


def _strip_bold(text: str) -> TextView | None:
    pieces = text.split("**")
    if len(pieces) < 3 or len(pieces) % 2 == 0 or len(pieces) > _MOST_BOLD:
        return None
    kept, original = [pieces[0]], [pieces[0]]
    for piece in pieces[1:]:
        kept += ["", piece]
        original += ["**", piece]
    return _from_pieces(kept, original)


def _prefix(line: str) -> tuple[str, str, int]:
    """Return the kind of a line's prefix, the name in it, and its length."""
    match = _PREFIX.match(line[:400])
    if match is None or match.lastgroup is None:
        return "", "", 0
    kind, text = match.lastgroup, match[0]
    if kind in _NAMED:
        name = _PLACE.split(text)[0]
        if not ("/" in name or "." in name or "\\" in name) and kind != "match":
            return "", "", 0
        return kind, name, len(text)
    return kind, text.split("|")[0].strip() if kind == "service" else "", len(text)


def _accepted(prefixes: list[tuple[str, str, int]], index: int, line: str) -> int:
    """Return the length of a line's prefix; 0 if the prefix is not accepted."""
    kind, name, length = prefixes[index]
    if not kind:
        # Unchanged lines of a diff begin with a space.
        around = (prefixes[index - 1][0] if index else "", prefixes[index + 1][0] if index + 1 < len(prefixes) else "")
        return 1 if line[:1] == " " and ("added" in around or "removed" in around) else 0
    if kind in ("added", "removed") and _KEY_LINE.match(line):
        return 0
    if kind in _SINGLE_LINE_KINDS:
        return length if kind != "match" or "/" in name or "." in name else 0
    for other in (index - 1, index + 1):
        if 0 <= other < len(prefixes):
            near_kind, near_name, _ = prefixes[other]
            same = near_kind == kind or {near_kind, kind} in ({"match", "near"}, {"added", "removed"})
            if same and near_name == name:
                return length
    return length if kind in ("added", "removed") and index and prefixes[index - 1][0] == "" else 0


# A line break inside a token: token characters on both sides, and a digit or capital near it.
_TOKEN = r"[A-Za-z0-9_+/=.~$-]"
_BREAK = Lazy(rf"(\n(?<={_TOKEN}{{4}}\n)[ \t]*(?={_TOKEN}))")
_RUN = Lazy(rf"{_TOKEN}+")
_GAP = Lazy(r"\n[ \t]*")
_DATE = Lazy(r"\d{4}-\d\d|\d+\.\d+\.|[0-9a-f]{8}-[0-9a-f]{4}-")
_CLOSINGS = ("", "\n", "\r", '"', "'", "`", "\\", "&", ",", ";", ")")
_NAME = Lazy(r"[+-]*[A-Za-z_][\w.-]*=.*[^=]")


def join_lines(view: TextView) -> TextView | None:
    """Return the text with wrapped tokens joined; None if no token is wrapped."""
    pieces = _BREAK.split(view.text)
    if len(pieces) == 1:
        return None
    kept, place, has_any = pieces[:], 0, False
    for index in range(1, len(pieces), 2):
        place += len(pieces[index - 1]) + len(pieces[index])
        if continues_token(view.text, place):
            kept[index], has_any = "", True
    return _from_pieces(kept, pieces) if has_any else None


def continues_token(text: str, place: int) -> bool:
    """Return whether a line starts with the rest of a token rather than with a word."""
    match = _RUN.match(text, place)
    if not match:
        return False
    run, after = match[0], text[match.end() : match.end() + 1]
    if after in ("(", "[", "{", "<") or (after in (":", "=") and len(run) < 20) or _DATE.match(run) or _NAME.fullmatch(run):
        return False
    if text[match.end() : match.end() + 2] in (" =", " :"):
        return False
    digits, capitals, smalls = (sum(map(test, run)) for test in (str.isdigit, str.isupper, str.islower))
    if len(run) >= 16:
        return digits + capitals > 2 and digits + min(capitals, smalls) > 1
    return after in _CLOSINGS and bool((digits and capitals + smalls) or (1 < capitals < len(run) - 1 and not run.istitle()))


def wrapped_end(text: str, end: int) -> int:
    """Return the end of a token that continues on the next lines."""
    for _ in range(200):
        gap = _GAP.match(text, end)
        if not gap or not continues_token(text, gap.end()):
            return end
        run = _RUN.match(text, gap.end())
        assert run is not None
        end = run.end()
    return end
