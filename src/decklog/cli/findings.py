"""Shows what a check found: the facts, and what is wrong as an error in the place where errors are."""

from decklog.cli.exits import print_json
from decklog.errors import Invalid


class Trouble(Invalid):
    """Something was found that should be mended."""

    code = "trouble"


def print_findings(data: "dict[str, object]", problem: Invalid | None) -> int:
    """Print the data of a check; when something was found it is an error too, in the place where errors are."""
    envelope: dict[str, object] = {"ok": problem is None, "data": data, "next": None, "warnings": []}
    if problem is not None:
        envelope["error"] = problem.as_dict()
    print_json(envelope)
    return 0 if problem is None else 1
