"""Commands built from plug-ins: importers, exporters and agent programs."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import click

from decklog.cli.groups import SuggestingGroup, add_examples
from decklog.core.errors import Invalid
from decklog.core.plugins import UNLOADABLE, PluginKind, load_plugin, plugin_names


class PluginGroup(SuggestingGroup):
    """A group whose commands are the plug-ins of a kind. `build` turns other plug-ins into commands."""

    def __init__(self, kind: PluginKind, build: Callable[[str, Any], click.Command], **settings: Any) -> None:
        super().__init__(**settings)
        self._kind = kind
        self._build = build

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return plugin_names(self._kind)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in plugin_names(self._kind):
            return None
        try:
            command = load_plugin(self._kind, name, partial(self._command, name))
        except Invalid as problem:
            # The help of the group must still list the other plug-ins.
            command = _unloadable_command(name, problem)
        return add_examples(command, f"{self.name} {name}")

    def _command(self, name: str, plugin: Any) -> click.Command:
        return plugin if isinstance(plugin, click.Command) else self._build(name, plugin)


def _unloadable_command(name: str, problem: Invalid) -> click.Command:
    """Build a command that accepts all arguments and raises the problem."""

    def fail() -> None:
        raise problem

    text = problem.message[problem.message.index(UNLOADABLE) :]
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=fail, help=f"({text})", add_help_option=False, context_settings=settings)


def build_command(name: str, text: str, run: Callable[..., int], *options: Callable[[Any], Any]) -> click.Command:
    """Build a command from a function; the help lists its arguments and options in this order."""
    command: Any = click.pass_obj(run)
    for option in reversed(options):
        command = option(command)
    return click.command(name, help=text)(command)


def load_class(place: str) -> Any:
    """Import and return the class at MODULE:CLASS below `decklog.plugins`."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"decklog.plugins.{module}"), name)
