"""The models in `decklog.toml`, and the model of each call site. A call site may have none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from decklog.conductor.agents.description import Description, describe
from decklog.conductor.settings import load
from decklog.conductor.tables import build
from decklog.core.errors import Invalid
from decklog.core.plugins import PluginKind, plugin_names

# Others are plug-ins.
PROVIDERS = ("agent", "scripted")
SECTIONS = ("models", "calls")


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """One model as a repository names it."""

    name: str
    provider: str
    agent: str = ""
    model: str = ""
    base_url: str | None = None
    key_env: str | None = None
    script: str = ""
    seconds: float = 300.0
    reserve_usd: float | None = None


@dataclass(frozen=True)
class ModelSettings:
    """The models of a repository, and the calls that each answers."""

    models: Mapping[str, ModelChoice] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, Description] = field(default_factory=dict)

    def choice_for(self, site: str) -> ModelChoice | None:
        """Return the model for a call site: by its name, by a prefix of it, or the default."""
        parts = site.split(".")
        names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
        found = next((self.calls[name] for name in (*names, "default") if name in self.calls), None)
        return None if found is None else self.models[found]


def read(content: bytes) -> ModelSettings:
    """Parse the models of a `decklog.toml`. Raise Invalid for an unknown setting."""
    table = load(content)
    agents = {name: describe(name, given) for name, given in table.get("agents", {}).items()}
    models = {name: _choice(name, given, agents) for name, given in table.get("models", {}).items()}
    calls = _flat(table.get("calls", {}))
    for site, name in calls.items():
        if name not in models:
            raise Invalid(
                f"[calls] {site} names the model {name!r}, which is not defined", hint=f"Add [models.{name}].", field=site
            )
    return ModelSettings(models, calls, agents)


def _flat(table: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Flatten the table of calls: dots in names may be quoted or make tables. `default` in a table is the call of its name."""
    found: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{before}{name}.")
        else:
            found[before.rstrip(".") if before and name == "default" else f"{before}{name}"] = str(value)
    return found


def _choice(name: str, given: Any, agents: Mapping[str, Description]) -> ModelChoice:
    choice = build(ModelChoice, f"model {name}", {"provider": "agent", **given}, name=name)
    if choice.provider not in PROVIDERS and choice.provider not in plugin_names(PluginKind.MODEL):
        names = ", ".join((*PROVIDERS, *plugin_names(PluginKind.MODEL)))
        raise Invalid(f"model {name}: provider is {choice.provider!r}", hint=f"Use one of {names}.", field="provider")
    needed = {"agent": "agent", "scripted": "script"}.get(choice.provider, "model")
    if not getattr(choice, needed):
        raise Invalid(f"model {name} needs its {needed}", hint=f'{needed} = "…"', field=needed)
    if choice.provider == "agent":
        described = agents.get(choice.agent) or describe(choice.agent, {"extends": choice.agent})
        if described.stream == "acp":
            raise Invalid(
                f"model {name}: {choice.agent} uses the Agent Client Protocol, which can't request an answer of a given form",
                hint="Name another program, such as claude-code or codex.",
                field="agent",
            )
    if not 0 < choice.seconds <= 3600:
        raise Invalid(f"model {name}: seconds is {choice.seconds!r}; it must be above 0 and at most 3600", field="seconds")
    return choice
