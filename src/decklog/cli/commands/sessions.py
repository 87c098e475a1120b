"""List, search, show and resume recorded sessions of coding agents."""

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING

import click

from decklog.agents.closing import close_killed_sessions
from decklog.agents.session_views import SessionSummary, find_session, hits_by_session, priced, steps_of
from decklog.agents.session_views import sessions as all_sessions
from decklog.cli import terminal
from decklog.cli.call import Invocation
from decklog.cli.lines import Line, StyledText, fit
from decklog.cli.screens import session as screen
from decklog.cli.show import show as show_data
from decklog.cli.terminal import DIM
from decklog.core.errors import NotFound
from decklog.log import Decklog

if TYPE_CHECKING:
    from decklog.journal.entry import Entry

_LISTED = 20
_HITS_SHOWN = 2


def _list_options(command: Callable[..., int]) -> Callable[..., int]:
    command = click.option("--here", is_flag=True, help="only those that worked in this folder")(command)
    command = click.option("--program", metavar="NAME", help="only of this program: claude, codex, gemini, opencode")(command)
    limit = click.option("--limit", type=click.IntRange(1, 10_000), default=_LISTED, metavar="N", help="how many, default 20")
    return limit(command)


@click.group(invoke_without_command=True)
@_list_options
@click.pass_context
def sessions(context: click.Context, limit: int, program: str | None, here: bool) -> int:
    """List, search, read and resume recorded sessions of coding agents.

    SESSION is an id, or the beginning of one. Without a command, the newest sessions are listed.
    """
    if context.invoked_subcommand is None:
        return _list(context.obj, limit, program, here)
    return 0


@sessions.command("list")
@_list_options
@click.pass_obj
def list_(call: Invocation, limit: int, program: str | None, here: bool) -> int:
    """List sessions, one line each: id, program, age, length, cost, status and what it was about."""
    return _list(call, limit, program, here)


def _list(call: Invocation, limit: int, program: str | None, here: bool) -> int:
    folder = os.path.realpath(os.getcwd()) if here else None
    with call.open(writing=False) as log:
        close_killed_sessions(log, call.spool())
        found = [priced(log, one) for one in islice(all_sessions(log, program=program, folder=folder), limit)]
        now = log.clock.now()
    none = "No sessions are recorded. To record new ones: decklog setup claude"
    return show_data(found, as_json=call.json, text=screen.session_lines(found, now, terminal.width()) or none)


@sessions.command()
@click.argument("session", required=False)
@click.option("--full", is_flag=True, help="whole texts, diffs and outputs")
@click.option("--failed", is_flag=True, help="only calls that failed")
@click.pass_obj
def show(call: Invocation, session: str | None, full: bool, failed: bool) -> int:
    """Show a session step by step; without an id, the newest one."""
    with call.open(writing=False) as log:
        close_killed_sessions(log, call.spool())
        found = priced(log, _find_session(log, session))
        steps, now = steps_of(log, found), log.clock.now()
    shown = [step for step in steps if step.is_failed] if failed else steps
    places = terminal.width()
    # JSON output needs no drawing, which is slow for thousands of steps.
    drawn = [] if call.json else screen.step_lines(shown, places, full=full)
    lines = [*screen.session_head(found, steps, now, places), [StyledText("")], *drawn]
    return show_data({**found.as_dict(), "steps": shown}, as_json=call.json, text=lines)


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=_LISTED, metavar="N", help="how many sessions, default 20")
@click.pass_obj
def search(call: Invocation, words: tuple[str, ...], limit: int) -> int:
    """Find sessions in which all the words were said, run or printed, the newest first; `word*` matches a beginning."""
    with call.open(writing=False) as log:
        hits = hits_by_session(log, " ".join(words))
        found = [(priced(log, one), hits[one.session]) for one in islice(_sessions_with_hits(log, hits), limit)]
        now = log.clock.now()
    data = [{**one.as_dict(), "hits": [entry.body for entry in entries]} for one, entries in found]
    lines = [line for one, entries in found for line in _hit_lines(one, entries, now)]
    return show_data(data, as_json=call.json, text=lines or "Nothing found.")


@sessions.command()
@click.argument("session", required=False)
@click.pass_obj
def resume(call: Invocation, session: str | None) -> int:
    """Print the command that goes on with a session; without an id, with the newest one."""
    with call.open(writing=False) as log:
        found = _find_session(log, session)
        tags = [] if found.task_id is None else log.tasks.get(found.task_id).tags
    command = found.resume
    if command is None:
        item = next((tag.removeprefix("item:") for tag in tags if tag.startswith("item:")), None)
        raise NotFound(
            f"session {found.session} can't be resumed: its program kept no files of it",
            hint=f"Read it: decklog sessions show {found.session}"
            if item is None
            else f"Take over its work item: decklog run open {found.run_id}.{item}",
        )
    folder = found.folder
    is_here = not folder or os.path.realpath(folder) == os.path.realpath(os.getcwd())
    whole = command if is_here else f"cd {quote(str(folder))} && {command}"
    return show_data({"session": found.session, "command": whole}, as_json=call.json, text=whole)


def _find_session(log: Decklog, session: str | None) -> SessionSummary:
    if session is not None:
        return find_session(log, session)
    newest = next(all_sessions(log), None)
    if newest is None:
        raise NotFound("no session is on record", hint="Set one up: decklog setup claude")
    return newest


def _sessions_with_hits(log: Decklog, hits: "dict[str, list[Entry]]") -> Iterator[SessionSummary]:
    return (one for one in all_sessions(log) if one.session in hits)


def _hit_lines(one: SessionSummary, entries: "list[Entry]", now: datetime) -> Iterator[Line]:
    places = terminal.width()
    yield from screen.session_lines([one], now, places)
    for entry in entries[:_HITS_SHOWN]:
        yield [StyledText(f"          {fit(entry.body or '', max(20, places - 10)).rstrip()}", DIM)]
