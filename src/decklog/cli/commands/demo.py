"""The demonstration."""

import os
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.lines import print_lines
from decklog.cli.screens.timeline import timeline_lines
from decklog.cli.show import format_entry, show
from decklog.cli.terminal import ProgressMeter
from decklog.demo import SMALLEST, Demo
from decklog.demo.big import Big, opened
from decklog.log import Decklog


@click.command()
@click.option("--conductor", is_flag=True, help="take a plan through a small repository instead, with scripted agents")
@click.option("--provenance", is_flag=True, help="have two agents and a person write lines instead, and show who wrote which")
@click.option("--big", is_flag=True, help="make a large log instead: a month of a team's runs")
@click.option("--size", type=click.IntRange(SMALLEST), metavar="N", help="with --big: about this many entries, default 30000")
@click.option("--seed", type=int, metavar="N", help="with --big: another seed makes another month, default 7")
@click.option(
    "--until", type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ"]), metavar="TIME", help="with --big: when it ends, default now"
)
@click.pass_obj
def demo(
    call: Invocation,
    conductor: bool,
    provenance: bool,
    big: bool,
    size: int | None,
    seed: int | None,
    until: datetime | None,
) -> int:
    """Watch workers share a run, one of them killed in the middle, and nothing lost.

    It makes a database in a temporary folder (or at --db) and needs no network. With --conductor agents work on a repository, and
    what conducts them is killed. With --big it makes a log to look around in, the same one for the same size, seed and end.
    """
    if not big and (size, seed, until) != (None, None, None):
        raise WrongUsage("--size, --seed and --until need --big", hint="decklog demo --big --size 30000")
    if conductor:
        return _conductor(call)
    if provenance:
        return _provenance(call)
    target = call.db or os.path.join(tempfile.mkdtemp(prefix="decklog-demo-"), "decklog.db")
    if big:
        return _big(call, target, size or 30_000, 7 if seed is None else seed, until)
    with Decklog.open(target, migrate=True) as log:
        play = Demo(target, lambda text: click.echo(text, err=call.json))
        run_id = play.run(log)
        result = log.journal.verify(run_id)
        if call.json:
            return _show_json(log, target, run_id, play, result.ok)
        _show(log, run_id, play)
        click.echo(f"Verified: {result.entries} entries, hash chain {'whole' if result.ok else 'BROKEN'}.")
    _show_next_steps(target, run_id)
    return 0 if result.ok else 1


def _conductor(call: Invocation) -> int:
    from decklog.conductor.demonstration import Demonstration

    folder = Path(tempfile.mkdtemp(prefix="decklog-demo-"))
    # The conductor runs in the repository: a relative path would mean another file there.
    target = os.path.abspath(call.db) if call.db and "://" not in call.db else call.db
    play = Demonstration(folder, [sys.executable, "-P", "-m", "decklog"], lambda text: click.echo(text, err=call.json), target)
    run_id = play.play()
    with Decklog.open(play.target) as log:
        is_whole = log.journal.verify(run_id).ok
    facts = {"target": play.target, "repository": play.repository, "run_id": run_id, "verified": is_whole}
    text = f"\nVerified: {'whole' if is_whole else 'BROKEN'}. Try next:\n  export DECKLOG_DB={play.target}"
    text += f"\n  {_program_name()} run watch {run_id} --no-follow\n  {_program_name()} runs timeline {run_id}"
    show(facts, as_json=call.json, text=text)
    return 0 if is_whole else 1


def _provenance(call: Invocation) -> int:
    from decklog.demo.origins import OriginDemo

    folder = Path(tempfile.mkdtemp(prefix="decklog-demo-"))
    target = call.db or str(folder / "decklog.db")
    # Programs of the demonstration run in the repository: a relative path would mean another file there.
    target = target if "://" in target else os.path.abspath(target)
    play = OriginDemo(folder, target, lambda text: click.echo(text, err=call.json))
    is_same = play.play()
    text = f"\nOrigins {'unchanged' if is_same else 'CHANGED'} by the rebase. Try next:\n  cd {play.repository}"
    text += f"\n  export DECKLOG_DB={target}"
    text += "".join(f"\n  {_program_name()} {words}" for words in ("stats", "commit show HEAD~1", "rewind --list"))
    show({"target": target, "repository": play.repository, "unchanged": is_same}, as_json=call.json, text=text)
    return 0 if is_same else 1


def _big(call: Invocation, target: str, size: int, seed: int, until: datetime | None) -> int:
    end = datetime.now(UTC) if until is None else until.replace(tzinfo=UTC)
    log, clock = opened(target, end, seed)
    with log, ProgressMeter() as meter:
        runs = Big(log, clock, end, size, seed, lambda done, whole: meter("making entries", done, whole)).run()
        entries = sum(head["seq"] for head in log.journal.heads())
    text = f"{runs:,} runs with {entries:,} entries, up to {end:%Y-%m-%d %H:%M} UTC. Try next:\n"
    text += f"\n  export DECKLOG_DB={target}\n  {_program_name()} now\n  {_program_name()} overview runs"
    return show({"target": target, "runs": runs, "entries": entries}, as_json=call.json, text=text)


def _show_json(log: Decklog, target: str, run_id: str, play: Demo, is_whole: bool) -> int:
    heir = log.tasks.attempts(play.killed_task)[-1].worker
    facts = {"target": target, "run_id": run_id, "killed": play.killed, "task_id": play.killed_task, "taken_over_by": heir}
    show({**facts, "verified": is_whole}, as_json=True)
    return 0 if is_whole else 1


def _show(log: Decklog, run_id: str, play: Demo) -> None:
    print_lines([[], *timeline_lines(log.runs.snapshot(run_id), log.clock.now()), []])
    attempts = log.tasks.attempts(play.killed_task)
    heir = attempts[-1].worker
    click.echo(f"{play.killed}'s lease ran out, and {heir} took '{log.tasks.get(play.killed_task).title}' over:\n")
    for entry in log.journal.find(run_id, task_id=play.killed_task, oldest_first=True):
        click.echo(format_entry(entry, of_one_stream=True))
    click.echo("")


def _program_name() -> str:
    """Name the program as it can be typed in any folder: after `make demo` it is in an environment that is not on the path."""
    return "decklog" if shutil.which("decklog") else os.path.abspath(sys.argv[0])


def _show_next_steps(target: str, run_id: str) -> None:
    program = _program_name()
    click.echo(
        f"""
Try next:
  export DECKLOG_DB={target}
  {program} watch {run_id} --no-follow     what happened, entry by entry
  {program} runs show {run_id}             the run on one screen
  {program} search lexer                   full text over everything
  {program} verify                         the proof, for the whole log
  {program} --help                         every command"""
    )
