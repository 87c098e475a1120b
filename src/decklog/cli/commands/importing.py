"""Taking over what older systems recorded."""

import sys

import click

from decklog.cli.call import Call
from decklog.cli.progress import Meter
from decklog.cli.show import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decklog.importers.engine.report import Report

_dry_run = click.option("--dry-run", is_flag=True, help="say what would happen, and change nothing")
_seconds = click.option("--seconds", type=float, default=600, show_default=True, help="how long reading the source may take")


@click.command("bazinga")
@click.argument("file")
@_dry_run
@_seconds
@click.pass_obj
def import_bazinga(call: Call, file: str, dry_run: bool, seconds: float) -> int:
    """Take over a bazinga database of any version.

    The file is only read. Run it again at any time: what is here already stays, and what is new or moved on is added.
    """
    from decklog.importers.bazinga.importer import BazingaImport

    with call.open(create=True) as log, Meter() as meter:
        taken = BazingaImport(log, file, dry_run=dry_run, seconds=seconds, progress=meter).run()
    return _show(call, taken)


@click.command("runstore")
@click.argument("file")
@_dry_run
@_seconds
@click.pass_obj
def import_runstore(call: Call, file: str, dry_run: bool, seconds: float) -> int:
    """Take over a RunStore database; its attempts become the history of their tasks.

    A task that was in progress is paused here, because nobody here holds it: resume it when nobody there works on it.
    """
    from decklog.importers.runstore.importer import RunStoreImport

    with call.open(create=True) as log, Meter() as meter:
        taken = RunStoreImport(log, file, dry_run=dry_run, seconds=seconds, progress=meter).run()
    return _show(call, taken)


@click.command("gaia")
@click.argument("directory")
@click.option("--run-id", default="gaia-coder", show_default=True, help="the run that gets the home's tasks")
@_dry_run
@_seconds
@click.pass_obj
def import_gaia(call: Call, directory: str, run_id: str, dry_run: bool, seconds: float) -> int:
    """Take over a gaia-coder home: its seven databases, paused tasks, self-edits and learnings.

    A task that was running is paused here, because nobody here holds it: resume it when nobody there works on it.
    """
    from decklog.importers.gaia.importer import GaiaImport

    with call.open(create=True) as log, Meter() as meter:
        taken = GaiaImport(log, directory, run_id=run_id, dry_run=dry_run, seconds=seconds, progress=meter).run()
    return _show(call, taken)


def _show(call: Call, report: "Report") -> int:
    """Show a report: for programs as data, for people as a table with what needs a look below it."""
    if call.json:
        return show(report, as_json=True)
    if report.dry_run:
        sys.stderr.write("Nothing was changed: this is what would happen.\n")
    show([{"table": table, **counts} for table, counts in report.tables.items()], as_json=False)
    for note in report.notes:
        sys.stderr.write(f"note: {note}\n")
    if report.notes_left_out:
        sys.stderr.write(f"note: and {report.notes_left_out} more\n")
    return 0
