"""The repository that a command is about, and git's failures as errors that every surface shows."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from decklog.core.errors import NotFound, Unavailable
from decklog.provenance.git import GitFailed, GitRepository


def repository_at(folder: str | None = None) -> GitRepository:
    """Return the repository of a folder, the current one unless another is named; raise NotFound where there is none."""
    where = folder or os.getcwd()
    found = GitRepository.find(where)
    if found is None:
        raise NotFound(f"{where} is in no git repository", hint="Change to a folder of one, or run: git init", path=where)
    return found


@contextmanager
def git_failures() -> Iterator[None]:
    """Raise a failure of git as Unavailable."""
    try:
        yield
    except GitFailed as problem:
        raise Unavailable(str(problem)) from problem
