"""Runs the rules over a view: every secret in it, where and of which kind."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from decklog.prepared import prepared
from decklog.redact import assignments, expressions, lookalikes, made, nearby, phrases, statements, values
from decklog.redact.patterns.first_bytes import beginning, from_literal
from decklog.redact.patterns.pattern import Pattern, Sign, Span
from decklog.redact.patterns.presence import loosened
from decklog.redact.patterns.together import Together
from decklog.redact.rules.rule import Rule
from decklog.redact.rules.table import AS_WRITTEN, PLACED, PREFIXED, SHAPED, TOOLS
from decklog.redact.sentences import told
from decklog.redact.view import Found, View

_MOST_KNOWN = 4_096
_LONGEST_DOUBT = 64
_LONGEST_ADDRESS = 1_024
_LONGEST_NAME = 32
_LONGEST_HOST = 240
_HEX_RUN = "(?:[0-9a-f]{4}){4}(?:[0-9a-f]{4}){4}"
_UNDERSCORE = ord("_")
_BRACKET = ord("(")
_NEWLINE = ord("\n")
_PORT = prepared(r"\d{2,5}(?:[/?#]|$)")
_HOST = prepared(r"@(?:[\w-]+\.[\w.-]+|localhost|[\w-]+:\d|[\w.-]+/[\w.-]*@[\w.-]*$|\[)")
_REST_IN_QUOTES = {quote: prepared(rf"((?: [^\s\"'`]+){{1,9}}){quote}(?:[\s,;:.)\]}}&|\"']|$)") for quote in "\"'"}
# A shell's way to write a quote within quotes, as a view has it.
_ESCAPED_QUOTE = prepared(r"'''[^'\s]+(?=')")
# Numbers of anything but a person's choice.
_ROUND = prepared(r"1024|2048|4096|8192|\d+00|1234(?:5(?:6(?:7(?:8)?)?)?)?|(\d)\1+")
_SAID_IN_NAME = prepared(r"(?i)passw|secret|token|error|invalid|missing")
_WAY_TO_HASH = prepared(r"\$argon2\w*\$(?:v=\d+\$)?m=\d+,t=\d+,p=\d+\$?")
_CROSSES = prepared(r"[xX]{3,}")
# What a test presses after it typed a password.
_TYPED_KEY = prepared(r"\{\w+\}$")
_IN_REPOSITORY = prepared(r"/(?:commits?|tree|blob|blame|raw|compare|-)/$")
_TO_HERE = prepared(r"https?://[^\s\"'`<>()\[\]]*")
_SECOND_HOST = prepared(r"@[\w-]*[^\s\"'<>`@]*@(?=[\w-]+(?:\.[\w.-]+|:\d|/|$))")


class RuleSet:
    """Many rules searched for at once by how they begin, and told apart where one of them could match."""

    _checks_edges = True

    def __init__(self, rules: Sequence[Rule], starts: Callable[[Rule], str]) -> None:
        self._rules = rules
        self._begins_with = starts
        self._starts = Pattern(self._beginnings(starts, rules))
        self.sign = self._beginnings(lambda rule: _named_before(rule) + starts(rule), rules)
        # Each by itself: far fewer texts have any of it.
        self.closer_signs = [*map(self._whole, rules)]
        self._each: dict[int, Pattern] = {}
        self._starts_of: dict[tuple[int, ...], Pattern] = {}
        self._known: dict[bytes, list[int]] = {}
        self._before = {index: rule.before for index, rule in enumerate(rules) if rule.before}
        # Most calls with texts for arguments are of another name, and would be looked at one by one.
        self._may_be_called = Sign(loosened(self.sign)) if self._before else None
        # Not tried where no line begins: to say so takes far less than to ask the matcher.
        self._of_lines = frozenset(index for index, rule in enumerate(rules) if rule.keep.startswith("(?m:^)"))

    @property
    def closer_sign(self) -> str:
        """Give what far fewer texts have any of: for a matcher whose tables may be as large as need be."""
        return "|".join(self.closer_signs)

    def _beginnings(self, starts: Callable[[Rule], str], rules: Iterable[Rule]) -> str:
        return "|".join(_edge(rule) + starts(rule) for rule in rules)

    def _whole(self, rule: Rule) -> str:
        if (whole := _all_of(rule)) == _HEX_RUN:
            return whole
        # A name is compared with the small letters of a text, and a `k` may be that of a sign which one alphabet lacks.
        return _named_before(rule).replace("k", "[k?]") + _edge(rule) + whole

    def _next(self, starts: Pattern, data: bytes, position: int) -> Span | None:
        """Find the next place where one of the rules could match that begin so."""
        return starts.find(data, position)

    def _starts_with(self, only: tuple[int, ...]) -> Pattern:
        """Give how some of the rules begin: to look for few takes tables that are soon made."""
        if only not in self._starts_of:
            if len(self._starts_of) >= _MOST_KNOWN:
                self._starts_of.clear()
            self._starts_of[only] = Pattern(self._beginnings(self._begins_with, [self._rules[index] for index in only]))
        return self._starts_of[only]

    def may_match(self, data: bytes) -> bool:
        """Tell whether one of the rules could match somewhere."""
        return self._starts.find(data, 0) is not None

    def find(self, view: View, only: tuple[int, ...] = ()) -> Iterator[Found]:
        """Find every secret these rules describe, or those of some of them if no other matches anywhere."""
        data, position = view.data, 0
        if not only and self._may_be_called and not self._may_be_called.look(data):
            return
        starts = self._starts_with(only) if only else self._starts
        # Lasts for one text: secrets must not linger in the process.
        known: dict[tuple[int, str], bool] = {}
        while place := self._next(starts, data, position):
            if data[place[0]] == _BRACKET:
                # What is looked for elsewhere may begin inside the bracket.
                position, candidates = place[0] + 1, self._called(view.text, place[0])
            else:
                position, candidates = max(place[1], place[0] + 1), self._candidates(data, place)
            begins_line = place[0] == 0 or data[place[0] - 1] == _NEWLINE
            for index in candidates:
                secret = None if index in self._of_lines and not begins_line else self._secret_at(index, data, place[0])
                if secret is None:
                    continue
                start, end = secret[0], _before_marker(view.text, *secret)
                if self._rules[index].name == "url-password":
                    end = _past_escapes(view, end)
                whole = _to_quote(view.text, start, end)
                is_phrase = whole > end and self._rules[index].odd and phrases.is_odd_phrase(view.text[start:whole])
                if end > start and (is_phrase or self._is_secret(known, index, view.text, place[0], (start, end))):
                    end = whole
                    position = max(position, end)
                    # Whoever has the address of a webhook may write there: it is a secret as a whole.
                    is_address = self._rules[index].name.endswith("webhook")
                    yield Found(_address_start(view.text, start) if is_address else start, end, self._rules[index].name)
                    break
                if end - start > _LONGEST_DOUBT:
                    position = max(position, end)
            else:
                position = _next_word(data, place, position)

    def _called(self, text: str, place: int) -> Sequence[int]:
        """Give the rules for calls of the name before a bracket."""
        name = text[max(0, place - _LONGEST_NAME) : place].lower()
        return [index for index, names in self._before.items() if name.endswith(names)]

    def _is_secret(self, known: dict[tuple[int, str], bool], index: int, text: str, first: int, secret: Span) -> bool:
        rule, value = self._rules[index], text[secret[0] : secret[1]]
        if not self._is_known_real(known, index, value):
            return False
        before = text[first - 1 : first]
        if rule.name == "google-recaptcha-key" and "site" in text[max(0, first - 24) : first].lower():
            # Both keys of a site look alike, and every visitor is given this one.
            return False
        if rule.random and before == "+":
            # In the middle of base64, where any beginning turns up.
            return False
        if rule.random and before == "_":
            # After an underscore, ids begin like this too; none of them mixes all three.
            return any(map(str.isupper, value)) and any(map(str.islower, value)) and any(map(str.isdigit, value))
        if rule.name == "webhook" and _IN_REPOSITORY.search(text, first, secret[0]):
            # A repository may be called so.
            return False
        return rule.name != "url-password" or _is_url_password(text, first, *secret)

    def _is_known_real(self, known: dict[tuple[int, str], bool], index: int, secret: str) -> bool:
        asked = (index, secret)
        if asked not in known:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[asked] = is_real(self._rules[index], secret)
        return known[asked]

    def _candidates(self, data: bytes, place: Span) -> Sequence[int]:
        """Give the rules whose keywords stand in a beginning, remembering the beginnings seen before."""
        start = data[place[0] : place[1]].lower()
        known = self._known.get(start)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            text = start.decode("latin-1")
            known = [i for i, rule in enumerate(self._rules) if any(word in text for word in rule.keywords)]
            self._known[start] = known
        return known

    def _secret_at(self, index: int, data: bytes, start: int) -> Span | None:
        """Give the place of the secret, if this rule matches here."""
        rule = self._rules[index]
        if rule.until[:1] == "@" and data.find(b"@", start, start + _LONGEST_ADDRESS) < 0:
            return None
        if index not in self._each:
            source = f"{rule.keep}({rule.pattern}){rule.until}" if rule.keep else rule.pattern
            self._each[index] = Pattern((_edge(rule) if self._checks_edges else "") + (source if rule.keep else f"(?:{source})"))
        if rule.keep:
            spans = self._each[index].group_at(data, start)
            return spans and spans[1]
        # Without a group the matcher takes its fastest way, which counts when a match is a megabyte long.
        end = self._each[index].end_at(data, start, len(data))
        return (start, end) if end > start else None


class MarkedSet(RuleSet):
    """Rules that each begin with one of their keywords, so two characters tell most of them apart."""

    _checks_edges = False

    def __init__(self, rules: Sequence[Rule], starts: Callable[[Rule], str]) -> None:
        super().__init__(rules, starts)
        self._by_mark: dict[bytes, list[int]] = {}
        for index, rule in enumerate(rules):
            for mark in sorted({word[:2].encode() for word in rule.keywords}):
                self._by_mark.setdefault(mark, []).append(index)

    def _beginnings(self, starts: Callable[[Rule], str], rules: Iterable[Rule]) -> str:
        """Let a mark stand after an underscore too: `deploy_` and a token is one word."""
        glued = [starts(rule) for rule in rules if rule.glued]
        others = [starts(rule) for rule in rules if not rule.glued]
        return "|".join([*glued, rf"(?:\b|_)(?:{'|'.join(others)})"])

    def _whole(self, rule: Rule) -> str:
        return _all_of(rule) if rule.glued else rf"(?:\b|_){_all_of(rule)}"

    def _next(self, starts: Pattern, data: bytes, position: int) -> Span | None:
        place = starts.find(data, position)
        return (place[0] + 1, place[1]) if place and data[place[0]] == _UNDERSCORE else place

    def _candidates(self, data: bytes, place: Span) -> Sequence[int]:
        return self._by_mark.get(data[place[0] : place[0] + 2].lower(), ())


def _next_word(data: bytes, place: Span, position: int) -> int:
    """Give where to go on behind a beginning that led to nothing: another rule's may be a word within it, such as an option."""
    blank = data.find(b" ", place[0] + 1, place[1])
    return blank if position == place[1] and 0 < blank < place[1] - 1 else position


def _named_before(rule: Rule) -> str:
    """Give the names of which one stands before a bracket: without any, what follows is the argument of another call."""
    return f"(?i:{'|'.join(rule.before)})" if rule.before else ""


def _start(rule: Rule) -> str:
    return rule.start or rule.keep or beginning(rule.pattern)


def _whole(rule: Rule) -> str:
    return f"{rule.keep}(?:{rule.pattern}){rule.until}"


def _all_of(rule: Rule) -> str:
    """Give all that is matched where a rule is tried, or so much of it that a matcher need not follow every word of a text."""
    if rule.keep:
        return from_literal(_whole(rule)) if rule.keep.startswith("(?m:^|") else _whole(rule)
    # Without anything to keep it is matched whatever follows; so long a number is a digest else, of which few texts have any.
    return _HEX_RUN if rule.pattern.startswith("[0-9a-f]{32}") else f"(?:{rule.pattern})"


def _edge(rule: Rule) -> str:
    return "" if rule.glued else r"\b"


def _before_marker(text: str, start: int, end: int) -> int:
    """Give the end of a secret: where a marker starts, if it runs into one; its start, if it is in one."""
    if text[max(0, start - 10) : start] == "[redacted:":
        return start
    marker = text.find("[redacted:", start, end)
    return end if marker < 0 else marker


def _to_quote(text: str, start: int, end: int) -> int:
    """Give the end of a value between quotes that ended at a blank: the quote that closes it."""
    if text[end : end + 1] != " ":
        escaped = _ESCAPED_QUOTE.match(text, end) if text[start - 1] == "'" and text.startswith("'''", end) else None
        return escaped.end() if escaped else end
    quote = text[start - 6] if text[start - 5 : start] == "pass:" and start > 5 else text[start - 1]
    closed = _REST_IN_QUOTES[quote].match(text, end) if quote in _REST_IN_QUOTES else None
    return closed.end(1) if closed else end


def _address_start(text: str, place: int) -> int:
    """Give where the address begins that a place is in, or the place itself."""
    first = max(0, place - _LONGEST_HOST)
    begin = text.rfind("http", first, place)
    return begin if begin >= 0 and _TO_HERE.fullmatch(text, begin, place) else place


def _past_escapes(view: View, end: int) -> int:
    """Give the end of a password in an address: an `@` that is written as an escape is part of it."""
    last = end
    if (further := _SECOND_HOST.match(view.text, end, end + _LONGEST_DOUBT)) and not _HOST.match(view.text, end):
        # The host comes after the last sign: what stands before has neither a dot nor a port.
        return further.end() - 1
    while view.text[last : last + 1] == "@" and view.width(last) > 1:
        last = view.text.find("@", last + 1, end + _LONGEST_DOUBT)
    return last if last >= 0 and not any(map(str.isspace, view.text[end:last])) else end


def _is_url_password(text: str, first: int, start: int, end: int) -> bool:
    """Tell whether a password in an address is one: not a port and a path, not `user:pass@localhost`."""
    user = text[first : start - 1].rpartition("/")[2]
    if text[start].isdigit() and _PORT.match(text, start, end) and not (text[start:end].isdigit() and user.isalpha()):
        return False
    return not values.is_documented_pair(user, text[start:end], text[end : end + 64])


def _is_jumble(secret: str) -> bool:
    return values.is_jumble(secret[-16:]) and not values.is_example(secret)


def _is_jumbled_key(secret: str) -> bool:
    return _is_jumble(secret) or values.is_jumbled_key(secret)


def _is_option_key(secret: str) -> bool:
    return values.is_mixed_key(secret) and not values.is_path(secret) and not values.is_place(secret)


def _is_name(secret: str) -> bool:
    """Tell whether this is the name of a secret that is to be put or taken away."""
    return secret.isupper() and secret.isidentifier()


_DAY = prepared(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])")

# What tells the secrets of some rules from what stands in the same place.
_OWN_CHECKS: dict[str, Callable[[str], bool]] = {
    "passphrase": lookalikes.is_joined_phrase,
    "code": lambda secret: not _DAY.fullmatch(secret),
    "changed-password": lambda secret: made.is_made(secret) or (secret[-1] in "!?#$%&*" and values.is_told(secret)),
    "defined-password": lambda secret: (
        not (values.is_harmless(secret) or expressions.is_field_name(secret) or _SAID_IN_NAME.search(secret))
    ),
    # How it is to be hashed, and no hash behind it.
    "password-hash": lambda secret: not _WAY_TO_HASH.fullmatch(secret),
    "option-password": made.is_made,
    "userlist-password": lambda secret: (
        (values.looks_random(secret) or made.is_made(secret)) and not values.is_service_id(secret)
    ),
    # Names of functions begin so too.
    "workos-key": lambda secret: (
        not all(part.isalpha() or len(part) < 6 for part in secret.split("_"))
        and (_is_jumble(secret) or values.looks_random(secret))
    ),
    "option-key": _is_option_key,
    "client-key": _is_jumbled_key,
    "directive-key": _is_jumbled_key,
    "api-key": lambda secret: _is_jumble(secret) or values.is_jumbled_key(secret[3:]),
    "basic-auth": values.is_basic_pair,
}


def is_real(rule: Rule, secret: str) -> bool:
    """Tell a secret from something of the same shape that stands for one, or for nothing."""
    if rule.name == "private-key":
        return values.has_key_body(secret)
    if rule.name == "app-password":
        return phrases.is_in_fours(secret)
    if rule.name == "pin" and _ROUND.fullmatch(secret):
        return False
    if rule.name == "typed-password":
        secret = _TYPED_KEY.sub("", secret)
    is_jumble = _is_jumble(secret)
    if rule.keep:
        is_word = rule.name == "url-password" and secret.isalpha() and not _CROSSES.fullmatch(secret)
        if not is_jumble and values.is_placeholder(secret) and not is_word:
            return False
    elif not is_jumble and (len(set(secret[-16:])) <= 3 or values.is_stand_in(secret)):
        return False
    if rule.name == "authorization" and (
        secret[0] in "{+.&[<$"
        or secret.startswith("realm=")
        or secret == "token="
        or expressions.is_field_name(secret.replace("-", "_"))
    ):
        return False
    if rule.keep and (values.is_public(secret) or (rule.name == "directive-password" and _is_no_password(secret))):
        return False
    if rule.name == "command-secret" and _is_name(secret):
        return False
    if rule.name in _OWN_CHECKS:
        return _OWN_CHECKS[rule.name](secret)
    if rule.odd:
        return is_jumble or values.is_odd(secret) or lookalikes.is_word_phrase(secret)
    return not rule.random or is_jumble or values.looks_random(secret)


def _is_no_password(value: str) -> bool:
    """Tell whether what follows a directive is a file, or a further way of keeping a network: `WPA-PSK WPA-EAP`."""
    return values.is_path(value) or (value.startswith("WPA") and value.isupper())


_PREFIXED = MarkedSet(PREFIXED, _start)
_SHAPED = RuleSet(SHAPED, _whole)
_PLACED = RuleSet(PLACED, _start)
_TOOLS = RuleSet(TOOLS, _start)
_AS_WRITTEN = RuleSet(AS_WRITTEN, _start)


class _Family(NamedTuple):
    """A way of finding secrets, and the pattern without which it finds none."""

    sign: str
    find: Callable[[View], Iterable[Found]]
    # Another without which it finds none, and which fewer texts have.
    closer_sign: str = ""


def _of_rules(rules: RuleSet) -> _Family:
    return _Family(rules.sign, rules.find, rules.closer_sign)


# With a provider's mark, which stays recognisable across a line break.
_MARKED = (_of_rules(_PREFIXED), _of_rules(_SHAPED))
# One look that says no to most of what neither begins; a text with a sign of it is searched.
_MAY_BE_MARKED = Sign("|".join(f"(?:{loosened(family.sign)})" for family in _MARKED))
MARKED = Together({0: f"{_PREFIXED.sign}|{_SHAPED.closer_sign}"}, "marked")
# Given away by their surroundings, across a line break too.
_JOINED = (_of_rules(_PLACED), _Family(assignments.SIGN, assignments.find), _Family(told.SIGN, told.find))
# An argument of a program stands in one line.
_FAMILIES = (
    *_MARKED,
    *_JOINED,
    _of_rules(_TOOLS),
    _Family(statements.SIGN, statements.find),
    _Family(nearby.SIGN, nearby.find),
)
FINDERS = tuple(family.find for family in _FAMILIES)
SIGNS = tuple(family.sign for family in _FAMILIES)
CLOSER_SIGNS = tuple(family.closer_sign or family.sign for family in _FAMILIES)
STATEMENTS_NUMBER, NEARBY_NUMBER = len(SIGNS) - 2, len(SIGNS) - 1
TOLD_NUMBER = SIGNS.index(told.SIGN)
TOOLS_NUMBER = SIGNS.index(_TOOLS.sign)
# Those of tools each by itself, by numbers that are none of a family nor of a way of telling: how all of them begin needs more
# tables than a text has words, and a text that has any at all has one or two.
_FIRST_TOOL = max(told.PARTS) + 1
TOOL_SIGNS = dict(enumerate(_TOOLS.closer_signs, _FIRST_TOOL))
_EVERY = range(len(_FAMILIES))


def find_by(number: int, view: View, signs: Collection[int]) -> Iterable[Found]:
    """Find what one family finds in a view with these signs: among them may be those of ways of telling, or of tools."""
    if number == TOLD_NUMBER and (parts := [sign for sign in signs if sign in told.PARTS]):
        return told.find(view, parts)
    if number == TOOLS_NUMBER and (rules := sorted(sign - _FIRST_TOOL for sign in signs if sign in TOOL_SIGNS)):
        return _TOOLS.find(view, tuple(rules))
    return _FAMILIES[number].find(view)


def find_all(view: View, signs: Collection[int] = _EVERY) -> list[Found]:
    """Find every secret in a view, which has the signs of these numbers and no others."""
    return [found for number in _EVERY if number in signs for found in find_by(number, view, signs)]


def find_marked(view: View, signs: Collection[int]) -> list[Found]:
    """Find the secrets that carry a provider's mark."""
    return find_all(view, [number for number in signs if number < len(_MARKED)])


def find_joined(view: View, signs: Collection[int]) -> list[Found]:
    """Find the secrets that their surroundings give away, across a line break too."""
    return find_all(view, [number for number in signs if len(_MARKED) <= number < len(_MARKED) + len(_JOINED)])


def find_as_written(view: View) -> list[Found]:
    """Find the secrets beside names in which a backslash is no escape."""
    return list(_AS_WRITTEN.find(view))


def may_be_marked(data: bytes) -> bool:
    """Tell whether there could be a secret that carries a provider's mark."""
    look = MARKED.look or MARKED.ask() or _MAY_BE_MARKED.look
    if not look(data):
        return False
    return _PREFIXED.may_match(data) or _SHAPED.may_match(data)
