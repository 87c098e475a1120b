"""The policy as data: programs, rules, roles, path classes and events, read from a TOML file.

The shipped policy is `policy.toml`. It is read from `policy.json`, which `make docs` generates, because TOML parses slowly. A
user's file, TOML or JSON, changes it: tables are merged, lists of tables are extended, and
`{ add = [...], remove = [...] }` edits a plain list. The short forms `allow`, `ask`, `deny` (programs) and `[decisions]`
(rule to decision) cover common changes in one line each.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from decklog.core.errors import Invalid, NotFound
from decklog.guard.globs import glob_regex
from decklog.guard.policy.verdict import Decision, Event

_SHIPPED_PATH = os.path.join(os.path.dirname(__file__), "policy.json")
ALLOWED = "Nothing in this command needs a person's attention."
_NAME_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])")
_NEGATIONS = ("no-", "skip-", "without-", "ignore-", "disable-", "exclude-")
_SHORTEST_PART = 4
# A tool of a cross compiler, such as `arm-none-eabi-size`.
_CROSS_COMPILER = re.compile(
    r"(?:[a-z0-9_]+-)+(gcc|g\+\+|cpp|ld|as|ar|nm|objcopy|objdump|size|strip|readelf|ranlib|gdb|strings|addr2line)(?:-\d+)?"
)
_VERSION = re.compile(r"[-_]?v?\d+(\.\d+)*$")
_SEPARATED_VERSION = re.compile(r"[-_]v?\d+(\.\d+)*$")
_FILE_ENDING = re.compile(r"\.(?:exe|cmd|bat|ps1)$", re.IGNORECASE)

_GLOB = re.compile(r"[*?\[]")
_WILD = re.compile(r"\*\*/|/\*\*$|\*|\?")


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
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
        """Return whether a path matches literally, without expanding its wildcards."""
        text = path.casefold() if path.isascii() else None
        return any(
            _compile_pattern(pattern).fullmatch(path)
            for part, pattern in self._literals
            if text is None or part.strip("/") in text
        )

    def match(self, path: str) -> bool:
        """Return whether a path matches, or is a wildcard pattern that could expand to a matching path."""
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


Entry = dict[str, Any]
"""A table of the policy: a program, a rule, a role and so on."""

_RULE_KEYS = (
    "programs decision id reason dangerous harmless any sub operands flags unless without taint bare stdin least given "
    "except_values no_stdin"
)
# Keys whose text is a list of words, and those whose text is a list of phrases with commas.
_WORDS = (
    "name names programs roles classes flags without taint except_values after until deletes groups shows dry files fetches code "
    "module interactive runs_nothing edits moves_commits dry_run first_unless text_after links saves branch "
    "add remove allow ask deny"
)
_PHRASES = "adds publishes sub"


class Policy:
    """All data by which commands are judged."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.programs: dict[str, Entry] = {name: entry for entry in data.get("programs", ()) for name in entry["names"]}
        for decision in Decision:
            for name in data.get(decision, ()):
                reason = f"The policy lists {name} under {decision}; change the policy file if that is wrong."
                self.programs[name] = {"id": f"listed-{decision}", "decision": decision, "reason": reason}
        self.group_programs = {name.rpartition(" ")[0] for name in self.programs if " " in name}
        """Programs with subcommands that have their own entries."""
        self.rules = _group_by(data.get("rules", ()), "programs")
        self.roles = _group_by(data["roles"], "name")
        self.outputs = _group_by(data["outputs"], "programs")
        self.paths: dict[tuple[str, str], Entry] = {
            (role, kind): entry for entry in data.get("paths", ()) for role in entry["roles"] for kind in entry["classes"]
        }
        self.path_roles = {role for role, _ in self.paths}
        self.events: dict[Event, Entry] = {Event(entry["on"]): entry for entry in data["events"]}
        self.variables: dict[str, Entry] = {name: entry for entry in data.get("variables", ()) for name in entry["names"]}
        self.names = {name: frozenset(listed) for name, listed in data["names"].items()}
        self.languages: dict[str, str] = {name: language for language, named in data["languages"].items() for name in named}

    @classmethod
    @cache
    def default(cls) -> "Policy":
        """Return the shipped policy."""
        return cls(_read_shipped_policy())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Policy":
        """Load a user's file as changes of the shipped policy; `extends = "none"` drops the shipped programs and rules."""
        given = _read(str(path))
        base = _read_shipped_policy()
        if given.pop("extends", "default") == "none":
            base = {key: value for key, value in base.items() if key not in ("programs", "rules", "paths", "variables")}
        try:
            policy = cls(_apply_decisions(_merge(base, normalise(given))))
            policy.check()
        except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
            hint = "Compare the entry with those of the shipped policy.toml."
            raise Invalid(f"The policy file {path} is not well formed: {error!r}.", hint=hint, path=str(path)) from error
        return policy

    def check(self) -> None:
        """Raise an error for a malformed entry."""
        for rule in self.data.get("rules", ()):
            if unknown := sorted(rule.keys() - set(parse_words(_RULE_KEYS))):
                raise ValueError(f"rule {rule.get('id')}: unknown key {', '.join(unknown)}")
        tables = (table for table in self.data.values() if isinstance(table, list))
        for entry in (entry for table in tables for entry in table if isinstance(entry, Mapping)):
            for key in ("pattern", "unless", "given"):
                re.compile(entry.get(key, ""))
            for decision in (entry.get("decision", Decision.ALLOW), *entry.get("subcommands", {}).values()):
                Decision(decision)
        for rule in self.data.get("rules", ()):
            re.compile(rule.get("operands", ""))
        for name in self.data["globs"]:
            self.globs(name)
        for name in self.data["patterns"]:
            self.patterns(name)

    @cache  # noqa: B019
    def globs(self, name: str) -> PathList:
        """Return a list of path patterns."""
        return PathList(self.data["globs"][name])

    @cache  # noqa: B019
    def patterns(self, name: str) -> re.Pattern[str]:
        """Return a named regular expression."""
        return re.compile(self.data["patterns"][name])

    def has_program(self, name: str) -> bool:
        """Return whether the policy lists a program."""
        return self.canonical_name(name) in self.programs

    def file_roles(self, path: str) -> list[str]:
        """Return the roles in which a tool later uses a file of this name."""
        return [entry["role"] for entry in self.data["files"] if self.globs(entry["globs"]).covers(path)]

    def canonical_name(self, name: str) -> str:
        """Return the listed name of a program, without version or file ending: `gcc-12`, `python3.11`, `mkfs.ext4`."""
        for candidate in (name, name.lower(), _FILE_ENDING.sub("", name)):
            if candidate in self.programs:
                return candidate
        for candidate in (_VERSION.sub("", name), name.split(".")[0]):
            if candidate in self.programs and (
                _SEPARATED_VERSION.search(name)
                or candidate.lower() in self.names["versioned"]
                or self.programs[candidate].get("decision", Decision.ALLOW) != Decision.ALLOW
            ):
                return candidate
        found = _CROSS_COMPILER.fullmatch(name)
        return found[1] if found and found[1] in self.programs else name

    def option_role(self, program: Entry, option: str) -> str:
        """Return the role of an option's value: from the program's entry, else from the words of the option's name."""
        options: dict[str, str] = program.get("options", {})
        if option in options:
            return options[option]
        longer = {role for name, role in options.items() if name.startswith(option) and option.startswith("--")}
        return longer.pop() if len(longer) == 1 else self.role_by_name(option)

    def role_by_name(self, name: str) -> str:
        """Return the role that the words of a name suggest."""
        low = name.lower()
        if low.lstrip("-").startswith(_NEGATIONS):
            return "text"
        parts = {part.lower() for part in _NAME_PARTS.findall(name)}
        roles = self.data["option_words"]
        whole = (role for role, named in roles.items() if not parts.isdisjoint(named))
        inside = (role for role, named in roles.items() if any(len(word) >= _SHORTEST_PART and word in low for word in named))
        return next(whole, "") or next(inside, "value")


def _group_by(entries: Iterable[Entry], key: str) -> dict[str, list[Entry]]:
    """Group entries by the names in one of their keys."""
    grouped: dict[str, list[Entry]] = {}
    for entry in entries:
        for name in entry[key]:
            grouped.setdefault(name, []).append(entry)
    return grouped


def parse_words(value: str | Iterable[str]) -> list[str]:
    """Return a list unchanged, and a string as the list of its words."""
    return value.split() if isinstance(value, str) else list(value)


def _parse_phrases(value: str | Iterable[str]) -> list[str]:
    """Return a list unchanged, and a string as the list of its parts between commas."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else list(value)


def normalise(data: Mapping[str, Any]) -> dict[str, Any]:
    """Split lists that a policy file gives as text, and index options and subcommands by name."""
    result: dict[str, Any] = {}
    for key, value in data.items():
        if key in ("names", "globs", "option_words", "languages") and isinstance(value, Mapping):
            result[key] = {
                name: normalise(listed) if isinstance(listed, Mapping) else parse_words(listed) for name, listed in value.items()
            }
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            result[key] = [normalise(entry) for entry in value]
        elif key in parse_words(_WORDS):
            result[key] = parse_words(value)
        elif key in parse_words(_PHRASES) and not isinstance(value, Mapping):
            result[key] = _parse_phrases(value)
        elif key == "options":
            result[key] = {option: role for role, named in value.items() for option in parse_words(named)}
        elif key == "subcommands":
            result[key] = {name: decision for decision, named in value.items() for name in _parse_phrases(named)}
        elif key == "sub":
            result[key] = {name: normalise(entry) for name, entry in value.items()}
        else:
            result[key] = value
    return result


def _apply_decisions(data: dict[str, Any]) -> dict[str, Any]:
    """Apply the table `[decisions]` to the rules of a policy."""
    decisions = data.get("decisions", {})
    for table, entries in data.items() if decisions else ():
        if isinstance(entries, list):
            data = {
                **data,
                table: [_apply_decision(entry, decisions) if isinstance(entry, Mapping) else entry for entry in entries],
            }
    return data


def _apply_decision(entry: Mapping[str, Any], decisions: Mapping[str, str]) -> Mapping[str, Any]:
    rule = entry.get("id", "")
    chosen = decisions.get(rule) or decisions.get(rule.partition("/")[0])
    if not chosen:
        return entry
    changed = {**entry, "decision": chosen}
    if "subcommands" in entry:
        changed["subcommands"] = {name: old if old == Decision.ALLOW else chosen for name, old in entry["subcommands"].items()}
    return changed


def control_files() -> tuple[str, ...]:
    """Return the patterns of files that decide what is run: settings of git, editors, coding agents and Decklog itself."""
    globs = _read_shipped_policy()["globs"]
    return tuple(pattern for name in ("guard", "hooks") for pattern in globs[name])


@cache
def _read_shipped_policy() -> dict[str, Any]:
    with open(_SHIPPED_PATH, encoding="utf-8") as file:
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
    """Merge the data of a policy into that of a base policy."""
    merged = dict(base)
    for key, value in given.items():
        before = merged.get(key)
        if isinstance(value, Mapping) and isinstance(before, list) and set(value) <= {"add", "remove"}:
            gone = value.get("remove", ())
            merged[key] = [word for word in before if word not in gone] + value.get("add", [])
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[key] = _merge(dict(before), value)
        elif isinstance(before, list) and isinstance(value, list) and any(isinstance(item, dict) for item in value):
            merged[key] = before + value
        else:
            merged[key] = value
    return merged
