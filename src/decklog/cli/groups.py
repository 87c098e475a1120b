"""Groups of commands: suggestions, examples in the help, and the mark of the owner's commands."""

from inspect import cleandoc
from typing import TypeVar

import click

from decklog.cli.examples import EXAMPLES
from decklog.cli.suggestions import unknown_command

Command = TypeVar("Command", bound=click.Command)
SENTENCE = "Only for the owner; the policy denies it to agents."
_mark = "is_for_the_owner"


def for_the_owner(command: Command) -> Command:
    """Mark a command that agents may not run, also in its help."""
    setattr(command, _mark, True)
    command.help = f"{cleandoc(command.help or '')}\n\n{SENTENCE}".strip()
    return command


def is_for_the_owner(command: click.Command) -> bool:
    """Return whether a command carries the mark."""
    return getattr(command, _mark, False) is True


class SuggestingGroup(click.Group):
    """Raise Usage for an unknown command and name the one that was probably meant."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "list" and "list" not in self.list_commands(ctx) and "find" in self.list_commands(ctx):
            args = ["find", *args[1:]]
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise unknown_command(ctx.command_path, args[0], self.list_commands(ctx), is_listed=ctx.parent is not None)
        return super().resolve_command(ctx, args)


def with_examples(command: click.Command, path: str) -> click.Command:
    """Have a command's help begin with its examples, and lists name it by the whole first line of its help."""
    command.short_help = command.short_help or (command.help or "").partition("\n")[0]
    for name, part in getattr(command, "commands", {}).items():
        with_examples(part, f"{path} {name}")
    if (lines := EXAMPLES.get(path)) is None or hasattr(command, "examples"):
        return command
    command.examples = lines  # type: ignore[attr-defined]
    plain = command.format_help_text

    def format_help_text(ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("".join(f"\n  $ {line}" for line in lines) + "\n")
        plain(ctx, formatter)

    command.format_help_text = format_help_text  # type: ignore[method-assign]
    return command
