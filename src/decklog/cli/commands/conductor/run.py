"""The conductor on the command line: take a plan through this repository, watch it, stop it."""

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.commands.conductor.conducting import EXITS, ProgressPrinter, conduct, print_remark
from decklog.cli.commands.conductor.items import COMMANDS, acting_person, watch_item
from decklog.cli.groups import for_the_owner
from decklog.cli.show import show
from decklog.cli.signing import owner_signature
from decklog.conductor import landing, starting
from decklog.conductor.agents.description import known_names, known_program
from decklog.conductor.cleaning import Cleaner, kept
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.conductor.landing import LandingPlan
from decklog.conductor.plan import parse, plan_from_tasks
from decklog.conductor.readiness import problems
from decklog.conductor.starting import RunRequest
from decklog.conductor.status import ConductorStatus, run_status
from decklog.core.display import DOLLAR, counted
from decklog.core.errors import NotFound
from decklog.core.folders import state_home
from decklog.guard.policy import Publication
from decklog.log import Decklog
from decklog.review.publishing import push_block_reason


class _RunGroup(click.Group):
    """Takes a sentence for a goal where a command could stand."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if " " in args[0].strip():
            return "goal", _goal, args
        return super().resolve_command(ctx, args)


@for_the_owner
@click.group(cls=_RunGroup, invoke_without_command=True, subcommand_metavar="[GOAL | COMMAND] …")
@click.option("--plan", metavar="FILE", help="a plan as TOML or JSON: a goal, and items with what each needs")
@click.option("--commit", metavar="COMMIT", default="HEAD", help="the commit that the run starts from, default HEAD")
@click.option(
    "--from",
    "tracker",
    nargs=2,
    metavar="TRACKER QUERY",
    help="work on items of beads, github or taskmaster, and write their states back; a query has label:NAME, #12, or words",
)
@click.option("--tasks", metavar="RUN", help="make the plan of tasks that are in the log: those of this run that are to be done")
@click.option(
    "--from-red", metavar="TEST", multiple=True, help="let a test stay red that is so on the first commit; again for more"
)
@click.option("--again", is_flag=True, help="work a plan that a run has completed once more, and pay for it once more")
@click.option("--check", is_flag=True, help="start every agent and check once in the sandbox; name what is missing")
@click.pass_context
def run(
    ctx: click.Context,
    plan: str | None,
    commit: str,
    tracker: tuple[str, str] | None,
    tasks: str | None,
    from_red: tuple[str, ...],
    again: bool,
    check: bool,
) -> int:
    """Work on a goal or a plan here: agents work in parallel, checks decide, and one merge queue lands what passes.

    \b
    decklog run --check           is everything here that a run needs?
    decklog run "Teach the parser trailing commas"   an agent proposes the plan
    decklog run --plan plan.toml  start it, or go on with it
    decklog run --tasks RUN       the plan is what is to be done in that run
    decklog run --from beads "label:ready"   the plan is items of a tracker
    decklog run watch RUN         its progress, from anywhere
    decklog run watch ITEM        steps, diff and cost of a work item
    decklog run diff ITEM         what it changes so far
    decklog run comment ITEM FILE:LINE "…"   another round with your comment
    decklog run message ITEM "…"  its agent gets it at its next turn
    decklog run open ITEM         take it over by hand
    decklog run continue ITEM     go on from what you changed
    decklog run work RUN          work on it too, from another machine
    decklog run stop RUN          claim nothing more; agents finish theirs
    decklog run fork RUN --at 120 work it again from there
    decklog run land RUN          bring what has landed there into your branch
    decklog run land RUN --pr     push it and open a pull request
    decklog run rescue            what every attempt left, even without a log
    decklog run gc                clean up after runs that are over

    Checks and agents are configured in decklog.toml, as it is in the commit that the run starts from. Your working
    tree, index, branches and settings do not change: what lands is in refs/decklog/RUN/target, until you land it. To resume after
    a kill, repeat the command. Ctrl-C once lets agents finish; twice ends them and keeps what they left.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    if check:
        return _check(ctx.obj, commit)
    given = {"commit": commit, "from_red": from_red, "again": again}
    if tracker is not None:
        return _start_tracker(ctx.obj, *tracker, given)
    if tasks is not None:
        return _start_tasks(ctx.obj, tasks, given)
    if plan is None:
        raise WrongUsage("a run needs a goal or a plan", hint='decklog run "GOAL", or decklog run --plan plan.toml; see --help')
    return _start(ctx.obj, Path(plan), given)


@click.command(hidden=True)
@click.argument("goal")
@click.option("--yes", is_flag=True, help="work the plan that is proposed without asking")
@click.pass_context
def _goal(ctx: click.Context, goal: str, yes: bool) -> int:
    """Have an agent propose a plan for a goal, show it, and work it once a person has said yes."""
    assert ctx.parent is not None
    wanted = RunRequest(goal, goal.encode(), is_plan_asked=False if yes else None)
    return _begin(ctx.obj, lambda _log: wanted, ctx.parent.params)


def _start_tasks(call: Invocation, run_id: str, given: Mapping[str, Any]) -> int:
    def wanted(log: Decklog) -> RunRequest:
        found = plan_from_tasks(log, run_id)
        # The plan has only what is still to be done: nothing is paid for twice.
        return RunRequest(found.goal, f"tasks of {run_id}".encode(), found, is_again=True)

    return _begin(call, wanted, given)


def _start_tracker(call: Invocation, name: str, query: str, given: Mapping[str, Any]) -> int:
    """Work on items of a tracker; it learns their states before and after, also when the run is interrupted in between."""
    from decklog.plugins.trackers import RepositoryTracker

    tracker = RepositoryTracker.of(name, Repository.here())

    def wanted(log: Decklog) -> RunRequest:
        tracker.sync(log)
        return tracker.wanted(log, query)

    code = _begin(call, wanted, given)
    with call.open() as log:
        done = tracker.sync(log)
    print_remark(f"{counted(done.totals['given'], 'item')} of {name} brought up to date")
    return code


def _begin(call: Invocation, wanted: Callable[[Decklog], RunRequest], given: Mapping[str, Any]) -> int:
    """Start a run, or go on with it, by the options of `decklog run`."""
    with call.open() as log:
        asked = wanted(log)
        asked = replace(asked, known_red=given["from_red"], is_again=asked.is_again or given["again"])
        context = starting.begin(log, asked, Repository.here(), commit=given["commit"], say=print_remark)
        return conduct(call, context)


def _start(call: Invocation, path: Path, given: Mapping[str, Any]) -> int:
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise WrongUsage(f"the plan can't be read: {problem}") from problem
    plan = parse(content, is_json=path.suffix == ".json")
    return _begin(call, lambda _log: RunRequest(plan.goal, content, plan), given)


def _check(call: Invocation, commit: str) -> int:
    found = problems(Path.cwd(), commit)
    text = "\n".join(found) or "Ready: a run has everything that it needs."
    show({"ready": not found, "problems": found}, as_json=call.json, text=text)
    return 1 if found else 0


def _find_run(log: Decklog, run_id: str | None) -> str:
    """Return the run that is meant: the one that is named, or the newest of this repository."""
    return run_id or starting.find_newest_run(log, Repository.here())


@run.command()
@click.argument("name", metavar="[RUN | ITEM]", required=False)
@click.option("--no-follow", is_flag=True, help="show how it is now, and end")
@click.pass_obj
def watch(call: Invocation, name: str | None, no_follow: bool) -> int:
    """Show how a run or a work item is, and what happens to it until its end, whichever process works on it.

    Without a name it is the newest run of this repository. Of a work item (ITEM of that run, or RUN.ITEM) you see the steps of
    its agents as they come, the files that it changes so far, and what it cost.
    """
    if name is not None and not _is_run(call, name):
        return watch_item(call, name, follow=not no_follow)
    with call.open(writing=False) as log:
        run_id = _find_run(log, name)
        if no_follow:
            status = run_status(log, run_id)
            return _show(call, status)
        progress = ProgressPrinter(call, log, run_id)
        # Read before the first update: changes in between are shown again.
        seen = _newest_entry(log, log.runs.get(run_id).id)
        status = progress.update()
        while status.status == "active" and status.outcome == "open":
            log.db.wait_for_change(5.0)
            time.sleep(0.2)
            if (newest := _newest_entry(log, run_id)) != seen:
                status, seen = progress.update(), newest
        return EXITS[status.outcome]


def _is_run(call: Invocation, name: str) -> bool:
    with call.open(writing=False) as log:
        try:
            log.runs.get(name)
        except NotFound:
            # A run is named by one word; items of it have a name of their own.
            if name.startswith("run_") and "." not in name:
                raise
            return False
    return True


def _newest_entry(log: Decklog, run_id: str) -> int:
    return log.journal.find(run_id, limit=1)[0].seq


def _show(call: Invocation, status: ConductorStatus) -> int:
    lines = [f"{status.run_id} · {status.goal} · {status.status}", f"{status.counts()}; {status.spent()}"]
    return show(status, as_json=call.json, text="\n".join([*lines, *(item.line() for item in status.items)]))


@run.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.pass_obj
def stop(call: Invocation, run_id: str | None) -> int:
    """Have nothing more of a run claimed: agents finish what they do. `decklog run --plan` goes on with it."""
    with call.open() as log:
        return show(log.runs.update(_find_run(log, run_id), status="paused"), as_json=call.json)


@run.command()
@click.argument("run_id", metavar="RUN")
@click.option("--remote", metavar="NAME", help="the remote that its machines share, if this clone has another name for it")
@click.pass_obj
def work(call: Invocation, run_id: str, remote: str | None) -> int:
    """Work on a run that is under way, in a clone of its repository on this machine or another.

    Its log is in PostgreSQL, and its decklog.toml names a remote (`remote = "origin"` in [run]) that all clones can push to:
    what attempts leave, and what has landed, travels through refs/decklog/ of that. Each machine has its own agents and places.
    """
    with call.open() as log:
        context = starting.resume(log, run_id, Repository.here(), remote=remote)
        starting.check_agents(context.configuration)
        return conduct(call, context)


@run.command()
@click.argument("run_id", metavar="RUN")
@click.option("--at", metavar="ENTRY", help="the entry, or the time, as of which it is forked, default now")
@click.option("--as", "new_run", metavar="ID", help="the id of the fork; with that of one there is, go on with it")
@click.option("--budget", type=click.FloatRange(min=0), metavar="USD", help="what it may spend, default run_usd of decklog.toml")
@click.pass_obj
def fork(call: Invocation, run_id: str, at: str | None, new_run: str | None, budget: float | None) -> int:
    """Work a run again from an entry on: from what had landed then, with its own money and agents.

    What was done by then is done, what was under way is begun anew. `decklog runs diff ONE OTHER` compares them.
    """
    money = None if budget is None else round(budget * DOLLAR)
    with call.open() as log:
        context = starting.fork(log, run_id, Repository.here(), at=at, new_run_id=new_run, budget_microdollars=money)
        starting.check_agents(context.configuration)
        print_remark(f"run {context.run_id} goes on from {context.target_commit()[:12]}")
        return conduct(call, context)


@run.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--branch", metavar="NAME", help="the branch, default the one that is checked out here")
@click.option("--by", metavar="NAME", help="who lands it, default your name in git, or the owner's where one is registered")
@click.option("--key", metavar="FILE", help="sign the landing with this key of the owner")
@click.option("--dry-run", is_flag=True, help="show what would land, and change nothing")
@click.option("--pr", is_flag=True, help="push it as a branch and open a request by gh or glab, instead of moving a branch here")
@click.option("--remote", metavar="NAME", default="origin", show_default=True, help="with --pr: where to push")
@click.option("--as", "new_branch", metavar="NAME", help="with --pr: the name of the pushed branch, default decklog/RUN")
@click.pass_obj
def land(
    call: Invocation,
    run_id: str | None,
    branch: str | None,
    by: str | None,
    key: str | None,
    dry_run: bool,
    pr: bool,
    remote: str,
    new_branch: str | None,
) -> int:
    """Bring what has landed in a run into a branch of yours: forward only, checked as it lands, never over changed files.

    Without RUN it is the newest run of this repository. A branch that has gone on since gets a merge, which is checked first.
    Where an owner is registered it needs the owner's signature.

    With --pr nothing moves here. The result is pushed as a branch, and `gh` or `glab` opens a request to merge it into BRANCH:
    with the work items, the checks, the verdict of the review, and the cost. Where the repository has a review gate, it decides
    as about every push.
    """
    with call.open() as log:
        context = starting.open_run(log, _find_run(log, run_id), Repository.here())
        who, proof = acting_person(log, context, by), owner_signature(log, key)
        if pr:
            pushed = {"remote": remote, "branch": new_branch, "base": branch}
            return _publish(call, context, pushed, is_trial=dry_run, by=who, proof=proof)
        found = landing.prepare(context, branch)
        if not found.is_done and not dry_run:
            landing.examine(context, found)
            landing.land(context, found, by=who, proof=proof)
        return _show_landed(call, found, is_trial=dry_run)


def _publish(
    call: Invocation,
    context: RunContext,
    given: Mapping[str, Any],
    *,
    is_trial: bool,
    by: str,
    proof: AbstractContextManager[object],
) -> int:
    def held(one: landing.Published) -> str | None:
        refspec = f"{one.commit}:refs/heads/{one.branch}"
        push = Publication("git", (one.remote, refspec), frozenset(), (), str(Path.cwd()))
        return push_block_reason(context.log, [push], root=str(Path.cwd()), state=Path(state_home()))

    wanted = landing.prepare_request(context, **given)
    if not is_trial:
        wanted = replace(wanted, url=landing.publish(context, wanted, by=by, proof=proof, held=held))
    text = wanted.body.rstrip() if is_trial else f"{wanted.branch} is pushed to {wanted.remote}: {wanted.url}"
    return show({**vars(wanted), "published": not is_trial}, as_json=call.json, text=text)


def _show_landed(call: Invocation, found: LandingPlan, *, is_trial: bool) -> int:
    text = f"{found.branch} is up to date."
    if not found.is_done:
        how = "as a merge, " if found.is_merge else ""
        verb = "would land" if is_trial else "landed"
        text = f"{counted(found.files, 'file')} {verb} on {found.branch}: {how}{found.old[:12]} -> {found.new[:12]}"
    return show({**vars(found), "landed": not is_trial, "already": found.is_done}, as_json=call.json, text=text)


@run.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.pass_obj
def rescue(call: Invocation, run_id: str | None) -> int:
    """List what is kept of every attempt, from git alone: it works also when the log is lost or damaged.

    To have one back: git branch NAME COMMIT
    """
    rows = [dict(vars(one)) for one in kept(Repository.here(), run_id)]
    shown = rows if call.json else [{**row, "commit": row["commit"][:12], "ref": ""} for row in rows]
    return show(shown, as_json=call.json)


@run.command()
@click.option("--days", type=float, default=14.0, metavar="N", help="leave runs alone that are over for less, default 14")
@click.option("--unlanded", is_flag=True, help="also let go of work that has landed nowhere")
@click.option("--dry-run", is_flag=True, help="show what would be removed, and change nothing")
@click.pass_obj
def gc(call: Invocation, days: float, unlanded: bool, dry_run: bool) -> int:
    """Remove the workspaces of finished runs, and the refs of work that is in one of your branches."""
    with call.open() as log:
        cleaner = Cleaner(log, Repository.here(), days=days, is_trial=dry_run, unlanded=unlanded)
        cleaned = cleaner.clean()
    verb = "would be removed" if dry_run else "removed"
    lines = [f"{len(cleaned.refs)} refs and {len(cleaned.folders)} folders {verb}."]
    lines += [f"Kept {what}: {why}" for what, why in cleaned.stays.items()]
    return show(cleaned, as_json=call.json, text="\n".join(lines))


@run.command()
@click.pass_obj
def agents(call: Invocation) -> int:
    """List the agent programs whose description comes with Decklog, and whether each is installed here."""
    rows = [{"name": name, "program": known_program(name)} for name in known_names()]
    found = [{**row, "found": shutil.which(row["program"]) if row["program"] else None} for row in rows]
    return show(found, as_json=call.json)


for _command in COMMANDS:
    run.add_command(_command)
