"""`decklog feedback "…"`: file a problem in one sentence."""

import getpass

import click

from decklog.cli.call import Invocation
from decklog.cli.meant import SuggestingGroup
from decklog.cli.show import show
from decklog.cli.terminal import say

_SEVERITIES = ("low", "med", "high", "critical")


class Sentences(SuggestingGroup):
    """Takes a sentence where a verb could stand."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if " " in args[0].strip():
            return "say", said, args
        return super().resolve_command(ctx, args)


@click.command("say", hidden=True)
@click.argument("body")
@click.option("--severity", type=click.Choice(_SEVERITIES), default="med", help="default med")
@click.option("--on", "context_url", metavar="URL", help="the pull request, issue, commit or file that it is about")
@click.option("--from", "from_handle", metavar="NAME", help="who says it, default you")
@click.option("--id", "feedback_id", metavar="ID", help="an id of your own; a known one gives that feedback back")
@click.pass_obj
def said(
    call: Invocation, body: str, severity: str, context_url: str | None, from_handle: str | None, feedback_id: str | None
) -> int:
    """Record feedback about something that went wrong."""
    given = {"severity": severity, "context_url": context_url, "feedback_id": feedback_id}
    with call.open() as log:
        filed = log.feedback.file(from_handle or getpass.getuser(), body, **given)  # type: ignore[arg-type]
    if call.json:
        return show(filed, as_json=True)
    say(f"{filed.id} is {filed.state}. To have it mended: decklog mend {filed.id}")
    return 0
