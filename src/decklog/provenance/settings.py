"""`[provenance]` of `decklog.toml`."""

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from decklog.core.errors import Invalid, NotFound, Unavailable
from decklog.provenance.git import GitFailed, GitRepository

TABLE = "provenance"


@dataclass(frozen=True)
class ProvenanceSettings:
    """Whether edits of agents are captured."""

    capture: bool = True


def read_settings(content: bytes) -> ProvenanceSettings:
    """Parse `[provenance]` of a `decklog.toml`; raise Invalid for an unknown setting."""
    try:
        table = tomllib.loads(content.decode()).get(TABLE, {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise Invalid(f"decklog.toml can't be parsed: {problem}") from None
    if not isinstance(table, dict) or table.keys() - {"capture"} or not isinstance(table.get("capture", True), bool):
        raise Invalid("[provenance] has only one setting: capture = true or false", field=TABLE)
    return ProvenanceSettings(**table)


def repository_at(folder: str | None = None) -> GitRepository:
    """Return the repository of a folder, by default the current one. Raise NotFound if there is none."""
    where = folder or os.getcwd()
    found = GitRepository.find(where)
    if found is None:
        raise NotFound(f"{where} is not in a git repository", hint="Change to one, or run: git init", path=where)
    return found


@contextmanager
def git_failures() -> Iterator[None]:
    """Convert failures of git to Unavailable."""
    try:
        yield
    except GitFailed as problem:
        raise Unavailable(str(problem)) from problem
