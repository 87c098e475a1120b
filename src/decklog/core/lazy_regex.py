"""Patterns that are compiled when they are first asked for.

A call of the command line needs few of the hundreds that there are, and compiling them costs more than the rest of such a call.
Most calls need none, and do without the module `re` itself.
"""

from re import Pattern
from typing import AnyStr

_ASKED = ("match", "fullmatch", "search", "finditer", "findall", "split", "sub")


class _Prepared:
    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> object:
        from re import compile as compiled_from

        compiled = compiled_from(self._source, self._flags)
        # From now on its methods are found here at once, as they would be on the pattern itself.
        self.__dict__.update({asked: getattr(compiled, asked) for asked in _ASKED})
        return getattr(compiled, name)


def prepared(source: AnyStr, flags: int = 0) -> Pattern[AnyStr]:
    """Return what can be asked like the compiled pattern."""
    return _Prepared(source, flags)  # type: ignore[return-value]
