"""Errors phrased for the command line: options instead of Python parameters, and the next command to type."""

import re
from typing import TYPE_CHECKING

from decklog.cli.call import HAND_WRITTEN, Invocation, WrongUsage
from decklog.core import errors
from decklog.core.display import dollars
from decklog.core.errors import DecklogError

if TYPE_CHECKING:
    from decklog.cli.parameters import Parameter


# A hint that contains one of these already names a command or option.
_COMMAND_MARKS = (
    "decklog ",
    "Did you mean ",
    "--run ",
    "--as ",
    "pip install",
    "pipx install",
    "uv tool install",
    "chmod",
    "git ",
)
# The commands that list a store whose `find` needs a filter.
_LIST_COMMANDS = {"tasks": "tasks find --state running"}
# The commands that list tables by another verb than `find`.
_TABLE_LIST_COMMANDS = {"notify_rules": "notices rules", "contradictions": "memory contradictions"}
_MONEY = re.compile(r"`?\b(\w+?)_microdollars\b`?")


def add_next_step(problem: BaseException, call: Invocation) -> None:
    """Add the next command to the hint of an error that names none."""
    if not isinstance(problem, errors.DecklogError) or problem.retryable:
        return
    hint = (problem.hint or "").removesuffix(".")
    if not any(mark in hint for mark in _COMMAND_MARKS):
        problem.hint = ". ".join(part for part in (hint, _next_command(problem, call)) if part) or None


def _next_command(problem: errors.DecklogError, call: Invocation) -> str | None:
    store, path = _split_command(call.words)
    if store is None and "path" in problem.details and isinstance(problem, (errors.NotFound, errors.Conflict)):
        # The error is about a file, not about a record.
        return f"See its options: decklog {path}--help"
    if isinstance(problem, errors.NotFound):
        return f"See what there is: decklog {_TABLE_LIST_COMMANDS.get(str(problem.details.get('table'))) or _list_command(store)}"
    if isinstance(problem, (errors.Conflict, errors.Denied)):
        shown = _show_command(store, problem.details.get("id"))
        return f"See its state: decklog {shown}" if shown else f"See what there is: decklog {_list_command(store)}"
    if isinstance(problem, (WrongUsage, errors.Invalid)):
        return f"See its options: decklog {path}--help"
    return None


def _split_command(words: list[str]) -> tuple[str | None, str]:
    """Return the store, if any, and the command that the words begin with."""
    from decklog.log import STORES

    first = words[0].replace("-", "_") if words else ""
    if first not in STORES:
        return None, _command_path(words) if first and not first.startswith("_") else ""
    is_verb = len(words) > 1 and words[1].replace("_", "-") in _verbs(first)
    return first, f"{words[0]} {words[1]} " if is_verb else f"{words[0]} "


def _command_path(words: list[str]) -> str:
    """Return the hand-written command that the words begin with, including its subcommand."""
    import click

    from decklog.cli.main import COMMANDS, menu

    ctx = click.Context(menu)
    group = menu.get_command(ctx, words[0]) if words[0] in COMMANDS else None
    is_part = isinstance(group, click.Group) and len(words) > 1 and words[1] in group.list_commands(ctx)
    return f"{words[0]} {words[1]} " if is_part else f"{words[0]} "


def _verbs(store: str) -> list[str]:
    from decklog.cli.store_verbs import load_operations

    return [*load_operations(store), *HAND_WRITTEN.get(store, ())]


def _count_required(store: str, verb: str) -> int | None:
    """Count the required parameters of a verb; None if a store has no such verb."""
    from decklog.cli.parameters import list_parameters
    from decklog.cli.store_verbs import load_operations

    operation = load_operations(store).get(verb)
    return None if operation is None else sum(parameter.required for parameter in list_parameters(operation))


def _list_command(store: str | None) -> str:
    """Return the command that lists the records of a store, or else the runs."""
    if store in _LIST_COMMANDS:
        return _LIST_COMMANDS[store]
    is_listed = store is not None and _count_required(store, "find") == 0
    return f"{str(store).replace('_', '-')} find" if is_listed else "runs find"


def _show_command(store: str | None, record_id: object) -> str | None:
    if (
        store is None
        or not isinstance(record_id, str)
        or ("show" not in HAND_WRITTEN.get(store, ()) and _count_required(store, "show") != 1)
    ):
        return None
    return f"{store.replace('_', '-')} show {record_id}"


def name_options(problem: BaseException, call: Invocation) -> None:
    """Replace Python parameters in an error with their options, and microdollars with dollars."""
    if not isinstance(problem, DecklogError):
        return
    parameters = _parameters(call)
    money = {parameter.name: parameter for parameter in parameters if parameter.is_money}
    field, most = problem.details.get("field"), problem.details.get("most")
    if field in money and type(most) is int:
        problem.message = f"{money[field].flag} must be a dollar amount from 0 to {dollars(most)}"
    problem.message = _replace_names(problem.message, parameters)
    if problem.hint:
        problem.hint = _replace_names(problem.hint, parameters)


def _parameters(call: Invocation) -> "list[Parameter]":
    """Return the parameters of the called verb; none for a hand-written command."""
    if call.names_operation:
        from decklog.cli.parameters import list_parameters
        from decklog.cli.store_verbs import find_operation

        operation = find_operation(call.words[0], call.words[1])
        return [] if operation is None else list_parameters(operation)
    if call.names_shortcut:
        from decklog.cli.shortcuts import shortcut_parameters

        return shortcut_parameters(call.words[0])
    return []


def _replace_names(text: str, parameters: "list[Parameter]") -> str:
    for parameter in parameters:
        # A single word such as `state` may be part of the sentence.
        if "_" in parameter.name.strip("_"):
            shown = parameter.cli_name.upper() if parameter.positional else parameter.flag
            text = re.sub(rf"(?<![\w-])`?{re.escape(parameter.name)}`?(?![\w-])", shown, text)
    return _MONEY.sub(lambda found: "--" + found[1].replace("_", "-"), text)
