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
    "decklog.agents.closing": ("close_interrupted",),
    "decklog.plugins.adapters.loops.calls": ("LoopCall", "LoopStep", "step", "tool"),
    "decklog.plugins.adapters.loops.run": ("Recorded", "acharge", "charge", "recorded"),
}

__all__ = ["LoopCall", "LoopStep", "Recorded", "acharge", "charge", "close_interrupted", "recorded", "step", "tool"]

# With this function visible, type checkers would accept any misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(home), name)
        raise AttributeError(f"module 'decklog.agents' has no attribute {name!r}")
