"""Show records: runs, approvals and the board of tasks."""

import os
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import click

from decklog.agents.closing import close_killed_sessions
from decklog.cli import terminal
from decklog.cli.call import Invocation
from decklog.cli.screens.approval import approval_lines
from decklog.cli.screens.timeline import board_lines
from decklog.cli.screens.timeline import timeline_lines as draw_timeline
from decklog.cli.show import format_table, format_value, show, style_entry
from decklog.cli.store_verbs import add_status_to_rows
from decklog.cli.terminal import STRONG, print_escaped, print_text, style_text, width
from decklog.core.display import counted, dollars
from decklog.core.errors import NotFound
from decklog.log import Decklog

_RECENT = 10
_MOST = 50
# Parts of a snapshot that are shown separately or by another command.
_SKIPPED_PARTS = ("recent_entries", "attempts", "dependencies")


@click.command("show")
@click.argument("run_id", metavar="RUN")
@click.option("--at", metavar="ENTRY|TIME", help="as it was then")
@click.option(
    "--archives", default="archives", metavar="FOLDER", help="where the files of archived runs are; otherwise ./archives"
)
@click.pass_obj
def show_run(call: Invocation, run_id: str, at: str | None, archives: str) -> int:
    """Show a run on one screen: state, tasks, agents, money and the latest entries; with --at as it was then.

    The entries of an archived run are read from its file.
    """
    with ExitStack() as opened:
        log = opened.enter_context(call.open(writing=False))
        close_killed_sessions(log, call.spool())
        if (archive := log.db.read(log.db.archived).get(run_id)) is not None:
            log = opened.enter_context(_open_archived_run(log, run_id, archive, archives))
        snapshot = log.runs.snapshot(run_id, at=at)
        data = snapshot.as_dict()
        if at is None:
            data["run"] = add_status_to_rows(log, "runs", [data["run"]])[0]
            data |= {"tasks": add_status_to_rows(log, "tasks", data["tasks"])} if data.get("tasks") else {}
    if call.json:
        return show(data, as_json=True)
    show({name: value for name, value in data["run"].items() if value not in ("", 0, [], {})}, as_json=False)
    spent = data["spent"]
    if spent["calls"]:
        calls, tokens = counted(spent["calls"], "call"), counted(spent["tokens"], "token")
        print_text(f"\nspent  {dollars(spent['microdollars'])} in {calls}, {tokens}{_unpriced_note(spent)}")
    for name, rows in data.items():
        if isinstance(rows, list) and rows and name not in _SKIPPED_PARTS:
            print_escaped(
                f"\n{style_text(name, STRONG)}{_cut_note(rows)}\n{format_table(_select_columns(rows[:_MOST]))[0].rstrip()}"
            )
    print_escaped(f"\n{style_text('latest entries', STRONG)}")
    for entry in snapshot.recent[-_RECENT:]:
        print_escaped(style_entry(entry, of_one_stream=True))
    return 0


def _open_archived_run(log: Decklog, run_id: str, archive: str, folder: str) -> AbstractContextManager[Decklog]:
    """Open the archive file of an archived run."""
    from decklog.transfer.archive import open_archived_run

    file = os.path.join(folder, archive)
    if not os.path.exists(file):
        raise NotFound(
            f"run {run_id} is archived in {archive}, which is not in {os.path.abspath(folder)}",
            hint="Name the folder: --archives FOLDER",
            archive=archive,
        )
    return open_archived_run(log, file, run_id)


def _unpriced_note(spent: dict[str, int]) -> str:
    return f"; the price of {spent['unpriced_calls']} is unknown" if spent["unpriced_calls"] else ""


def _cut_note(rows: list[Any]) -> str:
    return f" (the first {_MOST} of {len(rows):,}; --json has all)" if len(rows) > _MOST else ""


def _select_columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Select the most useful columns."""
    kept = (
        "id",
        "group_id",
        "role",
        "name",
        "title",
        "criterion",
        "question",
        "live_status",
        "state",
        "status",
        "worker",
        "priority",
        "attempts",
        "turns",
    )
    # Show stale evidence as such: it no longer proves anything.
    rows = [{**row, "status": "stale"} if row.get("is_stale") else row for row in rows]
    return [{name: row[name] for name in kept if name in row} or row for row in rows]


@click.command()
@click.argument("before")
@click.argument("after")
@click.pass_obj
def diff(call: Invocation, before: str, after: str) -> int:
    """List what differs between two moments, each given as RUN, RUN:ENTRY or RUN@TIME.

    For two runs, such as two forks, it compares their status, their spending and their records, matched by name.
    """
    with call.open(writing=False) as log:
        changes = log.runs.diff(before, after)
    lines = []
    for change in changes:
        lines.append(f"{change['table']} {change['record_id']} {change['change']}")
        fields = ((name, values) for name, values in change["fields"].items() if name != "updated_at")
        lines += [f"  {name}: {_format_field_value(old)} -> {_format_field_value(new)}" for name, (old, new) in fields]
    return show(changes, as_json=call.json, text="\n".join(lines) or "No differences.")


def _format_field_value(value: Any) -> str:
    return "(nothing)" if value in (None, "", [], {}) else format_value(value)


@click.command("show")
@click.argument("approval_id")
@click.pass_obj
def show_approval(call: Invocation, approval_id: str) -> int:
    """Show an approval with the exact thing it is about, whose digest is computed anew and compared with the one asked about.

    The check is one of: matches; parts redacted, where the thing had secrets; not in the log, where only its digest was given.
    """
    with call.open(writing=False) as log:
        approval, now = log.approvals.show(approval_id), log.clock.now()
    return show(approval, as_json=call.json, text=approval_lines(approval, now, width(100)))


_COLUMNS = 4


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--width", type=click.IntRange(8, 500), metavar="N", help="characters a column, default by the terminal")
@click.option("--limit", type=click.IntRange(1, 500), default=30, metavar="N", help="cards a column, default 30")
@click.pass_obj
def board(call: Invocation, run_id: str, width: int | None, limit: int) -> int:
    """Show a run's tasks as a board: to do, in progress, blocked or paused, and finished."""
    with call.open(writing=False) as log:
        columns = log.overview.board(run_id, per_column=limit)
    return show(columns, as_json=call.json, text=board_lines(columns, width or max(16, (terminal.width() + 3) // _COLUMNS - 3)))


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--width", type=click.IntRange(10, 1000), metavar="N", help="characters for the bars, default by the terminal")
@click.pass_obj
def timeline(call: Invocation, run_id: str, width: int | None) -> int:
    """Draw who worked on which task when, and how each attempt ended."""
    with call.open(writing=False) as log:
        snapshot = log.runs.snapshot(run_id)
        return show(snapshot.attempts, as_json=call.json, text=draw_timeline(snapshot, log.clock.now(), width))
