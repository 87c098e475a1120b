"""The output of a call: its shape, its errors with their exit codes, and its JSON."""

import sys
from typing import Any

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.shape import OutputShape
from decklog.core import errors

# A process is one call, so all its output has one shape.
_shape = OutputShape()


def use_shape_of(call: Invocation) -> None:
    """Set the shape and the colours of the output by the options of a call."""
    global _shape
    _shape = OutputShape(brief=(call.json and call.is_brief) or bool(call.brief), fields=call.chosen_fields)
    if call.no_color:
        from decklog.cli import styles

        styles.use_none()


def shape() -> OutputShape:
    return _shape


# The first class an error is an instance of decides.
EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (WrongUsage, 2),
    (errors.Busy, 75),
    (errors.TimedOut, 124),
    (errors.StillPending, 7),
    (errors.Refused, 6),
    (errors.NotFound, 3),
    (errors.Denied, 4),
    (errors.Conflict, 5),
    (errors.DiskFull, 5),
    (errors.Unavailable, 1),
    (errors.Invalid, 1),
    (KeyboardInterrupt, 130),
    (BaseException, 1),
)


def exit_code(problem: BaseException) -> int:
    return next(code for kind, code in EXIT_CODES if isinstance(problem, kind))


def report(problem: BaseException, *, as_json: bool) -> int:
    """Print an error to stderr, or as JSON to stdout; return the exit code."""
    if isinstance(problem, KeyboardInterrupt):
        return 130
    if not isinstance(problem, errors.DecklogError):
        import traceback

        traceback.print_exception(problem)
        problem = errors.DecklogError(f"{type(problem).__name__}: {problem}", hint="This is a fault in Decklog itself.")
    if as_json:
        print_json({"ok": False, "error": problem.as_dict(), "warnings": []})
    else:
        from decklog.cli.styles import BAD, painted
        from decklog.cli.terminal import visible

        sys.stderr.write(f"{painted('decklog:', BAD, sys.stderr)} {visible(problem.message, sys.stderr)}\n")
        if problem.hint:
            sys.stderr.write(f"  {visible(problem.hint, sys.stderr)}\n")
    return exit_code(problem)


def print_json(value: Any) -> None:
    """Print one JSON value in the shape of this call."""
    import json

    from decklog.cli.terminal import escaped_json

    if not _shape.is_whole:
        is_envelope = isinstance(value, dict) and "ok" in value
        value = _shape.of_envelope(value) if is_envelope else _shape.of_data(value)
    sys.stdout.write(escaped_json(json.dumps(value, ensure_ascii=False)) + "\n")


class Trouble(errors.Invalid):
    """A check found a problem."""

    code = "trouble"


def print_findings(data: dict[str, object], problem: errors.Invalid | None) -> int:
    """Print the data of a check as JSON, with a found problem as the error."""
    envelope: dict[str, object] = {"ok": problem is None, "data": data, "next": None, "warnings": []}
    if problem is not None:
        envelope["error"] = problem.as_dict()
    print_json(envelope)
    return 0 if problem is None else 1
