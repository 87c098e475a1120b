"""A guided start: the log, the sessions that exist, their cost, and hooks for new ones."""

import os
import shlex
import sys
from dataclasses import dataclass

import click

from decklog.agents.history_files import files_of
from decklog.agents.sessions import HISTORIES, SessionFiles, present, roots_of
from decklog.agents.setup.installing import SetupState, state_of
from decklog.agents.setup.supported import PROGRAMS
from decklog.cli import run, terminal
from decklog.cli.agent_programs.setting_up import project, setting_of
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.manager import for_the_manager
from decklog.cli.styles import STRONG, painted
from decklog.core.figures import counted, sized


@dataclass(frozen=True)
class _Step:
    """A question, and the command that a yes runs."""

    question: str
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        return shlex.join(("decklog", *self.words))


@for_the_manager
@click.command()
@click.pass_obj
def start(call: Invocation) -> int:
    """Set up Decklog in this repository with a few questions, from the log to the first recorded session.

    Each question names the command that a yes runs, so every step can be run alone, or taken back. Nothing is done without a
    yes. Without a terminal it lists the commands instead and changes nothing.
    """
    steps = _steps(call)
    if not (sys.stdin.isatty() and terminal.is_terminal()):
        commands = [step.command for step in steps] + ["decklog cost"]
        raise WrongUsage(
            "start asks questions and needs a terminal", hint=f"Without one, run: {'; '.join(commands)}", commands=commands
        )
    for step in steps:
        if not click.confirm(f"{step.question} ({step.command})", default=True):
            if step.words[0] == "init":
                terminal.say("Nothing was changed.")
                return 0
            continue
        if (code := run(_words(call, step))) != 0:
            return code
    return _finish(call)


def _words(call: Invocation, step: _Step) -> list[str]:
    return [*step.words, *(["--db", call.db] if call.db else [])]


def _steps(call: Invocation) -> list[_Step]:
    """List what is left to do here."""
    place, root = call.place(), project() or os.getcwd()
    steps = [] if place.exists else [_Step(f"Create a log for {root}?", ("init", "--no-agents-md"))]
    found = present()
    for history in found:
        if count := _count(history, root):
            steps.append(_Step(f"Import {count} of {history.title}?", ("import", history.program)))
    for history in found or [HISTORIES["claude"]]:
        if not _is_set_up(history, root):
            steps.append(_Step(f"Record new sessions of {history.title}?", ("setup", history.program)))
    return steps


def _count(history: SessionFiles, root: str) -> str | None:
    """Describe the session files of a repository; None where there are none."""
    files = files_of(history.folder(), history.program, roots_of(root))
    if not files:
        return None
    return f"{counted(len(files), 'session file')} ({sized(sum(os.path.getsize(path) for path in files))})"


def _is_set_up(history: SessionFiles, root: str) -> bool:
    program = PROGRAMS[history.program]
    settings = (setting_of(scope, project=root) for scope in program.scopes)
    return any(state_of(part) is SetupState.INSTALLED for setting in settings for part in program.parts(setting))


def _finish(call: Invocation) -> int:
    """Show what is in the log, and how to go on and to take it back."""
    if not call.place().exists:
        return 0
    terminal.put("")
    if (code := run(["cost", *(["--db", call.db] if call.db else [])])) != 0:
        return code
    terminal.put("")
    terminal.put(f"{painted('Ready.', STRONG)} Next: decklog serve opens the dashboard, decklog now shows what runs.")
    terminal.put("Take it back: decklog setup claude --remove, and delete the folder .decklog")
    return 0
