"""Runs for a person: one screen that says how it stands, and who did what when."""

import click

from decklog.cli import show as shown
from decklog.cli.call import Call
from decklog.cli.timeline import timeline as draw
from decklog.figures import dollars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RECENT = 10


@click.command()
@click.argument("run_id")
@click.option("--at", metavar="ENTRY|TIME", help="as it was then")
@click.pass_obj
def show(call: Call, run_id: str, at: str | None) -> int:
    """Show a run on one screen: state, tasks, agents, money and the latest entries; with --at as it was then."""
    with call.open(writing=False) as log:
        picture = log.runs.snapshot(run_id, at=at)
    if call.json:
        return shown.show(picture, as_json=True)
    data = picture.as_dict()
    click.echo(shown.as_text(data["run"]), nl=False)
    spent = data["spent"]
    if spent["calls"]:
        click.echo(f"\nspent  {dollars(spent['microdollars'])} in {spent['calls']} calls, {spent['tokens']:,} tokens")
    for name, rows in data.items():
        if isinstance(rows, list) and rows and name not in ("recent_entries", "attempts"):
            click.echo(f"\n{name}\n{shown.table(_brief(rows))}", nl=False)
    click.echo("\nlatest entries")
    for entry in picture.recent[-_RECENT:]:
        click.echo(f"  {shown.entry_line(entry)}")
    return 0


def _brief(rows: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """Keep the columns that tell a person most."""
    kept = (
        "id",
        "group_id",
        "role",
        "name",
        "title",
        "criterion",
        "question",
        "state",
        "status",
        "worker",
        "priority",
        "attempts",
        "turns",
    )
    return [{name: row[name] for name in kept if name in row} or row for row in rows]


@click.command()
@click.argument("run_id")
@click.option("--width", type=int, default=60, metavar="N", help="characters for the bars, default 60")
@click.pass_obj
def timeline(call: Call, run_id: str, width: int) -> int:
    """Draw who worked on which task when, and how each attempt ended."""
    with call.open(writing=False) as log:
        if call.json:
            return shown.show(log.runs.snapshot(run_id).attempts, as_json=True)
        click.echo(draw(log, run_id, width), nl=False)
    return 0
