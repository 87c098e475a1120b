"""Help by name, completion in a shell, and the installed plug-ins."""

import click
from click.shell_completion import get_completion_class

from decklog.cli.call import Invocation
from decklog.cli.show import show
from decklog.core.plugins import Plugin, PluginKind, find_ignored_entries, find_plugins

# click completes when this variable is set; the printed script sets it.
_COMPLETING = "_DECKLOG_COMPLETE"


@click.command()
@click.argument("command", nargs=-1)
@click.pass_context
def help(ctx: click.Context, command: tuple[str, ...]) -> None:
    """Show every command (`all`), or what one command takes."""
    from decklog.cli.main import menu

    top = ctx.find_root()
    if command in ((), ("all",)):
        click.echo(menu.format_all(top) if command else menu.get_help(top))
        return
    menu.main(args=[*command, "--help"], prog_name="decklog", standalone_mode=False, obj=ctx.obj)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print a script that completes commands in bash, zsh or fish.

    \b
    bash  add to ~/.bashrc: eval "$(decklog completion bash)"
    zsh   add to ~/.zshrc: eval "$(decklog completion zsh)"
    fish  decklog completion fish > ~/.config/fish/completions/decklog.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "decklog", _COMPLETING).source()
    call: Invocation = ctx.obj
    return show({"shell": shell, "script": script}, as_json=call.json, text=script)


@click.command()
@click.argument("kind", required=False, type=click.Choice([kind.value for kind in PluginKind]))
@click.pass_obj
def plugins(call: Invocation, kind: str | None) -> int:
    """List the installed plug-ins, and the packages they came with."""
    found = [_plugin_row(one) for one in (*find_plugins(), *find_ignored_entries())]
    show([row for row in found if kind in (None, row["kind"])], as_json=call.json)
    return 0


def _plugin_row(one: Plugin) -> dict[str, str]:
    facts = {"kind": str(one.kind), "name": one.name, "package": one.package, "version": one.version}
    return {**facts, "object": one.entry.value, "problem": one.why_ignored or ""}
