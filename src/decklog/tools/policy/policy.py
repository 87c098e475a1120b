"""The policy: data that says what is allowed, asked about and denied.

The shipped policy is `default.toml` beside this file. A user's file, TOML or JSON, is laid over it: tables
are merged, lists of tables are added to, `{ add = [...], remove = [...] }` edits a plain list, and the
short forms `allow`, `ask`, `deny` (programs) and `[decisions]` (rule name to decision) settle the common
wishes in one line each.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from decklog.errors import Invalid, NotFound
from decklog.tools.policy.globs import Globs
from decklog.tools.policy.verdict import Decision

_DEFAULT = Path(__file__).with_name("default.toml")
_OWN = ("programs", "rules", "paths", "variables")
_VERSION = re.compile(r"[-_]?v?\d+(\.\d+)*$")


@dataclass(frozen=True)
class Finding:
    """A decision with the rule behind it, not yet tied to a command."""

    decision: Decision
    rule: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Program:
    """What a program does with its arguments, and whether it may run at all."""

    finding: Finding
    options: Mapping[str, str] = field(default_factory=dict)
    """Options that take a value, with the value's role."""
    operands: str = "text"
    first: str | None = None
    last: str | None = None
    single: bool = False
    runs: str | None = None
    """How it starts another program: `argv` or `shell`."""
    skip: int = 0
    subcommands: Mapping[str, Finding] = field(default_factory=dict)
    kind: str | None = None
    """The special reading it needs: `git`, `find`, `python` ..."""
    code: frozenset[str] = frozenset()
    output: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A decision about some uses of some programs; every condition given must hold."""

    finding: Finding
    sub: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    words: re.Pattern[str] | None = None
    bare: bool = False


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
    data: Mapping[str, Any]
    """The merged file, for whoever wants to show it."""

    @classmethod
    def default(cls) -> "Policy":
        """Give the shipped policy."""
        return _default()

    @classmethod
    def load(cls, path: str | Path) -> "Policy":
        """Read a user's file and lay it over the shipped policy; `extends = "none"` uses it alone."""
        given = _read(Path(path))
        base = _read(_DEFAULT)
        if given.pop("extends", "default") == "none":
            base = {key: value for key, value in base.items() if key not in _OWN}
        return build(merge(base, given), str(path))

    def program(self, name: str) -> Program | None:
        """Find a program by its name, also with a version behind it."""
        return self.programs.get(self.canonical(name))

    def canonical(self, name: str) -> str:
        """Give the name a program is listed under, without version or ending; its own if it is not."""
        for candidate in (name, name.lower(), _VERSION.sub("", name), name.split(".")[0]):
            if candidate in self.programs:
                return candidate
        return name


@cache
def _default() -> Policy:
    """Read the shipped policy once."""
    return build(merge({}, _read(_DEFAULT)), str(_DEFAULT))


def _read(path: Path) -> dict[str, Any]:
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


def build(data: dict[str, Any], path: str) -> Policy:
    """Build a policy from its data, naming the file in what it refuses."""
    from decklog.tools.policy.load import Builder

    try:
        return Builder(data).policy()
    except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
        raise Invalid(
            f"The policy file {path} is not well formed: {error!r}.",
            hint="Compare the entry with those of the shipped default.toml.",
            path=path,
        ) from error
