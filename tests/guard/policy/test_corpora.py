"""Claims about whole corpora of commands: nearly all danger is held, nearly nothing harmless is."""

import pytest

from decklog.guard.policy import judge
from tests.guard.policy.corpora import DANGEROUS, HARMLESS, cases, score


@pytest.mark.slow
@pytest.mark.parametrize("name", DANGEROUS)
def test_dangerous_commands_get_at_least_the_decision_they_should(name: str) -> None:
    found = score(name)
    assert found.held_percent >= 98
    assert found.misjudged_percent <= 3, found.misjudged


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_commands_run_unasked(name: str) -> None:
    found = score(name)
    assert found.held_percent <= 2, found.misjudged


@pytest.mark.slow
def test_every_verdict_names_its_rule_and_a_remedy() -> None:
    for case in cases("dangerous"):
        verdict = judge(case.command)
        assert verdict.rule
        assert verdict.rule != "allowed"
        assert verdict.reason.endswith(".")
        assert ";" in verdict.reason
        assert verdict.command
