"""Claims about whole corpora of commands: nearly all danger is held, nearly nothing harmless is."""

import pytest

from decklog.guard.policy import judge
from tests.guard.policy.corpora import DANGEROUS, HARMLESS, cases, score


def test_the_corpora_are_large_and_have_no_command_twice() -> None:
    for names, least in ((DANGEROUS, 200), (HARMLESS, 200)):
        commands = [case.command for name in names for case in cases(name)]
        assert len(commands) >= 2 * least - 50
        assert len(set(commands)) == len(commands)


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


def test_every_verdict_names_its_rule_and_a_remedy() -> None:
    for case in cases("dangerous"):
        verdict = judge(case.command)
        assert verdict.rule
        assert verdict.rule != "allowed"
        assert verdict.reason.endswith(".")
        assert ";" in verdict.reason
        assert verdict.command
