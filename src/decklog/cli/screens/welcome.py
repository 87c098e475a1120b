"""What `decklog` without a command answers: the first steps where there is no log, the present situation where there is one."""

from typing import TYPE_CHECKING

from decklog.agents.interrupted import close_killed_sessions
from decklog.cli import terminal
from decklog.cli.screens.lines import Line, StyledText, clipped, say, wrapped
from decklog.cli.screens.now import run_line, waiting_lines
from decklog.cli.show import show
from decklog.cli.styles import DIM, STRONG
from decklog.core.figures import counted, dollars

if TYPE_CHECKING:
    from decklog import Summary
    from decklog.cli.call import Invocation
    from decklog.stores.results.money import SpendTotal

_UNLESS_TERMINAL = 80
_LISTED = 3
_MORE = "More: decklog now, decklog cost, decklog serve, decklog --help"
_NO_LOG = (
    "Decklog records what coding agents do: sessions, tasks, spending and approvals.",
    "There is no log for this folder yet. Create one with:",
    "  decklog start    set it up with a few questions",
    "  decklog init     only create the log",
    "All commands: decklog --help. What it looks like: decklog demo",
)


def welcome(call: "Invocation") -> int:
    """Show the first steps, or a short form of `decklog now`."""
    place = call.place()
    if not place.exists:
        if call.json:
            return show({"target": place.shown, "exists": False, "next": "decklog start"}, as_json=True)
        terminal.put("\n".join(_NO_LOG))
        return 0
    with call.open(writing=False) as log:
        close_killed_sessions(log)
        summary = log.overview.now(limit=_LISTED)
        spent = log.ledger.summary()["total"]
    if call.json:
        return show(summary, as_json=True)
    say(_screen(summary, spent, terminal.width(_UNLESS_TERMINAL)))
    return 0


def _screen(summary: "Summary", spent: "SpendTotal", width: int) -> list[Line]:
    lines: list[Line] = [[StyledText(text, STRONG)] for text in wrapped(summary.sentence, width)]
    if summary.is_new:
        lines += [[StyledText("Import sessions: decklog import claude. Record new ones: decklog setup claude.")]]
    for item in summary.waiting:
        lines += waiting_lines(item, summary.at, width)
    lines += [run_line(run, summary.at, width) for run in summary.runs]
    if spent["calls"]:
        lines.append([StyledText(f"{dollars(spent['cost_microdollars'])} spent in all, for {counted(spent['calls'], 'call')}.")])
    return [clipped(line, width) for line in [*lines, [StyledText(_MORE, DIM)]]]
