"""People read dollars; programs read micro-dollars."""

from pathlib import Path

import pytest

from decklog.cli.parameters import list_parameters
from decklog.cli.store_verbs import load_operations
from decklog.log import STORES
from tests.cli.conftest import Program


@pytest.mark.slow
def test_amounts_are_in_dollars_wherever_a_person_looks(decklog: Program, log_folder: Path) -> None:
    charge = ("ledger", "charge", "opus", "--cost", "16.966884", "--run", "run_1")
    assert decklog(*charge).out.rstrip().endswith("opus  $16.97")
    decklog("budgets", "set", "run", "--scope-id", "run_1", "--limit", "20.00")
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
    decklog("ledger", "charge", "opus", "--cost", "16.966884", "--run", "run_1")
    assert decklog("ledger", "find", "run_1", "--json").data[0]["cost_microdollars"] == 16_966_884


def test_a_list_without_anything_in_it_says_so_to_a_person(decklog: Program, log_folder: Path) -> None:
    said = decklog("approvals", "find", "run_1")
    assert (said.code, said.out) == (0, "")
    assert said.err == "Nothing found.\n"
    assert decklog("approvals", "find", "run_1", "--json").err == ""


@pytest.mark.parametrize(("text", "microdollars"), [("0.42", 420_000), ("$5", 5_000_000), ("5.00", 5_000_000), (".000001", 1)])
def test_money_on_the_command_line_is_dollars(decklog: Program, log_folder: Path, text: str, microdollars: int) -> None:
    charged = decklog("ledger", "charge", "opus", "--run", "run_1", "--cost", text, "--json")
    assert charged.data["cost_microdollars"] == microdollars


@pytest.mark.slow
@pytest.mark.parametrize("text", ["$5x", "", "-1", "0,42", "1e3", "0.0000001", "nan", "٤"])
def test_what_is_no_dollar_amount_is_refused_by_the_name_of_its_option(decklog: Program, log_folder: Path, text: str) -> None:
    for words in (["ledger", "charge", "m"], ["spend", "m"]):
        refused = decklog(*words, f"--cost={text}")
        assert refused.code == 2
        assert f"--cost must be a dollar amount such as 0.42 (got {text!r})" in refused.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["budgets", "set", "run", "--scope-id", "run_1"], "a budget has one limit: give --limit or --limit-tokens"),
        (["budgets", "set", "run", "--limit", "1"], "a budget for run needs a --scope-id"),
        (["budgets", "set", "all", "--limit", "2000000000"], "--limit must be a dollar amount from 0 to $1,000,000,000.00"),
        (["ledger", "charge", "m", "--cost", "2000000"], "--cost must be a dollar amount from 0 to $1,000,000.00"),
        (["spend", "m", "--cost", "2000000"], "--cost must be a dollar amount from 0 to $1,000,000.00"),
        (["budgets", "set", "all", "--limit", "1", "--warn-percent", "0"], "--warn-percent is a whole number, 1 to 100; got 0"),
    ],
)
def test_errors_about_money_name_options_and_dollars(decklog: Program, log_folder: Path, words: list[str], said: str) -> None:
    refused = decklog(*words)
    assert refused.code == 1
    assert said in refused.err
    assert "microdollars" not in refused.err


def test_the_hint_of_a_call_without_a_price_names_the_option(decklog: Program, log_folder: Path) -> None:
    decklog("budgets", "set", "run", "--scope-id", "run_1", "--limit", "5.00")
    refused = decklog("ledger", "charge", "unheard-of", "--run", "run_1", "--input-tokens", "5")
    assert (refused.code, "give --cost" in refused.err, "microdollars" in refused.err) == (6, True, False)


def test_no_command_has_two_options_of_one_name_and_none_in_microdollars() -> None:
    for store in STORES:
        for operation in load_operations(store).values():
            flags = [parameter.flag for parameter in list_parameters(operation)]
            assert len(flags) == len(set(flags)), operation.name
            assert not [flag for flag in flags if "microdollars" in flag], operation.name


@pytest.mark.slow
def test_prices_are_in_dollars_on_the_command_line_and_in_microdollars_in_json(decklog: Program, log_folder: Path) -> None:
    assert decklog("prices", "set", "m", "4.00", "20", "--cache-read-price", "0.2").out.startswith("Price m ")
    row = decklog("prices", "find", "--model", "m", "--json").data[0]
    assert (row["input_price"], row["output_price"], row["cache_read_price"]) == (4_000_000, 20_000_000, 200_000)
    shown = decklog("prices", "find", "--model", "m").out
    assert "$4.00" in shown
    assert "4000000" not in shown
    assert decklog("prices", "quote", "m", "--input-tokens", "1000").out == "$0.004\n"
    assert decklog("prices", "quote", "m", "--input-tokens", "1000", "--json").data == 4_000


@pytest.mark.slow
def test_a_confirmation_is_one_line(decklog: Program, log_folder: Path) -> None:
    for words, told in (
        (["runs", "start", "Teach the parser", "--run", "commas"], "Run commas: Teach the parser (active)"),
        (["tasks", "add", "commas", "Write it down", "--task", "docs"], "Task docs: Write it down (pending)"),
        (["runs", "start", "Teach the parser", "--run", "commas"], "Run commas: Teach the parser (active, nothing changed)"),
        (["approvals", "ask", "commas", "Push?", "--by", "dev", "--about", '"x"', "--approval", "a"], "Approval a: Push? (open)"),
        (["approvals", "decide", "a", "granted", "--by", "ana"], "Approval a: Push? (granted)"),
    ):
        assert decklog(*words).out == f"{told}\n"
    assert decklog("budgets", "set", "run", "--scope-id", "commas", "--limit", "5.00").out.rstrip().endswith("run  $5.00")
    assert decklog("ledger", "charge", "m", "--cost", "0.42", "--run", "commas").out.rstrip().endswith("m  $0.42")
    edit = ("tasks", "edit", "docs", "--priority", "20", "--reason", "late")
    assert decklog(*edit, "--fields", "priority").out.split() == ["priority", "20"]
