"""Create a log, and set Decklog up in a repository with a few questions."""

import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import click

from decklog.agents.history import files_of
from decklog.agents.sessions import HISTORIES, SessionFiles, present, roots_of
from decklog.agents.setup.installing import SetupState, state_of
from decklog.agents.setup.supported import PROGRAMS
from decklog.agents.setup.supported import agents_md as notes
from decklog.cli import run, terminal
from decklog.cli.agent_settings import build_setting, find_project, installer
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.groups import for_the_owner
from decklog.cli.show import show
from decklog.cli.terminal import STRONG, style_text
from decklog.core.display import counted, sized
from decklog.core.errors import Busy, Conflict, DecklogError
from decklog.location.locate import (
    ADDRESS,
    FILE,
    FOLDER,
    LogLocation,
    find_in_folder,
    find_project_log,
    locate,
    outside_path,
    repository,
    user_log,
)
from decklog.log import Decklog


@click.command()
@click.argument("folder", required=False)
@click.option("--switch", is_flag=True, help="Have the folder use the log of --db from now on instead of the one it has.")
@click.option("--user", is_flag=True, help="Make the log for everything outside of repositories and folders with a log.")
@click.option("--outside", is_flag=True, help="Keep the file in your own data folder, where no command of an agent can write.")
@click.option("--agents-md/--no-agents-md", default=None, help="Write the commands for agents into AGENTS.md; or do not ask.")
@click.pass_obj
def init(call: Invocation, folder: str | None, switch: bool, user: bool, outside: bool, agents_md: bool | None) -> int:
    """Create a log for this repository or folder, or use the one it has.

    Without FOLDER the log serves the whole repository; outside of a repository, this folder and all below it.
    A log named by --db or DECKLOG_DB, a file or postgresql://…, is created there, and the folder remembers its address.
    With --outside the file is in your data folder, and only its address here. An existing log is copied there first.
    """
    if user:
        return _create_log(call, user_log())
    # The log that commands use from there by default.
    current = find_in_folder(os.path.abspath(folder)) if folder else find_project_log(os.getcwd())
    home = os.path.abspath(folder or (current and current.folder) or repository(os.getcwd()) or ".")
    if current is not None:
        # Creating a log is no consent to one that came with the folder.
        current.check()
    code = _init_outside(call, home, current) if outside else _init_inside(call, home, current, switch=switch)
    _offer_notes(call, home, agents_md)
    return code


def _init_inside(call: Invocation, home: str, current: LogLocation | None, *, switch: bool) -> int:
    location = (
        _named_location(call) or current or LogLocation(os.path.join(home, FOLDER, FILE), f"made in {os.path.join(home, FOLDER)}")
    )
    if current is not None and call.db and not _is_same(current, location) and not switch:
        raise _other_log_conflict(current, location, home)
    return _create_log(call, location, lambda: _use_log(location, current, home, switch=bool(call.db)))


def _offer_notes(call: Invocation, home: str, agents_md: bool | None) -> None:
    """Write the commands for agents into their files, if the option or a person at a terminal asks for it."""
    may_ask = agents_md is None and not call.json and terminal.is_terminal() and terminal.is_terminal(sys.stdin)
    if not (agents_md or may_ask):
        return
    try:
        steps = [step for step in installer().plan_installation(notes(home)) if step.is_change]
    except DecklogError:
        if agents_md:
            raise
        # The log was created; the optional notes are not worth an error.
        return
    names = ", ".join(step.path for step in steps)
    if steps and (agents_md or click.confirm(f"Write the commands for agents into {names}?", default=False)):
        installer().carry_out(steps)
        if not call.json:
            terminal.print_text(f"Written: {names}")


def _create_log(call: Invocation, location: LogLocation, settle: Callable[[], list[str]] = list) -> int:
    already = location.exists and not location.is_server
    Decklog.open(location.target, migrate=True).close()
    return _show_log(call, location, already=already, warnings=settle())


def _named_location(call: Invocation) -> LogLocation | None:
    if not (named := call.db or os.environ.get("DECKLOG_DB")):
        return None
    reason = "named with --db" if call.db else "from the environment variable DECKLOG_DB"
    return LogLocation(named if "://" in named else os.path.abspath(os.path.expanduser(named)), reason, is_named=True)


def _is_same(one: LogLocation, other: LogLocation) -> bool:
    return one.target == other.target or (
        not one.is_server and not other.is_server and os.path.realpath(one.path) == os.path.realpath(other.path)
    )


def _other_log_conflict(current: LogLocation, location: LogLocation, home: str) -> Conflict:
    return Conflict(
        f"{home} already has a log, {current.shown}; nothing was created",
        hint=f"To copy its contents, run `decklog move {location.shown}` first. "
        f"Then `decklog init --db {location.shown} --switch` makes the folder use that log.",
        has=current.shown,
        named=location.shown,
    )


def _use_log(location: LogLocation, current: LogLocation | None, home: str, *, switch: bool) -> list[str]:
    """Have the folder use the log; return a warning if it has another one."""
    inside = os.path.join(home, FOLDER)
    if current is not None and not _is_same(current, location):
        if not switch:
            return [f"{home} also has its own log, {current.shown}, which is used where DECKLOG_DB is not set"]
        _forget_address(inside)
    found = locate(None, home, environment={})
    if not _is_same(found, location):
        _save_address(inside, location.target)
    _ignore_and_accept(home)
    return (
        [f"{current.shown} stays as it is, and is no longer used from here"]
        if current and not _is_same(current, location)
        else []
    )


def _show_log(call: Invocation, location: LogLocation, *, already: bool, warnings: list[str]) -> int:
    facts = {"target": location.shown, "already": already, "because": location.reason}
    lines = [f"{'Using the log' if already or location.is_server else 'Created a log'}: {location.shown}"]
    lines += [*(f"Note: {warning}" for warning in warnings), *_next_steps()]
    return show(facts, as_json=call.json, text="\n".join(lines), warnings=warnings if call.json else [])


def _next_steps() -> list[str]:
    """Suggest the next commands: import and record the agents used here, or start a run."""
    found = present()
    commands = [
        *((f"decklog import {one.program}", f"import your sessions of {one.title}") for one in found),
        *((f"decklog setup {one.program}", f"record new sessions of {one.title}") for one in found),
    ]
    if not commands:
        return ['Next: decklog runs start "What is to be done"']
    size = max(len(command) for command, _ in commands)
    heads = ["Next: ", *("      " for _ in commands[1:])]
    return [f"{head}{command:<{size}}  {what}" for head, (command, what) in zip(heads, commands, strict=True)]


def _forget_address(inside: str) -> None:
    """Remove the remembered address of a folder; its own log stays."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(inside, ADDRESS))


def _init_outside(call: Invocation, home: str, found: LogLocation | None) -> int:
    """Create the log of a folder in the user's data folder, copy the folder's own log into it, and save its address."""
    if call.db:
        raise WrongUsage("--outside chooses the location itself", hint="Leave out --db, or --outside.")
    if found is not None and found.target != os.path.join(home, FOLDER, FILE):
        return _show_log(call, found, already=True, warnings=[])
    target = outside_path(home)
    with Decklog.open(target) as log:
        if found is not None:
            _copy_log(found, log)
    _save_address(os.path.join(home, FOLDER), target)
    _ignore_and_accept(home)
    left = [f"{found.target} stays as it is, and is no longer used from here"] if found is not None else []
    return _show_log(call, LogLocation(target, "kept out of reach of an agent's commands"), already=False, warnings=left)


def _copy_log(found: LogLocation, target: Decklog) -> None:
    from decklog.transfer.doctor import find_writers
    from decklog.transfer.move import Move

    with found.open() as source:
        if held := find_writers(source):
            raise Busy(f"process {held[0]['pid']} has {found.target} open", hint="End it first: it would go on writing there.")
        Move(source, target).run()


def _ignore_and_accept(home: str) -> None:
    """Have git ignore the log, and record the consent of the user, who created it."""
    _write_gitignore(os.path.join(home, FOLDER))
    if (made := find_in_folder(home)) is not None:
        made.accept()


def _save_address(inside: str, address: str) -> None:
    os.makedirs(inside, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(inside, ADDRESS), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(address + "\n")


def _write_gitignore(inside: str) -> None:
    """Have git ignore the log's folder."""
    if os.path.isdir(inside) and not os.path.exists(os.path.join(inside, ".gitignore")):
        with open(os.path.join(inside, ".gitignore"), "w", encoding="utf-8") as file:
            file.write("*\n")


@dataclass(frozen=True)
class _Step:
    """A question, and the command to run on yes."""

    question: str
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        return shlex.join(("decklog", *self.words))


@for_the_owner
@click.command()
@click.pass_obj
def start(call: Invocation) -> int:
    """Set up Decklog in this repository with a few questions, from the log to the first recorded session.

    Each question names the command that a yes runs, so every step can be run alone, or taken back. Nothing is done without a
    yes. Without a terminal it lists the commands instead and changes nothing.
    """
    steps = _list_steps(call)
    if not (sys.stdin.isatty() and terminal.is_terminal()):
        commands = [step.command for step in steps] + ["decklog cost"]
        raise WrongUsage(
            "start asks questions and needs a terminal", hint=f"Without one, run: {'; '.join(commands)}", commands=commands
        )
    for step in steps:
        if not click.confirm(f"{step.question} ({step.command})", default=True):
            if step.words[0] == "init":
                terminal.print_text("Nothing was changed.")
                return 0
            continue
        if (code := run(_step_words(call, step))) != 0:
            return code
    return _show_result(call)


def _step_words(call: Invocation, step: _Step) -> list[str]:
    return [*step.words, *(["--db", call.db] if call.db else [])]


def _list_steps(call: Invocation) -> list[_Step]:
    """List the remaining steps of the setup."""
    place, root = call.place(), find_project() or os.getcwd()
    steps = [] if place.exists else [_Step(f"Create a log for {root}?", ("init", "--no-agents-md"))]
    found = present()
    for history in found:
        if count := _count_sessions(history, root):
            steps.append(_Step(f"Import {count} of {history.title}?", ("import", history.program)))
    for history in found or [HISTORIES["claude"]]:
        if not _is_set_up(history, root):
            steps.append(_Step(f"Record new sessions of {history.title}?", ("setup", history.program)))
    return steps


def _count_sessions(history: SessionFiles, root: str) -> str | None:
    """Describe the session files of a repository; None where there are none."""
    files = files_of(history.folder(), history.program, roots_of(root))
    if not files:
        return None
    return f"{counted(len(files), 'session file')} ({sized(sum(os.path.getsize(path) for path in files))})"


def _is_set_up(history: SessionFiles, root: str) -> bool:
    program = PROGRAMS[history.program]
    settings = (build_setting(scope, project=root) for scope in program.scopes)
    return any(state_of(part) is SetupState.INSTALLED for setting in settings for part in program.parts(setting))


def _show_result(call: Invocation) -> int:
    """Show the cost so far, the next commands, and how to undo the setup."""
    if not call.place().exists:
        return 0
    terminal.print_escaped("")
    if (code := run(["cost", *(["--db", call.db] if call.db else [])])) != 0:
        return code
    terminal.print_escaped("")
    terminal.print_escaped(
        f"{style_text('Ready.', STRONG)} Next: decklog serve opens the dashboard, decklog now shows what runs."
    )
    terminal.print_escaped("Take it back: decklog setup claude --remove, and delete the folder .decklog")
    return 0
