"""The table itself: every rule finds what it describes, and says which words give it away."""

import os
import random
from functools import cache

from decklog.redact import RULES, redact
from decklog.redact.finder import MarkedSet
from decklog.redact.made import is_made
from decklog.redact.rules.rule import Rule
from decklog.redact.rules.table import PREFIXED
from decklog.redact.values import is_odd, looks_random
from tests.every import every
from tests.redact.samples import sample

# What these describe by shape must also decode, or have a body, which a random text rarely does.
_CHECKED = {"basic-auth", "private-key"}
# What else the line speaks of where these are found, and without which they are spared.
_SPOKEN_OF = {"lock-code": "the safe: ", "continued-key": "the key", "set-password": "the login fails, "}
_EACH = 24 if "DECKLOG_TEST_FULL" in os.environ else 8
_OTHERS = [rule for rule in RULES if rule.name not in _CHECKED]


@cache
def _texts(rule: Rule) -> list[str]:
    dice = random.Random(rule.name)
    name = rule.before[0] if rule.before else ""
    is_one = is_made if rule.name in ("option-password", "changed-password") else is_odd if rule.odd else bool
    drawn = _EACH if is_one is bool else _EACH * 4
    secrets = [secret for secret in (sample(rule.pattern, dice) for _ in range(drawn)) if is_one(secret)]
    return [name + sample(rule.keep, dice) + secret + sample(rule.until, dice) for secret in secrets[:_EACH]]


@every("rule", _OTHERS, ids=lambda rule: rule.name)
def test_every_rule_finds_what_it_describes(rule: Rule) -> None:
    texts = [text for text in _texts(rule) if not rule.random or looks_random(text)]
    # What is told by its line alone has one.
    before = "see\n" if rule.keep.startswith("(?m:^)") else f"see {_SPOKEN_OF.get(rule.name, '')}"
    found = [redact(f"{before}{text}\n.") for text in texts]
    assert sum("[redacted:" in shown for shown in found) >= len(texts) * 0.5, found


@every("rule", RULES, ids=lambda rule: rule.name)
def test_a_rules_keywords_stand_in_all_it_matches(rule: Rule) -> None:
    for text in _texts(rule):
        assert any(word in text.lower() for word in rule.keywords), text


@every("rule", PREFIXED, ids=lambda rule: rule.name)
def test_a_marked_rule_begins_with_one_of_its_keywords(rule: Rule) -> None:
    marks = tuple(word[:2] for word in rule.keywords)
    for text in _texts(rule):
        assert text.lower().startswith(marks), text


def test_kinds_are_named_in_lower_case_with_hyphens() -> None:
    assert all(rule.name == rule.name.lower() and " " not in rule.name for rule in RULES)
    assert len({rule.name for rule in RULES}) >= 150
    assert MarkedSet.__doc__
