"""A group of commands that suggests the closest one for an unknown name."""

import click

from decklog.cli.call import Usage
from decklog.cli.meant import meant


class Group(click.Group):
    """Raise Usage for an unknown command and name the one that was probably meant."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise unknown_command(ctx, args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


def unknown_command(ctx: click.Context, name: str, known: list[str]) -> Usage:
    """Return the error for an unknown command of a group, with the closest known one."""
    path = ctx.command_path
    spelled = f"{path} {name}".removeprefix("decklog ")
    near = meant(name, known)
    if near is not None:
        return Usage(f"unknown command: {spelled} (did you mean {near}?)", hint=f"See its options: {path} {near} --help")
    listed = f"Commands: {', '.join(known)}. " if ctx.parent else ""
    return Usage(f"unknown command: {spelled}", hint=f"{listed}See: {path} --help")
