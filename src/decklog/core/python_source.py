"""Parse Python source without running it."""

import ast
import warnings


def parsed(source: bytes | str) -> ast.Module | None:
    """Parse a module; None if it is invalid."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
