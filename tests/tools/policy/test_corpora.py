"""Claims about whole corpora of commands: nearly all danger is held, nearly nothing harmless is."""

import pytest

from decklog.tools.policy import judge
from tests.tools.policy.corpora import DANGEROUS, HARMLESS, cases, score, scores


def test_the_corpora_are_large_and_have_no_command_twice() -> None:
    for names, least in ((DANGEROUS, 200), (HARMLESS, 200)):
        commands = [case.command for name in names for case in cases(name)]
        assert len(commands) >= 2 * least - 50
        assert len(set(commands)) == len(commands)


def test_every_corpus_meets_its_share(capsys: pytest.CaptureFixture[str]) -> None:
    results = scores()
    with capsys.disabled():
        for result in results:
            print(f"\n{result.name}: {result.held}/{result.total} held, {result.held_percent:.1f} %", end="")
    assert all(result.held_percent >= 98 for result in results if result.name in DANGEROUS)
    assert all(result.held_percent <= 5 for result in results if result.name in HARMLESS)


@pytest.mark.parametrize("name", DANGEROUS)
def test_dangerous_commands_get_at_least_the_decision_they_should(name: str) -> None:
    assert list(score(name).misjudged) == []


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_commands_run_unasked(name: str) -> None:
    assert list(score(name).misjudged) == []


def test_every_verdict_names_its_rule_and_a_remedy() -> None:
    for case in cases("dangerous"):
        verdict = judge(case.command)
        assert verdict.rule
        assert verdict.rule != "allowed"
        assert verdict.reason.endswith(".")
        assert ";" in verdict.reason
        assert verdict.command
