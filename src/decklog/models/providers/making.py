"""Makes who answers of what the settings say."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decklog.core.plugins import PluginKind, load_plugin
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
            case "scripted":
                from decklog.models.providers.scripted import Scripted

                return Scripted.from_json(read(choice.script), choice.script)
            case "agent":
                return replace(_program(log, settings, choice, folder, sandbox), wanted_end=wanted_end)
        provider: Provider = load_plugin(PluginKind.MODEL, choice.provider)(choice)
        return provider

    return make


def _program(
    log: "Decklog", settings: "ModelSettings", choice: "ModelChoice", folder: Path, sandbox: SandboxKind
) -> "AgentModel":
    from decklog.conductor.agents.description import describe
    from decklog.models.providers.agent_program import AgentModel

    found = settings.agents.get(choice.agent) or describe(choice.agent, {"extends": choice.agent})
    agent = replace(found, model=choice.model) if choice.model else found
    return AgentModel(description=agent, folder=folder, clock=log.clock, sandbox=sandbox, log_file=log.db.file)
