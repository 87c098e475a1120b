"""The program bazinga-db: global flags, one command, its reply on stdout, errors on stderr."""

import json
import os
import sys
from collections.abc import Callable
from typing import Protocol

from decklog.core.errors import DecklogError
from decklog.log import Decklog
from decklog.plugins import bazinga_project as places
from decklog.plugins.legacy.bazinga.base import PROGRAM, CallRefused, DatabaseInitError, error_text
from decklog.plugins.legacy.bazinga.commands import COMMANDS, BazingaCommand
from decklog.plugins.legacy.bazinga.usage import CommandUsage, Misuse, ProgramReply, UsageValues


class ConsentCheck(Protocol):
    """Checks the user's consent to use a project that was found rather than named."""

    def check(self, database: str) -> None:
        """Raise for a log that the user did not trust."""

    def opened(self, database: str, log: Decklog) -> None:
        """Raise if another log replaced the trusted one; trust a log that this call created."""


_SYNOPSIS = f"usage: {PROGRAM} [--db PATH] [--project-root DIR] [--quiet] [-h] COMMAND [ARGS...]"


class WrongStart(Exception):
    """The words before the command are invalid."""


class ProgramCall:
    """One call: the global flags, the command, and its words."""

    def __init__(self, arguments: list[str], otherwise: Callable[[], str | None]) -> None:
        self._otherwise = otherwise
        # Whether the project was found rather than named by this call or the environment.
        self.is_found = False
        self.db: str | None = None
        self.root: str | None = None
        self.quiet = False
        self.wants_help = False
        left = list(arguments)
        while left and left[0].startswith("-"):
            self._take(left)
        self.name = left.pop(0) if left else None
        self.words = left

    def _take(self, left: list[str]) -> None:
        word, equals, value = left.pop(0).partition("=")
        match word.replace("_", "-"):
            case "--quiet" if not equals:
                self.quiet = True
            case "-h" | "--help" if not equals:
                self.wants_help = True
            case "--db":
                self.db = self._value(word, equals, value, left)
            case "--project-root":
                self.root = self._value(word, equals, value, left)
            case _:
                raise WrongStart(f"unrecognized argument: {word}")

    def _value(self, word: str, equals: str, value: str, left: list[str]) -> str:
        if not equals and not left:
            raise WrongStart(f"{word} needs a value")
        return value if equals else left.pop(0)

    def place(self) -> tuple[str, str | None]:
        """Return the database's location, and the project's root if known."""
        if self.db is not None:
            return self.db, self.root
        if self.root is not None:
            return places.database_of(self.root), self.root
        root, source = places.detect()
        if root is None:
            if (log := self._otherwise()) is not None:
                return log, None
            raise DatabaseInitError(
                "no project found: no folder above has both .claude/ and bazinga/, or a .decklog. "
                f"Name one with --project-root or {places.VARIABLE}, or a database with --db."
            )
        self.is_found = source not in (places.BY_VARIABLE, places.BY_SCRIPT)
        if os.environ.get("BAZINGA_VERBOSE"):
            sys.stderr.write(f"[INFO] project root {root} (from {source})\n")
        return places.database_of(root), root


def run(arguments: list[str], otherwise: Callable[[], str | None] = lambda: None, consent: ConsentCheck | None = None) -> int:
    """Run one call and return its exit code: 0 done, 1 refused, 2 no command or an unknown global flag.

    `otherwise` returns the log for a call outside any project; `consent` decides about a project that was found.
    """
    try:
        call = ProgramCall(arguments, otherwise)
        if call.name is None and not call.wants_help:
            raise WrongStart("a command is needed")
    except WrongStart as problem:
        sys.stderr.write(f"{_SYNOPSIS}\n{PROGRAM}: error: {problem}\n")
        return 2
    try:
        return _run(call, consent)
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does.
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115
        return 0


def _run(call: ProgramCall, consent: ConsentCheck | None) -> int:
    name = "help" if call.wants_help or call.name is None else call.name
    if name not in COMMANDS:
        sys.stderr.write(f"Error: Unknown command: {name}\nRun `{PROGRAM} help` for the list.\n")
        return 1
    command = COMMANDS[name]
    usage = CommandUsage(command.usage)
    try:
        return _show(_answer(call, command, usage, consent), quiet=call.quiet)
    except Misuse as problem:
        return _refuse(name, problem, f"Usage: {PROGRAM} {name} {usage.shown()}".rstrip())
    except (CallRefused, DatabaseInitError) as problem:
        return _refuse(name, problem)
    except DecklogError as problem:
        return _refuse(name, CallRefused(error_text(problem)))


def _answer(call: ProgramCall, command: BazingaCommand, usage: CommandUsage, consent: ConsentCheck | None) -> ProgramReply:
    values = UsageValues(usage, [] if call.wants_help else call.words)
    if command.opens is None:
        return command.answer(None, values)
    # Some commands have words or flags with these names.
    call.db, call.root = values.get("db") or call.db, values.get("project-root") or call.root
    path, root = call.place()
    asked = consent if call.is_found else None
    if asked is not None:
        asked.check(path)
    with command.opens(path, call.quiet, project_root=root) as db:
        if asked is not None:
            asked.opened(path, db.log)
        reply = command.answer(db, values)
    if db.behind is not None:
        sys.stderr.write(f"Warning: {db.behind}\n")
    return reply


def _show(reply: ProgramReply, *, quiet: bool) -> int:
    text = reply.shown(quiet=quiet)
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        # Terminals without the check mark still need the answer.
        sys.stdout.write(text.encode("ascii", "replace").decode())
    return reply.exit_code


def _refuse(name: str, problem: Exception, usage: str | None = None) -> int:
    if COMMANDS[name].json_errors:
        details = problem.details if isinstance(problem, CallRefused) else {}
        shown = {"success": False, "error": str(problem), **details}
        if usage is not None:
            shown["usage"] = usage
        sys.stderr.write(json.dumps(shown, indent=2) + "\n")
        return 1
    sys.stderr.write(f"Error: {problem}\n")
    if usage is not None:
        sys.stderr.write(usage + "\n")
    return 1
