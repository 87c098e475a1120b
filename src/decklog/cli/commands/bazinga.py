"""bazinga-db's command line under our own name."""

import click

from decklog.cli.call import Call


@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def bazinga(call: Call, words: tuple[str, ...]) -> int:
    """Answer as bazinga-db does, so that agents' prompts and scripts for it go on working."""
    from decklog.cli.locate import found_above
    from decklog.compat.bazinga.program.program import run

    return run([*(["--db", call.db] if call.db else []), *words], found_above)
