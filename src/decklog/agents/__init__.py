"""Recording of coding agents' sessions: events in one form, written to the log once.

The package also exports the names with which your own loop records itself: `recorded`, `step`, `tool`, `charge`, `acharge` and
`close_interrupted`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from decklog.agents.closing import close_interrupted
    from decklog.plugins.adapters.loops.calls import LoopCall, LoopStep, step, tool
    from decklog.plugins.adapters.loops.run import Recorded, acharge, charge, recorded

# Import lazily: hooks import this package and must start fast.
_HOMES = {
    "LoopCall": "decklog.plugins.adapters.loops.calls",
    "Recorded": "decklog.plugins.adapters.loops.run",
    "LoopStep": "decklog.plugins.adapters.loops.calls",
    "acharge": "decklog.plugins.adapters.loops.run",
    "charge": "decklog.plugins.adapters.loops.run",
    "close_interrupted": "decklog.agents.closing",
    "recorded": "decklog.plugins.adapters.loops.run",
    "step": "decklog.plugins.adapters.loops.calls",
    "tool": "decklog.plugins.adapters.loops.calls",
}

__all__ = ["LoopCall", "LoopStep", "Recorded", "acharge", "charge", "close_interrupted", "recorded", "step", "tool"]

# With this function visible, type checkers would accept any misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'decklog.agents' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
