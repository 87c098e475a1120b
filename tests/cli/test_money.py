"""People read dollars; programs read micro-dollars."""

from pathlib import Path

from tests.cli.conftest import Program


def test_amounts_are_in_dollars_wherever_a_person_looks(decklog: Program, log_folder: Path) -> None:
    charge = ("ledger", "charge", "opus", "--cost-microdollars", "16966884", "--run", "run_1")
    assert "cost_dollars" in decklog(*charge).out
    decklog("budgets", "set", "run", "--scope-id", "run_1", "--limit-microdollars", "20000000")
    for words in (
        ("ledger", "find", "run_1"),
        ("ledger", "summary", "run_1"),
        ("ledger", "burn"),
        ("runs", "show", "run_1"),
        ("journal", "find", "run_1"),
        ("watch", "run_1", "--no-follow"),
    ):
        said = decklog(*words).out
        assert "$16.97" in said, words
        assert "16966884" not in said, words
    assert "$20.00" in decklog("budgets", "find").out


def test_programs_get_micro_dollars(decklog: Program, log_folder: Path) -> None:
    decklog("ledger", "charge", "opus", "--cost-microdollars", "16966884", "--run", "run_1")
    assert decklog("ledger", "find", "run_1", "--json").data[0]["cost_microdollars"] == 16_966_884


def test_a_list_without_anything_in_it_says_so_to_a_person(decklog: Program, log_folder: Path) -> None:
    said = decklog("approvals", "find", "run_1")
    assert (said.code, said.out) == (0, "")
    assert said.err == "Nothing found.\n"
    assert decklog("approvals", "find", "run_1", "--json").err == ""
