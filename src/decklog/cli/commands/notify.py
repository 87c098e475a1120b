"""Telling people: one round, or round after round."""

import time
from typing import TYPE_CHECKING

import click

from decklog.cli.call import Invocation
from decklog.cli.meant import SuggestingGroup
from decklog.cli.show import show
from decklog.cli.terminal import say
from decklog.core.errors import NotFound
from decklog.notify import Round
from decklog.notify.round import RoundSummary

if TYPE_CHECKING:
    from decklog import Notice, NotifyRule

# Between two rounds passes at least the first, and at most the second, in seconds.
_SHORTEST, _LONGEST = 1.0, 15.0


@click.group(cls=SuggestingGroup)
def notify() -> None:
    """Send notifications by the rules of `decklog notices`.

    A rule is added with `decklog notices add-rule`. Nothing is sent automatically: run this from cron, or leave it open with
    --watch. Each notice is sent once, however many run this; what fails is tried five times in all, and what may have been sent
    is not sent again without `decklog notices retry`.
    """


@notify.command()
@click.option("--watch", is_flag=True, help="go on until it is interrupted")
@click.pass_obj
def run(call: Invocation, watch: bool) -> int:
    """Find new events and send due notices; exit 1 when something could not be sent."""
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


def _show(call: Invocation, told: RoundSummary) -> None:
    if call.json:
        show(told, as_json=True)
        return
    say(f"{told.made} new, {told.sent} sent, {told.failed} failed, {told.unknown} of unknown outcome")
    for notice in told.notices:
        if notice.error:
            say(f"  {notice.id}  {notice.state}  {notice.error}")


@notify.command()
@click.argument("rule_id", required=False)
@click.pass_obj
def test(call: Invocation, rule_id: str | None) -> int:
    """Send a notice now, by one rule or by each, to see whether it arrives; exit 1 when one did not."""
    with call.open() as log:
        rules = {rule.id: rule for rule in log.notices.rules()}
        if rule_id is None and not rules:
            raise NotFound("there is no rule to send by", hint="Add one: decklog notices add-rule needs_attention desktop")
        notices = [Round(log).test(one) for one in ([rule_id] if rule_id else rules)]
    if call.json:
        show(notices if rule_id is None else notices[0], as_json=True)
    else:
        for notice in notices:
            say(_sent(rules[notice.rule_id], notice))
    return 0 if all(notice.state.value == "sent" for notice in notices) else 1


def _sent(rule: "NotifyRule", notice: "Notice") -> str:
    by = " ".join([rule.channel.value, *rule.target])
    return f"{notice.state}: {rule.event}, by {by}{f': {notice.error}' if notice.error else ''}"
