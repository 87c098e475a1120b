"""The command line: one command for agents and people. stdout is data, stderr is talk."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from decklog.cli.call import Call


def main(arguments: list[str] | None = None) -> "NoReturn":
    """Run `decklog` as a program."""
    import _collections_abc
    import gc
    import os

    from decklog.kept_code import kept_code

    # A call lives for some hundredths of a second and its memory goes with it: collecting garbage only costs.
    gc.disable()
    # Before anything else is imported: what comes after it is found sooner.
    kept = kept_code()
    from decklog.cli.late_import import dedented, import_compiled, import_later, import_without_patterns, known_of
    from decklog.wrapping import wraps

    # Dataclasses import it to describe those classes that do not describe themselves: a sixth of a whole call. Click has the help
    # of every option dedented by it, whether it is shown or not.
    import_later("inspect", cleandoc=dedented)
    # Dataclasses import it for what is done to none of ours.
    import_later("copy")
    # Enumerations and dataclasses import it for one function each, and it imports `collections`.
    import_later("functools", wraps=wraps, **known_of("_functools", "reduce", "partial"))
    # The library of SQLite imports `collections.abc`, and by that all of the other.
    import_later("collections", abc=_collections_abc, **known_of("_collections", "defaultdict", "deque"))
    import_later("operator", **known_of("_operator", "add", "or_", "itemgetter"))
    import_compiled("datetime")
    # They compile a dozen patterns between them, and nearly no call asks one of them.
    import_without_patterns("json", "dataclasses")
    code = run(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # What is still to be written may meet a reader who went away.
        try:
            stream.flush()
        except BrokenPipeError:
            continue
    if kept is not None:
        kept.keep()
    os._exit(code)


def bazinga() -> "NoReturn":
    """Run `bazinga-db` as a program."""
    main(["bazinga", *sys.argv[1:]])


def run(arguments: list[str]) -> int:
    """Run one command line and give its exit code."""
    if (code := _run_apart(arguments)) is not None:
        return code
    from decklog.cli.call import Call
    from decklog.cli.exits import report, use_shape_of

    call = Call(arguments)
    use_shape_of(call)
    try:
        return _answer(call)
    except BrokenPipeError:
        # The reader went away, as `head` does; there is nobody left to tell.
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115
        return 0
    except (Exception, KeyboardInterrupt) as caught:  # noqa: BLE001
        from decklog.cli.call import Usage
        from decklog.cli.next_step import add_next_step
        from decklog.cli.option_names import name_options

        # Only what was given can be so deep: brackets within brackets by the thousand.
        problem = Usage("the JSON that was given is nested too deeply") if isinstance(caught, RecursionError) else caught
        name_options(problem, call)
        add_next_step(problem, call)
        return report(problem, as_json=call.json)


def _run_apart(arguments: list[str]) -> int | None:
    """Run what reads its words by itself; None for all the others."""
    if arguments[:1] == ["hook"]:
        # Called at every step of an agent: nothing is read or imported that its answer does not need.
        from decklog.hooks.hook import run as run_hook

        return run_hook(arguments[1:])
    if arguments[:1] == ["bazinga"] and arguments[1:2] != ["take-over"]:
        # Its words are its own: --db and --json mean there what they mean to bazinga-db.
        from decklog.cli.projects import Consent
        from decklog.compat.bazinga.program.program import run as run_bazinga
        from decklog.place.locate import found_above

        return run_bazinga(arguments[1:], found_above, Consent())
    return None


def _answer(call: "Call") -> int:
    """Have the call answered by what it names: a short way, an operation, or a command of the menu."""
    call.check()
    if call.names_short_way:
        from decklog.cli.short.program import run_short

        return run_short(call)
    if call.names_operation:
        from decklog.cli.derived import run_operation

        return run_operation(call)
    if call.words == ["now"]:
        # Shells ask it before every prompt; without options there is nothing that the menu has to read.
        from decklog.cli.screens.now import tell_now

        return tell_now(call)
    from decklog.cli.main import run_command

    return run_command(call)
