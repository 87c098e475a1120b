from decklog.app import store_class
from decklog.cli.derived import store_names
from decklog.cli.main import COMMANDS, menu
from decklog.cli.summaries import SUMMARIES


def first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def test_the_table_of_summaries_says_what_the_commands_say() -> None:
    commands = {name: first_line(menu.get_command(None, name).help) for name in COMMANDS}  # type: ignore[arg-type,union-attr]
    stores = {name: first_line(store_class(name).__doc__) for name in store_names()}
    assert commands | stores == SUMMARIES
