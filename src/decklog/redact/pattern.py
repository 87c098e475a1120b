"""Patterns on RE2: linear time whatever the input, one byte a character."""

from typing import Any

import re2

_MEMORY_BYTES = 128 << 20


def compiled(source: str) -> Any:
    """Compile a pattern that is searched in the bytes of a view."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    return re2.compile(source.encode("latin-1"), options)
