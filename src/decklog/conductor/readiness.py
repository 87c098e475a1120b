"""What a run needs and lacks here, found out without writing anything."""

import shutil
import tempfile
from pathlib import Path

from decklog.conductor.git.remote import Remote
from decklog.conductor.git.repository import HOME, Repository, starting_commit
from decklog.conductor.settings import configuration
from decklog.errors import DecklogError
from decklog.tools.sandbox.sandbox import Sandbox


def problems(cwd: Path, commit: str) -> list[str]:
    """Say what keeps a run from starting here, each in a sentence; empty means that nothing does."""
    with tempfile.TemporaryDirectory(prefix="decklog-") as state:
        try:
            repository = Repository.find(cwd, Path(state))
            settings = configuration.read(repository, starting_commit(repository, commit, cwd=cwd))
            Sandbox(kind=settings.sandbox).settled()
            if settings.remote is not None:
                remote = Remote(repository, settings.remote)
                remote.check()
                remote.refs(HOME)
        except DecklogError as problem:
            return [" ".join(part for part in (problem.message + ".", problem.hint) if part)]
    wanted = {f"agent {name}": str(settings.agents[name].command[0]) for name in settings.workers}
    wanted |= {f"check {check.name}": check.command[0] for check in settings.checks}
    return [
        f"{who} is called as {program!r}, and there is no such program. Install it, or change decklog.toml."
        for who, program in wanted.items()
        if shutil.which(program) is None
    ]
