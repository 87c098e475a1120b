"""Start a run from a plan or a goal, resume it, join it from another clone, or fork it."""

import hashlib
import os
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from decklog.conductor import settings
from decklog.conductor.checks.examination import refuse_red_base
from decklog.conductor.context import RunContext, machine
from decklog.conductor.git.refs import Remote, RunRefs, ref_prefix, run_refs
from decklog.conductor.git.repository import Repository, starting_commit
from decklog.conductor.plan import WorkPlan, check_goal
from decklog.conductor.settings import Configuration
from decklog.conductor.stages import LAND, all_tasks
from decklog.core.errors import Conflict, Invalid, NotFound, Unavailable
from decklog.log import Decklog
from decklog.records.record import find_all
from decklog.stores.runs.run import Run

# The inputs of a task that are commits.
_COMMIT_INPUTS = ("base", "start", "tip", "earlier")


@dataclass(frozen=True)
class RunRequest:
    """A request for a run: its goal, and optionally its plan. Requests with the same `identity` share a run.

    `known_red` are tests that fail on the first commit and may keep failing. `is_again` repeats a completed plan.
    """

    goal: str
    identity: bytes
    plan: WorkPlan | None = None
    is_plan_asked: bool | None = None
    known_red: tuple[str, ...] = ()
    is_again: bool = False


def begin(
    log: Decklog, request: RunRequest, repository: Repository, *, commit: str = "HEAD", say: Callable[[str], object]
) -> RunContext:
    """Start a run from a commit, or resume the open run of the same request.

    All checks that can refuse the request come before the first write.
    """
    key = "conductor:" + hashlib.sha256(request.identity + os.fsencode(repository.common)).hexdigest()
    earlier = [run for run in find_all(log.runs.find) if (run.key or "").startswith(f"{key}:")]
    for run in (one for one in earlier if one.status.value in ("planning", "active", "paused")):
        say(f"resuming run {run.id}")
        context = resume(log, run.id, repository)
        return _prepare(context, request, first_commit(run), say) if run.status.value == "planning" else context
    _refuse_completed(earlier, is_again=request.is_again)
    first = starting_commit(repository, commit)
    configuration = replace(settings.read(repository, first), known_red=frozenset(request.known_red))
    check_agents(configuration, request.plan)
    if request.plan is None and not configuration.strategists:
        raise Invalid("no agent can plan this: [roles] strategist is empty", hint="Give a plan: decklog run --plan plan.toml")
    if configuration.remote is not None:
        Remote(repository, configuration.remote).check()
    run = log.runs.start(
        check_goal(request.goal),
        key=f"{key}:{len(earlier) + 1}",
        status="planning",
        repo=str(repository.folder),
        metadata={
            "conductor": {
                "commit": first,
                "configuration": configuration.digest,
                "known_red": list(request.known_red),
                "remote": configuration.remote,
                "machine": machine(),
                "host_name": os.uname().nodename,
            }
        },
    )
    context = _context(log, run.id, repository, configuration, configuration.remote)
    return _prepare(context, request, first, say)


def _refuse_completed(earlier: list[Run], *, is_again: bool) -> None:
    """Raise Conflict for a plan that a run has completed already, so that it is not paid for twice."""
    done = next((run for run in earlier if run.status.value == "completed"), None)
    if done is not None and not is_again:
        raise Conflict(
            f"run {done.id} has completed this already",
            hint=f"To merge its result: decklog run land {done.id}. To repeat and pay for all of it again: add --again.",
            run_id=done.id,
        )


def _prepare(context: RunContext, request: RunRequest, first: str, say: Callable[[str], object]) -> RunContext:
    """Check that the first commit passes its checks, record the plan, and activate the run."""
    say(f"run {context.run_id} starts from {first[:12]}; running its checks on that commit first")
    try:
        refuse_red_base(context.examiner().base_findings(first), first)
        _refuse_green(context, first)
    except Conflict as problem:
        context.log.runs.finish(context.run_id, status="failed", summary=problem.message)
        raise
    context.refs.begin(first)
    with context.log.transaction():
        if context.configuration.run_microdollars is not None:
            limit = context.configuration.run_microdollars
            context.log.budgets.set("run", scope_id=context.run_id, limit_microdollars=limit)
        if request.plan is not None:
            context.stages.add_plan(request.plan)
        else:
            is_asked = context.configuration.is_plan_asked if request.is_plan_asked is None else request.is_plan_asked
            context.stages.add_planning_task(request.goal, is_asked=is_asked)
        context.log.runs.update(context.run_id, status="active")
    return context


def _refuse_green(context: RunContext, commit: str) -> None:
    """Raise Conflict if a test that is allowed to fail passes: a change could break it unnoticed."""
    known = context.configuration.known_red
    if known and (green := sorted(known - context.examiner().red_tests(commit))):
        raise Conflict(f"{green[0]} does not fail on commit {commit[:12]}", hint="Remove it from --from-red.", tests=green)


def resume(log: Decklog, run_id: str, repository: Repository, *, remote: str | None = None) -> RunContext:
    """Open a run of this clone, or join one of another clone, and resume it if it was paused."""
    context = open_run(log, run_id, repository, remote=remote)
    if log.runs.get(run_id).status.value == "paused":
        log.runs.update(run_id, status="active")
    return context


def open_run(log: Decklog, run_id: str, repository: Repository, *, remote: str | None = None) -> RunContext:
    """Open a run of this clone, or of another clone that shares a remote with it, without resuming it."""
    run = log.runs.get(run_id)
    facts = _facts(run)
    shared = remote or facts.get("remote")
    _join(log, run, facts, repository, run_refs(repository, run.id, shared))
    known_red = frozenset(facts.get("known_red", ()))
    configuration = replace(settings.read(repository, str(facts["commit"])), known_red=known_red)
    return _context(log, run.id, repository, configuration, shared)


def open_run_here(log: Decklog, run_id: str, *, state: Path) -> RunContext:
    """Open a run in its recorded repository. Raise Unavailable if that is not on this machine."""
    run = log.runs.get(run_id)
    facts = _facts(run)
    run_machine = facts.get("machine")
    if (run_machine and machine() and run_machine != machine()) or not run.repo or not Path(run.repo).is_dir():
        raise Unavailable(
            f"the repository of run {run_id} is not on this machine: {facts.get('host_name') or 'another'} has it",
            hint=f"On that machine: cd {shlex.quote(run.repo or 'REPOSITORY')}",
            run_id=run_id,
        )
    return open_run(log, run_id, Repository.find(run.repo, state))


def _facts(run: Run) -> Mapping[str, Any]:
    """Return the facts that a run recorded at its start. Raise NotFound if the conductor did not start it."""
    facts = run.metadata.get("conductor")
    if not isinstance(facts, dict):
        raise NotFound(f"run {run.id} was not started by decklog run", hint="Start one: decklog run --plan plan.toml")
    return facts


def _join(log: Decklog, run: Run, facts: Mapping[str, Any], repository: Repository, refs: RunRefs) -> None:
    """Check that a clone can work on a run, and fetch its landed commits. Raise Conflict if it can't."""
    _refuse_another_machine(log, run, facts)
    # The same path may be another clone on another machine. A clone that works on the run has its target.
    is_known = not refs.is_shared or run.status.value == "planning" or repository.ref(refs.target) is not None
    is_home = str(repository.folder) == run.repo and is_known
    if is_home:
        return
    if not refs.is_shared:
        raise Conflict(
            f"run {run.id} works on {run.repo}",
            hint=f'Go there: cd {run.repo}. Runs that begin with remote = "origin" in [run] of decklog.toml can be joined.',
            repo=run.repo,
        )
    if run.status.value == "planning":
        raise Conflict(f"run {run.id} is still being begun on {facts.get('host_name')}", hint="Try again in a moment.")
    refs.join()


def _refuse_another_machine(log: Decklog, run: Run, facts: Mapping[str, Any]) -> None:
    """Raise Conflict for a SQLite log that another machine uses: file locks work on one machine only."""
    run_machine = facts.get("machine")
    if log.db.engine == "sqlite" and run_machine and machine() and run_machine != machine():
        raise Conflict(
            f"run {run.id} was started on {facts.get('host_name')}, and a SQLite log can be used by one machine only",
            hint="Move the log to PostgreSQL, which several machines share: decklog move --help",
            run_id=run.id,
        )


def _context(log: Decklog, run_id: str, repository: Repository, configuration: Configuration, remote: str | None) -> RunContext:
    person = repository.person()
    return RunContext(log=log, run_id=run_id, repository=repository, configuration=configuration, person=person, remote=remote)


def find_newest_run(log: Decklog, repository: Repository) -> str:
    """Return the id of the newest run in this repository."""
    for run in find_all(log.runs.find):
        if run.repo == str(repository.folder) and "conductor" in run.metadata:
            return run.id
    raise NotFound("no run was started in this repository", hint='Start one: decklog run "GOAL"')


def first_commit(run: Run) -> str:
    """Return the commit that a run starts from."""
    return str(_facts(run)["commit"])


def check_agents(settings: Configuration, given: WorkPlan | None = None) -> None:
    """Raise Unavailable if the program of an agent of the settings or the plan is missing."""
    named = () if given is None else [name for item in given.items for name in item.agents]
    if given is not None:
        settings.check_plan(given)
    for agent in (settings.agents[name] for name in dict.fromkeys((*settings.workers, *settings.strategists, *named))):
        program = str(agent.command[0])
        if shutil.which(program) is None:
            raise Unavailable(
                f"agent {agent.name} needs the program {program!r}, which is not installed",
                hint="Install it, or configure another agent in decklog.toml.",
                program=program,
            )


def fork(
    log: Decklog,
    run_id: str,
    repository: Repository,
    *,
    at: str | None = None,
    new_run_id: str | None = None,
    budget_microdollars: int | None = None,
) -> RunContext:
    """Fork a run of this repository at an entry or a time. With the id of an existing fork, resume it."""
    if new_run_id is not None and (known := find_run(log, new_run_id)) is not None:
        if known.parent_run_id != run_id:
            raise Conflict(f"run {new_run_id} exists and is not a fork of {run_id}", hint="Choose another id.")
        return resume(log, new_run_id, repository)
    context = open_run(log, run_id, repository)
    limit = budget_microdollars if budget_microdollars is not None else context.configuration.run_microdollars
    with log.transaction():
        forked = log.runs.fork(run_id, at=at, new_run_id=new_run_id)
        _refuse_idle_fork(log, forked, run_id)
        replace(context, run_id=forked.id).stages.ask_about_blocked()
        if limit is not None:
            log.budgets.set("run", scope_id=forked.id, limit_microdollars=limit)
        # Inside the transaction, so that a recorded fork has its commits.
        context.repository.set_refs(_build_fork_refs(log, forked, context))
        run_refs(context.repository, forked.id, context.remote).publish(ref_prefix(forked.id), lambda: "a fork needs the remote")
    return resume(log, forked.id, repository)


def find_run(log: Decklog, run_id: str) -> Run | None:
    """Return a run; None if the log has no run of this id."""
    try:
        return log.runs.get(run_id)
    except NotFound:
        return None


def _refuse_idle_fork(log: Decklog, forked: Run, run_id: str) -> None:
    """Raise Conflict for a fork at an entry where the run had no plan yet or was over."""
    then: Any = log.journal.at("runs", run_id, str(forked.parent_seq))
    status, when = then.status.value, f"run {run_id} at entry {forked.parent_seq}"
    if status == "planning":
        raise Conflict(f"{when} had no plan yet", hint="Name a later entry with --at; see: decklog journal find", status=status)
    if status not in ("active", "paused"):
        raise Conflict(
            f"{when} was over: {status}", hint="Name an earlier entry with --at; see: decklog journal find", status=status
        )


def _build_fork_refs(log: Decklog, forked: Run, context: RunContext) -> dict[str, str]:
    """Return the refs of a fork: its target and the commits of its open tasks. It then does not need its parent's refs."""
    tasks = list(all_tasks(log, forked.id))
    landed = [str(task.result["commit"]) for task in tasks if task.role == LAND and isinstance(task.result, dict)]
    still_open = [task.inputs for task in tasks if task.state not in ("done", "abandoned")]
    named = dict.fromkeys(str(inputs[name]) for inputs in still_open for name in _COMMIT_INPUTS if inputs.get(name))
    repository = context.repository
    context.refs.fetch_missing((*landed, *named))
    for commit in (*landed, *named):
        if repository.resolve(commit) is None:
            raise NotFound(
                f"commit {commit[:12]}, which the run had at that entry, is gone", hint="Name a later entry with --at."
            )
    home = ref_prefix(forked.id)
    first = first_commit(forked)
    target = repository.newest(landed) if landed else first
    return {f"{home}/target": target, **{f"{home}/from/{number}": commit for number, commit in enumerate(named, 1)}}
