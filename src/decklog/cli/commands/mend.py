"""`decklog mend` takes feedback to a verified fix; `decklog feedback "…"` files a problem."""

import getpass
import time
from pathlib import Path
from typing import Any

import click

from decklog import Busy, FixClass, Mend
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.show import show
from decklog.core.folders import state_home
from decklog.fixes.failed_runs import UNKNOWN, take_up
from decklog.fixes.fixing import find_override_question
from decklog.fixes.loop import STAGES, FixInput, FixLoop, next_commands
from decklog.log import Decklog

_CLASSES = ("prompt", "doc", "test", "tool", "policy", "architectural", "state-machine", "out-of-scope")
_CAUSES = ("task", "own-code", "outside")
_SHORTEST_SECONDS = 1.0
# Fixes that wait for one of these are refused, which has its own exit code.
_REFUSED_WAITS = ("fix", "gate", "person")


class _MendGroup(click.Group):
    """A group that accepts an id in place of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next(iter(args), "")
        return super().parse_args(ctx, args if first in {*self.commands, "-h", "--help"} else ["go", *args])


@click.group(cls=_MendGroup, subcommand_metavar="[ID | COMMAND] …")
def mend() -> None:
    """Fix feedback with a test that fails before the fix and passes after it; without an id, list what is open.

    \b
    decklog mend                      what there is, and what leads on
    decklog mend ID                   go on with it, or try again
    decklog mend ID --branch NAME     the fix is yours, and proven too
    decklog mend ID --class tool      say yourself what kind of fix it needs
    decklog mend --all                continue everything that can continue
    decklog mend --watch              repeat until interrupted
    decklog mend --run RUN            a run that failed: whose fault? --whose
    decklog mend drop ID --reason WHY give it up

    Rules, checks, agents and models are those of decklog.toml in the commit that the fix starts from. Your working
    tree does not change. To resume after a kill, repeat the command. Exit code 0: over; 7: waits; 6: refused, with the reason.
    """


@mend.command("go", hidden=True)
@click.argument("name", metavar="[ID]", required=False)
@click.option("--all", "everything", is_flag=True, help="everything that can continue, pending feedback too")
@click.option("--watch", is_flag=True, help="repeat until interrupted")
@click.option("--every", metavar="SECONDS", type=float, default=60.0, help="how often --watch looks, default 60")
@click.option("--branch", metavar="NAME", help="a branch of yours that has the fix")
@click.option("--class", "fix_class", type=click.Choice(_CLASSES), help="what kind of fix it needs")
@click.option("--merged", metavar="COMMIT", help="the commit that the fix was merged as, where that can't be found")
@click.option("--run", "run_id", metavar="RUN", help="a run that failed")
@click.option("--whose", type=click.Choice(_CAUSES), help="whose fault that run is, where you know")
@click.pass_obj
def go(
    call: Invocation, /, name: str | None, everything: bool, watch: bool, every: float, run_id: str | None, **given: Any
) -> int:
    """Continue one or all, or list everything open."""
    chosen = [one for one in (name, everything, watch, run_id) if one]
    if len(chosen) > 1:
        raise WrongUsage("ID, --all, --watch and --run exclude each other", hint="Choose one.")
    if given["whose"] and run_id is None:
        raise WrongUsage("--whose needs --run", hint="Name it: --run RUN")
    with call.open(writing=bool(chosen)) as log:
        if not chosen:
            return _show_open_fixes(call, log)
        loop = _open_loop(call, log)
        if run_id is not None:
            return _failed_run(call, loop, run_id, given["whose"])
        if name is not None:
            return _mend_one(call, loop, name, given)
        return _mend_all(call, loop, every if watch else None)


@mend.command("drop")
@click.argument("name", metavar="ID")
@click.option("--reason", required=True, metavar="WHY", help="reason for the person who gave the feedback")
@click.option("--by", metavar="NAME", help="who drops it, default you")
@click.pass_obj
def drop(call: Invocation, name: str, reason: str, by: str | None) -> int:
    """Drop a fix in any state; its feedback gets the reason."""
    with call.open() as log:
        loop = _open_loop(call, log)
        return _show_fix(call, log, loop.drop(loop.find_or_begin(name).id, reason, by=by or getpass.getuser()))


def _open_loop(call: Invocation, log: Decklog) -> FixLoop:
    return FixLoop(log=log, cwd=Path.cwd(), state=Path(state_home()), say=_print_remark if not call.json else _print_nothing)


def _print_remark(text: str) -> None:
    click.echo(text, err=True)


def _print_nothing(_: str) -> None:
    """Print nothing: stdout is data."""


def _mend_one(call: Invocation, loop: FixLoop, name: str, given: dict[str, Any]) -> int:
    fix_class = FixClass(given["fix_class"]) if given["fix_class"] else None
    fix_input = FixInput(fix_class=fix_class, branch=given["branch"], merged=given["merged"], by=getpass.getuser())
    return _show_fix(call, loop.log, loop.advance(loop.find_or_begin(name).id, fix_input))


def _mend_all(call: Invocation, loop: FixLoop, every: float | None) -> int:
    """Continue all fixes that don't need a person; with `every`, repeat at that interval in seconds."""
    while True:
        for found in list(loop.find_ready()):
            try:
                ended = loop.advance(found.id)
            except Busy:
                continue  # another process works on it
            if ended.moves != found.moves:
                _show_fix(call, loop.log, ended)
        if every is None:
            return 7 if any(True for _ in loop.find_ready()) else 0
        time.sleep(max(every, _SHORTEST_SECONDS))


def _failed_run(call: Invocation, loop: FixLoop, run_id: str, whose: str | None) -> int:
    found = take_up(loop, run_id, whose)
    is_unknown = found.whose == UNKNOWN
    known = "cause unknown" if is_unknown else f"{found.whose}, {found.confidence} of 100 sure"
    show(found, as_json=call.json, text=f"run {run_id}: {known}: {found.evidence}\n{found.next}")
    return 7 if is_unknown or found.mend_id is not None else 0


def _show_open_fixes(call: Invocation, log: Decklog) -> int:
    """Show the state of every open fix, and feedback that nobody has started on."""
    found = list(log.mends.find(open_only=True, limit=200))
    begun = {one.feedback_id for one in found}
    pending = [one for one in log.feedback.find(state="pending", limit=200) if one.id not in begun]
    data = [*(_as_dict(log, one) for one in found), *({"feedback_id": one.id, "state": "pending"} for one in pending)]
    texts = [_describe_fix(log, one) for one in found]
    texts += [f"{one.id} is pending: {' '.join(one.body.split())[:80]}\n    decklog mend {one.id}" for one in pending]
    return show(data, as_json=call.json, text="\n".join(texts) or 'Nothing to fix. To report a problem: decklog feedback "…"')


def _as_dict(log: Decklog, mend: Mend) -> dict[str, Any]:
    ways = next_commands(mend, find_override_question(log, mend))
    return {**mend.as_dict(), "proven": STAGES[mend.state].proven, "ways_out": ways}


def _describe_fix(log: Decklog, mend: Mend) -> str:
    asked = find_override_question(log, mend)
    reason = f": {mend.reason}" if mend.reason else ""
    waits = f", waits for {'an answer' if asked else mend.waits_for}" if mend.waits_for else ""
    head = f"{mend.feedback_id} is {mend.state} ({STAGES[mend.state].proven}){waits}{reason}"
    return "\n    ".join([head, *next_commands(mend, asked)])


def _show_fix(call: Invocation, log: Decklog, mend: Mend) -> int:
    show(_as_dict(log, mend), as_json=call.json, text=_describe_fix(log, mend))
    if mend.state.is_end or mend.waits_for is None:
        return 0
    return 6 if mend.waits_for.value in _REFUSED_WAITS and find_override_question(log, mend) is None else 7


_SEVERITIES = ("low", "med", "high", "critical")


@click.command("say", hidden=True)
@click.argument("body")
@click.option("--severity", type=click.Choice(_SEVERITIES), default="med", help="default med")
@click.option("--on", "context_url", metavar="URL", help="the pull request, issue, commit or file that it is about")
@click.option("--from", "from_handle", metavar="NAME", help="sender, default you")
@click.option("--id", "feedback_id", metavar="ID", help="an id of your own; a known one gives that feedback back")
@click.pass_obj
def file_feedback(
    call: Invocation, body: str, severity: str, context_url: str | None, from_handle: str | None, feedback_id: str | None
) -> int:
    """Record feedback about something that went wrong."""
    given = {"severity": severity, "context_url": context_url, "feedback_id": feedback_id}
    with call.open() as log:
        filed = log.feedback.file(from_handle or getpass.getuser(), body, **given)  # type: ignore[arg-type]
    return show(filed, as_json=call.json, text=f"{filed.id} is {filed.state}. To have it fixed: decklog mend {filed.id}")
