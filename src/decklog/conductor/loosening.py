"""The settings of a repository that loosen something and need consent, by the rules in `loosening.toml`."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from typing import Any

from decklog.conductor.agents.description import Description, known_table


@dataclass(frozen=True)
class LooseningRule:
    """Which values of a key are free; `loosening.toml` explains the fields."""

    effect: str = ""
    values: Sequence[object] = ()
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


_UNKNOWN = LooseningRule("is a setting whose effect is not known")


def _load_rules() -> dict[str, LooseningRule]:
    table = tomllib.loads(resources.files(__package__).joinpath("loosening.toml").read_text(encoding="utf-8"))
    free = dict.fromkeys(table["free"], LooseningRule(is_free=True))
    return {**free, **{key: LooseningRule(**rule) for key, rule in table["rules"].items()}}


RULES: Mapping[str, LooseningRule] = _load_rules()


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
