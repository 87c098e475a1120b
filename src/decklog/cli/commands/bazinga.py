"""bazinga-db's command line under our own name, and taking a project over from it."""

import sys

import click

from decklog.cli.call import Invocation
from decklog.cli.projects import Consent, accept_project
from decklog.cli.show import show
from decklog.cli.terminal import ProgressMeter
from decklog.location.locate import found_above

_TAKE_OVER = "take-over"


@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def bazinga(call: Invocation, words: tuple[str, ...]) -> int:
    """Run a command of bazinga-db; prompts and scripts written for it keep working.

    `decklog bazinga take-over [PROJECT]` turns a project that bazinga-db itself kept into one that Decklog keeps.
    """
    if words[:1] == (_TAKE_OVER,):
        name = f"decklog bazinga {_TAKE_OVER}"
        return int(take_over.main(list(words[1:]), prog_name=name, obj=call, standalone_mode=False) or 0)
    from decklog.plugins.legacy.bazinga.program import run

    return run([*(["--db", call.db] if call.db else []), *words], found_above, Consent())


@click.command(_TAKE_OVER)
@click.argument("project", required=False)
@click.option("--accept-losses", is_flag=True, help="go on though some rows can't be read or kept")
@click.pass_obj
def take_over(call: Invocation, project: str | None, accept_losses: bool) -> int:
    """Take a bazinga project over in place: the one named, or the one around this folder.

    Its records go into a Decklog log and its scripts call Decklog, so agents and prompts go on as they are; bazinga.db stays
    current for those who read it by SQL. The old file and the old scripts are kept, as NAME.before-decklog. Nothing is changed
    until everything has arrived.
    """
    from decklog.plugins.bazinga_project import detect
    from decklog.plugins.importers.bazinga.take_over import TakeOver
    from decklog.plugins.legacy.bazinga.base import BazingaBase

    with ProgressMeter() as meter:
        taken = TakeOver(project or detect()[0] or ".", accept_losses=accept_losses, progress=meter).run()
    # What readers open is brought up to date where the project was taken over before.
    with BazingaBase(taken["database"]) as desk:
        accept_project(taken["database"], desk.log)
    if call.json:
        return show(taken, as_json=True)
    if taken["already"]:
        sys.stderr.write(f"{taken['project']} was taken over already.\n")
    else:
        show([{"table": table, **counts} for table, counts in taken["report"]["tables"].items()], as_json=False)
        sys.stderr.write(f"Taken over into the log {taken['log']}; the old file is {taken['kept']}\n")
        sys.stderr.write(f"Kept current for those who read it by themselves: {taken['database']}\n")
    for script in taken["scripts"]:
        sys.stderr.write(f"Calls Decklog now: {script}\n")
    return 0
