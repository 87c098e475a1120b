"""Conversion of Codex's hook payloads into events. They have Claude Code's form; this module handles the differences."""

from datetime import datetime
from typing import Any

from decklog.agents.claude import payloads as claude
from decklog.agents.events import Prompted, Rested, SessionEvent
from decklog.agents.reading import GONE
from decklog.agents.texts import as_text

# These payloads omit whether the call failed. The rollout has the result by then.
_IN_THE_ROLLOUT = frozenset(["PostToolUse"])
_AFTER_WHICH_IT_IS_READ = frozenset(
    ["SessionStart", "PreToolUse", "PostToolUse", "PreCompact", "PostCompact", "Stop", "Interrupt", "SessionEnd", GONE]
)


def events_of(told: dict[str, Any], at: datetime | None) -> list[SessionEvent]:
    """Return the events of a payload."""
    event, session = told.get("hook_event_name"), told.get("session_id")
    if event in _IN_THE_ROLLOUT or not isinstance(session, str) or not session:
        return []
    agent = told.get("agent_id")
    place: dict[str, Any] = {"session_id": session, "at": at, "agent_id": agent if isinstance(agent, str) and agent else None}
    if event == "UserPromptSubmit":
        turn = told.get("turn_id")
        by = "program" if place["agent_id"] else "person"
        return [Prompted(**place, prompt_id=str(turn) if turn else None, text=as_text(told.get("prompt")), by=by)]
    if event == "Interrupt":
        return [Rested(**place, error="interrupted")]
    return claude.events_of(told, at)


def transcripts_of(told: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return the rollouts that have grown. Within a sub-agent, a payload names the sub-agent's rollout."""
    found: list[tuple[str, str | None]] = []
    agent, path, own = told.get("agent_id"), told.get("transcript_path"), told.get("agent_transcript_path")
    if told.get("hook_event_name") == "SubagentStop":
        if isinstance(own, str):
            found.append((own, str(agent)))
    elif told.get("hook_event_name") in _AFTER_WHICH_IT_IS_READ and isinstance(path, str):
        found.append((path, agent if isinstance(agent, str) and agent else None))
    return found
