"""Modules that are imported when something of them is first used, or in half."""

import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Later(ModuleType):
    """Stands for a module until somebody asks for something in it that is not known."""

    def __getattr__(self, name: str) -> "Any":
        if name == "__path__":
            # Python asks whether it is a package before it takes a name from it, known or not.
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
            for inner, module in _inside(self):
                # The package notes those of its modules that are imported after it.
                if sys.modules.get(inner) is module:
                    del sys.modules[inner]
        # Not importlib: it is one of those that a call has no use for.
        return getattr(__import__(self.__name__), name)


def import_later(name: str, **known: "Any") -> None:
    """Let a module be imported only when it is used, in this process; one that is there already stays.

    What is known of it is given without importing it, modules of a package too.
    """
    module = sys.modules.setdefault(name, _Later(name))
    if type(module) is _Later:
        vars(module).update(known)
        sys.modules.update(_inside(module))


def _inside(package: _Later) -> "list[tuple[str, ModuleType]]":
    known = vars(package).items()
    return [(f"{package.__name__}.{name}", value) for name, value in known if isinstance(value, ModuleType)]


def known_of(compiled: str, *names: str) -> "dict[str, Any]":
    """Give what the compiled half of a module says for it; nothing where a Python has no such half, or another one."""
    try:
        half = __import__(compiled)
        return {name: getattr(half, name) for name in names}
    except (ImportError, AttributeError):
        return {}


def import_compiled(name: str) -> None:
    """Let the compiled half of a module stand for it, in this process, where the other half says nothing more.

    Python 3.11 defines all of `datetime` in Python first, and then replaces it.
    """
    if sys.version_info < (3, 12) and name not in sys.modules:
        try:
            sys.modules[name] = __import__(f"_{name}")
        except ImportError:  # not every Python has one
            return


class _CompiledLater:
    """Stands for a pattern. Whoever keeps its way to match keeps one that compiles it when it is first used."""

    def __init__(self, source: "str | bytes", flags: int) -> None:
        self._source, self._flags = source, flags

    def match(self, *arguments: "Any") -> "Any":
        return self._compiled().match(*arguments)

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._compiled(), name)

    def _compiled(self) -> "Any":
        from re import compile as compiled

        # It remembers what it has compiled.
        return compiled(self._source, self._flags)


class _Place:
    """Tells like a match where it ends, and what its groups are."""

    def __init__(self, end: int, *groups: str | None) -> None:
        self._end, self._groups = end, groups

    def end(self) -> int:
        return self._end

    def group(self, number: int) -> str | None:
        return self._groups[number - 1]


class _Blanks:
    """Matches `[ \\t\\n\\r]*`, which the reader of JSON asks of every text."""

    @staticmethod
    def match(text: str, start: int = 0) -> _Place:
        return _Place(len(text) - len(text[start:].lstrip(" \t\n\r")))


class _ModuleAndName:
    """Matches `^(?:\\s*(\\w+)\\s*\\.)?\\s*(\\w+)`, which dataclasses ask of every field whose type is a text."""

    @staticmethod
    def match(text: str) -> _Place | None:
        text = text.lstrip()
        first = _word(text)
        rest = text[len(first) :].lstrip()
        second = _word(rest[1:].lstrip()) if first and rest[:1] == "." else ""
        # Nobody asks where it ends.
        return _Place(-1, first, second) if second else _Place(-1, None, first) if first else None


def _word(text: str) -> str:
    """Give the letters, digits and underscores that a text begins with."""
    for place, character in enumerate(text):
        if not (character.isalnum() or character == "_"):
            return text[:place]
    return text


BY_HAND = {r"[ \t\n\r]*": _Blanks, r"^(?:\s*(\w+)\s*\.)?\s*(\w+)": _ModuleAndName}


def import_without_patterns(*names: str) -> None:
    """Import modules whose patterns are compiled when they are asked for, or matched by hand: half of them is never used.

    Importing `re`, and compiling what these modules compile at once, takes as long as a third of a short call.
    """
    there = sys.modules.get("re")
    stand_in: Any = ModuleType("re")
    stand_in.compile = lambda source, flags=0: BY_HAND[source] if source in BY_HAND else _CompiledLater(source, flags)
    stand_in.VERBOSE, stand_in.MULTILINE, stand_in.DOTALL = 64, 8, 16
    before = set(sys.modules)
    sys.modules["re"] = stand_in
    try:
        for name in names:
            __import__(name)
    except (AttributeError, ImportError):
        # Another Python, whose modules ask more of it: they are imported as they are when somebody needs them.
        for name in sys.modules.keys() - before:
            del sys.modules[name]
    finally:
        del sys.modules["re"]
        if there is not None:
            sys.modules["re"] = there
    for name in sys.modules.keys() - before:
        if name.partition(".")[0] not in names and vars(sys.modules[name]).get("re") is stand_in:
            # It came along, and may ask anything.
            vars(sys.modules[name])["re"] = __import__("re")


def dedented(text: str) -> str:
    """Take off what all lines after the first are indented by, and the empty lines around: what `inspect.cleandoc` does."""
    first, *others = text.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in others if line.strip()), default=0)
    return "\n".join([first.lstrip(), *(line[margin:] for line in others)]).strip("\n")
