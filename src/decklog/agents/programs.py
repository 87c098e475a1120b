"""Registry of the supported programs, by the names that hooks use."""

from decklog.agents import claude, codex
from decklog.agents.reading import TranscriptProgram


def program(name: str) -> TranscriptProgram:
    """Return the module of a program; Claude Code's for an unknown one, because others have adopted its format."""
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
