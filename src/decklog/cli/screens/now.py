"""Draw the overview of a log: a summary sentence, items that need a person, runs and budgets."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from decklog.agents.closing import close_killed_sessions
from decklog.cli import terminal
from decklog.cli.call import Invocation
from decklog.cli.lines import Line, StyledText, clip_line, count_columns, fit, wrap_text
from decklog.cli.show import show
from decklog.cli.terminal import DIM, LOUD, PLAIN, STRONG, status_style
from decklog.core.display import bar, counted, dollars, span, sparkline

if TYPE_CHECKING:
    from decklog import BudgetOverview, RunOverview, Summary, WaitingItem
    from decklog.stores.results.money import SpendTotal

# Listed items of each kind, by default.
LISTED = 12
_PENDING = 7
_UNLESS_TERMINAL = 80
_BRIEF_FIELDS = ("at", "sentence", "decisions", "counts", "agents", "spent_today", "unpriced_today")
FIRST_STEPS = (
    'Start a run:  decklog runs start "GOAL"',
    'Plan it:      decklog plan "TITLE" "TITLE"',
)
_WORD, _DONE, _COST, _AGE = 15, 7, 8, 6
_GROUPS = {
    "At work": ("needs attention", "running"),
    "Stalled": ("stalled",),
    "Not working": ("blocked", "waiting", "idle", "paused"),
}
# Below the first width a run shows only its goal; from the second on, also the activity of the last hour.
_NARROW, _ROOMY = 64, 116
_SHOWN_BUDGETS = 6
_BAR = 20


def show_now(call: Invocation, limit: int = LISTED) -> int:
    """Show the overview once; the exit code is 7 if something waits for a decision."""
    with call.open(writing=False) as log:
        close_killed_sessions(log, call.spool())
        summary = log.overview.now(limit=limit)
        strips = None if call.json or call.brief else log.overview.activity([run.id for run in summary.runs])
    data = summary.as_dict()
    text = summary.sentence if call.brief else summary_screen(summary, terminal.width(_UNLESS_TERMINAL), strips)
    show({name: data[name] for name in _BRIEF_FIELDS} if call.brief else summary, as_json=call.json, text=text)
    return _PENDING if summary.decisions else 0


def summary_screen(summary: "Summary", width: int, strips: Mapping[str, Sequence[int]] | None = None) -> list[Line]:
    """Draw the whole summary."""
    lines = [[StyledText(text, STRONG)] for text in wrap_text(summary.sentence, width)]
    if summary.is_new:
        return [*lines, [], *([StyledText(text)] for text in FIRST_STEPS)]
    if summary.waiting:
        lines += [[], [StyledText("Needs attention", STRONG)]]
        for item in summary.waiting:
            lines += waiting_lines(item, summary.at, width)
        lines += _more_line(summary.decisions - len(summary.waiting), "decklog overview waiting")
    for title, words in _GROUPS.items():
        runs = [run for run in summary.runs if run.status.value in words]
        if runs:
            left_out = sum(summary.counts.get(word, 0) for word in words) - len(runs)
            lines += [[], [StyledText(title, STRONG)], *(run_line(run, summary.at, width, strips) for run in runs)]
            lines += _more_line(left_out, "decklog overview runs")
    return [clip_line(line, width) for line in lines + money_lines(summary, width)]


def _more_line(count: int, command: str) -> list[Line]:
    return [[StyledText(f"  and {count} more: {command}", DIM)]] if count > 0 else []


def waiting_lines(item: "WaitingItem", now: datetime, width: int) -> list[Line]:
    """Draw a waiting item: the question, then who asks, the default, and the command."""
    head = [StyledText("▲ ", LOUD), StyledText(fit(item.what, width - 2))]
    return [head, *([StyledText("  " + fit(text, width - 2), DIM)] for text in (waiting_facts(item, now), item.command))]


def waiting_facts(item: "WaitingItem", now: datetime) -> str:
    """Describe who asks, in which run, since when, and the default after the deadline."""
    who = [part for part in (item.by, item.run_id) if part]
    parts = [", ".join([*who, f"{span(now - item.since)} ago"])]
    if item.deadline is not None:
        end = span(item.deadline - now)
        parts.append(f"{item.default} by default in {end}" if item.default != "expired" else f"expires in {end}")
    return "; ".join(parts)


def run_line(run: "RunOverview", now: datetime, width: int, strips: Mapping[str, Sequence[int]] | None = None) -> Line:
    """Draw a run: status, goal, current work, tasks, cost and age of the last entry."""
    # The longest status fills its column, so add a space before the goal.
    word = StyledText(
        f"{run.status.shape} {fit(run.status.value, max(_WORD, len(run.status.value) + 1))}", status_style(run.status)
    )
    figures = [
        StyledText(" " + fit(f"{run.done}/{run.planned}" if run.planned else "–", _DONE, right=True)),
        # Never cut an amount.
        StyledText(" " + (dollars(run.cost_microdollars) if run.calls else "–").rjust(_COST)),
        StyledText(" " + fit(span(now - run.last_at), _AGE, right=True)),
    ]
    if width < _NARROW:
        return [word, StyledText(fit(run.goal, max(1, width - count_columns(word.text) - 1 - _AGE))), figures[-1]]
    strip = strips.get(run.id) if strips is not None and width >= _ROOMY else None
    if strip is not None:
        figures.insert(0, StyledText(f" {sparkline(list(strip))}", DIM))
    left = width - count_columns(word.text) - sum(count_columns(piece.text) for piece in figures) - 1
    goal = left * 3 // 5
    return [word, StyledText(f"{fit(run.goal, goal)} "), StyledText(fit(current_work(run), left - goal), DIM), *figures]


def current_work(run: "RunOverview") -> str:
    """Describe the current work of a run, or its last entry."""
    if not run.working_on:
        return f"{run.last_by}: {run.last_said}" if run.last_by else run.last_said
    first = run.working_on[0]
    what = "lease ended" if first["lease_ended"] else first["stage"] or first["title"]
    more = f" +{run.workers - 1}" if run.workers > 1 else ""
    return f"{first['worker']}{more}: {what}"


def money_lines(summary: "Summary", width: int) -> list[Line]:
    """Draw the budgets; overall budgets and those with warnings come first."""
    if not summary.budgets and not summary.unpriced_today:
        return []
    order = sorted(summary.budgets, key=lambda budget: (budget.scope != "all", budget.state == "ok", -budget.percent))
    shown = order[:_SHOWN_BUDGETS]
    size = min(24, max((len(budget.whose) for budget in shown), default=0))
    lines: list[Line] = [[], [StyledText("Money", STRONG)], *(_budget_line(budget, size, width) for budget in shown)]
    lines += _more_line(len(order) - len(shown), "decklog ledger burn")
    if summary.unpriced_today:
        lines.append([StyledText(f"  the price of {counted(summary.unpriced_today, 'call')} of today is unknown", DIM)])
    return lines


def _budget_line(budget: "BudgetOverview", size: int, width: int) -> Line:
    style = PLAIN if budget.state == "ok" else status_style(budget.state)
    share = budget.spent * 100 / budget.ceiling if budget.ceiling else 100
    head = f"  {fit(budget.whose, size)}  {bar(share, _BAR)} {budget.percent:>3} %  "
    return [StyledText(head, style), StyledText(fit(budget.said, max(10, width - len(head))))]


_WELCOME_UNLESS_TERMINAL = 80
_LISTED = 3
_MORE = "More: decklog now, decklog cost, decklog serve, decklog --help"
_NO_LOG = (
    "Decklog records what coding agents do: sessions, tasks, spending and approvals.",
    "There is no log for this folder yet. Create one with:",
    "  decklog start    set it up with a few questions",
    "  decklog init     only create the log",
    "All commands: decklog --help. What it looks like: decklog demo",
)


def show_welcome(call: Invocation) -> int:
    """Show the first steps, or a short form of `decklog now`."""
    place = call.place()
    if not place.exists:
        facts = {"target": place.shown, "exists": False, "next": "decklog start"}
        return show(facts, as_json=call.json, text="\n".join(_NO_LOG))
    with call.open(writing=False) as log:
        close_killed_sessions(log)
        summary = log.overview.now(limit=_LISTED)
        spent = log.ledger.summary()["total"]
    return show(summary, as_json=call.json, text=_welcome_screen(summary, spent, terminal.width(_WELCOME_UNLESS_TERMINAL)))


def _welcome_screen(summary: "Summary", spent: "SpendTotal", width: int) -> list[Line]:
    lines: list[Line] = [[StyledText(text, STRONG)] for text in wrap_text(summary.sentence, width)]
    if summary.is_new:
        lines += [[StyledText("Import sessions: decklog import claude. Record new ones: decklog setup claude.")]]
    for item in summary.waiting:
        lines += waiting_lines(item, summary.at, width)
    lines += [run_line(run, summary.at, width) for run in summary.runs]
    if spent["calls"]:
        lines.append([StyledText(f"{dollars(spent['cost_microdollars'])} spent in all, for {counted(spent['calls'], 'call')}.")])
    return [clip_line(line, width) for line in [*lines, [StyledText(_MORE, DIM)]]]
