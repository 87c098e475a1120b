"""Guarded commands need Linux."""

import sys

from decklog.core.errors import Unavailable


def require_linux() -> None:
    """Raise Unavailable on other systems: there nothing could confine a command, or be sure to end it."""
    if sys.platform != "linux":
        raise Unavailable(
            f"guarded commands and the sandbox need Linux; this is {sys.platform}",
            hint="Run this on Linux, or in a Linux container. Recording, import, tasks and the dashboard work here.",
        )
