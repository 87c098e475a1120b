"""Runs the rules over a view: every secret in it, where and of which kind."""

from collections.abc import Iterator, Sequence
from typing import Any

from decklog.redact import assignments, cookies, values
from decklog.redact.found import Found
from decklog.redact.pattern import compiled
from decklog.redact.rules import Rule
from decklog.redact.table import PLACED, PREFIXED, SHAPED
from decklog.redact.view import View

_CALM_KINDS = frozenset(
    {
        "url-password",
        "authorization",
        "command-password",
        "oracle-password",
        "netrc-password",
        "pgpass-password",
    }
)


def source_of(rule: Rule, *, whole: bool) -> str:
    """Write a rule as one pattern, with the secret as its group or with no group at all."""
    edge = "" if rule.glued else r"\b"
    group = "(" if whole else "(?:"
    return f"{edge}{rule.keep}{group}{rule.pattern}){rule.until}"


class RuleSet:
    """Many rules searched for at once, told apart only where one has matched."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._any = compiled("|".join(source_of(rule, whole=False) for rule in rules))
        self._each: dict[int, Any] = {}
        self._guesses: dict[bytes, int] = {}

    def find(self, view: View) -> Iterator[Found]:
        """Find every secret these rules describe."""
        data, position, end = view.data, 0, len(view.data)
        while position < end and (match := self._any.search(data, position)):
            start, position = match.start(), max(match.end(), match.start() + 1)
            index, span = self._tell(data, start, match.end())
            rule = self._rules[index]
            if is_real(rule, view.text[span[0] : span[1]]):
                yield Found(span[0], span[1], rule.name)
                position = max(span[1], start + 1)

    def _tell(self, data: bytes, start: int, end: int) -> tuple[int, tuple[int, int]]:
        """Tell which rule matched, trying first the one that last matched a similar beginning."""
        similar = data[start : start + 4]
        guess = self._guesses.get(similar)
        if guess is not None and (match := self._one(guess).match(data, start)) and match.end() == end:
            return guess, match.span(1)
        lowered = data[start:end].lower()
        for index, rule in enumerate(self._rules):
            if any(word.encode() in lowered for word in rule.keywords) and (
                match := self._one(index).match(data, start)
            ):
                self._guesses[similar] = index
                return index, match.span(1)
        return self._tell_slowly(data, start)

    def _tell_slowly(self, data: bytes, start: int) -> tuple[int, tuple[int, int]]:
        for index in range(len(self._rules)):
            if match := self._one(index).match(data, start):
                return index, match.span(1)
        raise AssertionError("the rules together matched where none of them does")

    def _one(self, index: int) -> Any:
        if index not in self._each:
            self._each[index] = compiled(source_of(self._rules[index], whole=True))
        return self._each[index]


def is_real(rule: Rule, secret: str) -> bool:
    """Tell a secret from something of the same shape that stands for one, or for nothing."""
    if "[redacted" in secret or "redacted:" in secret:
        return False
    if rule.name in _CALM_KINDS or rule.keep:
        if values.is_placeholder(secret) and not (rule.name == "url-password" and secret.isalpha()):
            return False
    elif (rule.name != "private-key" and len(set(secret[-16:])) <= 3) or values.is_stand_in(secret):
        return False
    if rule.name == "private-key":
        return values.has_key_body(secret)
    if rule.name == "basic-auth":
        return values.is_basic_pair(secret)
    return not rule.random or values.looks_random(secret)


_PREFIXED = RuleSet(PREFIXED)
_SHAPED = RuleSet(SHAPED)
_PLACED = RuleSet(PLACED)


def find_all(view: View) -> list[Found]:
    """Find every secret in a view."""
    return [
        *_PREFIXED.find(view),
        *_SHAPED.find(view),
        *_PLACED.find(view),
        *assignments.find(view),
        *cookies.find(view),
    ]


def find_marked(view: View) -> list[Found]:
    """Find the secrets that carry a provider's mark, which stay recognisable across a line break."""
    return [*_PREFIXED.find(view), *_SHAPED.find(view)]
