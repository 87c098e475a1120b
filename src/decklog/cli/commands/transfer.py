"""Move a log, keep copies of it, recover, prune and archive it."""

import os
from typing import TYPE_CHECKING

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.groups import SuggestingGroup, for_the_owner
from decklog.cli.show import show
from decklog.cli.terminal import ProgressMeter
from decklog.core.clock import from_text
from decklog.core.display import counted
from decklog.location.locate import LogLocation, locate

if TYPE_CHECKING:
    from decklog.log import Decklog


@click.command("jsonl")
@click.argument("folder")
@click.pass_obj
def import_jsonl(call: Invocation, folder: str) -> int:
    """Import a folder that `export jsonl` wrote; existing entries are compared and skipped."""
    from decklog.transfer.jsonl import JsonlImport

    with call.open(create=True) as log, ProgressMeter() as meter:
        return show(JsonlImport(log, folder, meter).run(), as_json=call.json)


@for_the_owner
@click.command()
@click.argument("target")
@click.option("--from", "source", metavar="SOURCE", help="the log to move; otherwise the log used here")
@click.pass_obj
def move(call: Invocation, target: str, source: str | None) -> int:
    """Copy a whole log to another file or server, and verify the copy.

    The source is only read. After an interruption, the same command continues.
    """
    from decklog.log import Decklog
    from decklog.transfer.move import Move

    with _open_source(call, source) as log, Decklog.open(target, migrate=True) as other, ProgressMeter() as meter:
        moved = Move(log, other, meter).run()
    if moved.behind:
        moved.warnings.append(
            f"{counted(moved.behind, 'entry', 'entries')} came in meanwhile; run the same command again to follow"
        )
    return show(moved, as_json=call.json, warnings=moved.warnings)


def _open_source(call: Invocation, named: str | None) -> "Decklog":
    """Open a log read-only, so that its file does not change."""
    place: LogLocation = locate(named or call.db)
    place.must_exist()
    return place.open(read_only=True)


@click.command()
@click.argument("file", required=False)
@click.option("--overwrite", is_flag=True, help="replace FILE if it is there already")
@click.pass_obj
def backup(call: Invocation, file: str | None, overwrite: bool) -> int:
    """Write a consistent copy of the log, as a SQLite file, while others go on writing."""
    from decklog.transfer.restore import back_up

    with call.open(writing=False) as log, ProgressMeter() as meter:
        return show(back_up(log, file, overwrite=overwrite, progress=meter), as_json=call.json)


@for_the_owner
@click.command()
@click.argument("file")
@click.option("--to", "path", metavar="PATH", help="the log to replace or create; otherwise the log used here")
@click.pass_obj
def restore(call: Invocation, file: str, path: str | None) -> int:
    """Replace a log by a backup.

    The backup is verified first and the current log is kept. While other processes have the log open, nothing is done.
    """
    from decklog.transfer.restore import restore as put_back

    place = LogLocation(path, "named with --to") if path else locate(call.db)
    if place.is_server:
        raise WrongUsage("a server's log is not replaced by a file", hint=f"Move it in: decklog move {place.shown} --from {file}")
    place.check()
    with ProgressMeter() as meter:
        restored = put_back(file, place.path, progress=meter)
    if place.folder is not None:
        # Trust the restored log: the backup may be of another log, and the user chose it.
        place.accept()
    return show(restored, as_json=call.json)


@for_the_owner
@click.command()
@click.option("--older-than", required=True, metavar="AGE", help="such as 30d, 12h or 8w")
@click.option("--kind", type=click.Choice(["interaction", "reasoning", "event", "tool"]), help="only entries of this kind")
@click.option("--run", "stream", metavar="RUN", help="only in this run")
@click.option("--apply", is_flag=True, help="really drop them; otherwise only list what would be dropped")
@click.option("--shrink", is_flag=True, help="with --apply, also make a SQLite file smaller (needs as much free space again)")
@click.pass_obj
def prune(call: Invocation, older_than: str, kind: str | None, stream: str | None, apply: bool, shrink: bool) -> int:
    """Drop old texts; their digests stay, so the log still verifies. Without --apply nothing is changed.

    What records were (entries of kind change) is never dropped. In a git repository, refs that keep files of sessions older
    than this are dropped too, unless --kind or --run is given.
    """
    from decklog.provenance.recording import release_old
    from decklog.transfer.prune import Prune, parse_age

    with call.open(writing=apply) as log, ProgressMeter() as meter:
        result = Prune(log, parse_age(older_than), kind=kind, stream=stream, progress=meter).run(apply=apply)
        if kind is None and stream is None:
            before = log.clock.now() - parse_age(older_than)
            result.git_refs = release_old(log, os.getcwd(), before, is_applied=apply)
        if apply and shrink:
            log.db.compact()
    notes = [] if apply else ["nothing was changed; add --apply to drop these texts"]
    return show(result, as_json=call.json, warnings=notes)


@for_the_owner
@click.command()
@click.argument("file")
@click.option("--to", metavar="NEW", help="the log to create; otherwise NAME.recovered.db in this folder")
@click.pass_obj
def recover(call: Invocation, file: str, to: str | None) -> int:
    """Recover a damaged SQLite file into a new log, and report what is missing.

    The damaged file is never changed. A file that is whole is left alone.
    """
    from decklog.transfer.recover.recovery import recover as take_out

    with ProgressMeter() as meter:
        report = take_out(file, to, progress=meter)
    return show(report, as_json=call.json, warnings=report.notes)


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
        raise WrongUsage(f"{before!r} is not a date; write 2026-07-01") from None
    with call.open() as log, ProgressMeter() as meter:
        return show(Archive(log, folder, meter).create(moment), as_json=call.json)


@archive.command("restore")
@click.argument("file")
@click.pass_obj
def restore_archive(call: Invocation, file: str) -> int:
    """Verify an archive and restore its entries; a second time changes nothing."""
    from decklog.transfer.archive import Archive

    with call.open() as log, ProgressMeter() as meter:
        return show(Archive(log, os.path.dirname(file) or ".", meter).restore(file), as_json=call.json)


@archive.command()
@click.argument("file")
@click.argument("target", metavar="LOG")
@click.pass_obj
def extract(call: Invocation, file: str, target: str) -> int:
    """Copy the runs of an archive to another log, such as old.db, to search and browse them there."""
    from decklog.log import Decklog
    from decklog.transfer.archive import Archive

    with call.open(writing=False) as log, Decklog.open(target) as other, ProgressMeter() as meter:
        return show(Archive(log, os.path.dirname(file) or ".", meter).extract(file, other), as_json=call.json)


for_the_owner(create)
for_the_owner(restore_archive)
