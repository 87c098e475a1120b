"""`decklog rewind`: take back what an agent did to files."""

from itertools import islice
from typing import TYPE_CHECKING

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.commands.origins.opening import opened
from decklog.cli.commands.origins.paths import path_in
from decklog.cli.manager import for_the_manager
from decklog.cli.show import show
from decklog.cli.terminal import say
from decklog.core.figures import counted

if TYPE_CHECKING:
    from decklog.agents.origins.rewinding import RewindPlan
    from decklog.log import Decklog
    from decklog.provenance.git import GitRepository

_LISTED = 20
_MOST_FILES = 30


@click.command()
@click.option("--to", "target", metavar="TURN|ENTRY", help="a snapshot, turn or entry; the start of the last turn unless given")
@click.option("--files", metavar="FILE", multiple=True, help="only this file or folder; may be repeated")
@click.option("--dry-run", is_flag=True, help="show what would change, and change nothing")
@click.option("--list", "is_listed", is_flag=True, help="list the snapshots of this worktree")
@click.pass_obj
def rewind(call: Invocation, target: str | None, files: tuple[str, ...], dry_run: bool, is_listed: bool) -> int:
    """Restore the worktree to the state before an agent's turn; the present state is saved first.

    Only files change: HEAD, branches, the index and stashes stay. Ignored and very large files are in no snapshot.
    It is refused during a merge or a rebase.
    """
    from decklog.agents.origins.rewinding import rewind as rewind_worktree

    if is_listed and (target or files or dry_run):
        raise WrongUsage("--list takes no other option")
    with opened(call, writing=True) as (log, repo):
        if is_listed:
            return _list(call, log, repo)
        plan = rewind_worktree(repo, log, target, files=[path_in(repo, name) for name in files], dry_run=dry_run)
    if call.json:
        return show({"dry_run": dry_run, **plan.as_dict()}, as_json=True)
    say("\n".join(_lines(plan, dry_run=dry_run)))
    return 0


for_the_manager(rewind)


def _list(call: Invocation, log: "Decklog", repo: "GitRepository") -> int:
    from decklog.agents.origins.rewinding import snapshots_of

    found = list(islice(snapshots_of(repo, log), _LISTED))
    if call.json:
        return show([one.as_dict() for one in found], as_json=True)
    for one in found:
        say(f"{one.id}  {one.taken_at:%Y-%m-%d %H:%M:%S}  {one.moment.value:<5}  {one.session}  {one.turn or ''}".rstrip())
    if not found:
        say("No snapshot of this worktree is recorded. Agents that are set up take one at each turn: decklog setup claude")
    return 0


def _lines(plan: "RewindPlan", *, dry_run: bool) -> list[str]:
    """Return what a rewind did, or would do, in lines."""
    target = plan.target
    when = f"{target.moment.value} of a turn of {target.session}, {target.taken_at:%Y-%m-%d %H:%M:%S} UTC"
    if not plan.files:
        return [f"Nothing to restore: the files are as at the {when}."]
    verb = "Would restore" if dry_run else "Restored"
    lines = [f"{verb} {counted(len(plan.files), 'file')} to the {when}:"]
    lines += [f"  {one.status} {one.path}" for one in plan.files[:_MOST_FILES]]
    if len(plan.files) > _MOST_FILES:
        lines.append(f"  and {counted(len(plan.files) - _MOST_FILES, 'more file')}")
    lines += [f"Left as it is: {path} ({reason})" for path, reason in plan.left_out.items()]
    if target.head and plan.head and target.head != plan.head:
        lines.append(f"HEAD stays at {plan.head[:10]}; it was {target.head[:10]} then.")
    if plan.saved is not None:
        lines.append(f"Return: decklog rewind --to {plan.saved}")
    if plan.resume is not None:
        lines.append(f"Go on with the agent: {plan.resume}")
    return lines
