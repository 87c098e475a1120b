"""Keeping the log and other trackers in step."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from decklog.cli.call import Invocation
from decklog.cli.commands.transfer import Formats
from decklog.cli.manager import for_the_manager
from decklog.cli.show import show

if TYPE_CHECKING:
    from decklog.importing.sync import Sync

SYNCS = {
    "beads": ("exchange.syncing", "sync_beads"),
    "taskmaster": ("exchange.syncing", "sync_taskmaster"),
    "github": ("exchange.syncing", "sync_github"),
}
sync = for_the_manager(Formats(SYNCS, name="sync", help="Sync a run with another tracker, both ways."))
_dry_run = click.option("--dry-run", is_flag=True, help="say what would happen, and change nothing")


def _run(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option("--run", "run_id", metavar="RUN", default=default, show_default=True, help="the run that has the tasks")


@click.command("beads")
@click.argument("path", default=".")
@_run("beads")
@_dry_run
@click.pass_obj
def sync_beads(call: Invocation, path: str, run_id: str, dry_run: bool) -> int:
    """Keep a run and beads' issues.jsonl in step: a repository, or the file.

    Each side gets what only the other changed since the last time. What both changed stays as it is on either side, and is a
    message in the inbox.
    """
    from decklog.plugins.importers.beads import BeadsSync

    return _sync(call, BeadsSync, path, run_id=run_id, dry_run=dry_run)


@click.command("taskmaster")
@click.argument("path", default=".")
@_run("taskmaster")
@_dry_run
@click.pass_obj
def sync_taskmaster(call: Invocation, path: str, run_id: str, dry_run: bool) -> int:
    """Keep runs and Task Master's tasks.json in step: a repository, or the file.

    Each side gets what only the other changed since the last time. What both changed stays as it is on either side, and is a
    message in the inbox.
    """
    from decklog.plugins.importers.taskmaster.sync import TaskMasterSync

    return _sync(call, TaskMasterSync, path, run_id=run_id, dry_run=dry_run)


@click.command("github")
@click.argument("repository", metavar="OWNER/REPOSITORY")
@_run("github")
@_dry_run
@click.option("--seconds", type=float, default=600, show_default=True, help="how long a call of gh may take")
@click.pass_obj
def sync_github(call: Invocation, repository: str, run_id: str, dry_run: bool, seconds: float) -> int:
    """Keep a run and a repository's issues in step, by the program gh and the login that it has.

    Each side gets what only the other changed since the last time. What both changed stays as it is on either side, and is a
    message in the inbox.
    """
    from decklog.plugins.importers.github import GithubSync

    return _sync(call, GithubSync, repository, run_id=run_id, dry_run=dry_run, seconds=seconds)


def _sync(call: Invocation, kind: "type[Sync]", path: str, **settings: Any) -> int:
    with call.open(create=not settings["dry_run"]) as log:
        done = kind(log, path, **settings).run()
    disputes = [f"{one['item']}: {one['field']} was changed on both sides, and stays as it is on each" for one in done.disputed]
    if call.json:
        return show(done.as_dict(), as_json=True, warnings=disputes)
    if done.dry_run:
        sys.stderr.write("Nothing was changed: this is what would happen.\n")
    totals = done.totals
    counts = {"items": done.items, "taken": totals["taken"], "given": totals["given"], "disputed": len(done.disputed)}
    show([{**counts, "gone": totals["gone"]}], as_json=False, warnings=disputes)
    for note in done.notes:
        sys.stderr.write(f"note: {note}\n")
    return 0
