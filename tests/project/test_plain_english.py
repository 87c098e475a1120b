"""The README and the help are short and in plain English."""

import re
from collections.abc import Iterator

import click

from decklog.cli.call import SHORTCUTS
from decklog.cli.main import COMMANDS, menu
from decklog.log import STORES
from tests.db.processes import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_WORDS, MOST_IN_A_SENTENCE, MEAN = 900, 25, 15
# Words of an idiom that readers could not follow.
AVOID = (
    *("told", "tells", "says", "stands", "comes of", "becomes of", "whoever", "whatever", "so many", "beside", "by itself"),
    *("of its own", "no more than", "the least that", "is asked", "is held", "is taken up"),
)
_AVOIDED = re.compile(rf"\b(?:{'|'.join(AVOID)})\b", re.IGNORECASE)
_CODE = re.compile(r"^```.*?^```$|^ {4}\S.*?$", re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    """Return the running text of a page: no code, tables, pictures, headings or link targets."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", _CODE.sub("", text))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "#"))]
    return re.sub(r"[*`]", "", "\n".join(lines))


def sentences(text: str) -> list[str]:
    """Split running text into sentences; a list item or a paragraph ends one too."""
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:-|\d+\.) )", text)
    parts = (part for block in blocks for part in re.split(r"(?<=[.!?:])\s+", re.sub(r"^\s*(?:-|\d+\.) ", "", block)))
    return [" ".join(part.split()) for part in parts if part.strip()]


def test_the_readme_has_at_most_900_words() -> None:
    assert len(README.split()) <= MOST_WORDS


def test_sentences_of_the_readme_are_short() -> None:
    counts = {sentence: len(sentence.split()) for sentence in sentences(prose(README))}
    assert len(counts) > 30
    assert [sentence for sentence, count in counts.items() if count > MOST_IN_A_SENTENCE] == []
    assert sum(counts.values()) / len(counts) <= MEAN


def test_the_readme_avoids_the_words_of_the_list() -> None:
    assert _AVOIDED.findall(README) == []


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its path."""
    ctx = click.Context(menu)

    def below(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield path, command
        if isinstance(command, click.Group):
            for name in command.list_commands(ctx):
                if (part := command.get_command(ctx, name)) is not None:
                    yield from below(f"{path} {name}", part)

    for name in (*SHORTCUTS, *COMMANDS, *(name.replace("_", "-") for name in STORES)):
        command = menu.get_command(ctx, name)
        assert command is not None
        yield from below(name, command)


def help_of(command: click.Command) -> str:
    """Return what a command's help says of it: its text and those of its options."""
    options = [getattr(parameter, "help", None) or "" for parameter in command.params]
    return "\n".join([command.help or "", *options])


def test_the_first_screen_of_the_help_avoids_the_words_of_the_list() -> None:
    assert _AVOIDED.findall(menu.get_help(click.Context(menu, info_name="decklog"))) == []


# The commands of the first minutes.
FIRST_COMMANDS = ("start", "init", "import claude", "import codex", "cost", "completion")


def test_the_help_of_the_first_commands_avoids_the_words_of_the_list() -> None:
    found = {path: command for path, command in commands() if path in FIRST_COMMANDS}
    assert set(found) == set(FIRST_COMMANDS)
    assert {path: words for path, command in found.items() if (words := _AVOIDED.findall(help_of(command)))} == {}
