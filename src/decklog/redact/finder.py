"""Runs the rules over a view: every secret in it, where and of which kind."""

from collections.abc import Callable, Iterator, Sequence

from decklog.redact import assignments, values
from decklog.redact.beginning import beginning
from decklog.redact.found import Found
from decklog.redact.pattern import Pattern, Span
from decklog.redact.rules import Rule
from decklog.redact.table import PLACED, PREFIXED, SHAPED
from decklog.redact.view import View

_MOST_TRIES = 32


class RuleSet:
    """Many rules searched for at once by how they begin, and told apart where one of them could match."""

    def __init__(self, rules: Sequence[Rule], starts: Callable[[Rule], str]) -> None:
        self._rules = rules
        self._starts = Pattern("|".join(map(starts, rules)))
        self._each: dict[int, Pattern] = {}
        self._likely: dict[bytes, list[int]] = {}
        self._tries: dict[bytes, int] = {}

    def find(self, view: View) -> Iterator[Found]:
        """Find every secret these rules describe."""
        data, position = view.data, 0
        while place := self._starts.find(data, position):
            position = max(place[1], place[0] + 1)
            match = self._tell(data, place)
            if match is None:
                continue
            rule, whole, secret = match
            position = max(position, secret[1])
            if is_real(rule, view.text[secret[0] : secret[1]]):
                yield Found(secret[0], secret[1], rule.name)

    def _tell(self, data: bytes, place: Span) -> tuple[Rule, Span, Span] | None:
        """Tell which rule matches here, trying those first that a similar beginning has led to."""
        similar = data[place[0] : place[0] + 4].lower()
        likely = self._likely.setdefault(similar, [])
        for index in likely:
            if spans := self._one(index).group_at(data, place[0]):
                return self._rules[index], *spans
        if self._tries.setdefault(similar, 0) >= _MOST_TRIES:
            return None
        self._tries[similar] += 1
        for index in range(len(self._rules)):
            if index not in likely and (spans := self._one(index).group_at(data, place[0])):
                likely.append(index)
                likely.sort()
                return self._rules[index], *spans
        return None

    def _one(self, index: int) -> Pattern:
        if index not in self._each:
            rule = self._rules[index]
            self._each[index] = Pattern(f"{_edge(rule)}{rule.keep}({rule.pattern}){rule.until}")
        return self._each[index]


def _start(rule: Rule) -> str:
    return _edge(rule) + (rule.keep if rule.keep else beginning(rule.pattern))


def _whole(rule: Rule) -> str:
    return f"{_edge(rule)}{rule.keep}(?:{rule.pattern}){rule.until}"


def _edge(rule: Rule) -> str:
    return "" if rule.glued else r"\b"


def is_real(rule: Rule, secret: str) -> bool:
    """Tell a secret from something of the same shape that stands for one, or for nothing."""
    if "redacted:" in secret:
        return False
    if rule.name == "private-key":
        return values.has_key_body(secret)
    if rule.keep:
        if values.is_placeholder(secret) and not (rule.name == "url-password" and secret.isalpha()):
            return False
    elif len(set(secret[-16:])) <= 3 or values.is_stand_in(secret):
        return False
    if rule.name == "basic-auth":
        return values.is_basic_pair(secret)
    return not rule.random or values.looks_random(secret)


_PREFIXED = RuleSet(PREFIXED, _start)
_SHAPED = RuleSet(SHAPED, _whole)
_PLACED = RuleSet(PLACED, _start)


def find_all(view: View) -> list[Found]:
    """Find every secret in a view."""
    return [*_PREFIXED.find(view), *_SHAPED.find(view), *_PLACED.find(view), *assignments.find(view)]


def find_marked(view: View) -> list[Found]:
    """Find the secrets that carry a provider's mark, which stay recognisable across a line break."""
    return [*_PREFIXED.find(view), *_SHAPED.find(view)]
