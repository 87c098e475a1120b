"""Archives of old runs on PostgreSQL."""

import os

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.manager import for_the_manager
from decklog.cli.meant import SuggestingGroup
from decklog.cli.show import show
from decklog.cli.terminal import ProgressMeter
from decklog.core.clock import from_text


@click.group(cls=SuggestingGroup)
def archive() -> None:
    """Move the entries of old runs of a PostgreSQL log to files, and bring them back.

    The records of archived runs stay in the log. `decklog verify --archives FOLDER` checks the files.
    """


@archive.command()
@click.option("--before", required=True, metavar="DATE", help="runs that ended before this time, such as 2026-07-01")
@click.option("--to", "folder", default="archives", metavar="FOLDER", help="where the files go; otherwise ./archives")
@click.pass_obj
def create(call: Invocation, before: str, folder: str) -> int:
    """Archive the partitions whose runs have all ended before a date; after an interruption, run it again."""
    from decklog.transfer.archive import Archive

    try:
        moment = from_text(before)
    except ValueError:
        raise WrongUsage(f"{before!r} is no date; write 2026-07-01") from None
    with call.open() as log, ProgressMeter() as meter:
        return show(Archive(log, folder, meter).create(moment), as_json=call.json)


@archive.command()
@click.argument("file")
@click.pass_obj
def restore(call: Invocation, file: str) -> int:
    """Bring the entries of an archive back, after they were verified; a second time changes nothing."""
    from decklog.transfer.archive import Archive

    with call.open() as log, ProgressMeter() as meter:
        return show(Archive(log, os.path.dirname(file) or ".", meter).restore(file), as_json=call.json)


@archive.command()
@click.argument("file")
@click.argument("target", metavar="LOG")
@click.pass_obj
def extract(call: Invocation, file: str, target: str) -> int:
    """Copy the runs of an archive to another log, such as old.db, to search and browse them there."""
    from decklog import Decklog
    from decklog.transfer.archive import Archive

    with call.open(writing=False) as log, Decklog.open(target) as other, ProgressMeter() as meter:
        return show(Archive(log, os.path.dirname(file) or ".", meter).extract(file, other), as_json=call.json)


for_the_manager(create)
for_the_manager(restore)
