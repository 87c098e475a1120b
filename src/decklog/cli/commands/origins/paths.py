"""Files of a repository as a person names them."""

import os
from typing import TYPE_CHECKING

from decklog.core.errors import NotFound

if TYPE_CHECKING:
    from decklog.provenance.git import GitRepository


def path_in(repo: "GitRepository", name: str) -> str:
    """Return a path as git names it; raise NotFound for one outside of the repository."""
    found = repo.relative(os.path.abspath(name))
    if found is None:
        raise NotFound(f"{name} is not in the repository {repo.top}", path=name)
    return found
