"""Recorded sessions of agents, as their runs describe them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_session(metadata: "Mapping[str, object]") -> bool:
    """Check by a run's metadata whether the run is a recorded session, or a sub-agent's part of one."""
    return "program" in metadata and "session" in metadata
