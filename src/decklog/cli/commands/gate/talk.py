"""Talking to the agents from the command line, and the daily report."""

import sys

import click

from decklog.cli.call import Invocation
from decklog.cli.manager import for_the_manager
from decklog.cli.short.program import said, voices_here
from decklog.cli.show import show
from decklog.cli.terminal import say
from decklog.models.standup import prose_of, standup_of


@for_the_manager
@click.command()
@click.argument("text")
@click.option("--from", "from_", metavar="NAME", help="who sends it, default your name on this machine")
@click.option("--run", "run_id", metavar="RUN", help="the run that it is about")
@click.option("--task", "task_id", metavar="TASK", help="the task that it is about, which is paused at once")
@click.option("--key", "key", metavar="FILE", help="the owner's key file, for messages that need the owner's signature")
@click.option("--plain", is_flag=True, help="go by exact commands alone, and ask no model")
@click.pass_obj
def critical(call: Invocation, /, text: str, key: str | None, from_: str | None, **given: str | bool | None) -> int:
    """Send agents an urgent message. It is acknowledged at once; from the owner it pauses the task it names.

    What people say otherwise: decklog ask and decklog note, with --from NAME where they are not at a terminal.
    """
    call.key = key
    return said(call, "critical", text, from_=from_, **given)  # type: ignore[arg-type]


@click.command()
@click.option("--prose", is_flag=True, help="written by the model that decklog.toml names for `standup`, if it names one")
@click.pass_obj
def standup(call: Invocation, prose: bool) -> int:
    """Report the day: what was done yesterday, what is in progress, obstacles, costs and open questions."""
    with call.open(writing=prose) as log:
        now = log.clock.now()
        found = standup_of(log, now)
        text, why = prose_of(log, voices_here(log), found, at=now) if prose else (None, "")
    if call.json:
        return show({**found.as_dict(), "markdown": found.markdown, "prose": text}, as_json=True, warnings=[why] if why else [])
    if why:
        sys.stderr.write(f"No prose: {why}\n")
    say((text or found.markdown).rstrip("\n"))
    return 0
