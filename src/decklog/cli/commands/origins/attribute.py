"""`decklog attribute`: notes for commits that a forge made."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from decklog.cli.call import Invocation
from decklog.cli.show import print_warnings, show
from decklog.cli.terminal import say
from decklog.core.figures import counted

if TYPE_CHECKING:
    from decklog.log import Decklog


@click.command()
@click.option("--merged", metavar="BASE..HEAD", required=True, help="the commits of the branch that was merged")
@click.option("--commit", "result", metavar="REV", default="HEAD", help="the commit that the forge made; default HEAD")
@click.option("--dry-run", is_flag=True, help="show what would happen, and change nothing")
@click.pass_obj
def attribute(call: Invocation, merged: str, result: str, dry_run: bool) -> int:
    """Write the note of a squash merge from the notes of the merged commits; a step for CI.

    It needs no log: without one, the notes of the merged commits are all it knows. Fetch refs/notes/ai before, push it after.
    """
    from decklog.agents.origins.statistics import attribute_merged
    from decklog.provenance.settings import git_failures, repository_at

    with _log(call) as log, git_failures():
        found = attribute_merged(repository_at(), log, merged, result, dry_run=dry_run)
    if call.json:
        return show({"dry_run": dry_run, **found.as_dict()}, as_json=True, warnings=found.left_out)
    lines = ", ".join(f"{kind} {count}" for kind, count in sorted(found.lines.items()))
    say(f"{'Would write' if dry_run else 'Wrote'} {counted(found.written, 'note')}; lines: {lines or 'none'}.")
    print_warnings(found.left_out)
    return 0


@contextmanager
def _log(call: Invocation) -> "Iterator[Decklog]":
    """Open the log of this folder; where there is none, a private one that is deleted at the end."""
    if call.place().exists:
        with call.open() as log:
            yield log
        return
    from decklog.log import Decklog

    with TemporaryDirectory(prefix="decklog-import-") as folder, Decklog.open(os.path.join(folder, "log.db")) as log:
        yield log
