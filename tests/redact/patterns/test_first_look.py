"""The look before the rules says yes to whatever they would replace something in."""

import json
import random
from collections.abc import Callable
from re import _parser  # type: ignore[attr-defined]

import pytest

from decklog.redact import may_hold_secret, scan_by_rules
from decklog.redact.patterns.keywords import BY_PAIR
from decklog.redact.patterns.prefilter import LONGEST_USUAL, _has_word
from decklog.redact.patterns.signs import CODES, GETTING_IN, KEY_NOUNS, MARKS, NEARBY, ORDINARY, TRYING, WEAK_NAMES
from decklog.redact.rules.table import AS_WRITTEN, PLACED, PREFIXED, SHAPED, TOOLS
from tests.redact import drawn
from tests.redact.patterns.first_words import AT_ONCE, COMMON, of_rule, words
from tests.searches import FULL

Wrap = Callable[[str], str]


def _each_line(put: Callable[[int, str], str]) -> Wrap:
    return lambda text: "\n".join(put(number, line) for number, line in enumerate(f"see\n{text}\nend".split("\n"), 12))


# How tools, people and programs show a text.
_WRAPS: tuple[Wrap, ...] = (
    lambda text: f"We met and saw it\n{text}\nthen went on",
    lambda text: f"see {text} and go",
    lambda text: json.dumps({"text": f"so:\n{text}\nok"}),
    lambda text: json.dumps(json.dumps(["a", text], ensure_ascii=False), ensure_ascii=False),
    lambda text: json.dumps(f"\x1b[32m{text}\x1b[0m"),
    lambda text: f"\x1b[1;32m{text.replace(' ', chr(27) + '[0m ', 1)}\x1b[0m",
    lambda text: f"one\r\n{text}\r\ntwo".replace("\n", "\r\n"),
    lambda text: text.replace(" ", "  "),
    lambda text: text.replace(" ", "\t"),
    lambda text: text.replace(" ", "\n", 1),
    lambda text: f"> {text}".replace(" ", "\n> ", 2),
    lambda text: f"{text[: len(text) // 2]}\n{text[len(text) // 2 :]}",
    lambda text: f"Für später: {text} — ärgerlich",
    lambda text: f"**{text}**",
    lambda text: f"```\n{text}\n```",
    lambda text: f"2026-03-04T10:11:12Z INFO {text}",
    lambda text: f"[10:11] Ana: {text}",
    lambda text: f"  ⎿  {text}",
    lambda text: f"| a | {text} |",
    str.upper,
    str.lower,
    _each_line(lambda number, line: f"{number}: {line}"),
    _each_line(lambda number, line: f"{number:6}\t{line}"),
    _each_line(lambda number, line: f"{number:6}→{line}"),
    _each_line(lambda _, line: f"> {line}"),
    _each_line(lambda _, line: f"+{line}"),
    _each_line(lambda _, line: f"-{line}"),
    _each_line(lambda number, line: f"app/file.py:{number}:{line}"),
    _each_line(lambda _, line: f"web-1  | {line}"),
)


def _passed_over(draw: drawn.Draw, dice: random.Random, count: int) -> tuple[list[str], int]:
    """Give those of some texts that the look passes over and the rules do not, and how many others it passed on."""
    passed_over, passed_on = [], 0
    for _ in range(count):
        text = draw(dice)
        for shown in (text, dice.choice(_WRAPS)(text)):
            if may_hold_secret(shown):
                passed_on += 1
            elif scan_by_rules(shown)[1]:
                passed_over.append(shown)
    return passed_over, passed_on


@pytest.mark.parametrize("kind", ["rule", "telling"])
def test_what_a_rule_or_a_telling_finds_is_passed_on(kind: str) -> None:
    dice, missed = random.Random(20), []
    for name, draw in drawn.each():
        if name.startswith(kind):
            passed_over, passed_on = _passed_over(draw, dice, 200 if FULL else 3 if kind == "rule" else 8)
            assert passed_on, name
            missed += [(name, text) for text in passed_over]
    assert missed == []


@pytest.mark.parametrize("kind", drawn.KINDS)
def test_what_is_found_in_another_way_is_passed_on(kind: str) -> None:
    passed_over, passed_on = _passed_over(drawn.KINDS[kind], random.Random(21), 8_000 if FULL else 250)
    assert passed_over == []
    assert passed_on > 100


@pytest.mark.parametrize("kind", drawn.KINDS)
def test_what_is_drawn_is_found_often_enough(kind: str) -> None:
    dice = random.Random(22)
    assert sum(scan_by_rules(drawn.KINDS[kind](dice))[1] for _ in range(60)) >= 12


def test_every_word_of_a_rule_that_goes_by_its_surroundings_is_asked_for() -> None:
    known = (*words(), *AT_ONCE)
    for rule in (*PLACED, *TOOLS, *AS_WRITTEN):
        for word in of_rule(rule):
            assert word in COMMON or any(part in word for part in known), (rule.name, word)
    assert {word for rule in (*PLACED, *TOOLS, *AS_WRITTEN) for word in of_rule(rule)} >= COMMON


def test_a_rule_that_goes_by_a_mark_has_one_or_finds_what_is_so_long_that_it_needs_none() -> None:
    known = words()
    for rule in (*PREFIXED, *SHAPED):
        is_marked = any(mark in word or mark.startswith(word) for word in rule.keywords for mark in (*MARKS, *known))
        assert is_marked or _parser.parse(rule.pattern).getwidth()[0] >= LONGEST_USUAL, rule.name


def test_a_word_is_found_wherever_it_begins() -> None:
    assert {word for found in BY_PAIR.values() for word in found.split(",")} == set(words())
    for word in words():
        for before in ("", "x", "xy", "xyz"):
            text = f"{before}{word}z"
            assert _has_word(text.encode("latin-1"), text), text


def test_a_word_that_is_left_out_is_no_part_of_what_is_asked_for() -> None:
    asked = (*words(), *WEAK_NAMES, *NEARBY, *GETTING_IN, *TRYING, *CODES, *KEY_NOUNS)
    for phrase in asked:
        assert ORDINARY.isdisjoint(phrase.split()), phrase
        assert " " in phrase or not any(phrase in word for word in ORDINARY), phrase
    # One logs in or on, or into and onto.
    assert ORDINARY.isdisjoint(("into", "onto"))
