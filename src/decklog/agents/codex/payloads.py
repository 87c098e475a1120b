"""What Codex tells a hook, as events. Its payloads have Claude Code's form; what differs is here."""

from typing import TYPE_CHECKING

from decklog.agents.claude import payloads as claude
from decklog.agents.events import Prompted, Rested, SessionEvent
from decklog.agents.reading import GONE
from decklog.agents.texts import as_text

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

# Its hooks tell of a result without saying whether it failed; the rollout has that, and has it by then.
_TOLD_BY_THE_ROLLOUT = frozenset(["PostToolUse"])
_AFTER_WHICH_IT_IS_READ = frozenset(
    ["SessionStart", "PreToolUse", "PostToolUse", "PreCompact", "PostCompact", "Stop", "Interrupt", "SessionEnd", GONE]
)


def events_of(told: "dict[str, Any]", at: "datetime | None") -> list[SessionEvent]:
    """Return what a payload tells."""
    event, session = told.get("hook_event_name"), told.get("session_id")
    if event in _TOLD_BY_THE_ROLLOUT or not isinstance(session, str) or not session:
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


def transcripts_of(told: "dict[str, Any]") -> list[tuple[str, str | None]]:
    """Name the rollouts that have grown by then; inside a sub-agent a payload names the sub-agent's own."""
    found: list[tuple[str, str | None]] = []
    agent, path, own = told.get("agent_id"), told.get("transcript_path"), told.get("agent_transcript_path")
    if told.get("hook_event_name") == "SubagentStop":
        if isinstance(own, str):
            found.append((own, str(agent)))
    elif told.get("hook_event_name") in _AFTER_WHICH_IT_IS_READ and isinstance(path, str):
        found.append((path, agent if isinstance(agent, str) and agent else None))
    return found
