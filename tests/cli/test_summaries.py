import pytest

from decklog.app import STORES, store_class
from decklog.cli.main import COMMANDS, menu


def first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_menu_says_of_a_command_what_its_help_says(name: str) -> None:
    assert first_line(menu.get_command(None, name).help) == COMMANDS[name][1]  # type: ignore[arg-type,union-attr]


@pytest.mark.parametrize("name", STORES)
def test_the_menu_says_of_a_store_what_the_store_says(name: str) -> None:
    assert first_line(store_class(name).__doc__) == STORES[name]
