"""The log and the repository that a command about lines works with."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decklog.cli.call import Invocation
    from decklog.log import Decklog
    from decklog.provenance.git import GitRepository


@contextmanager
def opened(call: "Invocation", *, writing: bool = False, create: bool = False) -> "Iterator[tuple[Decklog, GitRepository]]":
    """Open the log with everything that hooks have reported, and find the repository of this folder."""
    from decklog.agents.origins.rewinding import catch_up
    from decklog.provenance.settings import git_failures, repository_at

    with call.open(writing=writing, create=create) as log, git_failures():
        repo = repository_at()
        catch_up(log, call.spool())
        yield log, repo
