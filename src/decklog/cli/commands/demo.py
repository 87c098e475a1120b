"""The demonstration."""

import os
import shutil
import sys
import tempfile

import click

from decklog.app import Decklog
from decklog.cli.call import Call
from decklog.cli.screens.lines import say
from decklog.cli.screens.timeline import timeline
from decklog.cli.show import entry_line, show
from decklog.demo import Demo


@click.command()
@click.pass_obj
def demo(call: Call) -> int:
    """Watch workers share a run, one of them killed in the middle, and nothing lost.

    It makes a database in a temporary folder (or where --db says) and needs no network.
    """
    target = call.db or os.path.join(tempfile.mkdtemp(prefix="decklog-demo-"), "decklog.db")
    with Decklog.open(target, migrate=True) as log:
        play = Demo(target, lambda text: click.echo(text, err=call.json))
        run_id = play.run(log)
        result = log.journal.verify(run_id)
        if call.json:
            return _as_data(log, target, run_id, play, result.ok)
        _show(log, run_id, play)
        click.echo(f"Verified: {result.entries} entries, hash chain {'whole' if result.ok else 'BROKEN'}.")
    _what_next(target, run_id)
    return 0 if result.ok else 1


def _as_data(log: Decklog, target: str, run_id: str, play: Demo, is_whole: bool) -> int:
    heir = log.tasks.attempts(play.killed_task)[-1].worker
    facts = {"target": target, "run_id": run_id, "killed": play.killed, "task_id": play.killed_task, "taken_over_by": heir}
    show({**facts, "verified": is_whole}, as_json=True)
    return 0 if is_whole else 1


def _show(log: Decklog, run_id: str, play: Demo) -> None:
    say([[], *timeline(log, run_id), []])
    attempts = log.tasks.attempts(play.killed_task)
    heir = attempts[-1].worker
    click.echo(f"{play.killed}'s lease ran out, and {heir} took '{log.tasks.get(play.killed_task).title}' over:\n")
    for entry in log.journal.find(run_id, task_id=play.killed_task, oldest_first=True):
        click.echo(entry_line(entry, of_one_stream=True))
    click.echo("")


def _what_next(target: str, run_id: str) -> None:
    # Whoever came here by `make demo` has the program in a virtual environment that is not on the path.
    program = "decklog" if shutil.which("decklog") else os.path.relpath(sys.argv[0])
    click.echo(
        f"""
Try next:
  export DECKLOG_DB={target}
  {program} watch {run_id} --no-follow     what happened, entry by entry
  {program} runs show {run_id}             the run on one screen
  {program} search lexer                   full text over everything
  {program} verify                         the proof, for the whole log
  {program} --help                         and the README's five-minute tour"""
    )
