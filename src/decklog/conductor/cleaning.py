"""List the commits kept under `refs/decklog/`, and clean up after finished runs.

Workspaces are saved by refs before they are removed, and refs of unlanded work stay.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from decklog.conductor import starting
from decklog.conductor.git.refs import run_refs
from decklog.conductor.git.repository import REF_PREFIX, SESSIONS, Repository, ref_part
from decklog.conductor.git.workspaces import remove_folder
from decklog.conductor.recovery import Recovery
from decklog.conductor.stages import LAND, PLAN, all_tasks, item_tag
from decklog.log import Decklog
from decklog.stores.runs.run import Run

_OPEN = ("planning", "active", "paused")
_FORMAT = "%(refname)%00%(objectname)%00%(committerdate:iso-strict)%00%(contents:subject)"


@dataclass(frozen=True)
class KeptRef:
    """One kept commit, with its run, task and attempt. The target of a run has no task."""

    run: str
    task: str
    attempt: str
    what: str
    commit: str
    at: str
    subject: str
    ref: str


def kept(repository: Repository, run: str | None = None) -> list[KeptRef]:
    """List the kept commits of one run or of all, each commit of an attempt once."""
    seen: dict[tuple[str, str, str, str], KeptRef] = {}
    for one in _read(repository, REF_PREFIX if run is None else f"{REF_PREFIX}/{ref_part(run)}"):
        seen.setdefault((one.run, one.task, one.attempt, one.commit), one)
    return list(seen.values())


def _read(repository: Repository, beneath: str) -> Iterator[KeptRef]:
    lines = repository.on_refs("for-each-ref", f"--format={_FORMAT}", beneath).out.decode(errors="replace").splitlines()
    # The commits of the branch first, then the others.
    for line in sorted(lines, key=_order):
        ref, commit, at, subject = line.split("\0")
        run, _, rest = ref.removeprefix(f"{REF_PREFIX}/").partition("/")
        if run == SESSIONS:
            continue
        parts = rest.split("/")
        if parts[0] == "tasks" and len(parts) >= 4:
            yield KeptRef(run, parts[1], parts[2], "/".join(parts[3:]), commit, at, subject, ref)
        else:
            yield KeptRef(run, "", "", rest, commit, at, subject, ref)


def _order(line: str) -> tuple[str, int]:
    folder, _, what = line.partition("\0")[0].rpartition("/")
    order = ("target", "tip", "changed", "folder")
    return folder, order.index(what) if what in order else len(order)


# Cleaning


@dataclass
class CleanupResult:
    """The removed refs and folders, and the refs that stay with the reasons."""

    refs: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    stays: dict[str, str] = field(default_factory=dict)


class Cleaner:
    """Cleans one repository. `is_trial` removes nothing; `unlanded` also removes unlanded work."""

    def __init__(self, log: Decklog, repository: Repository, *, days: float, is_trial: bool, unlanded: bool) -> None:
        self._log = log
        self._repository = repository
        self._before = log.clock.now() - timedelta(days=days)
        self._is_trial = is_trial
        self._unlanded = unlanded
        self.cleaned = CleanupResult()

    def clean(self) -> CleanupResult:
        """Clean up after every run of this repository that ended long enough ago."""
        held = {one.run for one in kept(self._repository)}
        # A run without a target has only a folder.
        folders = {path.name for path in self._repository.state.iterdir() if path.is_dir()}
        for name in sorted(held | folders):
            run = starting.find_run(self._log, name)
            why = self._why_it_stays(run)
            if run is not None and why is None:
                self._clean_run(run, name)
            elif name in held:
                self.cleaned.stays[f"{REF_PREFIX}/{name}"] = str(why)
        return self.cleaned

    def _why_it_stays(self, run: Run | None) -> str | None:
        if run is None:
            return "its run is not in this log; see: decklog run rescue"
        if run.status.value in _OPEN:
            return f"its run is {run.status.value}"
        ended: datetime | None = run.ended_at
        return "its run ended too recently" if ended is None or ended > self._before else None

    def _clean_run(self, run: Run, name: str) -> None:
        folder = self._repository.state / name
        if folder.is_dir():
            self.cleaned.folders.append(str(folder))
            if not self._is_trial:
                context = starting.open_run(self._log, run.id, self._repository)
                Recovery(context).clean_up()
                remove_folder(folder)
        landed = self._landed(run)
        gone = [ref for ref in self._repository.refs(f"{REF_PREFIX}/{name}") if self._may_go(ref, landed)]
        self.cleaned.refs += gone
        if not self._is_trial:
            facts: Any = run.metadata.get("conductor") or {}
            run_refs(self._repository, run.id, facts.get("remote")).drop(gone)

    def _may_go(self, ref: str, landed: set[str]) -> bool:
        """Return whether a ref may be removed; otherwise record why it stays."""
        if self._unlanded or ref in landed:
            return True
        self.cleaned.stays[ref] = "its work has not landed; --unlanded removes it"
        return False

    def _landed(self, run: Run) -> set[str]:
        """Return the refs of a run whose work is in a branch of the user, as its target is."""
        name = ref_part(run.id)
        refs = self._repository.refs(f"{REF_PREFIX}/{name}")
        target = refs.get(f"{REF_PREFIX}/{name}/target")
        if target is None or not self._repository.is_in_branch(target):
            return set()
        tasks_of_run = list(all_tasks(self._log, run.id))
        done = {item_tag(task) for task in tasks_of_run if task.role == LAND and task.state == "done"}
        # Other files of planning agents are not used.
        of_done = {ref_part(task.id) for task in tasks_of_run if set(task.tags) & done or (task.role == PLAN and not task.tags)}
        tasks = f"{REF_PREFIX}/{name}/tasks/"
        return {ref for ref in refs if not ref.startswith(tasks) or ref.removeprefix(tasks).split("/")[0] in of_done}
