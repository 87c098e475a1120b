"""Conduct a run from the command line: print progress, ask about plans, and stop on signals."""

import signal
import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import click

from decklog.cli.call import Invocation
from decklog.cli.exits import print_json
from decklog.cli.screens.session import RunScreen
from decklog.cli.signing import owner_signature
from decklog.cli.terminal import print_text, shows_colours
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.conductor.starting import first_commit
from decklog.conductor.status import ConductorStatus, run_status
from decklog.log import Decklog
from decklog.review.agent_tool import review_attempt

EXITS = {"landed": 0, "needs attention": 7, "blocked": 1, "open": 7}


def print_remark(text: str) -> None:
    """Print a remark to standard error."""
    click.echo(text, err=True)


def conduct(call: Invocation, context: RunContext) -> int:
    """Conduct a run until nothing is left to do; return the exit code."""
    context = replace(context, reviewer=review_attempt)
    progress = ProgressPrinter(call, context.log, context.run_id)
    conductor = Conductor(context, on_change=lambda: progress.update(conductor.trouble))
    _handle_signals(conductor)
    conductor.run()
    status = progress.update()
    if _ask_about_plan(call, context, conductor):
        return conduct(call, context)
    if status.outcome == "landed":
        context.log.runs.finish(context.run_id, summary=f"{len(status.items)} items landed")
    _print_next_step(call, context, status)
    return EXITS[status.outcome]


def _ask_about_plan(call: Invocation, context: RunContext, conductor: Conductor) -> bool:
    """Show a plan that waits for a person, and ask at a terminal; return whether it was answered."""
    waiting = context.log.approvals.find(context.run_id, state="open", limit=200)
    asked = next((one for one in waiting if one.source == "conductor.plan"), None)
    if asked is None or call.json or conductor.is_interrupted:
        return False
    task = context.log.tasks.get(str(asked.task_id))
    for item in _items_of(task.inputs.get("plan")):
        after = f" (after {', '.join(item['needs'])})" if item["needs"] else ""
        print_text(f"  {item['name']:<16} {item['title']}{after}  {' '.join(item['paths'])}")
    if not sys.stdin.isatty():
        print_text(f"To have it worked: decklog approvals decide {asked.id} granted --by NAME; then start it again.")
        return False
    verdict = "granted" if click.confirm("Work this plan?", err=True) else "denied"
    why = None if verdict == "granted" else click.prompt("Why not? (the planner gets the reason)", err=True)
    with owner_signature(context.log, None):
        context.log.approvals.decide(
            asked.id,
            verdict,  # type: ignore[arg-type]
            by=context.person.name,
            rationale=why,
            subject_digest=asked.subject_digest,
        )
    return True


def _items_of(plan: object) -> list[dict[str, Any]]:
    return list(plan["items"]) if isinstance(plan, dict) else []


def _handle_signals(conductor: Conductor) -> None:
    """Stop new work at the first interrupt; end running agents at the second, or at SIGTERM."""

    def interrupted(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM or conductor.is_stopping:
            conductor.stop_now()
        else:
            click.echo("No new work; agents finish what they do. Once more ends them.", err=True)
            conductor.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)


class ProgressPrinter:
    """Prints changes of a run: redrawn on a terminal, else one line each, with --json one object each."""

    def __init__(self, call: Invocation, log: Decklog, run_id: str) -> None:
        self._call = call
        self._log = log
        self._run_id = run_id
        self._shown: dict[str, tuple[object, ...]] = {}
        self._trouble: str | None = None
        self._view = RunScreen() if not call.json and shows_colours() else None

    def update(self, trouble: str | None = None) -> ConductorStatus:
        if trouble is not None and trouble != self._trouble:
            self._trouble = trouble
            print_remark(trouble)
        status = run_status(self._log, self._run_id)
        if self._view is not None:
            self._view.draw(status)
            return status
        for item in status.items:
            now = (item.state, item.detail, item.round, item.meets)
            if self._shown.get(item.name) != now:
                self._shown[item.name] = now
                print_json({"run_id": self._run_id, **vars(item)}) if self._call.json else print_text(item.line())
        return status


def _print_next_step(call: Invocation, context: RunContext, status: ConductorStatus) -> None:
    if call.json:
        commit = context.repository.ref(context.target)
        print_json({"run_id": context.run_id, "outcome": status.outcome, "target": context.target, "commit": commit})
        return
    print_text(f"{status.counts()}; {status.spent()}")
    if any(item.state == "needs attention" for item in status.items):
        print_text(f"Questions wait: decklog approvals find {context.run_id} --state open; then start it again.")
    if context.target_commit() != first_commit(context.log.runs.get(context.run_id)):
        print_text(f"See what landed: git log {context.target}. Bring it into your branch: decklog run land {context.run_id}")
