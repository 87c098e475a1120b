"""Rewrite errors of the stores, which name Python parameters, in the words of the command line."""

import re
from typing import TYPE_CHECKING

from decklog.core.errors import DecklogError
from decklog.core.figures import dollars

if TYPE_CHECKING:
    from decklog.cli.call import Invocation
    from decklog.cli.parameters import Parameter

_MONEY = re.compile(r"`?\b(\w+?)_microdollars\b`?")


def name_options(problem: BaseException, call: "Invocation") -> None:
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


def _parameters(call: "Invocation") -> "list[Parameter]":
    """Return the parameters of the verb that was called; of a hand-written command none."""
    if call.names_operation:
        from decklog.cli.derived import find_operation
        from decklog.cli.parameters import parameters_of

        operation = find_operation(call.words[0], call.words[1])
        return [] if operation is None else parameters_of(operation)
    if call.names_short_way:
        from decklog.cli.short.program import parameters

        return parameters(call.words[0])
    return []


def _renamed(text: str, parameters: "list[Parameter]") -> str:
    for parameter in parameters:
        # A name of one word may be an ordinary word of the sentence.
        if "_" in parameter.name.strip("_"):
            shown = parameter.said.upper() if parameter.positional else parameter.flag
            text = re.sub(rf"(?<![\w-])`?{re.escape(parameter.name)}`?(?![\w-])", shown, text)
    return _MONEY.sub(lambda found: "--" + found[1].replace("_", "-"), text)
