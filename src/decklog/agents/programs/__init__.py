"""Supported programs: each module converts the hook payloads of one program, and reads its transcripts."""

from importlib import import_module

from decklog.agents.programs.base import TranscriptProgram

_MODULES = {"codex": "codex", "gemini": "gemini", "opencode": "opencode", "openai-agents": "openai_agents"}


def program(name: str) -> TranscriptProgram:
    """Return the module of a program; Claude Code's for an unknown one, because others have adopted its format."""
    found: TranscriptProgram = import_module(f"{__name__}.{_MODULES.get(name, 'claude')}")
    return found
