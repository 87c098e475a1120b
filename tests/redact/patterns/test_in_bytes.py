"""A pattern for letters, written for bytes, matches wherever the first one does."""

import random
import re

import pytest

from decklog.redact.patterns.first_bytes import from_literal
from decklog.redact.patterns.in_bytes import in_bytes
from decklog.redact.rules.table import RULES
from decklog.redact.sentences import accounts, answers, codes, next_lines
from tests.redact.samples import sample


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (r"\bcaf\u00e9\b", r"caf[?\x80-\xff]"),
        (r"[•x]\d", r"[?x][0-9?]"),
        (r"[^\W\d_]+\w", r"[\w?\x80-\xff]+[\w?\x80-\xff]"),
        (r"[^\s•]", r"[^\s]"),
        (r"a(?=b(?:c|d))e(?<![xy])f", "aef"),
        (r"(?P<name>a++)b*?\Z", "(?:a+)b*$"),
        (r"(?i:密码)\[\d]", r"(?i:[?][?])\[[0-9?]]"),
    ],
)
def test_letters_digits_and_what_looks_around_are_written_for_bytes(pattern: str, written: str) -> None:
    assert in_bytes(pattern.encode().decode("raw_unicode_escape") if "\\u" in pattern else pattern) == written


@pytest.mark.parametrize(
    "pattern",
    [answers.WHO, answers.ASKING, next_lines.SHOWING, next_lines.PREFIX, accounts.SAID_USER, accounts.SAID_HEAD, codes.LISTED],
)
def test_what_the_first_one_matches_the_second_one_does(pattern: str) -> None:
    dice, matched = random.Random(3), 0
    first, second = re.compile(f"(?i){pattern}"), re.compile(f"(?i){in_bytes(pattern)}".encode("latin-1"))
    for _ in range(300):
        text = sample(pattern, dice)
        if first.search(text):
            matched += 1
            assert second.search(text.encode("latin-1", "replace")), text
    assert matched > 100


def test_what_begins_with_the_first_character_that_is_always_the_same_is_wherever_the_whole_is() -> None:
    assert from_literal(r"(?m:^|[\s])[\w.]{1,8}:?x{0,2}:\d+") == r":\d+"
    assert from_literal(r"\w+|a") == r"\w+|a"
    dice, shorter = random.Random(4), 0
    for rule in RULES:
        if rule.keep.startswith("(?m:^|"):
            whole = f"{rule.keep}(?:{rule.pattern}){rule.until}"
            shorter += from_literal(whole) != whole
            for _ in range(20):
                assert re.search(from_literal(whole), sample(whole, dice)), rule.name
    assert shorter > 2
