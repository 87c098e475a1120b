"""Modules that are imported when something of them is first used, or in half."""

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


def import_later(name: str, **known: "Any") -> None:
    """Let a module be imported only when it is used, in this process; one that is there already stays.

    What is known of it is given without importing it.
    """
    module = sys.modules.setdefault(name, _Later(name))
    if type(module) is _Later:
        vars(module).update(known)


def import_compiled(name: str) -> None:
    """Let the compiled half of a module stand for it, in this process, where the other half says nothing more.

    Python 3.11 defines all of `datetime` in Python first, and then replaces it.
    """
    if sys.version_info < (3, 12) and name not in sys.modules:
        try:
            sys.modules[name] = __import__(f"_{name}")
        except ImportError:  # not every Python has one
            return


def dedented(text: str) -> str:
    """Take off what all lines after the first are indented by, and the empty lines around: what `inspect.cleandoc` does."""
    first, *others = text.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in others if line.strip()), default=0)
    return "\n".join([first.lstrip(), *(line[margin:] for line in others)]).strip("\n")
