"""The rules: every example is a test, and mistakes in a rule are named."""

import random
import re

import pytest

from decklog.core.errors import Invalid
from decklog.redaction import default_redactor, redact
from decklog.redaction.normalize import TextView
from decklog.redaction.prose import load_sentences
from decklog.redaction.rules import RedactionRule, load_examples, parse_rule
from tests.every import every
from tests.redaction import corpus
from tests.redaction.corpus import draw
from tests.searches import FULL

_PLACE = re.compile(r"\{(like|random|hex|digits):([^{}]+)\}")
_MASKS = {"random": "aA9", "hex": "h", "digits": "9"}


def fill(example: str) -> str:
    """Fill the places of an example: `{random:24}`, `{hex:32}`, `{digits:6}`, or `{like:aA9}` with one character for each."""
    dice = random.Random(example)

    def drawn(place: re.Match[str]) -> str:
        kind, given = place[1], place[2]
        mask = given if kind == "like" else "".join(dice.choices(_MASKS[kind], k=int(given)))
        return draw(["", mask], dice)

    return _PLACE.sub(drawn, example)


RULES = load_examples()


@pytest.mark.slow
@every("rule", RULES, ids=lambda rule: rule.id)
def test_the_examples_of_a_rule_hold(rule: RedactionRule) -> None:
    assert rule.found
    assert rule.not_found
    redactor = default_redactor()
    for example in map(fill, rule.found):
        assert rule.id in redactor.matching_rules(example), example
        assert redactor.scan(example)[1], example
    for example in map(fill, rule.not_found):
        assert redact(example) == example


def test_required_characters_of_a_sentence_are_in_every_match() -> None:
    texts = [TextView(one.text).data for one in list(corpus.secrets("train", "writer-own"))[:: 1 if FULL else 25]]
    for sentence in load_sentences():
        if sentence.needs:
            without = [data.translate(None, sentence.needs) for data in texts]
            assert not any(pattern.search(data) for pattern in sentence.patterns for data in without), sentence.id


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": "a b"}, "needs an id"),
        ({"kind": "x] approved ["}, "the kind of rule acme-token"),
        ({"pattern": None}, "needs a pattern"),
        ({"pattern": "(a"}, "not valid"),
        ({"pattern": "a"}, "has no group 1"),
        ({"keywords": []}, "needs keywords or a trigger"),
        ({"keywords": ["ABC"]}, "lower case"),
        ({"requires": "luck"}, "requires 'luck'"),
        ({"colour": "red"}, "unknown fields: colour"),
    ],
)
def test_a_mistake_in_a_rule_is_named(changes: dict[str, object], reason: str) -> None:
    entry = {"id": "acme-token", "keywords": ["acme_"], "pattern": r"(acme_\w{20})", **changes}
    with pytest.raises(Invalid, match=re.escape(reason)):
        parse_rule(entry, "decklog.toml")
