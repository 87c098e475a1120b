"""The policy: data that says what is allowed, asked about and denied.

The shipped policy is `default.toml` beside this file. A user's file, TOML or JSON, is laid over it: tables
are merged, lists of tables are added to, `{ add = [...], remove = [...] }` edits a plain list, and the
short forms `allow`, `ask`, `deny` (programs) and `[decisions]` (rule name to decision) settle the common
wishes in one line each.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from decklog.errors import Invalid
from decklog.tools.policy.entries import Finding, Program, Rule
from decklog.tools.policy.globs import Globs
from decklog.tools.policy.load import Tables, merge, read, words

_DEFAULT = Path(__file__).with_name("default.toml")
_MANAGER = Path(__file__).with_name("manager.toml")
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


@dataclass(frozen=True)
class Policy:
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
    def load(cls, path: str | Path) -> "Policy":
        """Read a user's file and lay it over the shipped policy; `extends = "none"` uses it alone."""
        given = read(Path(path))
        base = _shipped()
        if given.pop("extends", "default") == "none":
            base = {key: value for key, value in base.items() if key not in _OWN}
        return _build(merge(base, given), str(path))

    def program(self, name: str) -> Program | None:
        """Find a program by its name, also with a version behind it."""
        return self.programs.get(self.canonical(name))

    def canonical(self, name: str) -> str:
        """Give the name a program is listed under, without version or ending; its own if it is not."""
        for candidate in (name, name.lower(), _VERSION.sub("", name), name.split(".")[0]):
            if candidate in self.programs:
                return candidate
        found = _FOR_TARGET.fullmatch(name)
        return found[1] if found and found[1] in self.programs else name

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
def _default() -> Policy:
    """Read the shipped policy once."""
    return _build(_shipped(), str(_DEFAULT))


def _shipped() -> dict[str, Any]:
    """Give the data of the shipped policy, with the commands that only the manager may run."""
    return merge(merge({}, read(_DEFAULT)), read(_MANAGER))


def _build(data: dict[str, Any], path: str) -> Policy:
    """Build a policy from its data, naming the file in what it refuses."""
    tables = Tables(data)
    try:
        programs = tables.programs()
        return Policy(
            programs=programs,
            rules=tables.rules(),
            paths=tables.paths(),
            findings=tables.findings(),
            globs={name: Globs(words(given)) for name, given in data.get("globs", {}).items()},
            names={name: frozenset(words(given)) for name, given in data.get("names", {}).items()},
            patterns={name: re.compile(given) for name, given in data.get("patterns", {}).items()},
            variables=tables.variables(),
            option_words=tables.option_words(),
            languages={name: language for language, named in data.get("languages", {}).items() for name in words(named)},
            starters=frozenset(name.rpartition(" ")[0] for name in programs if " " in name),
            data=data,
        )
    except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
        raise Invalid(
            f"The policy file {path} is not well formed: {error!r}.",
            hint="Compare the entry with those of the shipped default.toml.",
            path=path,
        ) from error
