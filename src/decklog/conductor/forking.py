"""Fork a run: from what had landed at an entry, with its own budget, and without leases."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog.conductor import starting
from decklog.conductor.git.refs import home_of, run_refs
from decklog.conductor.stages import LAND, all_tasks
from decklog.core.errors import Conflict, NotFound

if TYPE_CHECKING:
    from decklog.conductor.context import RunContext
    from decklog.log import Decklog
    from decklog.stores.runs.run import Run

# The commits that a task's inputs may name.
_NAMED = ("base", "start", "tip", "earlier")


def fork(
    log: "Decklog",
    run_id: str,
    *,
    cwd: Path,
    state: Path,
    at: str | None = None,
    new_run_id: str | None = None,
    budget_microdollars: int | None = None,
) -> "RunContext":
    """Fork a run of this repository at an entry or a time; with the id of an existing fork, go on with it."""
    if new_run_id is not None and (known := _known(log, new_run_id)) is not None:
        if known.parent_run_id != run_id:
            raise Conflict(f"there is a run {new_run_id} already, and it is no fork of {run_id}", hint="Choose another id.")
        return starting.resume(log, new_run_id, cwd=cwd, state=state)
    site = starting.found(log, run_id, cwd=cwd, state=state)
    limit = budget_microdollars if budget_microdollars is not None else site.configuration.run_microdollars
    with log.transaction():
        made = log.runs.fork(run_id, at=at, new_run_id=new_run_id)
        _refuse_useless(log, made, run_id)
        replace(site, run_id=made.id).stages.ask_about_blocked()
        if limit is not None:
            log.budgets.set("run", scope_id=made.id, limit_microdollars=limit)
        # Inside of the transaction: a recorded fork has its commits.
        site.repository.set_refs(_refs(log, made, site))
        run_refs(site.repository, made.id, site.remote).publish(home_of(made.id), lambda: "a fork needs the remote")
    return starting.resume(log, made.id, cwd=cwd, state=state)


def _known(log: "Decklog", run_id: str) -> "Run | None":
    try:
        return log.runs.get(run_id)
    except NotFound:
        return None


def _refuse_useless(log: "Decklog", made: "Run", run_id: str) -> None:
    """Raise Conflict for a fork in which there is nothing to do yet, or any more."""
    then: Any = log.journal.at("runs", run_id, str(made.parent_seq))
    status, when = then.status.value, f"run {run_id} at entry {made.parent_seq}"
    if status == "planning":
        raise Conflict(f"{when} had no plan yet", hint="Name a later entry with --at; see: decklog journal find", status=status)
    if status not in ("active", "paused"):
        raise Conflict(
            f"{when} was over: {status}", hint="Name an earlier entry with --at; see: decklog journal find", status=status
        )


def _refs(log: "Decklog", made: "Run", site: "RunContext") -> dict[str, str]:
    """Return the refs of a fork: its target, and the commits of its open tasks, so that the parent's may be removed."""
    tasks = list(all_tasks(log, made.id))
    landed = [str(task.result["commit"]) for task in tasks if task.role == LAND and isinstance(task.result, dict)]
    still_open = [task.inputs for task in tasks if task.state not in ("done", "abandoned")]
    named = dict.fromkeys(str(inputs[name]) for inputs in still_open for name in _NAMED if inputs.get(name))
    repository = site.repository
    site.tips.fetch_missing((*landed, *named))
    for commit in (*landed, *named):
        if repository.resolve(commit) is None:
            raise NotFound(
                f"commit {commit[:12]}, which the run had at that entry, is gone", hint="Name a later entry with --at."
            )
    home = home_of(made.id)
    first = starting.first_commit(made)
    target = repository.newest(landed) if landed else first
    return {f"{home}/target": target, **{f"{home}/from/{number}": commit for number, commit in enumerate(named, 1)}}
