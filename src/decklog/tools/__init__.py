"""An agent's tools: files, search, patches, commands and background processes, guarded and on record.

Nothing is imported before it is used: judging a command or a path needs no database.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .guard import Unrestricted
    from .sandbox import Sandbox
    from .tool import Finding, Tool
    from .toolbox import Toolbox

_HOMES = {"Finding": "tool", "Sandbox": "sandbox", "Tool": "tool", "Toolbox": "toolbox", "Unrestricted": "guard"}

__all__ = ["Finding", "Sandbox", "Tool", "Toolbox", "Unrestricted"]


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'decklog.tools' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"decklog.tools.{_HOMES[name]}"), name)
