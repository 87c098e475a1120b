"""Critique of tool calls, for hooks of coding agents and for guarded tools."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from decklog.log import Decklog

# Tools that change something; calls of other tools are not reviewed.
_CHANGES = frozenset(
    (
        *("Write", "Edit", "MultiEdit", "NotebookEdit", "Bash", "apply_patch"),
        *("write_file", "replace", "run_shell_command", "shell", "edit", "write", "bash"),
    )
)


def critic_for(
    log: "Decklog", root: str, *, run_id: str, task_id: str | None = None
) -> "Callable[[str, dict[str, Any], Any], list[str]] | None":
    """Return a function that reviews each tool call; None if the folder's repository does not enable critique."""
    from decklog.guard.toolbox.toolbox import state_home
    from decklog.review.critique import critic_of

    critic = critic_of(log, Path(root), state_home(), run_id=run_id, task_id=task_id)
    return None if critic is None else critic.of_call


def said_of(log: "Decklog", told: "Mapping[str, Any]", root: str, *, session: str, named: "Mapping[str, str]") -> list[str]:
    """Return the certain errors in what an agent's tool has just done, recorded in the agent's run."""
    if told.get("tool_name") not in _CHANGES:
        return []
    run_id = named.get("run") or log.runs.start(f"Critique of {session}", key=f"critique:{session}").id
    critic = critic_for(log, root, run_id=run_id, task_id=named.get("task"))
    if critic is None:
        return []
    outcome = told.get("tool_response", told.get("tool_output"))
    return critic(str(told["tool_name"]), dict(told.get("tool_input") or {}), outcome)
