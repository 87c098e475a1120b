"""The mark of commands that only the owner may use; the policy of agents' commands is derived from it."""

from inspect import cleandoc
from typing import TypeVar

import click

Command = TypeVar("Command", bound=click.Command)
SENTENCE = "Only for the owner; the policy denies it to agents."
_mark = "is_for_the_manager"


def for_the_manager(command: Command) -> Command:
    """Mark a command that agents may not run, also in its help."""
    setattr(command, _mark, True)
    command.help = f"{cleandoc(command.help or '')}\n\n{SENTENCE}".strip()
    return command


def is_for_the_manager(command: click.Command) -> bool:
    """Return whether a command carries the mark."""
    return getattr(command, _mark, False) is True
