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
from fnmatch import fnmatchcase
from functools import cache, cached_property
from typing import Any, NamedTuple

from decklog.core.errors import Invalid, NotFound
from decklog.guard.globs import glob_regex
from decklog.guard.policy.verdict import Decision, Event

_SHIPPED = os.path.join(os.path.dirname(__file__), "policy.json")
ALLOWED = "Nothing in this command needs a person's attention."
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

_GLOB = re.compile(r"[*?\[]")
_WILD = re.compile(r"\*\*/|/\*\*$|\*|\?")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a path pattern; `dir/**` also matches the directory, one without a slash matches anywhere."""
    body = pattern.removesuffix("/**")
    regex = glob_regex(body if "/" in pattern else f"**/{body}")
    return re.compile(f"{regex}(?:/.*)?" if body != pattern else str(regex), re.IGNORECASE)


class PathList:
    """A list of path patterns."""

    def __init__(self, patterns: list[str]) -> None:
        self.patterns = patterns
        # Most paths lack the longest literal part of most patterns, so few patterns are compiled.
        self._literals = [(max(_WILD.split(pattern), key=len).casefold(), pattern) for pattern in patterns]

    def covers(self, path: str) -> bool:
        """Return whether a path matches as it is written."""
        text = path.casefold() if path.isascii() else None
        return any(
            _compiled(pattern).fullmatch(path) for part, pattern in self._literals if text is None or part.strip("/") in text
        )

    def match(self, path: str) -> bool:
        """Return whether a path matches, or a pattern in a command could expand to one that does."""
        return self.covers(path) or (bool(_GLOB.search(path)) and any(_could_expand(path, pattern) for pattern in self.patterns))


def _could_expand(path: str, pattern: str) -> bool:
    """Return whether a command's pattern, with a hidden name or two plain characters in it, covers a listed path."""
    name = path.rsplit("/", 1)[-1]
    is_plain = not _GLOB.search(pattern.removeprefix("**/"))
    if is_plain and len(re.sub(r"[*?\[\]]", "", name)) >= 2 and not name.startswith("*"):
        literal = pattern.removeprefix("**/")
        if fnmatchcase(literal, path if "/" in literal else name):
            return True
    is_hidden = "/." in pattern or pattern.startswith(".")
    return is_hidden and _overlap(path.split("/"), (pattern if "/" in pattern else f"**/{pattern}").split("/"))


def _overlap(parts: list[str], pattern: list[str]) -> bool:
    if not pattern or not parts:
        return not parts and pattern in ([], ["**"])
    if pattern[0] == "**":
        return _overlap(parts, pattern[1:]) or _overlap(parts[1:], pattern)
    part, name = parts[0], pattern[0]
    if not _GLOB.search(part):
        fits = fnmatchcase(part.lower(), name.lower())
    else:
        fits = part.startswith(".") and name.startswith(".") and not _GLOB.search(name) and fnmatchcase(name, part)
    return fits and _overlap(parts[1:], pattern[1:])


class PolicyFinding(NamedTuple):
    """A decision with its rule, not yet tied to a command."""

    decision: Decision
    rule: str
    reason: str


_RULE_KEYS = (
    "programs decision id reason dangerous harmless any sub operands flags unless without taint bare stdin least given "
    "except_values no_stdin words"
)


class PolicyTable:
    """One table of the policy; its values are read when they are needed."""

    def __init__(self, data: Mapping[str, Any], policy: "Policy") -> None:
        self.data = data
        self.policy = policy

    def get(self, key: str) -> Any:
        """Return a value as it is written, an empty text if it is absent."""
        return self.data.get(key, "")

    def words(self, key: str) -> frozenset[str]:
        """Return a list of words."""
        return frozenset(words(self.get(key)))

    def pattern(self, key: str) -> re.Pattern[str] | None:
        """Return a regular expression, None if it is absent."""
        return re.compile(self.data[key]) if key in self.data else None

    @cached_property
    def finding(self) -> PolicyFinding:
        """The decision about the table."""
        return self.policy.finding(self.data)

    @cached_property
    def options(self) -> dict[str, str]:
        """The options of a program that take a value, with its role."""
        return {option: role for role, named in self.data.get("options", {}).items() for option in words(named)}

    @cached_property
    def subcommands(self) -> dict[str, PolicyFinding]:
        """The findings about the subcommands of a program."""
        return {
            name: self.policy.finding({} if decision == Decision.ALLOW else self.data, decision)
            for decision, named in self.data.get("subcommands", {}).items()
            for name in phrases(named)
        }

    @cached_property
    def groups(self) -> dict[str, str]:
        """The roles of the named groups of a role's pattern."""
        pattern = self.pattern("pattern")
        names = pattern.groupindex if pattern else ()
        return {name: name.rstrip("0123456789").replace("_", "-") for name in names if not name.startswith("_")}


class Policy:
    """Everything the judge decides by."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.no_program = PolicyTable({}, self)
        tables = [PolicyTable(entry, self) for entry in data.get("programs", ())]
        self._programs = {name: table for table in tables for name in words(table.data["names"])}
        for decision in Decision:
            for name in words(data.get(decision.value, ())):
                reason = f"The policy lists {name} under {decision.value}; change the policy file if that is wrong."
                entry = {"id": f"listed-{decision.value}", "decision": decision.value, "reason": reason}
                self._programs[name] = PolicyTable(entry, self)

    @classmethod
    @cache
    def default(cls) -> "Policy":
        """Return the shipped policy."""
        return cls(_shipped())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Policy":
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
        """Read every entry, which raises for a malformed one."""
        for rule in self.data.get("rules", ()):
            if unknown := sorted(rule.keys() - set(words(_RULE_KEYS))):
                raise ValueError(f"rule {rule.get('id')}: unknown key {', '.join(unknown)}")
        lists = [table for table in self.data.values() if isinstance(table, list)]
        entries = [PolicyTable(data, self) for table in lists for data in table if isinstance(data, Mapping)]
        for entry in [*self._programs.values(), *entries]:
            for key in ("pattern", "unless", "operands", "given"):
                entry.pattern(key)
            entry.finding, len(entry.options), len(entry.subcommands)
        self.filed("rules", "programs"), self.filed("roles", "name"), self.paths, self.events, self.variables
        for kind in ("globs", "names", "patterns"):
            for name in self.data.get(kind, {}):
                getattr(self, kind)(name)

    def finding(self, entry: Mapping[str, Any], decision: str | None = None) -> PolicyFinding:
        """Read a decision, its rule and its reason; `[decisions]` has the last word."""
        rule, decisions = entry.get("id", "allowed"), self.data.get("decisions", {})
        chosen = decisions.get(rule) or decisions.get(rule.partition("/")[0])
        return PolicyFinding(Decision(chosen or decision or entry.get("decision", "allow")), rule, entry.get("reason", ALLOWED))

    @cache  # noqa: B019
    def filed(self, table: str, key: str) -> dict[str, list[PolicyTable]]:
        """Return the entries of a table under the names in one of their keys."""
        filed: dict[str, list[PolicyTable]] = {}
        for data in self.data.get(table, ()):
            entry = PolicyTable(data, self)
            for name in words(data[key]):
                filed.setdefault(name, []).append(entry)
        return filed

    @cached_property
    def paths(self) -> dict[tuple[str, str], PolicyFinding]:
        """The findings about roles of classes of paths."""
        return {
            (role, kind): self.finding(entry)
            for entry in self.data.get("paths", ())
            for role in words(entry["roles"])
            for kind in words(entry["classes"])
        }

    @cached_property
    def events(self) -> dict[Event, PolicyFinding]:
        """The findings about what the engine reports."""
        return {Event(entry["on"]): self.finding(entry) for entry in self.data["events"]}

    @cached_property
    def variables(self) -> dict[str, PolicyFinding | str]:
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
        return frozenset(name.rpartition(" ")[0] for name in self._programs if " " in name)

    def program(self, name: str) -> PolicyTable | None:
        """Return a program by its listed name."""
        return self._programs.get(name)

    def knows(self, name: str) -> bool:
        """Return whether the policy lists a program."""
        return self.canonical(name) in self._programs

    def file_roles(self, path: str) -> list[str]:
        """Return the roles in which a tool later uses a file of this name."""
        return [entry["role"] for entry in self.data["files"] if self.globs(entry["globs"]).covers(path)]

    def canonical(self, name: str) -> str:
        """Return the name a program is listed under, without version or ending: `gcc-12`, `python3.11`, `mkfs.ext4`."""
        for candidate in (name, name.lower(), _ENDING.sub("", name)):
            if candidate in self._programs:
                return candidate
        for candidate in (_VERSION.sub("", name), name.split(".")[0]):
            if candidate in self._programs and (
                _SEPARATED.search(name)
                or candidate.lower() in self.names("versioned")
                or self._programs[candidate].get("decision") not in ("", Decision.ALLOW)
            ):
                return candidate
        found = _FOR_TARGET.fullmatch(name)
        return found[1] if found and found[1] in self._programs else name

    def option_role(self, program: PolicyTable, option: str) -> str:
        """Return the role of an option's value: from the program's entry, else from the words of the option's name."""
        if option in program.options:
            return program.options[option]
        longer = {role for name, role in program.options.items() if name.startswith(option) and option.startswith("--")}
        return longer.pop() if len(longer) == 1 else self.role_by_name(option)

    def role_by_name(self, name: str) -> str:
        """Return the role that the words of a name suggest."""
        low = name.lower()
        if low.lstrip("-").startswith(_NEGATIONS):
            return "text"
        parts = {part.lower() for part in _PARTS.findall(name)}
        roles = {role: words(named) for role, named in self.data.get("option_words", {}).items()}
        whole = (role for role, named in roles.items() if not parts.isdisjoint(named))
        inside = (role for role, named in roles.items() if any(len(word) >= _SHORTEST_PART and word in low for word in named))
        return next(whole, "") or next(inside, "value")


def words(value: str | Iterable[str]) -> list[str]:
    """Read a list given as such or as words in one string."""
    return value.split() if isinstance(value, str) else list(value)


def phrases(value: str | Iterable[str]) -> list[str]:
    """Read a list given as such or as a string with commas."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else list(value)


def control_files() -> tuple[str, ...]:
    """Return the patterns of files that decide what is run: settings of git, editors, coding agents and Decklog itself."""
    globs = _shipped()["globs"]
    return tuple(pattern for name in ("guard", "hooks") for pattern in words(globs[name]))


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
