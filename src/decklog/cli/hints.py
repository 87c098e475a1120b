"""Errors in the words of the command line: options instead of Python parameters, and the next command to type."""

import re
from typing import TYPE_CHECKING

from decklog.cli.call import HAND_WRITTEN, Invocation, WrongUsage
from decklog.core import errors
from decklog.core.display import dollars
from decklog.core.errors import DecklogError

if TYPE_CHECKING:
    from decklog.cli.parameters import Parameter


# A hint with one of these already names something to type.
_TYPED = ("decklog ", "Did you mean ", "--run ", "--as ", "pip install", "pipx install", "uv tool install", "chmod", "git ")
# These list all runs at once only with a filter.
_LISTED_BY = {"tasks": "tasks find --state running"}
# What a store lists by another verb than `find`.
_LISTED = {"notify_rules": "notices rules", "contradictions": "memory contradictions"}
_MONEY = re.compile(r"`?\b(\w+?)_microdollars\b`?")


def add_next_step(problem: BaseException, call: Invocation) -> None:
    """Add a command to the hint of an error that names none."""
    if not isinstance(problem, errors.DecklogError) or problem.retryable:
        return
    said = (problem.hint or "").removesuffix(".")
    if not any(typed in said for typed in _TYPED):
        problem.hint = ". ".join(part for part in (said, _step(problem, call)) if part) or None


def _step(problem: errors.DecklogError, call: Invocation) -> str | None:
    store, path = _command(call.words)
    if store is None and "path" in problem.details and isinstance(problem, (errors.NotFound, errors.Conflict)):
        # It is about a file, not about records of the log.
        return f"See its options: decklog {path}--help"
    if isinstance(problem, errors.NotFound):
        return f"See what there is: decklog {_LISTED.get(str(problem.details.get('table'))) or _listing(store)}"
    if isinstance(problem, (errors.Conflict, errors.Denied)):
        shown = _showing(store, problem.details.get("id"))
        return f"See its state: decklog {shown}" if shown else f"See what there is: decklog {_listing(store)}"
    if isinstance(problem, (WrongUsage, errors.Invalid)):
        return f"See its options: decklog {path}--help"
    return None


def _command(words: list[str]) -> tuple[str | None, str]:
    """Return the store and the command of some words."""
    from decklog.log import STORES

    first = words[0].replace("-", "_") if words else ""
    if first not in STORES:
        return None, _path(words) if first and not first.startswith("_") else ""
    is_verb = len(words) > 1 and words[1].replace("_", "-") in _verbs(first)
    return first, f"{words[0]} {words[1]} " if is_verb else f"{words[0]} "


def _path(words: list[str]) -> str:
    """Return a hand-written command, with the one of its group that was called."""
    import click

    from decklog.cli.main import COMMANDS, menu

    ctx = click.Context(menu)
    group = menu.get_command(ctx, words[0]) if words[0] in COMMANDS else None
    is_part = isinstance(group, click.Group) and len(words) > 1 and words[1] in group.list_commands(ctx)
    return f"{words[0]} {words[1]} " if is_part else f"{words[0]} "


def _verbs(store: str) -> list[str]:
    from decklog.cli.derived import operations

    return [*operations(store), *HAND_WRITTEN.get(store, ())]


def _needs(store: str, verb: str) -> int | None:
    """Count the required parameters of a verb; None if a store has no such verb."""
    from decklog.cli.derived import operations
    from decklog.cli.parameters import parameters_of

    operation = operations(store).get(verb)
    return None if operation is None else sum(parameter.required for parameter in parameters_of(operation))


def _listing(store: str | None) -> str:
    """Return the command that lists the records of a store, or else the runs."""
    if store in _LISTED_BY:
        return _LISTED_BY[store]
    is_listed = store is not None and _needs(store, "find") == 0
    return f"{str(store).replace('_', '-')} find" if is_listed else "runs find"


def _showing(store: str | None, record_id: object) -> str | None:
    if (
        store is None
        or not isinstance(record_id, str)
        or ("show" not in HAND_WRITTEN.get(store, ()) and _needs(store, "show") != 1)
    ):
        return None
    return f"{store.replace('_', '-')} show {record_id}"


def name_options(problem: BaseException, call: Invocation) -> None:
    """Replace the names of Python parameters in an error by their options, and microdollars by dollars."""
    if not isinstance(problem, DecklogError):
        return
    parameters = _parameters(call)
    money = {parameter.name: parameter for parameter in parameters if parameter.is_money}
    field, most = problem.details.get("field"), problem.details.get("most")
    if field in money and type(most) is int:
        problem.message = f"{money[field].flag} must be a dollar amount from 0 to {dollars(most)}"
    problem.message = _renamed(problem.message, parameters)
    if problem.hint:
        problem.hint = _renamed(problem.hint, parameters)


def _parameters(call: Invocation) -> "list[Parameter]":
    """Return the parameters of the verb that was called; of a hand-written command none."""
    if call.names_operation:
        from decklog.cli.derived import find_operation
        from decklog.cli.parameters import parameters_of

        operation = find_operation(call.words[0], call.words[1])
        return [] if operation is None else parameters_of(operation)
    if call.names_shortcut:
        from decklog.cli.shortcuts import parameters

        return parameters(call.words[0])
    return []


def _renamed(text: str, parameters: "list[Parameter]") -> str:
    for parameter in parameters:
        # A name of one word may be an ordinary word of the sentence.
        if "_" in parameter.name.strip("_"):
            shown = parameter.cli_name.upper() if parameter.positional else parameter.flag
            text = re.sub(rf"(?<![\w-])`?{re.escape(parameter.name)}`?(?![\w-])", shown, text)
    return _MONEY.sub(lambda found: "--" + found[1].replace("_", "-"), text)
