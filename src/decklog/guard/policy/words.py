"""Words of a command line after expansion, with their taint: where their text came from.

While a word is built, quoted special characters are moved to a private range (`seal`), so that brace expansion and splitting
see only the unquoted ones.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import NamedTuple

UNKNOWN = "\0"
"""Text that can't be known before the command runs."""
SPLIT = "\ue100"
"""Unquoted white space from an expansion: the word is split here."""

_SPECIAL = "{},.*?[]~ \t\n\\"
_SEALED = {ord(char): chr(0xE000 + ord(char)) for char in _SPECIAL}
_UNSEALED = {0xE000 + ord(char): char for char in _SPECIAL}
_MOST_BRACES = 64
_BRACES = r"(?<!\$)\{([^{}]*)\}"
_RANGE = r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.-?\d{1,3})?"
_ESCAPE = r"(?s)\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,6})|([0-7]{1,3})|c(.)|(.))"
_ESCAPED = dict(zip("ntrabeEfv", "\n\t\r\a\b\x1b\x1b\f\v", strict=True))

NO_TAINT: frozenset[str] = frozenset()


class Word(NamedTuple):
    """One argument: its text, its taint, and its content if it names a pipe."""

    text: str
    taint: frozenset[str] = NO_TAINT
    content: str | None = None

    @property
    def is_known(self) -> bool:
        """Return whether no part of the text depends on the run."""
        return UNKNOWN not in self.text


UNKNOWN_WORD = Word(UNKNOWN)


def join_taint(words: list[Word]) -> frozenset[str]:
    """Return the taint of several words together."""
    return NO_TAINT.union(*(word.taint for word in words))


def combine(words: list[Word]) -> Word:
    """Join the outputs of several commands."""
    return words[0] if len(words) == 1 else Word("\n".join(word.text for word in words), join_taint(words))


def seal(text: str) -> str:
    """Protect quoted text from brace expansion, splitting and globbing."""
    return text.translate(_SEALED)


def unseal(text: str) -> str:
    """Undo `seal`."""
    return text.translate(_UNSEALED)


def decode_ansi(text: str) -> str:
    """Decode the escapes of a `$'...'` string, `printf` or `echo -e`."""
    return re.sub(_ESCAPE, _decode_escape, text)


def _decode_escape(match: re.Match[str]) -> str:
    short, four, long, octal, control, other = match.groups()
    if other:
        return _ESCAPED.get(other, other)
    number = short or four or long
    code = int(number, 16) if number else int(octal, 8) % 256 if octal else ord(control) & 0x1F
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else UNKNOWN


def unescape(text: str) -> str:
    """Resolve the backslashes of unquoted text, sealing what they protect."""
    return re.sub(r"\\(\n|.|$)", lambda found: "" if found[1] in ("\n", "") else seal(found[1]), text, flags=re.DOTALL)


def unescape_quoted(text: str) -> str:
    """Resolve the backslashes that count within double quotes."""
    return re.sub(r'\\([$`"\\\n])', lambda found: "" if found[1] == "\n" else found[1], text)


def expand_braces(text: str) -> list[str]:
    """Expand `{a,b}` and `{1..3}` as the shell does; past a limit the rest is unknown."""
    results: dict[str, None] = {}
    waiting = [text]
    while waiting:
        if len(results) + len(waiting) > _MOST_BRACES:
            return [*results, UNKNOWN]
        current = waiting.pop()
        # The innermost braces come first, so that none are nested.
        found = next((found for found in re.finditer(_BRACES, current) if _alternatives(found[1])), None)
        if found is None:
            results[current] = None
        else:
            options = _alternatives(found[1])
            waiting += [current[: found.start()] + part + current[found.end() :] for part in reversed(options)]
    return list(results)


def _alternatives(body: str) -> list[str]:
    """Return the alternatives of a brace expression, none if the braces are plain text."""
    if "," in body:
        return body.split(",")
    found = re.fullmatch(_RANGE, body)
    if not found:
        return []
    if found[1].lstrip("-").isdigit() and found[2].lstrip("-").isdigit():
        low, high = sorted((int(found[1]), int(found[2])))
        return [str(number) for number in range(low, min(high, low + _MOST_BRACES) + 1)]
    low, high = sorted((ord(found[1][0]), ord(found[2][0])))
    return [chr(code) for code in range(low, high + 1)]


def finish(raw: str, taint: frozenset[str], content: str | None = None) -> list[Word]:
    """Turn a built text into words: expand braces, split at expanded white space."""
    words = []
    for text in expand_braces(raw) if "{" in raw else [raw]:
        pieces = text.split(SPLIT)
        words += [Word(unseal(piece), taint, content) for piece in pieces if piece or len(pieces) == 1]
    return words


def split_words(text: str) -> list[str]:
    """Split text as a shell does, or at white space if its quotes do not match."""
    try:
        return shlex.split(text)
    except ValueError:
        return [*text.split(), UNKNOWN]


_SHORTEST_ABBREVIATION = 5


def _split_cluster(text: str, valued: frozenset[str]) -> tuple[list[str], str]:
    """Split a cluster of short flags. The text behind a flag that takes a value is its value."""
    end = next((at for at, char in enumerate(text) if at and "-" + char in valued), len(text) - 1)
    return ["-" + char for char in text[1 : end + 1]], text[end + 1 :]


class Arguments:
    """Arguments sorted the way most programs do: flags as written, `(option, value)` pairs, operands in order.

    `takes_value` names the options with a value; those of `free` and `last` take any word, and `last` ends the options.
    `single` is for programs whose long options have one dash. `stop` ends the options at the first operand.
    """

    def __init__(
        self,
        words: Sequence[Word] = (),
        takes_value: Iterable[str] = (),
        *,
        free: Sequence[str] = (),
        last: Sequence[str] = (),
        single: bool = False,
        stop: bool = False,
    ) -> None:
        self.flags: list[str] = []
        self.values: list[tuple[str, Word]] = []
        self.operands: list[Word] = []
        self.followed: list[tuple[str, Word]] = []
        """Unknown long options, each with the word behind it, which may be its value."""
        self.known = valued = frozenset([*takes_value, *free, *last])
        place = 0
        while place < len(words):
            word, following = words[place], words[place + 1] if place + 1 < len(words) else None
            name, equals, value = word.text.partition("=")
            is_operand = len(word.text) < 2 or word.text[0] != "-" or word.text[1:].isspace()
            is_long = single or word.text.startswith("--")
            place += 1
            if word.text == "--" or (stop and is_operand and word.text[:1] != "+"):
                self.flags += ["--"] if word.text == "--" else []
                self.operands += words[place - (word.text != "--") :]
                break
            if is_operand:
                self.operands.append(word)
                continue
            if is_long or word.text in valued:
                flag, equals, rest = (name, equals, value) if is_long else (word.text, "", "")
                self.flags.append(flag)
            else:
                cluster, rest = _split_cluster(word.text, valued)
                self.flags += cluster
                flag, equals = cluster[-1], ""
            if equals or rest:
                self.values.append((flag, Word(rest, word.taint, word.content)))
            elif following is not None and flag in valued:
                # A word that looks like an option is no value.
                if flag in free or flag in last or not re.match(r"--?[A-Za-z]", following.text):
                    self.values.append((flag, following))
                    place += 1
            elif following is not None and is_long and not following.text.startswith("-"):
                self.followed.append((flag, following))
            if flag in last:
                self.operands += words[place:]
                break

    def has(self, wanted: Iterable[str]) -> bool:
        """Return whether one of the flags is given, in full or abbreviated."""
        for flag in self.flags:
            may_abbreviate = flag.startswith("--") and len(flag) >= _SHORTEST_ABBREVIATION and flag not in self.known
            if any(flag == name or (may_abbreviate and name.startswith(flag)) for name in wanted):
                return True
        return False

    def value(self, *names: str) -> Word | None:
        """Return the value of an option, None if it is absent."""
        return next((word for name, word in self.values if name in names), None)
