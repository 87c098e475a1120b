"""Writing a log in the format of an older system."""

import sys
from typing import Any

import click

from decklog.cli.call import Invocation
from decklog.cli.show import show
from decklog.cli.terminal import ProgressMeter

_run = click.option("--run", "run_id", metavar="RUN", help="only this run")
_replace = click.option("--replace", is_flag=True, help="put it in the place of the file that is there")


@click.command("bazinga")
@click.argument("file")
@click.pass_obj
def export_bazinga(call: Invocation, file: str) -> int:
    """Write the log as a bazinga database of its newest version (19); FILE must not be there yet.

    Tasks, approvals and what else that system has no table for stay here.
    """
    from decklog.plugins.importers.bazinga.export import BazingaExport

    with call.open(writing=False) as log:
        written = BazingaExport(log, file).run()
    return _show(call, written)


@click.command("runstore")
@click.argument("file")
@click.pass_obj
def export_runstore(call: Invocation, file: str) -> int:
    """Write the log as a RunStore database; FILE must not be there yet.

    A task that is paused is in progress there, so that nobody is given it. Questions without a verdict stay here.
    """
    from decklog.plugins.importers.runstore.export import RunStoreExport

    with call.open(writing=False) as log, ProgressMeter() as meter:
        written = RunStoreExport(log, file, meter).run()
    return _show(call, written)


@click.command("gaia")
@click.argument("directory")
@click.pass_obj
def export_gaia(call: Invocation, directory: str) -> int:
    """Write the log as a gaia-coder home: seven databases, paused tasks, self-edits and learnings.

    DIRECTORY must not be there yet, or be empty. The tasks of all runs come together in it.
    """
    from decklog.plugins.importers.gaia.export import GaiaExport

    with call.open(writing=False) as log, ProgressMeter() as meter:
        written = GaiaExport(log, directory, meter).run()
    return _show(call, written)


@click.command("beads")
@click.argument("file")
@_run
@_replace
@click.pass_obj
def export_beads(call: Invocation, file: str, run_id: str | None, replace: bool) -> int:
    """Write tasks as beads' issues, a line each in the order of their ids, with links, comments and memories.

    What was imported from there comes back as it was, unless it was changed here. `bd import -i FILE` takes it in.
    """
    from decklog.plugins.importers.beads import BeadsExport

    with call.open(writing=False) as log, ProgressMeter() as meter:
        written = BeadsExport(log, file, run_id=run_id, replace=replace, progress=meter).run()
    return _show(call, written)


@click.command("taskmaster")
@click.argument("file")
@click.option("--run", "run_id", metavar="RUN", default="taskmaster", show_default=True, help="the run of the tag master")
@_replace
@click.pass_obj
def export_taskmaster(call: Invocation, file: str, run_id: str, replace: bool) -> int:
    """Write a run's tasks as Task Master's tasks.json, parts as subtasks; runs that came from other tags go along.

    What was imported from there comes back as it was, unless it was changed here.
    """
    from decklog.plugins.importers.taskmaster.sync import TaskMasterExport

    with call.open(writing=False) as log, ProgressMeter() as meter:
        written = TaskMasterExport(log, file, run_id=run_id, replace=replace, progress=meter).run()
    return _show(call, written)


@click.command("markdown")
@click.argument("file")
@click.option("--run", "run_id", metavar="RUN", required=True, help="the run whose plan is written")
@_replace
@click.pass_obj
def export_markdown(call: Invocation, file: str, run_id: str, replace: bool) -> int:
    """Write a run's plan as Markdown, a section a task, to be read and edited; `decklog import markdown` takes it back.

    git merges two such files where they changed different tasks.
    """
    from decklog.plugins.importers.markdown import MarkdownExport

    with call.open(writing=False) as log, ProgressMeter() as meter:
        written = MarkdownExport(log, file, run_id=run_id, replace=replace, progress=meter).run()
    return _show(call, written)


def _show(call: Invocation, written: dict[str, Any]) -> int:
    """Show what was written: for programs as data, for people as a table with what did not go along below it."""
    warnings = [f"refused: {text}" for text in written["refused"]]
    if written["left_out"]:
        missing = ", ".join(f"{what} ({count})" for what, count in written["left_out"].items())
        warnings.append(f"{written['path']} has no place for {missing}")
    if call.json:
        return show(written, as_json=True, warnings=warnings)
    show([{"table": table, "rows": count} for table, count in written["tables"].items()], as_json=False, warnings=warnings)
    sys.stderr.write(f"Written: {written['path']}\n")
    return 0
