"""Commands that plug-ins add: importers and agent programs."""

from collections.abc import Callable
from typing import Any

import click

from decklog.cli.groups import SuggestingGroup, with_examples
from decklog.core.plugins import PluginKind, load_plugin, plugin_names


class PluginGroup(SuggestingGroup):
    """A group whose commands are the plug-ins of a kind. `build` makes a command of one that is none itself."""

    def __init__(self, kind: PluginKind, build: Callable[[str, Any], click.Command], **settings: Any) -> None:
        super().__init__(**settings)
        self._kind = kind
        self._build = build

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return plugin_names(self._kind)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in plugin_names(self._kind):
            return None
        plugin = load_plugin(self._kind, name)
        return with_examples(plugin if isinstance(plugin, click.Command) else self._build(name, plugin), f"{self.name} {name}")
