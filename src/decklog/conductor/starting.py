"""Starts a run from a plan, or finds the one that was started from it."""

import hashlib
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from decklog.conductor.checks.examination import Examiner, refuse_red_base
from decklog.conductor.git.remote import Remote
from decklog.conductor.git.repository import Repository, starting_commit
from decklog.conductor.machines.host import machine
from decklog.conductor.machines.joining import join
from decklog.conductor.machines.tips import tips_of
from decklog.conductor.settings import configuration, plan
from decklog.conductor.settings.plan import WorkPlan
from decklog.conductor.site import RunContext
from decklog.core.errors import Conflict, Invalid, NotFound, Unavailable

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.stores.runs.run import Run


@dataclass(frozen=True)
class RunRequest:
    """What a run is to do: a goal, with a plan or without. `identity` is what makes it the same again.

    `known_red` names tests that fail on the first commit and may go on doing so. `is_again` starts a plan anew that a run has
    completed.
    """

    goal: str
    identity: bytes
    plan: WorkPlan | None = None
    is_plan_asked: bool | None = None
    known_red: tuple[str, ...] = ()
    is_again: bool = False


def start(
    log: "Decklog", content: bytes, *, is_json: bool, cwd: Path, state: Path, commit: str = "HEAD", say: Callable[[str], None]
) -> RunContext:
    """Start a run of a plan from a commit; the same plan in the same repository goes on with its run."""
    given = plan.parse(content, is_json=is_json)
    return begin(log, RunRequest(given.goal, content, given), cwd=cwd, state=state, commit=commit, say=say)


def begin(
    log: "Decklog", wanted: RunRequest, *, cwd: Path, state: Path, commit: str = "HEAD", say: Callable[[str], None]
) -> RunContext:
    """Start a run from a commit, or go on with the one that was started for the same.

    Everything that could refuse it is looked at before anything is written.
    """
    repository = Repository.find(cwd, state)
    key = _key(wanted.identity, repository)
    earlier = _of_plan(log, key)
    for run in (one for one in earlier if one.status.value in ("planning", "active", "paused")):
        say(f"goes on with run {run.id}")
        site = resume(log, run.id, cwd=cwd, state=state)
        return _prepared(site, wanted, first_commit(run), say) if run.status.value == "planning" else site
    _refuse_completed(earlier, is_again=wanted.is_again)
    first = starting_commit(repository, commit, cwd=cwd)
    settings = replace(configuration.read(repository, first), known_red=frozenset(wanted.known_red))
    check_agents(settings, wanted.plan)
    if wanted.plan is None and not settings.strategists:
        raise Invalid("nobody plans here: [roles] strategist is empty", hint="Give a plan: decklog run --plan plan.toml")
    if settings.remote is not None:
        Remote(repository, settings.remote).check()
    run = log.runs.start(
        plan.checked_goal(wanted.goal),
        key=f"{key}:{len(earlier) + 1}",
        status="planning",
        repo=str(repository.folder),
        metadata={
            "conductor": {
                "commit": first,
                "configuration": settings.digest,
                "known_red": list(wanted.known_red),
                "remote": settings.remote,
                "machine": machine(),
                "host_name": os.uname().nodename,
            }
        },
    )
    site = _site(log, run.id, repository, settings, settings.remote)
    return _prepared(site, wanted, first, say)


def _refuse_completed(earlier: "list[Run]", *, is_again: bool) -> None:
    """Refuse to pay twice for a plan that a run has completed. A run that failed is no hindrance to another."""
    done = next((run for run in earlier if run.status.value == "completed"), None)
    if done is not None and not is_again:
        raise Conflict(
            f"run {done.id} has completed this already",
            hint=f"To take what it made: decklog run land {done.id}. To do and pay for all of it once more: add --again.",
            run_id=done.id,
        )


def _prepared(site: RunContext, wanted: RunRequest, first: str, say: Callable[[str], None]) -> RunContext:
    """Make sure that the first commit is green, then put the plan on record and begin."""
    say(f"run {site.run_id} starts from {first[:12]}; its checks are run on that first")
    try:
        refuse_red_base(base_findings(site, first), first)
        _refuse_green(site, first)
    except Conflict as problem:
        site.log.runs.finish(site.run_id, status="failed", summary=problem.message)
        raise
    site.tips.begin(first)
    with site.log.transaction():
        if site.configuration.run_microdollars is not None:
            limit = site.configuration.run_microdollars
            site.log.budgets.set("run", scope_id=site.run_id, limit_microdollars=limit)
        if wanted.plan is not None:
            site.stages.plan(wanted.plan)
        else:
            is_asked = site.configuration.is_plan_asked if wanted.is_plan_asked is None else wanted.is_plan_asked
            site.stages.plan_by_agent(wanted.goal, is_asked=is_asked)
        site.log.runs.update(site.run_id, status="active")
    return site


def base_findings(site: RunContext, commit: str) -> list[dict[str, object]]:
    """Return which gates a commit does not pass by itself."""
    return _examiner(site).base_findings(commit)


def _examiner(site: RunContext) -> Examiner:
    return Examiner(site.log, site.run_id, site.configuration, site.runner(lambda: None), task_id=None)


def _refuse_green(site: RunContext, commit: str) -> None:
    """Refuse to allow a test to be red that is not: a change might break it unseen."""
    known = site.configuration.known_red
    if known and (green := sorted(known - _examiner(site).red_tests(commit))):
        raise Conflict(f"{green[0]} is not red on commit {commit[:12]}", hint="Leave it out of --from-red.", tests=green)


def resume(log: "Decklog", run_id: str, *, cwd: Path, state: Path, remote: str | None = None) -> RunContext:
    """Find a run again that was started in this clone, or join another's, and let one go on that was stopped."""
    site = found(log, run_id, cwd=cwd, state=state, remote=remote)
    if log.runs.get(run_id).status.value == "paused":
        log.runs.update(run_id, status="active")
    return site


def found(log: "Decklog", run_id: str, *, cwd: Path, state: Path, remote: str | None = None) -> RunContext:
    """Find a run that was started in this clone, or in another that shares a remote with it, and leave it as it is."""
    run = log.runs.get(run_id)
    facts = run.metadata.get("conductor")
    if not isinstance(facts, dict):
        raise NotFound(f"run {run_id} was not started by decklog run", hint="Start one: decklog run --plan plan.toml")
    repository = Repository.find(cwd, state)
    shared = remote or facts.get("remote")
    join(log, run, facts, repository, tips_of(repository, run.id, shared))
    known_red = frozenset(facts.get("known_red", ()))
    settings = replace(configuration.read(repository, str(facts["commit"])), known_red=known_red)
    return _site(log, run.id, repository, settings, shared)


def found_here(log: "Decklog", run_id: str, *, state: Path) -> RunContext:
    """Find a run in the repository that it names. Raise Unavailable if this machine does not have that repository."""
    run = log.runs.get(run_id)
    facts = run.metadata.get("conductor")
    there = facts.get("machine") if isinstance(facts, dict) else None
    is_elsewhere = bool(there and machine() and there != machine())
    if isinstance(facts, dict) and (is_elsewhere or not run.repo or not Path(run.repo).is_dir()):
        raise Unavailable(
            f"the repository of run {run_id} is not on this machine: {facts.get('host_name') or 'another'} has it",
            hint=f"On that machine: cd {shlex.quote(run.repo or 'REPOSITORY')}",
            run_id=run_id,
        )
    return found(log, run_id, cwd=Path(run.repo or "."), state=state)


def _site(
    log: "Decklog", run_id: str, repository: Repository, settings: configuration.Configuration, remote: str | None
) -> RunContext:
    person = repository.person()
    return RunContext(log=log, run_id=run_id, repository=repository, configuration=settings, person=person, remote=remote)


def newest(log: "Decklog", *, cwd: Path, state: Path) -> str:
    """Return the run that was started last in this repository."""
    folder = str(Repository.find(cwd, state).folder)
    for run in _all_runs(log):
        if run.repo == folder and "conductor" in run.metadata:
            return run.id
    raise NotFound("no run was started in this repository", hint='Start one: decklog run "GOAL"')


def _all_runs(log: "Decklog") -> "Iterator[Run]":
    after = None
    while True:
        page = log.runs.find(limit=200, after=after)
        yield from page
        if (after := page.next) is None:
            return


def first_commit(run: "Run") -> str:
    """Return the commit that a run starts from."""
    facts = run.metadata["conductor"]
    assert isinstance(facts, dict)
    return str(facts["commit"])


def _key(content: bytes, repository: Repository) -> str:
    return "conductor:" + hashlib.sha256(content + os.fsencode(repository.common)).hexdigest()


def _of_plan(log: "Decklog", key: str) -> "list[Run]":
    return [run for run in _all_runs(log) if (run.key or "").startswith(f"{key}:")]


def check_agents(settings: configuration.Configuration, given: WorkPlan | None = None) -> None:
    """Refuse to start without the programs that are to do the work, those that a plan names among them."""
    named = () if given is None else [name for piece in given.pieces for name in piece.agents]
    if given is not None:
        settings.check_plan(given)
    for agent in (settings.agents[name] for name in dict.fromkeys((*settings.workers, *settings.strategists, *named))):
        program = str(agent.command[0])
        if shutil.which(program) is None:
            raise Unavailable(
                f"agent {agent.name} is called as {program!r}, and there is no such program",
                hint="Install it, or describe another in decklog.toml.",
                program=program,
            )
