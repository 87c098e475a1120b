"""Show the owner what a command signs, before the prompt for the password or the key."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from decklog.cli.screens import approval as approval_screen
from decklog.cli.screens.lines import written
from decklog.cli.terminal import width
from decklog.core.characters import revealed
from decklog.core.figures import dollars

if TYPE_CHECKING:
    from decklog.log import Decklog

_LONGEST = 2_000


def show_signed(log: "Decklog", operation: str, arguments: Mapping[str, Any]) -> None:
    """Show the owner at a terminal what is about to be signed; nothing without a registered owner."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or not log.trust.status()["is_bound"]:
        return
    for line in [*_thing(log, operation, arguments), _words(operation, arguments)]:
        sys.stderr.write(f"{line}\n")


def _words(operation: str, arguments: Mapping[str, Any]) -> str:
    given = (_argument(name, value) for name, value in arguments.items() if value is not None)
    return revealed(f"You sign: {operation} {' '.join(given)}"[:_LONGEST])


def _argument(name: str, value: object) -> str:
    if name.endswith(("_microdollars", "_price")) and isinstance(value, int):
        return f"{name.removesuffix('_microdollars')}={dollars(value, exact=True)}"
    return f"{name}={value}"


def _thing(log: "Decklog", operation: str, arguments: Mapping[str, Any]) -> list[str]:
    """Describe the record that the decision is about."""
    if operation == "approvals.decide":
        shown = log.approvals.show(arguments["approval_id"])
        found = approval_screen.lines(shown, log.clock.now(), width(100), with_next=False)
        return [written(line, colour=False) for line in found]
    if operation == "effects.reconcile":
        effect = log.effects.get(arguments["effect_id"])
        told = [f"{effect.tool} in step {effect.step}, {effect.state}", f"arguments {effect.arguments}", f"note {effect.note}"]
        return [revealed(line[:_LONGEST]) for line in told]
    return []
