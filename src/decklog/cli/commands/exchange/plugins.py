"""List plug-ins, and run those that are commands."""

from collections.abc import Callable
from typing import Any

import click

from decklog.cli.call import Invocation
from decklog.cli.examples import with_examples
from decklog.cli.meant import SuggestingGroup
from decklog.cli.show import show
from decklog.core.plugins import PluginKind, find_plugins, load_plugin, plugin_names


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


@click.command()
@click.argument("kind", required=False, type=click.Choice([kind.value for kind in PluginKind]))
@click.pass_obj
def plugins(call: Invocation, kind: str | None) -> int:
    """List the installed plug-ins, and the packages they came with."""
    found = [
        {"kind": one.kind.value, "name": one.name, "package": one.package, "version": one.version, "object": one.entry.value}
        for one in find_plugins()
        if kind in (None, one.kind)
    ]
    show(found, as_json=call.json)
    return 0
