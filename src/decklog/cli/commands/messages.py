"""Messages to agents and to people, and reports for people."""

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from decklog.cli.call import Invocation
from decklog.cli.conversation import load_models, send_message
from decklog.cli.groups import SuggestingGroup, for_the_owner
from decklog.cli.lines import StyledText
from decklog.cli.show import show
from decklog.cli.terminal import PLAIN, STRONG, escape_for_terminal
from decklog.core.errors import NotFound
from decklog.models.standup import prose_of, standup_of
from decklog.notify import Round
from decklog.notify.round import RoundSummary

if TYPE_CHECKING:
    from decklog import Notice, NotifyRule


@for_the_owner
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
    return send_message(call, "critical", text, from_=from_, **given)  # type: ignore[arg-type]


@click.command()
@click.option("--prose", is_flag=True, help="written by the model that decklog.toml names for `standup`, if it names one")
@click.pass_obj
def standup(call: Invocation, prose: bool) -> int:
    """Report the day: what was done yesterday, what is in progress, obstacles, costs and open questions."""
    with call.open(writing=prose) as log:
        now = log.clock.now()
        found = standup_of(log, now)
        text, why = prose_of(log, load_models(log), found, at=now) if prose else (None, "")
    if why and not call.json:
        sys.stderr.write(f"No prose: {why}\n")
    data = {**found.as_dict(), "markdown": found.markdown, "prose": text}
    shown = (text or found.markdown).rstrip("\n")
    return show(data, as_json=call.json, text=shown, warnings=[why] if why and call.json else [])


@click.group(cls=SuggestingGroup)
def report() -> None:
    """Summarize all runs as Markdown or as an HTML page."""


@report.command()
@click.option("--of", "day", metavar="DAY", help="a day of the week that is meant, such as 2026-11-15, or `last`; default today")
@click.option("--html", "path", metavar="FILE", help="write a page to FILE instead of Markdown to stdout")
@click.option("--overwrite", is_flag=True, help="replace FILE if it is there already")
@click.pass_obj
def week(call: Invocation, day: str | None, path: str | None, overwrite: bool) -> int:
    """Sum up one week over all runs: money, tasks done, answers given, what waits for a person, what was learned.

    A week begins on Monday, in UTC.
    """
    from decklog.transfer.report.week import parse_week_option, read_week, week_markdown

    with call.open(writing=False) as log:
        now = log.clock.now()
        found = read_week(log, parse_week_option(day, now.date()))
    if path is not None:
        return show(_write_page(found, path, now, overwrite=overwrite), as_json=call.json)
    lines = [[StyledText(escape_for_terminal(line), STRONG if line.startswith("#") else PLAIN)] for line in week_markdown(found)]
    return show(found, as_json=call.json, text=lines)


def _write_page(found: Any, path: str, now: Any, *, overwrite: bool) -> dict[str, Any]:
    from decklog.transfer.report.document import document, write_file
    from decklog.transfer.report.week import week_page

    path = os.path.abspath(path)
    size = write_file(path, document(found.title, week_page(found), now), overwrite=overwrite)
    return {"week": found.title, "path": path, "bytes": size}


# The shortest and the longest pause between two rounds, in seconds.
_SHORTEST, _LONGEST = 1.0, 15.0


@click.group(cls=SuggestingGroup)
def notify() -> None:
    """Send notifications by the rules of `decklog notices`.

    A rule is added with `decklog notices add-rule`. Nothing is sent automatically: run this from cron, or leave it open with
    --watch. Each notice is sent once, however many run this; what fails is tried five times in all, and what may have been sent
    is not sent again without `decklog notices retry`.
    """


@notify.command()
@click.option("--watch", is_flag=True, help="repeat until interrupted")
@click.pass_obj
def run(call: Invocation, watch: bool) -> int:
    """Find new events and send due notices; exit 1 when something could not be sent."""
    with call.open() as log:
        summary = Round(log, log_name=str(log.db.facts().get("path", "decklog"))).run()
        _show_round(call, summary)
        while watch:
            begin = time.monotonic()
            log.db.wait_for_change(_LONGEST)
            time.sleep(max(0.0, _SHORTEST - (time.monotonic() - begin)))
            summary = Round(log).run()
            if summary.made or summary.notices:
                _show_round(call, summary)
    return 1 if summary.failed or summary.unknown else 0


def _show_round(call: Invocation, summary: RoundSummary) -> None:
    lines = [f"{summary.made} new, {summary.sent} sent, {summary.failed} failed, {summary.unknown} of unknown outcome"]
    lines += [f"  {notice.id}  {notice.state}  {notice.error}" for notice in summary.notices if notice.error]
    show(summary, as_json=call.json, text="\n".join(lines))


@notify.command()
@click.argument("rule_id", required=False)
@click.pass_obj
def test(call: Invocation, rule_id: str | None) -> int:
    """Send a notice now, by one rule or by each, to see whether it arrives; exit 1 when one did not."""
    with call.open() as log:
        rules = {rule.id: rule for rule in log.notices.rules()}
        if rule_id is None and not rules:
            raise NotFound("there are no notification rules", hint="Add one: decklog notices add-rule needs_attention desktop")
        notices = [Round(log).test(one) for one in ([rule_id] if rule_id else rules)]
    data = notices if rule_id is None else notices[0]
    show(data, as_json=call.json, text="\n".join(_describe_notice(rules[notice.rule_id], notice) for notice in notices))
    return 0 if all(notice.state.value == "sent" for notice in notices) else 1


def _describe_notice(rule: "NotifyRule", notice: "Notice") -> str:
    by = " ".join([rule.channel.value, *rule.target])
    return f"{notice.state}: {rule.event}, by {by}{f': {notice.error}' if notice.error else ''}"
