"""One pass tells what a text has to be searched for: what it leaves out would have found nothing."""

import random
from collections.abc import Iterable, Iterator
from functools import cache
from re import _parser  # type: ignore[attr-defined]
from string import ascii_letters, digits
from types import SimpleNamespace
from typing import Any

import pytest

from decklog import Decklog
from decklog.redact import batch, encoded, engine, finder, json_values, may_hold_secret, nearby, redact, scan_by_rules
from decklog.redact.patterns.presence import Presence, loosened
from decklog.redact.rules.table import PREFIXED, SHAPED
from decklog.redact.view import Found, looked_through
from decklog.redact.views import json_strings
from tests.redact import drawn
from tests.redact.batches import rounds, strangers
from tests.redact.patterns.test_together import made_above, made_names, made_together, made_told
from tests.searches import FULL

BATCHES = ("third", "fourth", "fifth", "sixth")


@pytest.fixture(params=["one group after the other", "together"], autouse=True)
def share(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Look by RE2, as where nothing else is installed, and by Hyperscan; give which share of the many texts to try.

    RE2 makes its tables as texts come, so that each of them takes several times as long: a third, unless all are wanted.
    """
    look = made_together().look if request.param == "together" else None
    monkeypatch.setattr(engine, "TOGETHER", SimpleNamespace(look=look, ask=lambda _texts=1: look))
    monkeypatch.setattr(engine, "ABOVE", made_above())
    monkeypatch.setattr(engine, "TOLD", made_told())
    names = made_names() if request.param == "together" else SimpleNamespace(look=None, ask=lambda: None)
    monkeypatch.setattr(engine, "NAMES", names)
    return 3 if look is None and not FULL else 1


@cache
def texts() -> list[str]:
    """Give every text of the strangers and every secret of our own rounds, or every sixteenth."""
    found = [*(text for batch in BATCHES for text in _of(batch)), *own_texts()]
    return found if FULL else found[::16]


@cache
def own_texts() -> list[str]:
    return [case.text for batch in rounds.ROUNDS for case in rounds.secrets(batch, strangers.SEED)]


def _of(batch: str) -> Iterator[str]:
    yield from (case.text for case in strangers.secrets(batch, strangers.SEED))
    yield from strangers.harmless(batch)


def left_out(expected: Iterable[Found], found: Iterable[Found]) -> list[Found]:
    """Give what lies within nothing that was found.

    Where signs tell of one rule alone, it is tried in places that another, which matches nowhere, would have gone past: so there
    may be more than all rules together find, and never less.
    """
    places = [(start, end) for start, end, _ in found]
    return [one for one in expected if not any(start <= one.start and one.end <= end for start, end in places)]


@cache
def found_by_all(text: str) -> list[Found]:
    """Give what all rules find in a text whatever its signs: no look has a part in it, so that it is the same by each."""
    return finder.find_all(looked_through(text))


def test_a_text_without_any_sign_has_nothing_that_could_be_found() -> None:
    clean = [text for text in texts() if engine.is_clean(text)]
    assert len(clean) > len(texts()) // 10
    for text in clean:
        assert [*found_by_all(text), *encoded.find(looked_through(text))] == [], text


def test_a_sign_that_is_not_there_would_have_found_nothing_more(share: int) -> None:
    for text in texts()[::share]:
        view = looked_through(text)
        signs = engine.signs_of(view)
        assert left_out(found_by_all(text), finder.find_all(view, signs)) == [], text


@cache
def drawn_texts(kind: str) -> list[str]:
    """Give some texts of every rule, or of every telling, or many of each other kind."""
    dice, found = random.Random(17), list[str]()
    for name, draw in drawn.each():
        if not name.startswith(kind) or (not kind and name.startswith(("rule", "telling"))):
            continue
        for _ in range((100 if FULL else 3) if kind else (5_000 if FULL else 150)):
            found.append(dice.choice(("{}", "We saw\n{}\nthere", "see {} and go")).replace("{}", draw(dice)))
    return found


@pytest.mark.parametrize("kind", ["rule", "telling", ""])
def test_a_drawn_text_has_the_signs_of_whatever_is_found_in_it(kind: str, share: int) -> None:
    texts = drawn_texts(kind)[::share]
    for text in texts:
        view = looked_through(text)
        assert left_out(found_by_all(text), finder.find_all(view, engine.signs_of(view))) == [], text
    assert sum(bool(found_by_all(text)) for text in texts) > 100 // share


def test_whatever_is_found_in_quotes_shows_by_its_shape_alone(share: int) -> None:
    dice, kinds, found = random.Random(13), ("abcdefghk", "0123456789", "ABCDEF", "-_./:@+", "!#$%^&*~?", "()[]{}<>|,;"), 0
    for _ in range((8_000 if FULL else 800) // share):
        drawn = [dice.choice(kinds) for _ in range(dice.randint(2, 7))]
        value = "".join("".join(dice.choices(kind, k=dice.choice((1, 2, 3, 4, 6, 9)))) for kind in drawn)
        view = looked_through(text := f'required username="a" password="{value}"')
        found += bool(list(nearby.find(view)))
        assert left_out(found_by_all(text), finder.find_all(view, engine.signs_of(view))) == [], value
    assert found > 60 // share


@pytest.mark.parametrize(
    "text",
    [
        'irb> ENV["DB_PASSWORD"]\n=> "{}"',
        '@pytest.mark.parametrize("password", ["{}"])',
        'client.authenticate("password", ("{}",))',
        'settings["password"]\n    .or("{}")',
    ],
)
def test_a_statement_that_goes_on_in_the_next_line_or_in_a_bracket_has_its_sign(text: str) -> None:
    view = looked_through(text.format("saddle.Walnut" + "1976?"))
    assert sorted(finder.find_all(view, engine.signs_of(view))) == sorted(finder.find_all(view))


def test_in_a_line_the_own_sign_of_one_in_a_group_tells_whether_it_finds_anything() -> None:
    for text in (line for line in texts() if "\n" not in line):
        view = looked_through(text)
        left = set(engine.signs_in(view.data)).difference(engine.signs_by(engine.all_looks(), view.data))
        assert finder.find_all(view, left) == [], text


def test_the_first_look_passes_on_whatever_the_rules_would_replace() -> None:
    missed = [text for text in (*texts(), *own_texts()) if not may_hold_secret(text) and scan_by_rules(text)[1]]
    assert missed == []


@pytest.mark.parametrize(
    "text",
    [
        "secret_id   6a174c20-f6de-a53c-74d2-6018fcceff64",
        "snmp-server host 10.1.2.3 version 2c {}",
        "[mx.example.org]:587 ana:{}",
        "signtool sign /f a.pfx /p {}",
        "conn ana/{}@orders",
        "It is done.\nRecovery codes for the account (each usable once):\n- 9f9a3-e465" + "c\n- kept by ops",
        "la phrase secrète de la clé est « chaton soleil velours montagne »",
        'La frase de paso del archivo es "tortuga camino gato norte".',
        "Die Passphrase für das Backup ist „Lampe Segel Nagel Schrank“",
        "mc alias set lake https://minio.example.org svc-billing {}",
        "the bank texted me a code\nAna: it's " + "6799" + "02, hurry",
        "box db1.example.org: ana/{} ",
        'keyring.set_password("mail", "ana", "{}")',
        "encrypt it with amber-lantern-velvet-tiger as the passphrase",
        "these words are to be kept: " + "amber lantern " * 6,
        "net user ana amber-lantern-velvet-tiger /add",
        '{{"element": "Password field", "text": "{}"}}',
        "auth-user-pass for vpn\nana\n{}",
        '#define WIFI_PASS "{}"',
        '{{"content": "\\u2192 password: {}"}}',
    ],
)
def test_the_first_look_passes_on_what_is_told_by_its_place(text: str) -> None:
    text = text.format("saddle.Walnut" + "1976")
    assert scan_by_rules(text)[1]
    assert may_hold_secret(text)


def test_strings_looked_at_together_are_clean_only_if_each_of_them_is() -> None:
    dice, known = random.Random(7), texts()
    for _ in range(200):
        drawn = dice.sample(known, 4)
        if json_values._is_clean({"said": drawn[0], "then": drawn[1:]}):
            assert all(engine.is_clean(text) for text in drawn), drawn


def test_a_value_that_the_first_look_calls_clean_is_left_as_it_is_by_the_rules() -> None:
    dice, known, clean = random.Random(11), texts(), 0
    for _ in range(2_000 if FULL else 600):
        first, second, third = (_piece(dice, text) for text in dice.sample(known, 3))
        name = dice.choice(("said", "model", "key", "db_password", "n", first))
        value = {name: [second, 41, {"phase": 3, "then": third}], "count": 7, "of": first}
        if not json_strings.may_hold(value, 100):
            clean += 1
            assert json_values._Walk().value(value, None) is value, value
    assert clean > 100
    assert not json_strings.may_hold({"phase": 1, "model": "gpt-5", "args": ["-q", 3]}, 100)
    assert json_strings.may_hold({"db_password": "horse"}, 100)
    assert json_strings.may_hold(["a"] * 101, 100)


def _piece(dice: random.Random, text: str) -> str:
    start = dice.randrange(len(text))
    return text[start : start + dice.choice((6, 12, 20, 60))]


def test_what_is_found_in_runs_is_no_shorter_and_has_no_blank() -> None:
    for rule in (*PREFIXED, *SHAPED):
        if rule.until.startswith("@"):
            continue  # an address has a sign of its own
        parsed = _parser.parse(rule.pattern)
        assert parsed.getwidth()[0] >= len(engine._RUN), rule.name
        assert not _characters(parsed) & set(_BLANKS), rule.name


_BLANKS = b"\t\n\f\r "
_CATEGORIES = {"CATEGORY_SPACE": _BLANKS, "CATEGORY_DIGIT": b"0123456789", "CATEGORY_WORD": f"{ascii_letters}{digits}_".encode()}


def _characters(pattern: Any) -> set[int]:
    """Give every character that a match of a pattern may have."""
    if str(next(iter(pattern), [""])[0]) == "NEGATE":
        return set(range(256)) - _characters(pattern[1:])
    return set().union(*(_characters_of(str(name), argument) for name, argument in pattern))


def _characters_of(name: str, argument: Any) -> set[int]:
    match name:
        case "LITERAL":
            return {argument}
        case "RANGE":
            return set(range(argument[0], argument[1] + 1))
        case "CATEGORY":
            return set(_CATEGORIES[str(argument)])
        case "IN":
            return _characters(argument)
        case "MAX_REPEAT" | "MIN_REPEAT":
            return _characters(argument[2])
        case "SUBPATTERN":
            return _characters(argument[3])
        case "BRANCH":
            return set().union(*map(_characters, argument[1]))
        case "AT":
            return set()
    raise AssertionError(f"{name} is new here")


def test_a_text_larger_than_the_tables_of_the_matcher_is_searched_to_its_end() -> None:
    dice = random.Random(11)
    noise = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz_=:\"' -/@.\n0123456789ABCDEF", k=400_000 if FULL else 200_000))
    token = "ghp" + "_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert token not in redact(f"{noise}\n{token}\n")


def test_texts_looked_at_together_are_those_that_are_clean_by_themselves() -> None:
    known = texts()
    clean = batch.clean_among(known)
    assert len(clean) > 80
    assert clean == {text for text in known if not scan_by_rules(text)[1]}
    assert batch.clean_among(sorted(clean)) == clean


def test_each_group_that_is_present_is_named() -> None:
    presence = Presence([{0: "a+b", 3: "x"}, {1: "(?i)token"}, {2: r"\d{3}"}])
    assert presence.of(b"aab and TOKEN") == [0, 3, 1]
    assert presence.of(b"nothing") == []


@pytest.mark.parametrize(
    ("counted", "loose"),
    [("a{0,120}b", "a*b"), ("a{1,64}?b", "a+?b"), ("[x]{76}y", "[x]{4,}y"), ("a{2,3}", "a{2,3}"), ("a{30,}", "a{4,}")],
)
def test_what_is_counted_far_is_not_counted_in_a_sign(counted: str, loose: str) -> None:
    assert loosened(counted) == loose


@pytest.mark.parametrize("value", [("{}",), {"said": ("{}", "plain")}, ["plain", ("{}", ("{}",))]])
def test_secrets_in_tuples_are_redacted_like_those_in_lists(log: Decklog, value: object) -> None:
    secret = "hunter" + "2x9Kq"
    run = log.runs.start("Try tuples")
    entry = log.journal.append(run.id, "Called", payload={"given": _filled(value, f"password={secret}")})
    assert entry.redacted
    assert secret not in str(log.journal.get(entry.id).payload)


def _filled(value: object, text: str) -> object:
    match value:
        case str():
            return value.format(text)
        case dict():
            return {name: _filled(item, text) for name, item in value.items()}
        case list():
            return [_filled(item, text) for item in value]
        case tuple():
            return tuple(_filled(item, text) for item in value)
    return value
