"""Somebody who has faults mended: commits fixes by hand, and has models and agents follow a script."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks import mending_faults

from decklog import Decklog
from decklog.conductor.checks.running import Runner
from decklog.conductor.git.repository import Repository
from decklog.mending.proof.judging import Proof
from decklog.mending.proof.proving import Proving
from decklog.review.change import Change, between
from decklog.review.reviewing import settings_of
from decklog.tools.sandbox.sandbox import Kind
from tests.conductor.repositories import git, make_repository, write

SETTINGS = """
[run]
sandbox = "none"
[models.mine]
provider = "scripted"
script = "unused.json"
[calls]
review = "mine"
mend = "mine"
[review]
base = "main"
"""


def make_faulty_repository(folder: Path) -> Path:
    return make_repository(folder, mending_faults.package(SETTINGS))


class Bench:
    """One repository with faults, and a log."""

    def __init__(self, log: Decklog, folder: Path) -> None:
        self.log = log
        self.folder = folder
        self.state = folder.parent / "state"
        self.repository = Repository.find(folder, self.state)

    def commit(self, branch: str, files: Mapping[str, str | None], message: str = "Mend it") -> Change:
        """Commit a change to a branch that begins with main; the branch that is checked out afterwards is main."""
        git(self.folder, "checkout", "-q", "-B", branch, "main")
        write(self.folder, {name: text for name, text in files.items() if text is not None})
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", message)
        git(self.folder, "checkout", "-q", "main")
        return between(self.repository, f"main..{branch}", cwd=self.folder)

    def prove(self, change: Change) -> Proof:
        run_id = self.log.runs.start("Prove").id
        runner = Runner(
            repository=self.repository,
            person=self.repository.person(),
            sandbox=Kind.NONE,
            log_file=None,
            folder=self.state / "trials",
        )
        return Proving(self.log, settings_of(change), runner, run_id, lambda _: None).prove(change)
