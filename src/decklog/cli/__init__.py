"""The command line: one command for agents and people. stdout is data, stderr is talk."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> "NoReturn":
    """Run `decklog` as a program."""
    import gc
    import os
    from contextlib import suppress

    # A call lives for some hundredths of a second and its memory goes with it: collecting garbage only costs.
    gc.disable()
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        # What is still to be written may meet a reader who went away.
        with suppress(BrokenPipeError):
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line and give its exit code."""
    from decklog.cli.call import Call
    from decklog.cli.exits import report

    call = Call(arguments)
    try:
        call.check()
        if call.names_operation:
            from decklog.cli.derived import run_operation

            return run_operation(call)
        from decklog.cli.commands import run_command

        return run_command(call)
    except BrokenPipeError:
        # The reader went away, as `head` does; there is nobody left to tell.
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115
        return 0
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001
        return report(problem, as_json=call.json)
