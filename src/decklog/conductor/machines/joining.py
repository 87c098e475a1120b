"""Joins a clone to a run that was started in another: what it needs for that, and why it may be refused."""

from typing import TYPE_CHECKING, Any

from decklog.conductor.machines.host import machine
from decklog.core.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from decklog.conductor.git.repository import Repository
    from decklog.conductor.machines.tips import Tips
    from decklog.log import Decklog
    from decklog.stores.runs.run import Run


def join(log: "Decklog", run: "Run", facts: "Mapping[str, Any]", repository: "Repository", tips: "Tips") -> None:
    """Make sure that a clone may work on a run, and has what was landed of it; refuse one that can't."""
    _refuse_another_machine(log, run, facts)
    # The same path may be another clone on another machine; what has a target of the run here is one that works on it.
    is_known = not tips.is_shared or run.status.value == "planning" or repository.ref(tips.target) is not None
    is_home = str(repository.folder) == run.repo and is_known
    if is_home:
        return
    if not tips.is_shared:
        raise Conflict(
            f"run {run.id} works on {run.repo}",
            hint=f'Go there: cd {run.repo}. Runs that begin with remote = "origin" in [run] of decklog.toml can be joined.',
            repo=run.repo,
        )
    if run.status.value == "planning":
        raise Conflict(f"run {run.id} is still being begun on {facts.get('host_name')}", hint="Try again in a moment.")
    tips.join()


def _refuse_another_machine(log: "Decklog", run: "Run", facts: "Mapping[str, Any]") -> None:
    """Refuse a log in a file that another machine works with: files are locked on one machine alone."""
    there = facts.get("machine")
    if log.db.engine == "sqlite" and there and machine() and there != machine():
        raise Conflict(
            f"run {run.id} was started on {facts.get('host_name')}, and its log is a SQLite file, which is for one machine",
            hint="Move the log to PostgreSQL, which several machines share: decklog move --help",
            run_id=run.id,
        )
