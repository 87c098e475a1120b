"""Work items of a run: show, comment on, message, take over and continue them."""

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.commands.conductor.conducting import conduct
from decklog.cli.exits import print_json
from decklog.cli.show import show, to_data
from decklog.cli.terminal import print_text
from decklog.conductor import starting
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.conductor.items import takeover
from decklog.conductor.items.item import Item, Rounds, build_patch, find_item, find_item_change, quote_line, split_name
from decklog.conductor.items.watching import ItemWatch, changed_files
from decklog.log import Decklog

_item = click.argument("item", metavar="ITEM")
_by = click.option("--by", metavar="NAME", help="who acts, default your name in git, or the owner's where one is registered")


def open_item_context(log: Decklog, name: str) -> tuple[RunContext, Item]:
    """Open a work item and its run, given as RUN.ITEM, or as ITEM for the newest run of this repository."""
    run_id, item = split_name(name)
    run_id = run_id or starting.find_newest_run(log, Repository.here())
    found = find_item(log, run_id, item)
    return starting.open_run(log, run_id, Repository.here()), found


def acting_person(log: Decklog, context: RunContext, by: str | None) -> str:
    """Return the acting person: the given name, the registered owner, or the user of git."""
    trust = log.trust.show()
    return by or (str(trust["owner"]) if trust["is_bound"] else context.person.name)


def watch_item(call: Invocation, name: str, *, follow: bool) -> int:
    """Print the events of a work item, one per line, until it ends."""
    with call.open(writing=False) as log:
        context, item = open_item_context(log, name)
        watch = ItemWatch(context, item)
        for seen in watch.follow() if follow else watch.read_new():
            print_json({"run_id": context.run_id, "item": item.name, **to_data(seen)}) if call.json else print_text(seen.line())
        return {"landed": 0, "blocked": 1, "given up": 1}.get(watch.status.state, 7) if follow else 0


@click.command()
@_item
@click.option("--stat", is_flag=True, help="list the files with their numbers of lines instead of the lines")
@click.pass_obj
def diff(call: Invocation, item: str, stat: bool) -> int:
    """Show what a work item changes so far, also while an agent works on it, before or after it has landed.

    A comment on a line of it begins another round: decklog run comment ITEM FILE:LINE "…"
    """
    with call.open(writing=False) as log:
        context, found = open_item_context(log, item)
        if stat:
            rows = [{"path": path, "added": added, "removed": removed} for path, added, removed in changed_files(context, found)]
            return show(rows, as_json=call.json)
        patch = build_patch(context, found)
    text = patch.rstrip("\n") or f"{found.name} has changed nothing yet."
    return show({"item": found.name, "run_id": context.run_id, "patch": patch}, as_json=call.json, text=text)


@click.command()
@_item
@click.argument("where", metavar="FILE:LINE")
@click.argument("text")
@_by
@click.pass_obj
def comment(call: Invocation, item: str, where: str, text: str, by: str | None) -> int:
    """Comment on a line of a work item's change: another round works on it, from the change as it is.

    Write as many as you like. A round begins as soon as a conductor works on the run: decklog run continue ITEM
    """
    with call.open() as log:
        context, found = open_item_context(log, item)
        path, line = _parse_place(where)
        change = find_item_change(context, found)
        quoted = quote_line(context.repository, "" if change is None else change.tip, path, line)
        message = Rounds(context).post(found, text, by=acting_person(log, context, by), where=(path, line), quoted=quoted)
    text = f"{message.id}: {found.name} gets another round. If no conductor works on the run: decklog run continue {item}"
    return show(message, as_json=call.json, text=text)


def _parse_place(where: str) -> tuple[str, int]:
    path, _, line = where.rpartition(":")
    if not path or not line.isdecimal():
        raise WrongUsage(f"{where!r} names no line", hint="Write FILE:LINE, such as src/lexer.py:12.")
    return path, int(line)


@click.command()
@_item
@click.argument("text")
@_by
@click.pass_obj
def message(call: Invocation, item: str, text: str, by: str | None) -> int:
    """Write to the agent that works on an item: it gets it at its next turn, or in the next round.

    What became of it: decklog inbox show ID (seen_by, seen_at, answer)
    """
    with call.open() as log:
        context, found = open_item_context(log, item)
        posted = Rounds(context).post(found, text, by=acting_person(log, context, by))
    when = "at its agent's next turn, or in its next round"
    said = f"{posted.id}: {found.name} gets it {when}. See: decklog inbox show {posted.id}"
    return show(posted, as_json=call.json, text=said)


@click.command("open")
@_item
@_by
@click.pass_obj
def open_item(call: Invocation, item: str, by: str | None) -> int:
    """Take a work item over: end its agent, and print the workspace, which is yours until `decklog run continue ITEM`.

    The first line is the path alone, so that `cd "$(decklog run open ITEM | head -1)"` goes there. Where the agent can go on in
    your terminal, the second is the command for that.
    """
    with call.open() as log:
        context, found = open_item_context(log, item)
        opened = takeover.open_item(context, found, by=acting_person(log, context, by))
    show(opened, as_json=call.json, text="\n".join(filter(None, (opened.folder, opened.resume))))
    if not call.json:
        click.echo(f"It is yours. Then: decklog run continue {item}", err=True)
    return 0


@click.command("continue")
@_item
@_by
@click.option("-m", "--message", "text", metavar="TEXT", help="what the agent is to do from here on")
@click.option("--no-work", is_flag=True, help="only give it back; a conductor that works on the run goes on with it")
@click.pass_obj
def continue_item(call: Invocation, item: str, by: str | None, text: str | None, no_work: bool) -> int:
    """Go on with a work item, from what you changed in its workspace or from your comments, and with its run.

    What you changed is committed under your name, checked and landed; if it is red, or you leave a message, an agent goes on
    from it.
    """
    with call.open() as log:
        context, found = open_item_context(log, item)
        who = acting_person(log, context, by)
        files = takeover.continue_item(context, found, by=who)
        if text is not None:
            Rounds(context).post(open_item_context(log, item)[1], text, by=who)
        if no_work:
            return show({"item": found.name, "files": files}, as_json=True) if call.json else 0
        context = starting.resume(log, context.run_id, Repository.here())
        starting.check_agents(context.configuration)
        return conduct(call, context)


COMMANDS = (diff, comment, message, open_item, continue_item)
