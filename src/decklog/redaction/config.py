"""Rules and allow-list entries of a user and of a repository.

A rule only finds more, so every repository may add rules in its `decklog.toml`. An allow-list entry hides secrets from the
redaction: it is read from the user's own settings, and from a repository's file only if the user has consented to that file
(`decklog accept --settings`).
"""

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import re2

from decklog.errors import Invalid
from decklog.redaction.rules import Rule, compile_pattern, parse_rules
from decklog.user_consents import has_consent, settings_home

_FILE = "decklog.toml"


@dataclass(frozen=True, slots=True)
class Config:
    """What is added to the shipped rules."""

    rules: tuple[Rule, ...] = ()
    allow: tuple[str, ...] = ()


def load_config(folder: Path | None = None) -> Config:
    """Return the rules of the user and of the repository around a folder, and the allow-list entries that count."""
    user = _read(user_file())
    mine = _section(user[1], user[0]) if user else Config()
    repository = find_repository_file(folder or _working_folder())
    theirs = _read(repository) if repository else None
    if theirs is None:
        return mine
    added = _section(theirs[1], theirs[0])
    allow = added.allow if added.allow and _is_consented(*theirs) else ()
    return Config((*mine.rules, *added.rules), (*mine.allow, *allow))


def _is_consented(path: Path, content: bytes) -> bool:
    """Return whether the user consented to exactly this file in the repository that it is in."""
    git = _git_folder(path.parent)
    return git is not None and has_consent(str(git), hashlib.sha256(content).hexdigest())


def _git_folder(folder: Path) -> Path | None:
    """Return the git folder that all working trees of a repository share."""
    git = next((place / ".git" for place in (folder, *folder.parents) if (place / ".git").exists()), None)
    if git is None or git.is_dir():
        return git
    try:
        linked = git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        shared = linked / "commondir"
        return linked / shared.read_text(encoding="utf-8").strip() if shared.is_file() else linked
    except (OSError, UnicodeDecodeError):
        return None


def _working_folder() -> Path:
    """Return the folder of this process; the root if it is gone, since an agent may remove the one it works in."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


def user_file() -> Path:
    """Return the user's own settings for the redaction."""
    return Path(settings_home()) / "redaction.toml"


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
    if isinstance(patterns, str):
        raise Invalid(f"{path}: allow is a list of patterns, such as allow = ['demo-[a-z]+']")
    for pattern in patterns:
        try:
            compile_pattern(pattern)
        except (re2.error, TypeError, AttributeError, UnicodeEncodeError) as problem:
            raise Invalid(f"{path}: the allow pattern {pattern!r} is not valid: {problem}") from None
    return tuple(patterns)
