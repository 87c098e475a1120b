"""The policy as data: programs, rules, roles, path classes and events, read from a TOML file.

The shipped policy is `policy.toml`. It is read from `policy.json`, which `make docs` writes from it: TOML takes twenty times as
long. A user's file, TOML or JSON, is laid over it: tables are merged, lists of tables are added to, and
`{ add = [...], remove = [...] }` edits a plain list. The short forms `allow`, `ask`, `deny` (programs) and `[decisions]`
(rule to decision) cover the common wishes in one line each.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from decklog.errors import Invalid, NotFound
from decklog.tools.policy.events import Event
from decklog.tools.policy.paths import PathList
from decklog.tools.policy.verdict import Decision

if TYPE_CHECKING:
    from pathlib import Path

_SHIPPED = os.path.join(os.path.dirname(__file__), "policy.json")
_ALLOWED = "Nothing in this command needs a person's attention."
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])")
_NEGATIONS = ("no-", "skip-", "without-", "ignore-", "disable-", "exclude-")
_SHORTEST_PART = 4
# A compiler's tool for another machine, such as `arm-none-eabi-size`.
_FOR_TARGET = re.compile(
    r"(?:[a-z0-9_]+-)+(gcc|g\+\+|cpp|ld|as|ar|nm|objcopy|objdump|size|strip|readelf|ranlib|gdb|strings|addr2line)(?:-\d+)?"
)
_VERSION = re.compile(r"[-_]?v?\d+(\.\d+)*$")
_SEPARATED = re.compile(r"[-_]v?\d+(\.\d+)*$")
_ENDING = re.compile(r"\.(?:exe|cmd|bat|ps1)$", re.IGNORECASE)


class Finding(NamedTuple):
    """A decision with its rule, not yet tied to a command."""

    decision: Decision
    rule: str
    reason: str


class Program:
    """One `[[programs]]` entry: how a program uses its arguments, and whether it may run."""

    def __init__(self, entry: Mapping[str, Any], policy: "Policy") -> None:
        self.entry = entry
        self.finding = policy.finding(entry)
        self.options = {option: role for role, named in entry.get("options", {}).items() for option in words(named)}
        self.subcommands = {
            name: policy.finding({} if decision == Decision.ALLOW else entry, decision)
            for decision, named in entry.get("subcommands", {}).items()
            for name in listed(named)
        }
        self.operands: str = entry.get("operands", "text")
        self.single: bool = entry.get("single", False)
        self.runs: str | None = entry.get("runs")
        self.language: str | None = entry.get("language")

    def get(self, name: str) -> str:
        """Return a text of the entry, empty if it has none."""
        found: str = self.entry.get(name, "")
        return found

    def words(self, name: str) -> frozenset[str]:
        """Return a list of the entry."""
        return frozenset(words(self.entry.get(name, ())))


class Rule:
    """One `[[rules]]` entry: a decision about some uses of some programs; every condition given must hold."""

    def __init__(self, entry: Mapping[str, Any], policy: "Policy") -> None:
        self.finding = policy.finding(entry)
        self.sub = listed(entry.get("sub", ()))
        self.flags = words(entry.get("flags", ()))
        self.without = words(entry.get("without", ()))
        self.taint = frozenset(words(entry.get("taint", ())))
        self.stdin = frozenset(words(entry.get("stdin", ())))
        self.except_values = words(entry.get("except_values", ()))
        self.bare: bool = entry.get("bare", False)
        self.least: int = entry.get("least", 0)
        self.no_stdin: bool = entry.get("no_stdin", False)
        self.operands = _compiled(entry, "operands")
        self.any = [re.compile(pattern) for pattern in listed_patterns(entry.get("any", ()))]
        self.unless = _compiled(entry, "unless")
        self.given = _compiled(entry, "given")


class RolePart:
    """One `[[roles]]` entry: how a word in this role is judged.

    Named groups of `pattern` are judged in the role of their name. With `whole` the pattern must match all of the text, piece
    by piece. The finding applies where the pattern is found (with `whole`: where it is not), or the word is (not) `listed`.
    """

    def __init__(self, entry: Mapping[str, Any], policy: "Policy") -> None:
        self.finding = policy.finding(entry) if "id" in entry else None
        self.pattern = _compiled(entry, "pattern")
        self.unless = _compiled(entry, "unless")
        self.whole: bool = entry.get("whole", False)
        self.listed: str | None = entry.get("listed")
        self.unlisted: str | None = entry.get("unlisted")
        self.groups = {
            group: group.rstrip("0123456789").replace("_", "-")
            for group in (self.pattern.groupindex if self.pattern else ())
            if not group.startswith("_")
        }


class Policy:
    """Everything the judge decides by."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self._decisions: Mapping[str, str] = data.get("decisions", {})
        self._entries = {name: entry for entry in data.get("programs", ()) for name in words(entry["names"])}
        for decision in Decision:
            for name in words(data.get(decision.value, ())):
                reason = f"The policy lists {name} under {decision.value}; change the policy file if that is wrong."
                self._entries[name] = {"id": f"listed-{decision.value}", "decision": decision.value, "reason": reason}
        self._made: dict[tuple[str, int], Any] = {}

    @classmethod
    def default(cls) -> "Policy":
        """Return the shipped policy."""
        return _default()

    @classmethod
    def load(cls, path: "str | Path") -> "Policy":
        """Read a user's file and lay it over the shipped policy; `extends = "none"` leaves out its programs and rules."""
        given = _read(str(path))
        base = _shipped()
        if given.pop("extends", "default") == "none":
            base = {key: value for key, value in base.items() if key not in ("programs", "rules", "paths", "variables")}
        try:
            policy = cls(_merge(base, given))
            policy.check()
        except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
            hint = "Compare the entry with those of the shipped policy.toml."
            raise Invalid(f"The policy file {path} is not well formed: {error!r}.", hint=hint, path=str(path)) from error
        return policy

    def check(self) -> None:
        """Build every entry, which raises for a malformed one."""
        for name in self._entries:
            self.program(name)
        for name in self._filed("rules", "programs"):
            self.rules(name)
        for name in self._filed("roles", "name"):
            self.role(name)
        for table in (self.paths, self.events, self.variables):
            len(table)
        for kind in ("globs", "names", "patterns"):
            for name in self.data.get(kind, {}):
                getattr(self, kind)(name)

    def finding(self, entry: Mapping[str, Any], decision: str | None = None) -> Finding:
        """Read a decision, its rule and its reason; `[decisions]` has the last word."""
        rule = entry.get("id", "allowed")
        chosen = self._decisions.get(rule) or self._decisions.get(rule.partition("/")[0])
        return Finding(Decision(chosen or decision or entry.get("decision", "allow")), rule, entry.get("reason", _ALLOWED))

    def _build(self, make: Any, entry: Mapping[str, Any]) -> Any:
        """Build an entry once: a command needs a few of a policy's thousand."""
        key = make.__name__, id(entry)
        if key not in self._made:
            self._made[key] = make(entry, self)
        return self._made[key]

    @cache  # noqa: B019
    def _filed(self, table: str, key: str) -> dict[str, list[Mapping[str, Any]]]:
        """File the entries of a table under the names in one of their keys."""
        filed: dict[str, list[Mapping[str, Any]]] = {}
        for entry in self.data.get(table, ()):
            for name in words(entry[key]):
                filed.setdefault(name, []).append(entry)
        return filed

    def rules(self, program: str) -> list[Rule]:
        """Return the rules about a program."""
        return [self._build(Rule, entry) for entry in self._filed("rules", "programs").get(program, ())]

    def role(self, name: str) -> list[RolePart]:
        """Return the entries of a role."""
        return [self._build(RolePart, entry) for entry in self._filed("roles", "name").get(name, ())]

    @cached_property
    def paths(self) -> dict[tuple[str, str], Finding]:
        """The findings about roles of classes of paths."""
        return {
            (role, kind): self.finding(entry)
            for entry in self.data.get("paths", ())
            for role in words(entry["roles"])
            for kind in words(entry["classes"])
        }

    @cached_property
    def events(self) -> dict[Event, Finding]:
        """The findings about what the engine reports."""
        return {Event(entry["on"]): self.finding(entry) for entry in self.data["events"]}

    @cached_property
    def variables(self) -> dict[str, Finding | str]:
        """The findings about setting a variable, or the role of its value."""
        entries = ((name, entry) for entry in self.data.get("variables", ()) for name in words(entry["names"]))
        return {name: entry["role"] if "role" in entry else self.finding(entry) for name, entry in entries}

    @cache  # noqa: B019
    def globs(self, name: str) -> PathList:
        """Return a list of path patterns."""
        return PathList(words(self.data["globs"][name]))

    @cache  # noqa: B019
    def names(self, name: str) -> frozenset[str]:
        """Return a list of words."""
        return frozenset(words(self.data["names"].get(name, ())))

    @cache  # noqa: B019
    def patterns(self, name: str) -> re.Pattern[str]:
        """Return a named regular expression."""
        return re.compile(self.data["patterns"][name])

    @cache  # noqa: B019
    def regex(self, pattern: str) -> re.Pattern[str]:
        """Compile a regular expression of an entry."""
        return re.compile(pattern)

    def outputs(self, program: str) -> list[Mapping[str, Any]]:
        """Return the entries about what a program prints."""
        return self._filed("outputs", "programs").get(program, [])

    @cached_property
    def languages(self) -> dict[str, str]:
        """The languages of interpreters that share an entry."""
        return {name: language for language, named in self.data.get("languages", {}).items() for name in words(named)}

    @cached_property
    def path_roles(self) -> frozenset[str]:
        """The roles in which a word is a path."""
        return frozenset(role for role, _ in self.paths)

    @cached_property
    def starters(self) -> frozenset[str]:
        """Programs with subcommands that have their own entries."""
        return frozenset(name.rpartition(" ")[0] for name in self._entries if " " in name)

    def program(self, name: str) -> Program | None:
        """Return a program by its listed name."""
        found: Program | None = self._build(Program, self._entries[name]) if name in self._entries else None
        return found

    def canonical(self, name: str) -> str:
        """Return the name a program is listed under, without version or ending."""
        for candidate in (name, name.lower(), _ENDING.sub("", name)):
            if candidate in self._entries:
                return candidate
        for candidate in (_VERSION.sub("", name), name.split(".")[0]):
            if candidate in self._entries and self._may_stand_for(name, candidate):
                return candidate
        found = _FOR_TARGET.fullmatch(name)
        return found[1] if found and found[1] in self._entries else name

    def _may_stand_for(self, name: str, candidate: str) -> bool:
        """Return whether a longer name is the listed program: `gcc-12`, `python3.11` and `mkfs.ext4` are, `uname26` is not."""
        is_held = self._entries[candidate].get("decision", "allow") != Decision.ALLOW
        return _SEPARATED.search(name) is not None or candidate.lower() in self.names("versioned") or is_held

    def option_role(self, program: Program, option: str) -> str:
        """Return the role of an option's value: from the program's entry, else from the words of the option's name."""
        if option in program.options:
            return program.options[option]
        longer = {role for name, role in program.options.items() if name.startswith(option) and option.startswith("--")}
        return longer.pop() if len(longer) == 1 else self.role_by_name(option)

    def role_by_name(self, name: str) -> str:
        """Return the role that the words of a name suggest."""
        if name.lstrip("-").lower().startswith(_NEGATIONS):
            return "text"
        parts = {part.lower() for part in _PARTS.findall(name)}
        roles = {role: frozenset(words(named)) for role, named in self.data.get("option_words", {}).items()}
        for role, named in roles.items():
            if not named.isdisjoint(parts):
                return role
        inside = (
            role for role, named in roles.items() if any(len(word) >= _SHORTEST_PART and word in name.lower() for word in named)
        )
        return next(inside, "value")


def words(value: str | Iterable[str]) -> list[str]:
    """Read a list given as such or as words in one string."""
    return value.split() if isinstance(value, str) else list(value)


def listed(value: str | Iterable[str]) -> list[str]:
    """Read a list given as such or as a string with commas."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else list(value)


def listed_patterns(value: str | Iterable[str]) -> list[str]:
    """Read one pattern or a list of them."""
    return [value] if isinstance(value, str) else list(value)


def control_files() -> tuple[str, ...]:
    """Return the patterns of files that decide what is run: settings of git, editors, coding agents and Decklog itself."""
    globs = _shipped()["globs"]
    return tuple(pattern for name in ("guard", "hooks") for pattern in words(globs[name]))


def _compiled(entry: Mapping[str, Any], key: str) -> re.Pattern[str] | None:
    return re.compile(entry[key]) if key in entry else None


@cache
def _default() -> Policy:
    return Policy(_shipped())


@cache
def _shipped() -> dict[str, Any]:
    with open(_SHIPPED, encoding="utf-8") as file:
        data: dict[str, Any] = json.load(file)
    return data


def _read(path: str) -> dict[str, Any]:
    """Read a TOML or JSON file."""
    import tomllib

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        loaded = json.loads(text) if path.endswith(".json") else tomllib.loads(text)
    except FileNotFoundError as error:
        raise NotFound(f"There is no policy file {path}.", hint="Check the path.", path=path) from error
    except ValueError as error:
        hint = "Correct the file; its form is that of the shipped policy.toml."
        raise Invalid(f"The policy file {path} can't be read: {error}.", hint=hint, path=path) from error
    if not isinstance(loaded, dict):
        raise Invalid(f"The policy file {path} holds no table.", hint="Put a table at the top.", path=path)
    return loaded


def _merge(base: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one policy's data over another's."""
    merged = dict(base)
    for key, value in given.items():
        before = merged.get(key)
        if isinstance(value, Mapping) and isinstance(before, str | list) and set(value) <= {"add", "remove"}:
            gone = set(words(value.get("remove", ())))
            merged[key] = [word for word in words(before) if word not in gone] + words(value.get("add", ()))
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[key] = _merge(dict(before), value)
        elif isinstance(before, list) and isinstance(value, list) and any(isinstance(item, dict) for item in value):
            merged[key] = before + value
        else:
            merged[key] = value
    return merged
