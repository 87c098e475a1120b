"""Which settings of a repository loosen something, as data.

A value is free when it gives a repository nothing that it would not have without it. Every other value needs the consent of the
person whose machine, files, variables, account and money it uses. A key that is not classified here needs consent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from decklog.conductor.agents.description import Description, known_table


@dataclass(frozen=True)
class LooseningRule:
    """Which values of a key are free.

    `values` are free as such. `same` adds the value of the agent description that is extended, `within` every list that has
    nothing beyond it, `most` every number up to it. `effect` explains to a person what any other value does.
    """

    effect: str = ""
    values: tuple[object, ...] = ()
    is_free: bool = False
    same: bool = False
    within: bool = False
    most: float | None = None

    def allows(self, value: object, base: object) -> bool:
        """Check whether a value is free, given what holds without it."""
        if self.is_free or value in self.values or (self.same and value == base):
            return True
        if self.most is not None:
            return isinstance(value, (int, float)) and not isinstance(value, bool) and value <= self.most
        return self.within and isinstance(value, list) and isinstance(base, list) and all(one in base for one in value)


_FREE = LooseningRule(is_free=True)
_UNKNOWN = LooseningRule("is a setting whose effect is not known")
_AGENT_FREE = ("extends", "prompt", "commits", "model", "account", "network", "turns", "minutes", "stall_minutes", "ask_minutes")
_CHECK_FREE = ("name", "command", "report", "gate", "minutes")
_REVIEW_FREE = (
    *("base", "model_passes", "static", "tools", "block_below", "change_below", "titles", "title_length", "body_needs"),
    *("source", "docs", "samples", "measure_seconds", "needs_tests"),
)
_RUN_FREE = ("agents", "orphan_seconds", "rounds", "attempts", "free_mb", "lease_seconds")


def _free(section: str, names: tuple[str, ...]) -> dict[str, LooseningRule]:
    return {f"{section}.{name}": _FREE for name in names}


RULES: Mapping[str, LooseningRule] = {
    **_free("run", _RUN_FREE),
    "run.sandbox": LooseningRule("runs agents and checks with less than the strongest sandbox", values=("auto", "bubblewrap")),
    "run.plan": LooseningRule("works plans of agents without asking you", values=("ask",)),
    "run.remote": LooseningRule("pushes the work of agents to a remote"),
    **_free("budget", ("run_usd", "piece_usd")),
    **_free("roles", ("worker", "strategist")),
    **_free("tests", ("paths",)),
    **_free("protect", ("paths",)),
    **_free("agents.*", _AGENT_FREE),
    "agents.*.command": LooseningRule("runs this program as an agent", same=True),
    "agents.*.untrusted": LooseningRule("changes what keeps the repository's own settings away from the agent", same=True),
    "agents.*.in_sandbox": LooseningRule("changes what the agent may do within the sandbox", same=True),
    "agents.*.without_sandbox": LooseningRule("changes what holds the agent in where there is no sandbox", same=True),
    "agents.*.env": LooseningRule("sets variables of the agent, which may load code or send your key elsewhere", values=({},)),
    "agents.*.pass_env": LooseningRule("passes these variables of your environment to the agent", within=True),
    "agents.*.readable": LooseningRule("lets the agent read these files of yours", within=True),
    "agents.*.writable": LooseningRule("lets the agent write these files of yours", within=True),
    "agents.*.home_copied": LooseningRule("gives the agent copies of these files of your home", within=True),
    "agents.*.home_readable": LooseningRule("lets the agent read these files of your home", within=True),
    "agents.*.home_writable": LooseningRule("lets the agent write these files of your home", within=True),
    "agents.*.home_variables": LooseningRule("changes where the agent's settings are looked for", values=({},), same=True),
    "agents.*.keeps_home": LooseningRule("starts the agent in your home", values=(False,), same=True),
    "agents.*.probe": LooseningRule("runs this program outside of the sandbox", values=([],), same=True),
    "agents.*.resume": LooseningRule("names a command for you to run", values=([],), same=True),
    "agents.*.trial": LooseningRule("starts the agent with these arguments to see whether it starts", values=([],), same=True),
    "agents.*.permissions": LooseningRule("allows what the policy would ask you about", values=("person", "deny")),
    "agents.*.stream": LooseningRule("changes how the agent's spending is read", same=True),
    "agents.*.events": LooseningRule("changes how the agent's spending is read", same=True),
    "agents.*.tools": LooseningRule("changes how the agent's calls are named in the record", same=True),
    "agents.*.errors": LooseningRule("changes which failures of the agent cost no attempt", same=True),
    **_free("checks.*", _CHECK_FREE),
    "checks.*.network": LooseningRule("lets the check use the network", values=(False,)),
    "checks.*.env": LooseningRule("sets variables of the check, which may load code before the sandbox closes", values=({},)),
    "checks.*.pass_env": LooseningRule("passes these variables of your environment to the check", values=([],)),
    "checks.*.readable": LooseningRule("lets the check read these files of yours", values=([],)),
    **_free("models.*", ("provider", "agent", "model", "script", "seconds", "reserve_usd")),
    "models.*.base_url": LooseningRule("sends prompts and your key to this address"),
    "models.*.key_env": LooseningRule("sends this variable of your environment as a key"),
    **_free("review", _REVIEW_FREE),
    "mend.rounds": _FREE,
    "mend.publish": LooseningRule("publishes fixes to a remote", values=("branch", "patch")),
    "mend.remote": LooseningRule("chooses the remote that fixes are published to", values=("origin",)),
    "mend.large": LooseningRule("lets larger fixes pass without asking you", most=200),
    "critique.enabled": LooseningRule("asks a model after every change of a tool, which costs money", values=(False,)),
    "critique.most_usd": LooseningRule("raises what critique may spend in a run", most=0.5),
    "critique.seconds": _FREE,
    "redaction.rule": _FREE,
    "redaction.allow": LooseningRule("stores values that match these patterns without redacting them", values=([],)),
    **_free("prompt", ("identity", "skills", "folder", "most_tokens")),
}


@dataclass(frozen=True)
class Loosened:
    """One setting that loosens something: where it is in the file, its value, and what it does."""

    key: str
    value: object
    effect: str

    def line(self) -> str:
        """Describe it in one line."""
        return f"{self.key} = {self.value!r}: {self.effect}"


@dataclass(frozen=True)
class _Setting:
    key: str
    pattern: str
    value: object
    base: Mapping[str, object] = field(default_factory=dict)


def loosened(table: Mapping[str, Any]) -> list[Loosened]:
    """List the settings of a parsed `decklog.toml` that need consent."""
    found: list[Loosened] = []
    for one in _settings(table):
        rule = RULES.get(one.pattern, _UNKNOWN)
        if not rule.allows(one.value, one.base.get(one.pattern.rpartition(".")[2])):
            found.append(Loosened(one.key, one.value, rule.effect))
    return found


def _settings(table: Mapping[str, Any]) -> Iterator[_Setting]:
    """Yield every setting of a file with the pattern of its key."""
    for section, content in table.items():
        if section == "checks":
            for number, check in enumerate(content, 1):
                yield from _members(f"checks.{check.get('name', number)}", "checks.*", check)
        elif section in ("agents", "models"):
            for name, member in content.items():
                base = _extended(member) if section == "agents" else {}
                yield from _members(f"{section}.{name}", f"{section}.*", member, base)
        elif section != "calls":
            # [calls] only names models that are described elsewhere.
            yield from _members(section, section, content)


def _members(where: str, pattern: str, table: Mapping[str, Any], base: Mapping[str, object] | None = None) -> Iterator[_Setting]:
    for name, value in table.items():
        yield _Setting(f"{where}.{name}", f"{pattern}.{name}", value, base or {})


def _extended(agent: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the description that an agent extends, with the defaults of what that leaves out."""
    plain = Description(name="")
    defaults = {one.name: getattr(plain, one.name) for one in fields(Description)}
    lists = {name: list(value) for name, value in defaults.items() if isinstance(value, tuple)}
    return {**defaults, **lists, **known_table(str(agent.get("extends", "command")))}
