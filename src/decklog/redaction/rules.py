"""Rules as data: load and validate the rules of this package, of the user and of the repository."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

import re2

from decklog.core.errors import Invalid
from decklog.core.folders import config_home
from decklog.core.user_consents import has_consent

_FOLDER = os.path.dirname(__file__)
# Further checks of a match. The last three use the judge.
REQUIREMENTS = ("", "value", "random", "mixed", "likely")


class RedactionRule(NamedTuple):
    """One kind of secret.

    `keywords` are lower case; the pattern is only tried on a text that has one of them. `trigger` is a pattern on the lower-case
    text for rules that have no fixed word. `group` is the group of `pattern` that holds the secret. `requires` names a further
    check of the value, `min_entropy` its minimum entropy in bits per character, `allow` patterns of harmless values.
    A `raw` rule reads the text before escapes are undone. `found` and `not_found` are examples, which are tests.
    """

    id: str
    pattern: str
    kind: str = ""
    keywords: tuple[str, ...] = ()
    trigger: str = ""
    group: int = 1
    requires: str = ""
    min_entropy: float = 0.0
    allow: tuple[str, ...] = ()
    raw: bool = False
    found: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return the kind that the marker names."""
        return self.kind or self.id


_FIELDS = frozenset(RedactionRule._fields)


def parse_rule(entry: Mapping[str, Any], source: str) -> RedactionRule:
    """Build a rule from a TOML table, or raise Invalid with the reason."""
    name = entry.get("id")
    if not isinstance(name, str) or not name.replace("-", "").isalnum():
        raise Invalid(f"{source}: a rule needs an id of letters, digits and hyphens (got {name!r})")
    if unknown := set(entry) - _FIELDS:
        raise Invalid(f"{source}: rule {name} has unknown fields: {', '.join(sorted(unknown))}")
    if not isinstance(entry.get("pattern"), str):
        raise Invalid(f"{source}: rule {name} needs a pattern")
    rule = _build(entry)
    if not rule.label.replace("-", "").isalnum():
        raise Invalid(f"{source}: the kind of rule {name} takes letters, digits and hyphens (got {rule.kind!r})")
    if not rule.keywords and not rule.trigger:
        raise Invalid(f"{source}: rule {name} needs keywords or a trigger")
    if any(word != word.lower() for word in rule.keywords):
        raise Invalid(f"{source}: the keywords of rule {name} must be lower case")
    if rule.requires not in REQUIREMENTS:
        raise Invalid(f"{source}: rule {name} requires {rule.requires!r}; known are {', '.join(REQUIREMENTS[1:])}")
    _check_patterns(rule, source)
    return rule


def _check_patterns(rule: RedactionRule, source: str) -> None:
    for pattern in (rule.pattern, rule.trigger, *rule.allow):
        try:
            compiled = compile_pattern(pattern)
        except (re2.error, UnicodeEncodeError) as error:
            raise Invalid(f"{source}: a pattern of rule {rule.id} is not valid: {error}") from None
        if pattern is rule.pattern and compiled.groups < rule.group:
            raise Invalid(f"{source}: the pattern of rule {rule.id} has no group {rule.group}")


class Lazy:
    """A regular expression that is compiled when a text first needs it, with the methods of `re.Pattern`."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._source), name)
        # Later calls find the attribute and do not reach this method.
        setattr(self, name, method)
        return method


def options() -> re2.Options:
    """Return the options of all patterns: one byte per character, so that byte offsets are text offsets."""
    given = re2.Options()
    given.encoding = re2.Options.Encoding.LATIN1
    given.max_mem = 64 << 20
    given.log_errors = False
    return given


def compile_pattern(pattern: str) -> Any:
    """Compile a pattern with RE2, which takes linear time on any input."""
    return re2.compile(pattern.encode("latin-1"), options())


def parse_rules(entries: Iterable[Mapping[str, Any]], source: str) -> list[RedactionRule]:
    """Build rules from TOML tables; ids must be unique."""
    rules = [parse_rule(entry, source) for entry in entries]
    ids = [rule.id for rule in rules]
    if len(set(ids)) != len(ids):
        twice = sorted({one for one in ids if ids.count(one) > 1})
        raise Invalid(f"{source}: several rules have the id {', '.join(twice)}")
    return rules


@cache
def shipped_rules() -> tuple[RedactionRule, ...]:
    """Return the rules of this package."""
    return tuple(map(_build, load_table("rules")["rule"]))


def _build(entry: Mapping[str, Any]) -> RedactionRule:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return RedactionRule(**fields)


@cache
def load_table(name: str) -> dict[str, Any]:
    """Load a table of this package: `rules`, `prose` or `words`.

    They are read from `tables.json`, which `make docs` writes from the TOML files: TOML takes ten times as long.
    """
    return dict(_tables()[name])


@cache
def _tables() -> dict[str, Any]:
    with open(os.path.join(_FOLDER, "tables.json"), "rb") as file:
        return dict(json.loads(file.read()))


def load_examples() -> list[RedactionRule]:
    """Return the rules with their examples, checked; for tests."""
    import tomllib

    with open(os.path.join(_FOLDER, "rules.toml"), "rb") as file:
        return parse_rules(tomllib.load(file)["rule"], "rules.toml")


_FILE = "decklog.toml"


class Config(NamedTuple):
    """Rules and allow-list entries in addition to the shipped ones."""

    rules: tuple[RedactionRule, ...] = ()
    allow: tuple[str, ...] = ()


def load_config(folder: str | None = None) -> Config:
    """Load the rules and the valid allow-list entries of the user and of the repository that contains a folder."""
    user = user_file()
    user_config = _section(_read(user), user)
    file = find_repository_file(folder or _working_folder())
    if file is None:
        return user_config
    content = _read(file)
    repository_config = _section(content, file)
    allow = repository_config.allow if repository_config.allow and _is_consented(file, content) else ()
    return Config((*user_config.rules, *repository_config.rules), (*user_config.allow, *allow))


def user_file() -> str:
    """Return the path of the user's redaction settings."""
    return os.path.join(config_home(), "redaction.toml")


def find_repository_file(folder: str) -> str | None:
    """Return the nearest `decklog.toml` in a folder or its parents, up to the root of the repository."""
    for place in _with_parents(folder):
        if os.path.isfile(os.path.join(place, _FILE)):
            return os.path.join(place, _FILE)
        if os.path.exists(os.path.join(place, ".git")):
            break
    return None


def _with_parents(folder: str) -> Iterator[str]:
    while True:
        yield folder
        if folder == os.path.dirname(folder):
            return
        folder = os.path.dirname(folder)


def _working_folder() -> str:
    """Return the working directory; `/` if an agent has removed it."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"


def _is_consented(path: str, content: bytes) -> bool:
    """Return whether the user consented to this content of the file for its repository."""
    git = _git_folder(os.path.dirname(path))
    return git is not None and has_consent(git, sha256(content).hexdigest())


def _git_folder(folder: str) -> str | None:
    """Return the git directory that all worktrees of a repository share."""
    top = next((place for place in _with_parents(folder) if os.path.exists(os.path.join(place, ".git"))), None)
    if top is None:
        return None
    git = os.path.join(top, ".git")
    if os.path.isdir(git):
        return git
    linked = os.path.join(top, _read(git).decode(errors="replace").removeprefix("gitdir:").strip())
    return os.path.join(linked, _read(os.path.join(linked, "commondir")).decode(errors="replace").strip())


def _read(path: str) -> bytes:
    """Return the content of a file; empty if it is missing or unreadable."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _section(content: bytes, path: str) -> Config:
    if b"redaction" not in content:
        return Config()
    # Import lazily: most repositories add no rules.
    import tomllib

    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise Invalid(f"{path} is not valid TOML: {problem}") from None
    section: Any = table.get("redaction", {})
    if not isinstance(section, dict) or set(section) - {"rule", "allow"}:
        raise Invalid(f"{path}: [redaction] takes [[redaction.rule]] tables and an `allow` list of patterns")
    rules = parse_rules(section.get("rule", ()), path)
    return Config(tuple(rules), _allow(section.get("allow", ()), path))


def _allow(patterns: Any, path: str) -> tuple[str, ...]:
    if isinstance(patterns, str):
        raise Invalid(f"{path}: allow is a list of patterns, such as allow = ['demo-[a-z]+']")
    for pattern in patterns:
        try:
            compile_pattern(pattern)
        except (re2.error, TypeError, AttributeError, UnicodeEncodeError) as problem:
            raise Invalid(f"{path}: the allow pattern {pattern!r} is not valid: {problem}") from None
    return tuple(patterns)
