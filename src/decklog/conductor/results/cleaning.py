"""Cleans up after runs that are over: what is in a place is pinned first, and no ref goes whose work has landed nowhere."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog.conductor import starting
from decklog.conductor.git import places
from decklog.conductor.git.repository import HOME, Repository, ref_part
from decklog.conductor.machines.tips import tips_of
from decklog.conductor.recovery import Recovery
from decklog.conductor.results.rescue import kept
from decklog.conductor.stages import LAND, PLAN, all_tasks, piece_tag
from decklog.core.errors import NotFound

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.stores.runs.run import Run

_OPEN = ("planning", "active", "paused")


@dataclass
class Cleaned:
    """What was removed, or would be, and what stays with the reason for it."""

    refs: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    stays: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class Cleaner:
    """Cleans one repository. `is_trial` only says what would go; `unlanded` lets work go that has landed nowhere."""

    def __init__(self, log: "Decklog", cwd: Path, state: Path, *, days: float, is_trial: bool, unlanded: bool) -> None:
        self._log = log
        self._cwd = cwd
        self._state = state
        self._repository = Repository.find(cwd, state)
        self._before = log.clock.now() - timedelta(days=days)
        self._is_trial = is_trial
        self._unlanded = unlanded
        self.cleaned = Cleaned()

    def clean(self) -> Cleaned:
        """Clean up after every run of this repository that is over for long enough."""
        held = {one.run for one in kept(self._repository)}
        for name in sorted(held | self._folders()):
            run = self._run(name)
            why = self._why_it_stays(run)
            if run is not None and why is None:
                self._clean_run(run, name)
            elif name in held:
                self.cleaned.stays[f"{HOME}/{name}"] = str(why)
        return self.cleaned

    def _folders(self) -> set[str]:
        """Name the runs that have a folder here: one that never came to have a target has nothing else."""
        return {path.name for path in self._repository.state.iterdir() if path.is_dir()}

    def _run(self, name: str) -> "Run | None":
        try:
            return self._log.runs.get(name)
        except NotFound:
            return None

    def _why_it_stays(self, run: "Run | None") -> str | None:
        if run is None:
            return "its run is not in this log; see: decklog run rescue"
        if run.status.value in _OPEN:
            return f"its run is {run.status.value}"
        ended: datetime | None = run.ended_at
        return "its run is over for too short a time" if ended is None or ended > self._before else None

    def _clean_run(self, run: "Run", name: str) -> None:
        folder = self._repository.state / name
        if folder.is_dir():
            self.cleaned.folders.append(str(folder))
            if not self._is_trial:
                site = starting.found(self._log, run.id, cwd=self._cwd, state=self._state)
                Recovery(site, 60.0).pin_all()
                places.remove_folder(folder)
        landed = self._landed(run)
        gone = [ref for ref in self._repository.refs(f"{HOME}/{name}") if self._may_go(ref, landed)]
        self.cleaned.refs += gone
        if not self._is_trial:
            tips_of(self._repository, run.id, _remote_of(run)).drop(gone)

    def _may_go(self, ref: str, landed: set[str]) -> bool:
        """Return whether what a ref holds is elsewhere, or not wanted; otherwise note why it stays."""
        if self._unlanded or ref in landed:
            return True
        self.cleaned.stays[ref] = "what it holds has landed nowhere; --unlanded lets it go"
        return False

    def _landed(self, run: "Run") -> set[str]:
        """Name the refs of a run whose work is in a branch of the user's: by the target, once that is."""
        name = ref_part(run.id)
        refs = self._repository.refs(f"{HOME}/{name}")
        target = refs.get(f"{HOME}/{name}/target")
        if target is None or not self._repository.is_in_a_branch(target):
            return set()
        tasks_of_run = list(all_tasks(self._log, run.id))
        done = {piece_tag(task) for task in tasks_of_run if task.role == LAND and task.state == "done"}
        # What an agent that plans left beside its plan is used for nothing.
        of_done = {ref_part(task.id) for task in tasks_of_run if set(task.tags) & done or (task.role == PLAN and not task.tags)}
        tasks = f"{HOME}/{name}/tasks/"
        return {ref for ref in refs if not ref.startswith(tasks) or ref.removeprefix(tasks).split("/")[0] in of_done}


def _remote_of(run: "Run") -> str | None:
    facts = run.metadata.get("conductor")
    return str(facts["remote"]) if isinstance(facts, dict) and facts.get("remote") else None
