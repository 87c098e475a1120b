"""Finds secrets through colours, escapes, line breaks and base64, and writes markers in their place."""

from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter

from decklog.forks import apart
from decklog.redact import assignments, encoded, nearby
from decklog.redact.finder import (
    CLOSER_SIGNS,
    NEARBY_NUMBER,
    SIGNS,
    STATEMENTS_NUMBER,
    TOLD_NUMBER,
    TOOL_SIGNS,
    TOOLS_NUMBER,
    find_all,
    find_as_written,
    find_joined,
    find_marked,
)
from decklog.redact.patterns import prefilter
from decklog.redact.patterns.pattern import Pattern, Sign
from decklog.redact.patterns.presence import Look, Presence, loosened
from decklog.redact.patterns.spared import not_spared
from decklog.redact.patterns.together import Together
from decklog.redact.rules.table import RULES, SURE
from decklog.redact.sentences import told
from decklog.redact.view import Found, View, looked_through, plain, to_bytes
from decklog.redact.views import line_wraps, wrappings

_WRAPPABLE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+/=.~$-")
# Their marks are ordinary words too, so the next line has to look like a token's rest.
_DOUBTFUL_KINDS = frozenset(rule.name for rule in RULES if rule.random)
_MOST_ROUNDS = 4
_SHORT = 65_536
# A shorter value stands in other words by chance; a longer one is no password.
_SHORTEST_AGAIN, _LONGEST_AGAIN = 8, 256
# Each is looked for once in the whole text, so their number bounds the work.
_MOST_AGAIN = 64
_WRITTEN = Pattern(r"(?i)net us(?:e|er)[ \t]")
_ENCODED_NUMBER, _WRITTEN_NUMBER = len(SIGNS), len(SIGNS) + 1
_EVERY = range(len(SIGNS) + 2)
ASSIGNMENTS_NUMBER = SIGNS.index(assignments.SIGN)
_EACH = dict(enumerate((*SIGNS, encoded.SIGN, _WRITTEN.source)))
# Those that are found in a long word, and those that are found among any words.
_IN_RUNS = ((0,), (1, _ENCODED_NUMBER))
_IN_WORDS = ((2,), (ASSIGNMENTS_NUMBER, TOLD_NUMBER, STATEMENTS_NUMBER), (5, _WRITTEN_NUMBER), (NEARBY_NUMBER,))
# The shortest token has so many characters and no blank; a password in an address may be shorter, but has a sign of its own.
_AS_RUNS = bytes(32 if byte in b"\t\n\f\r " else 97 for byte in range(256))
_RUN = b"a" * prefilter.SHORTEST_TOKEN
# Whoever writes one of these may mean another character, or another line.
ESCAPING = b"\\\x1b%&\r\n\x00"


def _presence(together: tuple[tuple[int, ...], ...]) -> Presence:
    # Lines are as good as texts of their own here: many texts are looked at as the lines of one.
    return Presence([{number: f"(?m){_EACH[number]}" for number in group} for group in together], {NEARBY_NUMBER: nearby.SHAPE})


_RUNS, _WORDS = _presence(_IN_RUNS), _presence(_IN_WORDS)
# What stands in one line, or is looked at with the lines around it, need not be looked for where lines are joined.
_WORDS_ACROSS = _presence(_IN_WORDS[:2])
# Of a group, those that find nothing in a line without their own sign; the others go by that of the whole group.
_OWN = {number: Sign(f"(?m){loosened(_EACH[number])}") for number in (ASSIGNMENTS_NUMBER, TOLD_NUMBER)}
# Longer texts are searched for everything: what a look costs matters where there is little else to do.
LONGEST_LOOK = 4_096
# Of what is found beside a name only the shape: the way between both may be long, and takes longest to follow.
_SHOWN = {**_EACH, **dict(enumerate(CLOSER_SIGNS)), NEARBY_NUMBER: nearby.SHAPE, **TOOL_SIGNS}
TOGETHER = Together({number: sign for number, sign in _SHOWN.items() if number != TOOLS_NUMBER})
# By itself, since a text of one line has no use for it, and many have it: to hear of a sign takes longer than to look for all.
ABOVE = Together({0: told.SIGN_ABOVE}, "above")


def _signs_of_parts() -> dict[int, str]:
    # Here, and not before: to put them together takes as long as a hundred looks.
    from decklog.redact.sentences.closer_signs import SIGNS

    return SIGNS


# By themselves too: they are looked for where something may be told.
TOLD = Together(_signs_of_parts, "told")
# Many texts have the shape, few of them a name: most that have both are to be searched, and to follow the way between them takes
# longer than that.
NAMES = Together({0: nearby.NAMES}, "names")
_BESIDE_NAMES = Sign(f"(?m){loosened(nearby.SIGN)}")
# None of the others finds anything without a sign of its own; statements go by those of all that name something.
_WITH: dict[int, tuple[int, ...]] = {
    ASSIGNMENTS_NUMBER: (ASSIGNMENTS_NUMBER, STATEMENTS_NUMBER),
    TOLD_NUMBER: (TOLD_NUMBER, STATEMENTS_NUMBER),
    **{sign: (TOOLS_NUMBER, sign) for sign in TOOL_SIGNS},
}
_NAMING = frozenset((ASSIGNMENTS_NUMBER, TOLD_NUMBER, STATEMENTS_NUMBER))
_ACROSS = frozenset(number for group in (*_IN_RUNS, *_IN_WORDS[:2]) for number in group)


@apart
def scan(text: str) -> tuple[str, bool]:
    """Replace every secret in a text, and tell whether there was any."""
    signs = signs_of_line(text)
    if signs is None:
        view = looked_through(text)
        signs = signs_of(view)
        if not signs and _is_clean_otherwise(text, view):
            return text, False
    elif signs:
        view = plain(text)
    else:
        return text, False
    redacted, changed = _as_written(text) if _WRITTEN_NUMBER in signs or not view.is_plain else (text, False)
    if changed:
        view = looked_through(redacted)
        signs = signs_of(view)
    for _ in range(_MOST_ROUNDS):
        redacted, touches = _scan_once(redacted, view, signs)
        changed = changed or touches is not None
        # What stands beside a marker may show as a secret only now; a long text is read again if it touches.
        if touches is None or not (touches or len(redacted) < _SHORT):
            break
        view = looked_through(redacted)
        signs = signs_of(view)
    return redacted, changed


def signs_of_line(text: str) -> Collection[int] | None:
    """Give the numbers of what one line in plain letters, as most texts are, must be searched for; None for any other text."""
    if len(text) > LONGEST_LOOK or "\n" in text or not text.isascii():
        return None
    if len(text) < prefilter.SHORTEST_TOKEN and prefilter.is_one_word(text):
        return ()
    data = text.encode()
    if len(data.translate(None, ESCAPING)) != len(data) or wrappings.is_headed(text):
        return None
    look = TOGETHER.look or TOGETHER.ask()
    if look is None:
        return signs_by(looks_at(data), data)
    signs = look(data)
    return in_line(_beside_names(signs, data), data) if signs else signs


def _signs_together(data: bytes) -> list[int] | None:
    """Give the numbers of the signs that bytes in plain letters have, where all are looked for together."""
    look = TOGETHER.look or TOGETHER.ask()
    return None if look is None else _beside_names(look(data), data)


def signs_together(data: bytes) -> list[int]:
    """Do so where it was found that they are."""
    look = TOGETHER.look
    assert look is not None
    return _beside_names(look(data), data)


def _beside_names(signs: list[int], data: bytes) -> list[int]:
    """Leave out what is found beside a name where no name is beside it."""
    if NEARBY_NUMBER in signs and not (NAMES.look or NAMES.ask() or _BESIDE_NAMES.look)(data):
        signs.remove(NEARBY_NUMBER)
    return signs


def in_line(signs: list[int], data: bytes) -> list[int]:
    """Give the numbers of what a line in plain letters that has these signs must be searched for."""
    return _told_closely(_with(signs), data) if signs else signs


def _with(signs: list[int]) -> list[int]:
    return sorted({number for sign in signs for number in _WITH.get(sign, (sign,))})


def _told_closely(searched: list[int], data: bytes) -> list[int]:
    """Add the numbers of the ways in which something may be told, or leave it out where there is none."""
    if TOLD_NUMBER not in searched:
        return searched
    look = TOLD.look or TOLD.ask()
    if look is None:
        return searched
    return [*searched, *parts] if (parts := look(data)) else [number for number in searched if number != TOLD_NUMBER]


def _in_lines(signs: list[int], view: View) -> list[int]:
    """Give the numbers of what a text that has these signs must be searched for, where a line may tell what the next one is."""
    searched = _with(signs)
    if TOLD_NUMBER not in searched:
        look = ABOVE.look or ABOVE.ask() or told.may_tell_below
        if not look(view.data):
            return searched
        searched.append(TOLD_NUMBER)
    is_untold = not view.text.isascii() and any(map(view.text.__contains__, told.UNTOLD))
    return searched if is_untold else _told_closely(searched, view.data)


def signs_by(looks: list[Look], data: bytes) -> list[int]:
    """Give the numbers of what a line must be searched for, by these looks."""
    signs = list[int]()
    for look, numbers in looks:
        if look(data):
            signs += [number for number in numbers if number not in _OWN or _OWN[number].look(data)]
    return signs


def signs_in(data: bytes) -> list[int]:
    """Give the numbers of what bytes in plain letters must be searched for, by one group of signs after the other."""
    if _may_have_runs(data):
        return [*_RUNS.of(data), *_WORDS.of(data)]
    return _WORDS.of(data)


def looks_at(data: bytes) -> list[Look]:
    """Give the looks that may find a sign in bytes in plain letters."""
    return all_looks() if _may_have_runs(data) else _WORDS.looks


def all_looks() -> list[Look]:
    """Give every look: each tells whether there is a sign, and the numbers of what is to be searched for then."""
    return [*_RUNS.looks, *_WORDS.looks]


def _may_have_runs(data: bytes) -> bool:
    return _RUN in data.translate(_AS_RUNS) or b"@" in data


@apart
def is_clean(text: str) -> bool:
    """Tell whether a text has no sign of any secret, nor has a line of it."""
    view = looked_through(text)
    return not signs_of(view) and _is_clean_otherwise(text, view)


def signs_of(view: View) -> Collection[int]:
    """Give the numbers of what a text must be searched for."""
    has_lines = "\n" in view.text
    signs = _signs_together(view.data)
    if signs is not None:
        return _in_lines(signs, view) if has_lines or not _NAMING.isdisjoint(signs) else _with(signs)
    if len(view.data) > LONGEST_LOOK:
        return _EVERY
    return _with_told_below(signs_in(view.data), view.data) if has_lines else signs_in(view.data)


def _signs_across(together: View) -> Collection[int]:
    """Give the numbers of what joined lines must be searched for."""
    signs = _signs_together(together.data)
    if signs is not None:
        return [number for number in _in_lines(signs, together) if number in _ACROSS]
    if len(together.data) > LONGEST_LOOK:
        return _EVERY
    runs = _RUNS.of(together.data) if _may_have_runs(together.data) else []
    return _with_told_below([*runs, *_WORDS_ACROSS.of(together.data)], together.data)


def _with_told_below(signs: list[int], data: bytes) -> list[int]:
    return [*signs, TOLD_NUMBER] if TOLD_NUMBER not in signs and told.may_tell_below(data) else signs


def _is_clean_otherwise(text: str, view: View) -> bool:
    """Tell whether nothing shows in the text itself, nor across its lines, that its view without signs does not show."""
    is_clean_as_written = view.is_plain or _WRITTEN.find(to_bytes(text), 0) is None
    if not is_clean_as_written or not _is_clean_across_lines(view):
        return False
    other = wrappings.peeled(text, view)
    return other is None or (not signs_of(other) and _is_clean_across_lines(other))


def _is_clean_across_lines(view: View) -> bool:
    together = line_wraps.joined(view) if "\n" in view.text else None
    return together is None or not _signs_across(together)


def is_replaced_as_written(text: str, view: View, signs: Collection[int]) -> bool:
    """Tell whether a text has something that is replaced before its escapes are undone."""
    return (_WRITTEN_NUMBER in signs or not view.is_plain) and _as_written(text)[1]


def _as_written(text: str) -> tuple[str, bool]:
    """Replace what stands in commands whose backslashes are no escapes, before escapes are undone."""
    view = plain(text)
    if _WRITTEN.find(view.data, 0) is None:
        return text, False
    found = find_as_written(view)
    return (_marked(text, view, found)[0], True) if found else (text, False)


def _scan_once(text: str, view: View, signs: Collection[int]) -> tuple[str, bool | None]:
    """Replace what shows; True if a marker now touches a word, which may be a secret of its own."""
    other = wrappings.peeled(text, view)
    found = _find_in(view, signs)
    if other is not None:
        found = [*_not_misread(view.text, other, found), *_find_peeled(other)]
    if not found:
        return text, None
    found += _repeated(view.text, found)
    return _marked(text, view, found)


def _find_in(view: View, signs: Collection[int]) -> list[Found]:
    """Find what shows in a view that has the signs of these numbers, in one line of it or across several."""
    found = [*find_all(view, signs), *_find_encoded(view, signs)]
    if "\n" in view.text:
        starts = {secret.start for secret in found}
        found = _unwrapped(view.text, found)
        found += [secret for secret in find_across_lines(view) if secret.start not in starts]
    return not_spared(view.text, found)


def _not_misread(text: str, other: View, found: Iterable[Found]) -> list[Found]:
    """Give those that do not begin in what a tool put before a line: the line is looked at without it.

    Numbers are secrets there too, and what is one wherever it stands: a line may only look as if a file's name came before it.
    """
    return [
        one
        for one in found
        if one.start >= other.left_out_to(one.start) or one.kind in SURE or text[one.start : one.end].isdigit()
    ]


def _find_peeled(other: View) -> list[Found]:
    """Find what only shows without what a tool put before the lines of a text."""
    found = _find_in(other, signs_of(other))
    return [Found(*other.span(start, end), kind) for start, end, kind in found if wrappings.APART not in other.text[start:end]]


def _find_encoded(view: View, signs: Collection[int]) -> list[Found]:
    return encoded.find(view) if _ENCODED_NUMBER in signs else []


def _repeated(text: str, found: list[Found]) -> list[Found]:
    """Find the other places of what was found: a value that is a secret once is one wherever the text has it again."""
    known = dict[str, str]()
    for secret in found:
        value = text[secret.start : secret.end]
        if _SHORTEST_AGAIN <= len(value) <= _LONGEST_AGAIN and not value.isalpha() and not value.isdigit():
            known.setdefault(value, secret.kind)
        if len(known) >= _MOST_AGAIN:
            break
    again = []
    for value, kind in known.items():
        place = text.find(value)
        while place >= 0:
            again.append(Found(place, place + len(value), kind))
            place = text.find(value, place + len(value))
    return again


def _unwrapped(text: str, found: list[Found]) -> list[Found]:
    """Lengthen the secrets that go on in the next line."""
    result, reached = [], 0
    for secret in sorted(found):
        end = secret.end
        if (
            end > reached
            and end - secret.start >= line_wraps.SHORTEST
            and text[end : end + 1] == "\n"
            and not _is_short_number(text[secret.start : end])
            and text[end - 1] in _WRAPPABLE
        ):
            end = line_wraps.extended(text, secret.start, end)
        reached = max(reached, end)
        result.append(secret if end == secret.end else secret._replace(end=end))
    return result


def is_clean_where_shown(text: str, view: View, found: Iterable[Found]) -> bool:
    """Tell whether nothing of what was found in a text's view is a secret."""
    found = not_spared(view.text, found)
    other = wrappings.peeled(text, view) if found else None
    return not (found if other is None else _not_misread(view.text, other, found))


def is_clean_peeled(text: str, view: View) -> bool:
    """Tell whether there is no secret that only shows without what a tool put before the lines of a text."""
    other = wrappings.peeled(text, view)
    return other is None or not _find_peeled(other)


def find_across_lines(view: View) -> Iterator[Found]:
    """Find the secrets, plain or in base64, that only show when wrapped lines are joined."""
    together = line_wraps.joined(view) if "\n" in view.text else None
    if together is not None:
        yield from _across_lines(view.text, together)


def _across_lines(text: str, together: View) -> Iterator[Found]:
    signs = _signs_across(together)
    marked = find_marked(together, signs)
    others = [] if together.is_whole else find_joined(together, signs)
    others += _find_encoded(together, signs)
    for index, secret in enumerate([*marked, *others]):
        start, end = together.span(secret.start, secret.end)
        first = text.find("\n", start, end)
        if first < 0 or _is_short_number(text[start:first]):
            continue
        is_marked = index < len(marked) and secret.kind not in _DOUBTFUL_KINDS
        if is_marked or line_wraps.goes_on(text, _line_start(text, first), is_long=first - start > 15):
            yield Found(start, _last_line_end(text, first, end), secret.kind)


def _is_short_number(part: str) -> bool:
    """Tell whether what a line ends with is a number that no token is broken behind."""
    return part.isdigit() and len(part) < _SHORTEST_AGAIN


def _line_start(text: str, newline: int) -> int:
    place = newline + 1
    while text[place : place + 1] in (" ", "\t"):
        place += 1
    return place


def _last_line_end(text: str, first: int, end: int) -> int:
    """Leave out the lines after the second one that read as something else."""
    following = text.find("\n", first + 1, end)
    while following >= 0:
        if not line_wraps.goes_on(text, _line_start(text, following), is_long=True):
            return following
        following = text.find("\n", following + 1, end)
    return end


def _marked(text: str, view: View, found: list[Found]) -> tuple[str, bool]:
    """Write the markers; where secrets overlap, the first one names the kind."""
    pieces, position, touches = [], 0, False
    for start, end, kind in _merged(found):
        first, last = view.span(start, end)
        pieces += [text[position:first], f"[redacted:{kind}]"]
        position = last
        touches = touches or view.data[end : end + 1].isalnum()
    return "".join([*pieces, text[position:]]), touches


def _merged(found: list[Found]) -> list[Found]:
    found.sort(key=itemgetter(0))
    merged = [found[0]]
    for secret in found[1:]:
        last = merged[-1]
        if secret.start >= last.end:
            merged.append(secret)
        elif secret.end > last.end:
            merged[-1] = last._replace(end=secret.end)
    return merged
