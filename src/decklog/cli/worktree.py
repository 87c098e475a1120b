"""The log and the repository that a command about lines works with."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from decklog.agents.origins.rewinding import catch_up
from decklog.cli.call import Invocation
from decklog.core.errors import NotFound
from decklog.log import Decklog
from decklog.provenance.git import GitRepository
from decklog.provenance.settings import git_failures, repository_at


@contextmanager
def opened(call: Invocation, *, writing: bool = False, create: bool = False) -> Iterator[tuple[Decklog, GitRepository]]:
    """Open the log with everything that hooks have reported, and find the repository of this folder."""
    with call.open(writing=writing, create=create) as log, git_failures():
        repo = repository_at()
        catch_up(log, call.spool())
        yield log, repo


def path_in(repo: GitRepository, name: str) -> str:
    """Return a path as git names it; raise NotFound for one outside of the repository."""
    found = repo.relative(os.path.abspath(name))
    if found is None:
        raise NotFound(f"{name} is not in the repository {repo.top}", path=name)
    return found
