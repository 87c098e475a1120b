"""Reading of a policy's file, and of the tables in it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from decklog.core.errors import Invalid, NotFound
from decklog.guard.policy.entries import Finding, Program, Rule
from decklog.guard.policy.made_on_use import MadeOnUse
from decklog.guard.policy.verdict import Decision

_ALLOWED = "Nothing in this command needs a person's attention."


if TYPE_CHECKING:
    from pathlib import Path


def read(path: "Path") -> dict[str, Any]:
    """Read a TOML or JSON file."""
    if not path.is_file():
        raise NotFound(f"There is no policy file {path}.", hint="Check the path.", path=str(path))
    try:
        if path.suffix == ".json":
            loaded = json.loads(path.read_text(encoding="utf-8"))
        else:
            import tomllib

            loaded = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        hint = "Correct the file; its form is that of the shipped default.toml."
        raise Invalid(f"The policy file {path} can't be read: {error}.", hint=hint, path=str(path)) from error
    if not isinstance(loaded, dict):
        raise Invalid(f"The policy file {path} holds no table.", hint="Put a table at the top.", path=str(path))
    return loaded


def merge(base: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one policy's data over another's."""
    merged = dict(base)
    for key, value in given.items():
        before = merged.get(key)
        if isinstance(value, Mapping) and isinstance(before, str | list) and set(value) <= {"add", "remove"}:
            gone = set(words(value.get("remove", ())))
            merged[key] = [word for word in words(before) if word not in gone] + words(value.get("add", ()))
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[key] = merge(dict(before), value)
        elif isinstance(before, list) and isinstance(value, list) and any(isinstance(item, dict) for item in value):
            merged[key] = before + value
        else:
            merged[key] = value
    return merged


def words(value: str | Iterable[str]) -> list[str]:
    """Read a list given as such or as words in one string."""
    return value.split() if isinstance(value, str) else list(value)


class Tables:
    """Read the tables of a policy from its merged data."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.decisions: dict[str, str] = data.get("decisions", {})

    def findings(self) -> dict[str, Finding]:
        """Read the findings that the checks report by name."""
        return {entry["name"]: self._finding(entry) for entry in self.data.get("findings", ())}

    def paths(self) -> dict[tuple[str, str], Finding]:
        """Read what is decided about roles of classes of paths."""
        return {place: finding for entry in self.data.get("paths", ()) for place, finding in self._path(entry)}

    def _finding(self, entry: dict[str, Any], decision: str | None = None) -> Finding:
        """Read a decision, the name of its rule and its reason; `[decisions]` has the last word."""
        rule = entry.get("rule") or entry.get("name") or "allowed"
        chosen = self.decisions.get(rule) or decision or entry.get("decision", "allow")
        return Finding(Decision(chosen), rule, entry.get("reason", _ALLOWED))

    def programs(self) -> Mapping[str, Program]:
        """Read the program tables, later ones over earlier ones, then the three short lists."""
        entries: dict[str, dict[str, Any] | Program] = {}
        for entry in self.data.get("programs", ()):
            entries.update(dict.fromkeys(words(entry["names"]), entry))
        for decision in Decision:
            for name in words(self.data.get(decision.value, ())):
                entries[name] = Program(finding=self._listed(decision, name))
        return MadeOnUse(entries, self._program)

    def _listed(self, decision: Decision, name: str) -> Finding:
        """Give the finding for a program that a short list names."""
        reason = f"The policy lists {name} under {decision.value}; change the policy file if that is wrong."
        return Finding(decision, f"listed-{decision.value}", reason)

    def _program(self, entry: dict[str, Any] | Program) -> Program:
        """Read one program table."""
        if isinstance(entry, Program):
            return entry
        options = {option: role for role, names in entry.get("options", {}).items() for option in words(names)}
        return Program(
            finding=self._finding(entry),
            options=options,
            operands=entry.get("operands", "text"),
            first=entry.get("first"),
            last=entry.get("last"),
            single=entry.get("single", False),
            runs=entry.get("runs"),
            skip=entry.get("skip", 0),
            subcommands=dict(self._subcommands(entry)),
            kind=entry.get("kind"),
            code=frozenset(words(entry.get("code", ()))),
            output=entry.get("output"),
            interactive=frozenset(words(entry.get("interactive", ()))),
            shows=frozenset(words(entry.get("shows", ()))),
            dry=frozenset(words(entry.get("dry", ()))),
            adds=frozenset(part.strip() for part in entry.get("adds", "").split(",") if part),
            level=entry.get("level", False),
            reading=re.compile(entry["reading"]) if "reading" in entry else None,
            groups=frozenset(words(entry.get("groups", ()))),
            slashes=entry.get("slashes", False),
        )

    def _subcommands(self, entry: dict[str, Any]) -> Iterator[tuple[str, Finding]]:
        """Read the subcommands of a program, by the decision they stand under."""
        for decision, names in entry.get("subcommands", {}).items():
            listed = [part.strip() for part in names.split(",")] if isinstance(names, str) else names
            for name in listed:
                is_allowed = decision == Decision.ALLOW
                yield name, self._finding({} if is_allowed else entry, decision)

    def rules(self) -> Mapping[str, tuple[Rule, ...]]:
        """Read the rules and file them under the programs they are about."""
        filed: dict[str, list[dict[str, Any]]] = {}
        for entry in self.data.get("rules", ()):
            for name in words(entry["programs"]):
                filed.setdefault(name, []).append(entry)
        return MadeOnUse(filed, lambda entries: tuple(self._rule(entry) for entry in entries))

    def _rule(self, entry: dict[str, Any]) -> Rule:
        """Read one rule."""
        sub = entry.get("sub", ())
        return Rule(
            finding=self._finding(entry),
            sub=tuple(part.strip() for part in sub.split(",")) if isinstance(sub, str) else tuple(sub),
            flags=tuple(words(entry.get("flags", ()))),
            without=tuple(words(entry.get("without", ()))),
            words=re.compile(entry["words"]) if "words" in entry else None,
            any=re.compile(entry["any"]) if "any" in entry else None,
            bare=entry.get("bare", False),
            unless=re.compile(entry["unless"]) if "unless" in entry else None,
        )

    def _path(self, entry: dict[str, Any]) -> Iterator[tuple[tuple[str, str], Finding]]:
        """Read what is decided about some roles of some classes of paths."""
        for role in words(entry["roles"]):
            for kind in words(entry["classes"]):
                yield (role, kind), self._finding(entry)

    def variables(self) -> dict[str, Finding | str]:
        """Read what is decided about setting variables: a finding, or the role of the value."""
        variables: dict[str, Finding | str] = {}
        for entry in self.data.get("variables", ()):
            for name in words(entry["names"]):
                variables[name] = entry["role"] if "role" in entry else self._finding(entry)
        return variables

    def option_words(self) -> dict[str, frozenset[str]]:
        """Read which words in an option's name tell the role of its value."""
        return {role: frozenset(words(named)) for role, named in self.data.get("option_words", {}).items()}
