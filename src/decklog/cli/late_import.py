"""Modules that are imported when something of them is first used."""

import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Later(ModuleType):
    """Stands for a module until somebody asks for something in it."""

    def __getattr__(self, name: str) -> "Any":
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        # Not importlib: it is one of those that a call has no use for.
        return getattr(__import__(self.__name__), name)


def import_later(name: str) -> None:
    """Let a module be imported only when it is used, in this process; one that is there already stays."""
    sys.modules.setdefault(name, _Later(name))
