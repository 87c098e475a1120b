"""The command line: one command for agents and people. Results go to stdout, messages to stderr."""

import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from decklog.cli.call import Invocation


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run `decklog` as a program."""
    code = run(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            # The reader closed the pipe. Python would raise again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def bazinga() -> NoReturn:
    """Run `bazinga-db` as a program."""
    main(["bazinga", *sys.argv[1:]])


def run(arguments: list[str]) -> int:
    """Run one command line; return its exit code."""
    if (code := _run_apart(arguments)) is not None:
        return code
    from decklog.cli.call import Invocation
    from decklog.cli.exits import report_error, set_output_shape

    call = Invocation(arguments)
    set_output_shape(call)
    try:
        return _answer(call)
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. Discard what is still buffered.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as caught:  # noqa: BLE001
        from decklog.cli.call import WrongUsage
        from decklog.cli.hints import add_next_step, name_options

        # Only JSON in the arguments can be nested this deeply.
        problem = WrongUsage("the given JSON is nested too deeply") if isinstance(caught, RecursionError) else caught
        name_options(problem, call)
        add_next_step(problem, call)
        return report_error(problem, as_json=call.json)


def _run_apart(arguments: list[str]) -> int | None:
    """Run a command that parses its own arguments; return None for all others."""
    if arguments[:1] == ["hook"]:
        # Agents call hooks at every step, so import as little as possible.
        from decklog.hooks.hook import run as run_hook

        return run_hook(arguments[1:])
    if arguments[:1] == ["bazinga"] and arguments[1:2] != ["take-over"]:
        # --db and --json mean what they mean in bazinga-db.
        from decklog.cli.projects import Consent
        from decklog.location.locate import find_log_above
        from decklog.plugins.legacy.bazinga.program import run as run_bazinga

        return run_bazinga(arguments[1:], find_log_above, Consent())
    return None


def _answer(call: "Invocation") -> int:
    """Run the shortcut, the store operation or the command of a call."""
    call.check()
    if call.names_shortcut:
        from decklog.cli.shortcuts import run_shortcut

        return run_shortcut(call)
    if call.names_operation:
        from decklog.cli.store_verbs import run_operation

        return run_operation(call)
    if call.words == ["now"]:
        # Shells call `now` before every prompt, so skip the menu.
        from decklog.cli.screens.now import show_now

        return show_now(call)
    from decklog.cli.main import run_command

    return run_command(call)
