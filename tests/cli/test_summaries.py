import pytest

from decklog.app import STORES, store_class
from decklog.cli.main import COMMANDS, menu
from tests.cli.conftest import Program


def first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_menu_says_of_a_command_what_its_help_says(name: str) -> None:
    assert first_line(menu.get_command(None, name).help) == COMMANDS[name][1]  # type: ignore[arg-type,union-attr]


@pytest.mark.parametrize("name", STORES)
def test_the_menu_says_of_a_store_what_the_store_says(name: str) -> None:
    assert first_line(store_class(name).__doc__) == STORES[name]


def test_the_first_page_is_ten_lines_of_commands_that_there_are(decklog: Program) -> None:
    page = decklog()
    assert page.out == decklog("--help").out == decklog("help").out
    lines = [line.split()[1:] for line in page.out.splitlines() if line.startswith("  decklog ")]
    assert len(lines) == 10
    for words in lines:
        named = [word for word in words[:2] if word.islower() and word.isalpha()]
        assert decklog(*named, "--help").code == 0, words
    everything = decklog("help", "all").out
    assert all(f"  {name} " in everything for name in COMMANDS)
    assert decklog("help", "tasks", "claim").out == decklog("tasks", "claim", "--help").out
