"""Rules and allow-list entries of a user and of a repository.

A rule only finds more, so every repository may add rules in its `decklog.toml`. An allow-list entry hides secrets from the
redaction: it is read from the user's own settings, and from a repository's file only if the user has consented to that file
(`decklog accept --settings`).
"""

import os
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

import re2

from decklog.core.errors import Invalid
from decklog.core.user_consents import has_consent, settings_home
from decklog.redaction.rules import RedactionRule, compile_pattern, parse_rules

_FILE = "decklog.toml"


class Config(NamedTuple):
    """What is added to the shipped rules."""

    rules: tuple[RedactionRule, ...] = ()
    allow: tuple[str, ...] = ()


def load_config(folder: str | None = None) -> Config:
    """Return the rules of the user and of the repository around a folder, and the allow-list entries that count."""
    user = user_file()
    mine = _section(_read(user), user)
    file = find_repository_file(folder or _working_folder())
    if file is None:
        return mine
    content = _read(file)
    theirs = _section(content, file)
    allow = theirs.allow if theirs.allow and _is_consented(file, content) else ()
    return Config((*mine.rules, *theirs.rules), (*mine.allow, *allow))


def user_file() -> str:
    """Return the user's own settings for the redaction."""
    return os.path.join(settings_home(), "redaction.toml")


def find_repository_file(folder: str) -> str | None:
    """Return the `decklog.toml` of a folder or of the nearest one above it, up to the top of the repository."""
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
    """Return the folder of this process; the root if it is gone, since an agent may remove the one it works in."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"


def _is_consented(path: str, content: bytes) -> bool:
    """Return whether the user consented to exactly this file in the repository that it is in."""
    git = _git_folder(os.path.dirname(path))
    return git is not None and has_consent(git, sha256(content).hexdigest())


def _git_folder(folder: str) -> str | None:
    """Return the git folder that all working trees of a repository share."""
    top = next((place for place in _with_parents(folder) if os.path.exists(os.path.join(place, ".git"))), None)
    if top is None:
        return None
    git = os.path.join(top, ".git")
    if os.path.isdir(git):
        return git
    linked = os.path.join(top, _read(git).decode(errors="replace").removeprefix("gitdir:").strip())
    return os.path.join(linked, _read(os.path.join(linked, "commondir")).decode(errors="replace").strip())


def _read(path: str) -> bytes:
    """Return the content of a file; nothing of one that is not there or can't be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _section(content: bytes, path: str) -> Config:
    if b"redaction" not in content:
        return Config()
    # Here, and not at the top: most repositories add nothing.
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
