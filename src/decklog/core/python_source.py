"""Python as it is written, read without running it."""

import ast
import warnings


def parsed(source: bytes | str) -> ast.Module | None:
    """Read a module; None when no Python reads it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
