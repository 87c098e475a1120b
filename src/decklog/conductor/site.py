"""What all stages of one run share: the log, the repository, the settings, and how to find things again."""

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from decklog.conductor.acts import Acts
from decklog.conductor.checks.checkouts import Checkouts
from decklog.conductor.checks.examination import Examination, Examiner
from decklog.conductor.checks.running import Runner
from decklog.conductor.git.removal import Removal
from decklog.conductor.git.repository import Person, Repository, ref_part
from decklog.conductor.items.rounds import Rounds
from decklog.conductor.machines.host import Host
from decklog.conductor.machines.tips import Tips, tips_of
from decklog.conductor.settings.configuration import Configuration
from decklog.conductor.stages import Stages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from decklog.log import Decklog
    from decklog.stores.tasks.task import Task


class ChangeReviewer(Protocol):
    """Reviews what the checks found green. The conductor is given one; it knows of no model itself."""

    def __call__(
        self, site: "RunContext", task: "Task", base: str, tip: str, wanted_end: "Callable[[], str | None]"
    ) -> Examination: ...


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """Where a run is worked on. `remote` is the one through which its tips travel, if there is one."""

    log: "Decklog"
    run_id: str
    repository: Repository
    configuration: Configuration
    person: Person
    reviewer: ChangeReviewer | None = None
    remote: str | None = None

    @cached_property
    def tips(self) -> Tips:
        """The refs of the run, here and at the remote that its hosts share."""
        return tips_of(self.repository, self.run_id, self.remote)

    @property
    def target(self) -> str:
        """The ref that holds what has landed."""
        return self.tips.target

    @property
    def folder(self) -> Path:
        return self.repository.state / ref_part(self.run_id)

    @property
    def log_file(self) -> str | None:
        return self.log.db.file

    @cached_property
    def holder(self) -> str:
        """The name under which this process claims tasks and keeps folders."""
        return self.host.enter()

    @cached_property
    def host(self) -> Host:
        """This clone on this machine, among those that work on the run."""
        return Host(self.repository.state)

    @property
    def checks_folder(self) -> Path:
        """Where checks run: a folder for each conductor, so that the next one knows which are nobody's."""
        return self.folder / "checks"

    @property
    def removed_folder(self) -> Path:
        """Where lies what is still to be removed: a folder for each conductor, as for checks."""
        return self.folder / "removed"

    @cached_property
    def removal(self) -> Removal:
        """What removes places that nobody needs any more."""
        return Removal()

    @cached_property
    def checkouts(self) -> Checkouts:
        """What gives checks the files of commits."""
        return Checkouts(self.removal)

    @contextmanager
    def busy(self, checks: int) -> "Iterator[None]":
        """Remove later what is done with, and keep the folders of so many checks and calls of git, until the block ends."""
        removed_later = self.removal.later(self.removed_folder / self.holder)
        with removed_later, self.checkouts.kept(checks), self.repository.kept_open():
            yield

    @cached_property
    def stages(self) -> Stages:
        return Stages(self.log, self.run_id, self.configuration)

    @cached_property
    def rounds(self) -> Rounds:
        """What people ask of the work items."""
        return Rounds(self.log, self.run_id, self.stages)

    @cached_property
    def acts(self) -> Acts:
        return Acts(self.log, self.run_id)

    def target_commit(self) -> str:
        """Return the commit that the target is at."""
        return self.tips.target_commit()

    def runner(self, wanted_end: "Callable[[], str | None]") -> Runner:
        """Return what runs checks."""
        return Runner(
            repository=self.repository,
            person=self.person,
            sandbox=self.configuration.sandbox,
            log_file=self.log_file,
            folder=self.checks_folder / self.holder,
            wanted_end=wanted_end,
            checkouts=self.checkouts,
        )

    def examined(self, task: "Task", base: str, tip: str, wanted_end: "Callable[[], str | None]") -> Examination:
        """Examine a change for a task: by the checks, and what is green then by the review that the settings ask for."""
        runner = self.runner(wanted_end)
        examiner = Examiner(self.log, self.run_id, self.configuration, runner, task_id=task.id, fence=task.fence)
        found = examiner.examine(base, tip)
        if not found.is_green or not self.configuration.is_reviewed:
            return found
        assert self.reviewer is not None, "a run whose settings ask for a review was begun with nobody who reviews"
        return self.reviewer(self, task, base, tip, wanted_end)

    def mark(self, task_id: str, fence: int) -> str:
        """Name the processes of an attempt; the mark is found in their environment."""
        return hashlib.sha256(f"{self.repository.common}:{self.run_id}:{task_id}:{fence}".encode()).hexdigest()[:32]
