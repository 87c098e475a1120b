"""Writing a log in the format of an older system."""

import click

from decklog.cli.call import Call
from decklog.cli.show import show


@click.command("bazinga")
@click.argument("file")
@click.pass_obj
def export_bazinga(call: Call, file: str) -> int:
    """Write the log as a bazinga database of its newest version (19); FILE must not be there yet.

    Tasks, approvals and what else that system has no table for stay here.
    """
    from decklog.importers.bazinga_export import BazingaExport

    with call.open(writing=False) as log:
        result = BazingaExport(log, file).run()
    return show(result, as_json=call.json, warnings=result["refused"])
