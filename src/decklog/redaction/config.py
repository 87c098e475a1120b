"""Rules and allow-list entries of a user and of a repository.

A rule only finds more, so every repository may add rules in its `decklog.toml`. An allow-list entry hides secrets from the
redaction: it is read from the user's own settings, and from a repository's file only if the user has consented to that file.
"""

import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import re2

from decklog.core.errors import Invalid
from decklog.redaction.rules import Rule, compile_pattern, parse_rules

_FILE = "decklog.toml"
Consent = Callable[[Path, bytes], bool]


@dataclass(frozen=True, slots=True)
class Config:
    """What is added to the shipped rules."""

    rules: tuple[Rule, ...] = ()
    allow: tuple[str, ...] = ()


def no_consent(_path: Path, _content: bytes) -> bool:
    """Return that nobody consented to a repository's file."""
    return False


def load_config(folder: Path | None = None, is_consented: Consent = no_consent) -> Config:
    """Return the rules of the user and of the repository around a folder, and the allow-list entries that count."""
    user = _read(user_file())
    mine = _section(user[1], user[0]) if user else Config()
    repository = find_repository_file(folder or _working_folder())
    theirs = _read(repository) if repository else None
    if theirs is None:
        return mine
    added = _section(theirs[1], theirs[0])
    allow = added.allow if is_consented(*theirs) else ()
    return Config((*mine.rules, *added.rules), (*mine.allow, *allow))


def _working_folder() -> Path:
    """Return the folder of this process; the root if it is gone, since an agent may remove the one it works in."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


def user_file() -> Path:
    """Return the user's own settings for the redaction."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(home) / "decklog" / "redaction.toml"


def find_repository_file(folder: Path) -> Path | None:
    """Return the `decklog.toml` of a folder or of the nearest one above it."""
    for place in (folder, *folder.parents):
        if (place / _FILE).is_file():
            return place / _FILE
        if (place / ".git").exists():
            break
    return None


def _read(path: Path) -> tuple[Path, bytes] | None:
    try:
        return path, path.read_bytes()
    except OSError:
        return None


def _section(content: bytes, path: Path) -> Config:
    if b"redaction" not in content:
        return Config()
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise Invalid(f"{path} is not valid TOML: {problem}") from None
    section: Any = table.get("redaction", {})
    if not isinstance(section, dict) or set(section) - {"rule", "allow"}:
        raise Invalid(f"{path}: [redaction] takes [[redaction.rule]] tables and an `allow` list of patterns")
    rules = parse_rules(section.get("rule", ()), str(path))
    return Config(tuple(rules), _allow(section.get("allow", ()), path))


def _allow(patterns: Any, path: Path) -> tuple[str, ...]:
    for pattern in patterns:
        try:
            compile_pattern(pattern)
        except (re2.error, TypeError, AttributeError, UnicodeEncodeError) as problem:
            raise Invalid(f"{path}: the allow pattern {pattern!r} is not valid: {problem}") from None
    return tuple(patterns)
