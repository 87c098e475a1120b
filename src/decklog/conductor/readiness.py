"""What a run needs and lacks here: its settings, its sandbox, its remote, and a trial start of every agent and check."""

import tempfile
from pathlib import Path

from decklog.conductor.git.remote import Remote
from decklog.conductor.git.repository import HOME, Repository, starting_commit
from decklog.conductor.settings import configuration
from decklog.conductor.trials import Trials
from decklog.core.errors import DecklogError
from decklog.guard.sandbox.sandbox import Sandbox


def problems(cwd: Path, commit: str) -> list[str]:
    """List what keeps a run from starting here, each in a sentence; empty means that nothing does."""
    with tempfile.TemporaryDirectory(prefix="decklog-") as state:
        try:
            repository = Repository.find(cwd, Path(state))
            first = starting_commit(repository, commit, cwd=cwd)
            settings = configuration.read(repository, first)
            Sandbox(kind=settings.sandbox).settled()
            if settings.remote is not None:
                remote = Remote(repository, settings.remote)
                remote.check()
                remote.refs(HOME)
            return list(Trials(settings=settings, repository=repository, commit=first, folder=Path(state, "trials")).problems())
        except DecklogError as problem:
            return [" ".join(part for part in (problem.message + ".", problem.hint) if part)]
