"""Patterns of the standard library that are compiled when they are first asked for.

Redaction has well over a hundred of them, and a call of the command line needs a few: compiling them all costs more than the
rest of such a call.
"""

import re
from typing import AnyStr, cast

_ASKED = ("match", "fullmatch", "search", "finditer", "findall", "split", "sub")


class _Prepared:
    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> object:
        compiled = re.compile(self._source, self._flags)
        # From now on its methods are found here at once, as they would be on the pattern itself.
        self.__dict__.update({asked: getattr(compiled, asked) for asked in _ASKED})
        return getattr(compiled, name)


def prepared(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Give what can be asked like the compiled pattern."""
    return cast("re.Pattern[AnyStr]", _Prepared(source, flags))
