"""An agent's tools: files, search, patches, commands and background processes, guarded and on record.

Nothing is imported before it is used: judging a command or a path needs no database.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from decklog.guard.calls.guard import Unrestricted
    from decklog.guard.calls.tool import EffectCheck, Tool
    from decklog.guard.sandbox.sandbox import Sandbox
    from decklog.guard.toolbox.toolbox import Toolbox

_HOMES = {
    "EffectCheck": "calls.tool",
    "Sandbox": "sandbox.sandbox",
    "Tool": "calls.tool",
    "Toolbox": "toolbox.toolbox",
    "Unrestricted": "calls.guard",
}

__all__ = ["EffectCheck", "Sandbox", "Tool", "Toolbox", "Unrestricted"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'decklog.guard' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"decklog.guard.{_HOMES[name]}"), name)
