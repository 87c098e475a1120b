"""Whatever is told in some way has the sign of that way."""

import random
from functools import cache

import pytest

from decklog.redact.sentences import told
from decklog.redact.view import View, looked_through
from decklog.redact.views import line_wraps, wrappings
from tests.redact import drawn
from tests.redact.batches import rounds, strangers
from tests.redact.patterns.test_together import made_told
from tests.searches import FULL

_AROUND = ("{}", "see\n{}\nand so on", "We saw {} there\n", "> {}\n> and", "12: {}\n13: x", "web-1 | {}\nweb-1 | x9")


@cache
def _texts() -> list[str]:
    dice = random.Random(31)
    tellings = [draw for name, draw in drawn.each() if name.startswith("telling")]
    others = [*drawn.KINDS.values()]
    found = [dice.choice(others if number % 2 else tellings)(dice) for number in range(60_000 if FULL else 2_000)]
    # Some go on in the next line, as a mail or a comment does.
    found = [text if number % 3 else _wrapped(text, dice) for number, text in enumerate(found)]
    found = [dice.choice(_AROUND).replace("{}", text) for text in found]
    of_batches = [case.text for batch in ("third", "fifth") for case in strangers.secrets(batch, strangers.SEED)]
    of_rounds = [case.text for batch in rounds.ROUNDS for case in rounds.secrets(batch, strangers.SEED)]
    return [*found, *(of_batches + of_rounds)[:: 1 if FULL else 8]]


def _wrapped(text: str, dice: random.Random) -> str:
    words = text.split(" ")
    place = dice.randrange(len(words))
    return " ".join(words[:place]) + dice.choice(("\n", "\n> ", "\n# ")) + " ".join(words[place:])


def _views(text: str) -> list[View]:
    view = looked_through(text)
    other = wrappings.peeled(text, view)
    views = [view] if other is None else [view, other]
    return [*views, *(joined for one in views if "\n" in one.text and (joined := line_wraps.joined(one)) is not None)]


def test_what_a_part_finds_has_the_sign_of_that_part() -> None:
    look, found = made_told().look, dict.fromkeys(told.PARTS, 0)
    assert look is not None
    for view in (view for text in _texts() for view in _views(text)):
        if any(letter in view.text for letter in told.UNTOLD):
            continue
        shown = look(view.data)
        for part in told.PARTS:
            secrets = list(told.find(view, [part]))
            found[part] += bool(secrets)
            assert not secrets or part in shown, (part, secrets, view.text)
    assert min(found.values()) > 0, found


def test_the_parts_together_find_what_is_told() -> None:
    for view in (looked_through(text) for text in _texts()[::20]):
        assert sorted(secret for part in told.PARTS for secret in told.find(view, [part])) == sorted(told.find(view))


@pytest.mark.parametrize(
    "text",
    [
        "def read(token: str) -> int:\n    return len(token)\n",
        "Each login is noted.\nNothing else is kept of it.\n",
        "for account in accounts:\n    total += account.balance\n",
        "def check(token: str) -> bool:\n    return token in self._known\n",
    ],
)
def test_where_something_is_named_and_nothing_told_there_is_no_sign(text: str) -> None:
    look = made_told().look
    assert look is not None
    assert look(text.encode()) == []
