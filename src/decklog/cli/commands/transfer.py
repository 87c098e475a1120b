"""Taking a log elsewhere, keeping copies of it, and mending it."""

import os
from typing import TYPE_CHECKING

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.examples import with_examples
from decklog.cli.manager import for_the_manager
from decklog.cli.meant import SuggestingGroup
from decklog.cli.show import show
from decklog.cli.terminal import ProgressMeter
from decklog.core.figures import counted
from decklog.location.locate import LogLocation, locate

if TYPE_CHECKING:
    from decklog.log import Decklog

# What a log can be written as: name, module, function.
EXPORTS = {
    "jsonl": ("transfer", "export_jsonl"),
    "html": ("transfer", "export_html"),
    "bazinga": ("exchange.exporting", "export_bazinga"),
    "runstore": ("exchange.exporting", "export_runstore"),
    "gaia": ("exchange.exporting", "export_gaia"),
    "beads": ("exchange.exporting", "export_beads"),
    "taskmaster": ("exchange.exporting", "export_taskmaster"),
    "markdown": ("exchange.exporting", "export_markdown"),
    "otlp": ("exchange.telemetry", "export_otlp"),
}


class Formats(SuggestingGroup):
    """Command group that imports only the module of the requested format."""

    def __init__(self, formats: dict[str, tuple[str, str]], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self._formats = formats

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self._formats)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        from importlib import import_module

        if name not in self._formats:
            return None
        module, function = self._formats[name]
        command: click.Command = getattr(import_module(f"decklog.cli.commands.{module}"), function)
        return with_examples(command, f"{self.name} {name}")


export = Formats(EXPORTS, name="export", help="Write a log, or one run of it, in another form.")


@click.command("jsonl")
@click.argument("folder")
@click.option("--run", "stream", metavar="RUN", help="only this run")
@click.pass_obj
def export_jsonl(call: Invocation, folder: str, stream: str | None) -> int:
    """Write every stream as a file of JSON lines that git can merge, hash chain and blobs included."""
    from decklog.transfer.jsonl import JsonlExport

    with call.open(writing=False) as log, ProgressMeter() as meter:
        return show(JsonlExport(log, folder, meter).run(stream), as_json=call.json)


@click.command("jsonl")
@click.argument("folder")
@click.pass_obj
def import_jsonl(call: Invocation, folder: str) -> int:
    """Take in a folder that `export jsonl` wrote; what is here already is compared and skipped."""
    from decklog.transfer.jsonl import JsonlImport

    with call.open(create=True) as log, ProgressMeter() as meter:
        return show(JsonlImport(log, folder, meter).run(), as_json=call.json)


@click.command("html")
@click.argument("run_id", metavar="RUN")
@click.option("--out", metavar="FILE", help="the page to write; otherwise RUN.html in this folder")
@click.option("--overwrite", is_flag=True, help="replace FILE if it is there already")
@click.pass_obj
def export_html(call: Invocation, run_id: str, out: str | None, overwrite: bool) -> int:
    """Write one run as a single HTML page for a report, with its timeline and whether it verifies."""
    from decklog.transfer.report.page import write_page

    with call.open(writing=False) as log:
        return show(write_page(log, run_id, out, overwrite=overwrite), as_json=call.json)


@for_the_manager
@click.command()
@click.argument("target")
@click.option("--from", "source", metavar="SOURCE", help="the log to move; otherwise the one this call means")
@click.pass_obj
def move(call: Invocation, target: str, source: str | None) -> int:
    """Copy a whole log to another file or server, and verify the copy.

    The source is only read and stays as it is. After an interruption, the same command goes on where it was.
    """
    from decklog.log import Decklog
    from decklog.transfer.move import Move

    with _source(call, source) as log, Decklog.open(target, migrate=True) as other, ProgressMeter() as meter:
        moved = Move(log, other, meter).run()
    if moved.behind:
        moved.warnings.append(
            f"{counted(moved.behind, 'entry', 'entries')} came in meanwhile; run the same command again to follow"
        )
    return show(moved, as_json=call.json, warnings=moved.warnings)


def _source(call: Invocation, named: str | None) -> "Decklog":
    """Open a log for reading only, so that not even its file changes."""
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


@for_the_manager
@click.command()
@click.argument("file")
@click.option("--to", "path", metavar="PATH", help="the log to replace or make; otherwise the one this call means")
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


@for_the_manager
@click.command()
@click.option("--older-than", required=True, metavar="AGE", help="such as 30d, 12h or 8w")
@click.option("--kind", type=click.Choice(["interaction", "reasoning", "event", "tool"]), help="only entries of this kind")
@click.option("--run", "stream", metavar="RUN", help="only in this run")
@click.option("--apply", is_flag=True, help="really drop them; otherwise it is only said what would go")
@click.option("--shrink", is_flag=True, help="with --apply, also make a SQLite file smaller (needs as much free space again)")
@click.pass_obj
def prune(call: Invocation, older_than: str, kind: str | None, stream: str | None, apply: bool, shrink: bool) -> int:
    """Drop old texts; their digests stay, so the log still verifies. Without --apply nothing is changed.

    What records were (entries of kind change) is never dropped. In a git repository, refs that keep files of sessions older
    than this are dropped too, unless --kind or --run is given.
    """
    from decklog.provenance.recording import release_old
    from decklog.transfer.prune import Prune, age_of

    with call.open(writing=apply) as log, ProgressMeter() as meter:
        result = Prune(log, age_of(older_than), kind=kind, stream=stream, progress=meter).run(apply=apply)
        if kind is None and stream is None:
            before = log.clock.now() - age_of(older_than)
            result.git_refs = release_old(log, os.getcwd(), before, is_applied=apply)
        if apply and shrink:
            log.db.compact()
    notes = [] if apply else ["nothing was changed; add --apply to drop these texts"]
    return show(result, as_json=call.json, warnings=notes)


@for_the_manager
@click.command()
@click.argument("file")
@click.option("--to", metavar="NEW", help="the log to make; otherwise NAME.recovered.db in this folder")
@click.pass_obj
def recover(call: Invocation, file: str, to: str | None) -> int:
    """Recover a damaged SQLite file into a new log, and report what is missing.

    The damaged file is never changed. A file that is whole is left alone.
    """
    from decklog.transfer.recover.recovery import recover as take_out

    with ProgressMeter() as meter:
        report = take_out(file, to, progress=meter)
    return show(report, as_json=call.json, warnings=report.notes)
