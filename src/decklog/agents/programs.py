"""The programs whose sessions come into the log, by the names that hooks call them by."""

from typing import TYPE_CHECKING

from decklog.agents import claude, codex

if TYPE_CHECKING:
    from decklog.agents.reading import TranscriptProgram


def program(name: str) -> "TranscriptProgram":
    """Return what is known of a program; one that is not known tells as Claude Code does, whose form others have taken over."""
    if name == "gemini":
        from decklog.agents import gemini

        return gemini
    if name == "opencode":
        from decklog.agents import opencode

        return opencode
    if name == "openai-agents":
        from decklog.agents import openai_agents

        return openai_agents
    return codex if name == "codex" else claude
