"""Secrets in the statements of programs: a name that announces one, and a text that any syntax ties to it.

A statement is read token by token from the name on, whatever its language: `String::from("…")`, `getenv("X") or "…"`, a field's
default, a pair, a dictionary under the name, what a function of that name returns.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from decklog.prepared import prepared
from decklog.redact import expressions, lookalikes, values
from decklog.redact.names import known_kind
from decklog.redact.patterns.pattern import Pattern
from decklog.redact.placeholders import word_set
from decklog.redact.verdicts import Head, is_secret
from decklog.redact.view import Found, View

_STEM = r"(?:pass(?:word|wd|phrase|code)?s?|p(?:wd|sk|w)|secrets?|tokens?|keys?|jwt|auth|cred(?:ential)?s?)"
# A name and what can tie a text to it; what a sign or a quote ties at once is found among the assignments.
_NAMED = Pattern(
    rf"(?i){_STEM}[\w-]*[\"'`]?[\])}}]{{0,2}}[?!]?[ \t]*"
    r"(?:[=:({,\[]|\|\||\?\?|\?:|//|->|<-|\n|(?:or|to|by|string|\[\]byte|text|varchar|char|default)\b)"
)
SIGN = (
    rf"(?i){_STEM}[\w-]*(?:[\"'`]?[\])}}]{{1,2}}\s*(?:[=:?|/.,)]|or\b)|[ \t]+[({{\[]|[({{\[][^\"'`\n]"
    r"|,[ \t]*[\w\"']|[\"'`],[ \t]*[\w\[({]|[ \t]+(?:by|default)\b"
    r"|[\"'`][ \t]+(?:to\b|->)|\n(?:[ \t]+|[ \t]*=>[ \t]*)[\"'`]|::\w+\(\w)"
)
_REACH = 280
_MOST_LINES = 5
_MOST_KNOWN = 4_096
# So much is read of statements beside the length of the text itself.
_FREE = 8_192
_LONGEST_NAME = 64
_NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$:/-"
_NAME_BEHIND = prepared(r"[\w-]*")
# A text with a number or a sign in it: where there is none, no name need be looked at.
_LITERAL = Pattern(
    r"[\"'`][^\s\"'`]*[0-9!@#$^*+~][^\s\"'`]*[\"'`]|<<[<~-]*[\"']?[A-Z]+[\"']?\n|%q[({\[]|\bqq?\{|\[\["
    r"|[\"'][a-z]+[-_.][a-z]+[-_.][a-z]+[-_.][a-z]"
)
_TOKEN = prepared(
    r"(?P<line>\n\s*)|(?P<space>[ \t\r]+)"
    r"|(?P<text>(?:\b[bBrRuUfFL@]{1,2}#*|@|N)?(?:\"\"\"(?P<a>(?:(?!\"\"\").){0,200})\"\"\""
    r"|\"(?P<b>[^\"\n]{0,256})\"|'(?P<c>[^'\n]{0,256})'"
    r"|`(?P<d>[^`\n]{0,256})`)|<<[<~-]*[\"']?(?P<mark>[A-Z]+)[\"']?\n\s*(?P<e>\S+)\n\s*(?P=mark)"
    r"|%q[({\[](?P<f>[^\s)}\]]+)[)}\]]|\bqq?\{(?P<g>[^\s}]+)\}|\[\[(?P<h>[^\s\]]+)\]\])"
    r"|(?P<comment>(?:#|//)(?![ \t]*[\"'])[^\n]*|/\*.{0,80}?\*/)"
    r"|(?P<word>[A-Za-z_$@][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*[!?]?)|(?P<number>\d[\w.]*)"
    r"|(?P<sign>=>|->|:=|::|\|\||\?\?=?|\?:|<-|//|[=!]==?|<=|>=|.)",
    re.DOTALL,
)
_TIES = frozenset(("=", ":", "=>", "->", ":=", "<-", "||", "??", "??=", "?:", "//"))
_COMPARED = frozenset(("==", "!=", "===", "!==", "<=", ">="))
_TYING_WORDS = word_set("or to return default else by lazy")
# Between these, words of an expression may stand side by side.
_BETWEEN = word_set("if else or and is in not unless then when case of")
# So many names without a sign between them are a sentence: what a program answered below its question for a password.
_MOST_SIDE_BY_SIDE = 2
_TYPES = word_set(
    "string str text varchar char byte bytes const string_view cstring data as static final mut nvarchar secretstring not null"
)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
# Behind these a line goes on, and before those.
_GOES_ON = frozenset("([{=,+\\:|&?.") | {"=>", "->", ":=", "||", "??", "?:", "<-", "return", "//", "<>", ".."}
_GOES_ON_BEFORE = ("{", ".", "+", "?", "|", "&", ":", "=>")
_BEGINS = frozenset(("", ",", "{", "(", "[", "\n", "const", "let", "var", "val", "final", "my", "local"))
# What turns a text into a value, or takes it where there is no other; what else is called may want anything.
_TURNING = word_set(
    """
    from fromhex decode b64decode urlsafe_b64decode encode new some just string str bytes bytearray valueof secretstr secret
    securestring secretstring stringliteral qstringliteral unhexlify decodestring hex2bin atob of borrowed tostring paste0
    to_string mkdefault mkforce trimspace default byte utf8 crypt md5 unwrap_or orelse coalesce try
    """
)
_VALUES = word_set(
    """
    value val default defaultvalue default_value default_factory unset data text raw plain hex bytes prod production dev
    development staging stage test testing live main primary secondary current previous old new root admin local qa ci string body
    """
)
# Fields that say something about a secret.
_ABOUT = word_set(
    """
    name type id url uri host hostname description desc user username login email path format pattern regex example message label
    title version region kind ref key file field column help placeholder scope issuer audience alg algorithm digest sha checksum
    commit image repo project account client expires created updated at date time port mode status code class style href src
    kty crv kid use x y n e integrity resolved etag signature fingerprint
    """
)
_ASKED = prepared(r"(?i)(?:get|fetch|read|load|find|lookup|validate|check|verify|is|has|decode|parse|hash|use|with_?name)[_A-Z]?")
_DIGEST_OF = prepared(r"(?i)[\w.-]*(?:checksum|hash|digest|sha\d*|fingerprint)/")
_COPYING = prepared(r"(?:str[nl]?cpy|memcpy|strcpy_s|sn?printf|setattr)\([^\"'\n()]{0,40}$")
_DEFINING = prepared(r"(?:^|[\s(])(?:def|fn|func|fun|function)[ \t]+$")
_ASSIGNED_WITH = prepared(r",[ \t]*\w+[ \t]*:?=(?!=)")
_WITH_OTHERS = prepared(r"\w[ \t]*,[ \t]*$")
_PIECES = prepared(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
_NAME_ENDS = ("key", "token", "secret", "password")
_JOINING = frozenset(("+", ".", "..", "\\", "&", "<>", "\n", "."))
_PLURALS = ("passwords", "passwds", "secrets", "tokens", "keys", "passphrases")
_VERBS = ("pass", "passes", "auth", "pw", "pin")
_DOUBTFUL = ("key", "auth", "session", "credential")


class _Name(NamedTuple):
    """A name, the kind of secret that it announces, whether it is a text itself, and whether it has several under it."""

    kind: str
    text: str
    start: int
    end: int
    is_quoted: bool
    is_plural: bool


def find(view: View) -> Iterator[Found]:
    """Find every text that a statement ties to a name which announces a secret."""
    text, data, position = view.text, view.data, 0
    has_mark = '"' in text or "'" in text or "`" in text or "<<" in text or "{" in text or "[[" in text or "%q" in text
    literal = _LITERAL.find(data, 0) if has_mark else None
    # Both last for one text: secrets must not linger in the process.
    known: dict[tuple[str, str], bool] = {}
    spent = 0
    while literal and (span := _NAMED.find(data, position)):
        # A name may have two of the words in it.
        position = _NAME_BEHIND.match(text, span[0]).end()  # type: ignore[union-attr]
        if literal[0] < position:
            literal = _LITERAL.find(data, position)
        if not literal or literal[0] > position + _REACH:
            continue
        name = _name_at(text, span[0], position)
        # Names side by side would have the same text read again and again.
        if name is not None and spent < _FREE + position:
            statement = _Statement(text, name, known)
            yield from statement.secrets()
            spent += statement.length


def _name_at(text: str, start: int, end: int) -> _Name | None:
    first = max(0, start - _LONGEST_NAME)
    first += len(text[first:start].rstrip(_NAME_CHARS))
    written = text[first:end]
    quote = text[end : end + 1]
    is_quoted = quote in ("'", '"', "`") and text[first - 1 : first] == quote
    if quote in ("'", '"', "`") and not is_quoted:
        return None
    if _DIGEST_OF.match(written):
        return None
    name = written.lstrip(":/.$-") if is_quoted else written.rpartition("/")[2].rpartition("::")[2]
    is_atom = name[:1] == ":" and not is_quoted
    name = name.rpartition(":")[2] if not is_quoted else name
    is_plural = name[-1:] in "sS" and name.lower().endswith(_PLURALS)
    kind = known_kind(name[:-1] if is_plural else name)
    if (
        kind is None
        or kind == "session"
        or (name.lower() in _VERBS and not is_quoted and text[end : end + 3].lstrip()[:1] != "=")
    ):
        return None
    return _Name(kind, name, first, end + is_quoted, is_quoted or is_atom, is_plural or kind == "credential")


class _Statement:
    """One statement, read from behind its name to its end."""

    def __init__(self, text: str, name: _Name, known: dict[tuple[str, str], bool]) -> None:
        self._text = text
        self._known = known
        self.length = 0
        self._name = name
        self._owner_counts = True
        self._is_tied = False
        # The brackets that are open.
        self._calls: list[str] = []
        self._before = ""
        self._lines = 0
        self._side_by_side = 0
        # Whether the text is in a call that turns it into a value, and in nothing else.
        self._is_loose = False
        self._pieces: list[tuple[int, int]] = []
        before = text[max(0, name.start - 48) : name.start]
        self._is_copied = not name.is_quoted and bool(_COPYING.search(before))
        self._is_argument = name.is_quoted or self._is_copied
        self._is_with_others = bool(_WITH_OTHERS.search(before))
        self._is_function = bool(_DEFINING.search(before))

    def secrets(self) -> Iterator[Found]:
        """Find the texts that are secrets."""
        place, limit = self._name.end, min(len(self._text), self._name.end + _REACH)
        while place < limit and (token := _TOKEN.match(self._text, place, limit)):
            place = token.end()
            self.length = place - self._name.end
            kind = token.lastgroup or ""
            if kind in ("space", "comment"):
                continue
            if kind == "text" or token["text"] is not None:
                self._read_text(self._inner(token), place)
                self._before = "text"
                continue
            if self._pieces and token[0].strip() not in _JOINING and kind != "line":
                yield from self._judged()
            if not self._reads(kind, token[0], place):
                break
            self._before = "\n" if kind == "line" else token[0]
        if self._pieces:
            yield from self._judged()

    @staticmethod
    def _inner(token: re.Match[str]) -> tuple[int, int]:
        return next(token.span(group) for group in "abcdefgh" if token.start(group) >= 0)

    def _read_text(self, inner: tuple[int, int], end: int) -> None:
        """Take a text as a piece of a value, unless it is a key, an index, or compared with something."""
        behind = self._text[end : end + 12].lstrip(" \t")
        if behind[:2] in ("=>", "->") or (behind[:1] == ":" and behind[:2] != "::" and self._before in ("{", ",", "\n", "(")):
            self._own(self._text[inner[0] : inner[1]])
            return
        is_index = self._calls[-1:] == ["[]"] and behind[:1] == "]"
        if is_index or behind.startswith(("in ", "==", "!=")) or self._before in _COMPARED:
            return
        if self._is_tied and self._owner_counts and "is asked" not in self._calls:
            self._pieces.append(inner)

    def _reads(self, kind: str, token: str, place: int) -> bool:
        """Read on, and tell whether the statement goes on behind a token."""
        if kind == "number":
            return True
        self._side_by_side = self._side_by_side + 1 if kind == "word" and token.lower() not in _BETWEEN else 0
        if kind == "line":
            return self._goes_on_below(place)
        if kind == "word":
            return self._reads_word(token, place)
        if token in _OPENING:
            return self._opens(token)
        if token in _CLOSING:
            return self._closes()
        if token in _TIES:
            # An arrow with nothing around it leads to a method.
            is_method = token == "->" and not self._text[place : place + 1].isspace()
            self._is_tied = self._is_tied or not is_method
            return self._is_tied
        if token in "<>":
            return self._reads_angle(token)
        if token == ",":
            return self._reads_comma(place)
        return token not in (";", "!") and token not in _COMPARED and (self._is_tied or token in "*&<>?|.%-\\")

    def _reads_angle(self, token: str) -> bool:
        """Read a bracket of a type, whose commas separate nothing else: `Dictionary<string, string>`."""
        if token == "<" and self._before[-1:].isalnum():
            self._calls.append("<")
        elif token == ">" and self._calls[-1:] == ["<"]:
            self._calls.pop()
        return True

    def _reads_word(self, word: str, place: int) -> bool:
        low = word.lower()
        behind = self._text[place : place + 4].lstrip(" \t")
        if low in ("throw", "raise", "assert", "print", "import", "from", "where"):
            return False
        if self._side_by_side > _MOST_SIDE_BY_SIDE and low not in _TYPES and low not in _TYING_WORDS:
            return False
        is_field = behind[:1] in ("=", ":") and behind[:2] not in ("==", "=~", "::", ":=")
        if is_field and low != "$env" and self._before in _BEGINS and (self._is_tied or self._calls):
            self._own(word)
            return bool(self._calls) or self._is_argument
        if low in _TYING_WORDS:
            self._is_tied = self._is_tied or low != "to" or self._name.is_quoted
            return True
        return self._is_tied or bool(self._calls) or low in _TYPES or self._before == ","

    def _own(self, owner: str) -> None:
        """Tell whether what follows is the value of a field that is a secret's too."""
        low = owner.lower().rpartition(".")[2]
        self._owner_counts = low in _VALUES or known_kind(owner) is not None or (self._name.is_plural and low not in _ABOUT)
        self._is_tied = self._is_tied or bool(self._calls)
        self._is_loose = False

    def _opens(self, token: str) -> bool:
        before = self._before.rpartition(".")[2].rpartition(":")[2].lower().rstrip("!")
        if not self._before and token in "({" and not self._is_argument:
            # Called or set up by its own name; a function's own brackets have its parameters.
            is_asked = not self._is_function and bool(_ASKED.match(self._name.text.rpartition(".")[2]))
            self._calls.append("is asked" if is_asked or self._is_function else token)
            self._is_loose, self._is_tied = False, not is_asked and not self._is_function
            return True
        if token == "[":
            self._calls.append("[]" if self._before[-1:].isalnum() else token)
            self._is_loose = False
        else:
            self._calls.append(token)
            if token == "(":
                self._is_loose = before in _TURNING and (len(self._calls) == 1 or self._is_loose)
        if token == "{" and self._before == ")":
            self._is_tied = True
        return True

    def _closes(self) -> bool:
        if self._calls:
            self._calls.pop()
            return True
        return not self._is_tied and self._before in ("", ")", "]", "}")

    def _reads_comma(self, place: int) -> bool:
        if self._calls:
            self._owner_counts = self._owner_counts or self._name.is_plural or self._calls[-1] == "("
            self._is_loose = False
            return True
        if self._is_argument:
            # A list of names looks the same: only what is plainly random counts.
            self._is_loose, self._owner_counts = False, self._is_copied or not self._is_tied
            self._is_tied = True
            return True
        self._is_loose = False
        if self._is_tied:
            return self._is_with_others
        return bool(_ASSIGNED_WITH.match(self._text, place - 1))

    def _goes_on_below(self, place: int) -> bool:
        self._lines += 1
        if self._lines > _MOST_LINES:
            return False
        if self._calls or self._before in _GOES_ON or self._pieces:
            return True
        return self._text.startswith(_GOES_ON_BEFORE, place) or (self._is_function and self._begins_body())

    def _begins_body(self) -> bool:
        self._is_tied = True
        return self._before in ("", ")")

    def _judged(self) -> Iterator[Found]:
        """Judge the pieces of a text together, as the program joins them."""
        pieces, self._pieces = self._pieces, []
        value = "".join(self._text[start:end] for start, end in pieces)
        if values.is_assembly_token(self._name.text, value):
            return
        is_one, self._is_loose = self._is_loose and self._could_be(value), False
        if is_one or self._is_plainly_one(value):
            for start, end in pieces:
                if end > start:
                    yield Found(start, end, self._name.kind)

    def _is_plainly_one(self, value: str) -> bool:
        asked = (self._name.kind, value)
        if asked not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[asked] = is_plainly_one(*asked)
        return self._known[asked]

    def _could_be(self, value: str) -> bool:
        head = Head(self._name.kind, self._name.text, "=", '"', 1, True, False, False, False, is_tight=False)
        is_named = known_kind(value) is not None and not lookalikes.is_word_phrase(value)
        is_word = bool(value) and " " not in value and not is_named and "{" not in value
        return is_word and self._name.kind not in _DOUBTFUL and is_secret(head, value, '"', starts_line=False)


def is_plainly_one(kind: str, value: str) -> bool:
    """Tell whether a text could be nothing but a secret, wherever a statement has it."""
    if not 6 <= len(value) <= _REACH or any(map(str.isspace, value)) or values.is_public(value) or values.is_example(value):
        return False
    if expressions.is_field_name(value) or (not values.is_jumble(value) and values.is_harmless(value)):
        return False
    if kind == "key" and values.is_entry_key(value):
        return False
    if values.is_place(value) or values.is_numbered_id(value) or values.is_digest(value) or value.lower().endswith(_NAME_ENDS):
        return False
    if values.looks_random(value):
        return True
    return kind not in ("key", "auth") and values.has_all_kinds(value) and values.is_told(value) and not _is_worded(value)


def _is_worded(value: str) -> bool:
    """Tell whether a text is words and numbers, as a name in a program is: `Min8Chars`, `token:User2`."""
    pieces = _PIECES.findall(value)
    return all(piece.isdigit() or (piece.isalpha() and len(piece) > 2) or piece in ":._-/" for piece in pieces)
