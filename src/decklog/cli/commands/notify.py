"""Telling people: one round, or round after round."""

import time

import click

from decklog.cli.call import Call
from decklog.cli.show import show
from decklog.cli.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decklog.notify.round import Told

# Between two rounds passes at least the first, and at most the second, in seconds.
_SHORTEST, _LONGEST = 1.0, 15.0


@click.group()
def notify() -> None:
    """Tell people what happened, by the rules of `decklog notices`.

    A rule is added with `decklog notices add-rule`. Nothing is sent by itself: run this from cron, or leave it open with --watch.
    Each notice is sent once, however many run this; what fails is tried five times in all, and what may have been sent is not
    sent again before somebody says so (`decklog notices retry`).
    """


@notify.command()
@click.option("--watch", is_flag=True, help="go on until it is interrupted")
@click.pass_obj
def run(call: Call, watch: bool) -> int:
    """Find what is to be told, and send what is due; exit 1 when something could not be sent."""
    from decklog.notify import Round

    with call.open() as log:
        told = Round(log, log_name=str(log.db.facts().get("path", "decklog"))).run()
        _show(call, told)
        while watch:
            begin = time.monotonic()
            log.db.wait_for_change(_LONGEST)
            time.sleep(max(0.0, _SHORTEST - (time.monotonic() - begin)))
            told = Round(log).run()
            if told.made or told.notices:
                _show(call, told)
    return 1 if told.failed or told.unknown else 0


def _show(call: Call, told: "Told") -> None:
    if call.json:
        show(told, as_json=True)
        return
    say(f"{told.made} new, {told.sent} sent, {told.failed} failed, {told.unknown} of unknown outcome")
    for notice in told.notices:
        if notice.error:
            say(f"  {notice.id}  {notice.state}  {notice.error}")


@notify.command()
@click.argument("rule_id")
@click.pass_obj
def test(call: Call, rule_id: str) -> int:
    """Send a notice by a rule now, to see whether it arrives; exit 1 when it did not."""
    from decklog.notify import Round

    with call.open() as log:
        notice = Round(log).test(rule_id)
    show(notice, as_json=call.json)
    return 0 if notice.state.value == "sent" else 1
