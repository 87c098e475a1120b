"""The policy: data that says what is allowed, asked about and denied.

The shipped policy is `default.toml` beside this file, read from `shipped.json`, which `make docs` writes from it, since to read
the other takes twenty times as long. A user's file, TOML or JSON, is laid over it: tables
are merged, lists of tables are added to, `{ add = [...], remove = [...] }` edits a plain list, and the
short forms `allow`, `ask`, `deny` (programs) and `[decisions]` (rule name to decision) settle the common
wishes in one line each.
"""

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from decklog.core.errors import Invalid
from decklog.guard.policy.entries import Finding, Program, Rule
from decklog.guard.policy.globs import Globs
from decklog.guard.policy.load import Tables, merge, read, words
from decklog.guard.policy.made_on_use import MadeOnUse
from decklog.guard.policy.verdict import Decision

if TYPE_CHECKING:
    from pathlib import Path

_SHIPPED = os.path.join(os.path.dirname(__file__), "shipped.json")
_OWN = ("programs", "rules", "paths", "variables")
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])")
_NEGATIONS = ("no-", "skip-", "without-", "ignore-", "disable-", "exclude-")
# A shorter word stands in too many names by chance.
_TELLING = 4
# A tool of a compiler for another machine, such as `arm-none-eabi-size`.
_FOR_TARGET = re.compile(
    r"(?:[a-z0-9_]+-)+(gcc|g\+\+|cpp|ld|as|ar|nm|objcopy|objdump|size|strip|readelf|ranlib|gdb|strings|addr2line)(?:-\d+)?"
)
_VERSION = re.compile(r"[-_]?v?\d+(\.\d+)*$")
_SEPARATED = re.compile(r"[-_]v?\d+(\.\d+)*$")
_ENDING = re.compile(r"\.(?:exe|cmd|bat|ps1)$", re.IGNORECASE)


class Policy(NamedTuple):
    """Everything the judge decides by."""

    programs: Mapping[str, Program]
    rules: Mapping[str, tuple[Rule, ...]]
    paths: Mapping[tuple[str, str], Finding]
    findings: Mapping[str, Finding]
    globs: Mapping[str, Globs]
    names: Mapping[str, frozenset[str]]
    patterns: Mapping[str, re.Pattern[str]]
    variables: Mapping[str, Finding | str]
    option_words: Mapping[str, frozenset[str]]
    languages: Mapping[str, str]
    """The language of the code that a program runs."""
    starters: frozenset[str]
    """Programs with subcommands that start another program and therefore have entries of their own."""
    data: Mapping[str, Any]
    """The merged file, for whoever wants to show it."""

    @classmethod
    def default(cls) -> "Policy":
        """Give the shipped policy."""
        return _default()

    @classmethod
    def load(cls, path: "str | Path") -> "Policy":
        """Read a user's file and lay it over the shipped policy; `extends = "none"` uses it alone."""
        from pathlib import Path

        given = read(Path(path))
        base = _shipped()
        if given.pop("extends", "default") == "none":
            base = {key: value for key, value in base.items() if key not in _OWN}
        return _checked(merge(base, given), str(path))

    def program(self, name: str) -> Program | None:
        """Find a program by its name, also with a version behind it."""
        return self.programs.get(self.canonical(name))

    def canonical(self, name: str) -> str:
        """Give the name a program is listed under, without version or ending; its own if it is not."""
        for candidate in (name, name.lower(), _ENDING.sub("", name)):
            if candidate in self.programs:
                return candidate
        for candidate in (_VERSION.sub("", name), name.split(".")[0]):
            if candidate in self.programs and self._may_stand_for(name, candidate):
                return candidate
        found = _FOR_TARGET.fullmatch(name)
        return found[1] if found and found[1] in self.programs else name

    def _may_stand_for(self, name: str, candidate: str) -> bool:
        """Tell whether a longer name is the listed program: `gcc-12`, `python3.11` and `mkfs.ext4` are, `uname26` is not.

        Only where the program is held anyway, or the policy lists it as one with versions, is a name without a separator one.
        """
        is_separated = _SEPARATED.search(name) is not None
        return (
            is_separated
            or candidate.lower() in self.names["versioned"]
            or self.programs[candidate].finding.decision is not Decision.ALLOW
        )

    def option_role(self, program: Program, option: str) -> str:
        """Give the role of an option's value: what the program's entry says, else what the words of its name tell."""
        if option in program.options:
            return program.options[option]
        longer = {role for name, role in program.options.items() if name.startswith(option) and option.startswith("--")}
        return longer.pop() if len(longer) == 1 else self.role_by_name(option)

    def role_by_name(self, name: str) -> str:
        """Give the role that the words of a name tell, where no entry knows the name."""
        parts = {part.lower() for part in _PARTS.findall(name)}
        if name.lstrip("-").lower().startswith(_NEGATIONS):
            return "text"
        found = (role for role, named in self.option_words.items() if not named.isdisjoint(parts))
        return next(found, self._role_within(name.lower()))

    def _role_within(self, name: str) -> str:
        """Give the role of a word that a name only contains, as in `gruntfile` or `GOCACHE`."""
        for role, named in self.option_words.items():
            if any(len(word) >= _TELLING and word in name for word in named):
                return role
        return "value"


@cache
def control_files() -> tuple[str, ...]:
    """Return the patterns of files that decide what is run: settings of git, editors, coding agents and Decklog itself."""
    globs = _shipped()["globs"]
    return tuple(pattern for name in ("guard", "hooks") for pattern in words(globs[name]))


@cache
def _default() -> Policy:
    """Read the shipped policy once."""
    return _build(_shipped())


def _shipped() -> dict[str, Any]:
    """Give the data of the shipped policy, with the commands that only the manager may run."""
    with open(_SHIPPED, encoding="utf-8") as file:
        data: dict[str, Any] = json.load(file)
    return data


def _build(data: dict[str, Any]) -> Policy:
    """Build a policy from its data; what is wrong in an entry shows when it is used."""
    tables = Tables(data)
    programs = tables.programs()
    return Policy(
        programs=programs,
        rules=tables.rules(),
        paths=tables.paths(),
        findings=tables.findings(),
        globs=MadeOnUse(data.get("globs", {}), lambda given: Globs(words(given))),
        names=MadeOnUse(data.get("names", {}), lambda given: frozenset(words(given))),
        patterns=MadeOnUse(data.get("patterns", {}), re.compile),
        variables=tables.variables(),
        option_words=tables.option_words(),
        languages={name: language for language, named in data.get("languages", {}).items() for name in words(named)},
        starters=frozenset(name.rpartition(" ")[0] for name in programs if " " in name),
        data=data,
    )


def _checked(data: dict[str, Any], path: str) -> Policy:
    """Build a policy and make all of it, naming the file in what it refuses."""
    try:
        policy = _build(data)
        for table in (policy.programs, policy.rules, policy.globs, policy.names, policy.patterns):
            for name in table:
                table[name]
        return policy
    except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
        raise Invalid(
            f"The policy file {path} is not well formed: {error!r}.",
            hint="Compare the entry with those of the shipped default.toml.",
            path=path,
        ) from error
