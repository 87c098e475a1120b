"""Help by name: of everything, or of one command."""

import click


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
