"""Regular expressions that are compiled when a text first needs them: most commands need few of them."""

import re
from typing import Any


class Lazy:
    """A regular expression with the methods of `re.Pattern`."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._source), name)
        # From now on the method is an attribute, and this function is not called for it.
        setattr(self, name, method)
        return method
