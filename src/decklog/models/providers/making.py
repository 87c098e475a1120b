"""Makes who answers of what the settings say."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decklog.guard.sandbox.sandbox import SandboxKind
from decklog.models.provider import Provider

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.models.providers.agent_program import AgentModel
    from decklog.models.settings import ModelChoice, ModelSettings


def maker(
    log: "Decklog",
    settings: "ModelSettings",
    folder: Path,
    *,
    read: "Callable[[str], bytes | None]",
    sandbox: SandboxKind = SandboxKind.AUTO,
    wanted_end: "Callable[[], str | None]" = lambda: None,
) -> "Callable[[ModelChoice], Provider]":
    """Return what makes a provider: programs run beneath `folder`, scripts come by `read`."""

    def make(choice: "ModelChoice") -> Provider:
        match choice.provider:
            case "anthropic":
                from decklog.models.providers.anthropic_api import AnthropicModel

                return AnthropicModel(choice.model, base_url=choice.base_url, key_env=choice.key_env or "ANTHROPIC_API_KEY")
            case "openai":
                from decklog.models.providers.openai_api import OpenAIModel

                return OpenAIModel(choice.model, base_url=choice.base_url, key_env=choice.key_env or "OPENAI_API_KEY")
            case "scripted":
                from decklog.models.providers.scripted import Scripted

                return Scripted.from_json(read(choice.script), choice.script)
            case _:
                return replace(_program(log, settings, choice, folder, sandbox), wanted_end=wanted_end)

    return make


def _program(
    log: "Decklog", settings: "ModelSettings", choice: "ModelChoice", folder: Path, sandbox: SandboxKind
) -> "AgentModel":
    from decklog.conductor.agents.description import describe
    from decklog.models.providers.agent_program import AgentModel

    found = settings.agents.get(choice.agent) or describe(choice.agent, {"extends": choice.agent})
    agent = replace(found, model=choice.model) if choice.model else found
    return AgentModel(description=agent, folder=folder, clock=log.clock, sandbox=sandbox, log_file=log.db.file)
