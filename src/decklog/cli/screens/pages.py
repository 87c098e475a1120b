"""The pages of `decklog top`: a list of what waits and what runs, and what each of them is when it is opened."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from decklog.cli.screens import approval as approvals
from decklog.cli.screens.lines import Line, StyledText, clipped, fit, wrapped
from decklog.cli.screens.now import START, doing, facts, money_lines, run_line
from decklog.cli.show import entry_line
from decklog.cli.styles import DIM, LOUD, STRONG, of_word
from decklog.core.characters import revealed
from decklog.core.figures import dollars, span

if TYPE_CHECKING:
    from decklog import RunOverview, Summary, WaitingItem
    from decklog.log import Decklog

KEYS = "j k move · Enter open · a approve · d deny · / find · ? help · q quit"
HELP = (
    "j, k, arrows   move, or scroll what is open",
    "Enter, o       open what is marked",
    "a              approve the approval that is marked or open; asks for a reason and the owner's signature",
    "d              deny it; asks for a reason",
    "/              show only what has a text; empty shows all",
    "r              read anew now (it is read anew every two seconds)",
    "Esc, q         back; q in the list ends",
    "",
    "▲ needs attention  ✕ stalled  ■ blocked  ▶ running  ○ idle  ‖ paused  ✓ done  ⊗ failed  – cancelled",
)
SHOWN = 50
_ENTRIES = 100


@dataclass
class ScreenPage:
    """Lines to look at; `rows` names the line of each thing that can be marked."""

    lines: list[Line] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    things: "list[WaitingItem | RunOverview]" = field(default_factory=list)

    def add(self, line: Line, thing: "WaitingItem | RunOverview | None" = None) -> None:
        if thing is not None:
            self.rows.append(len(self.lines))
            self.things.append(thing)
        self.lines.append(line)


def overview_page(summary: "Summary", strips: dict[str, list[int]], sought: str, width: int) -> ScreenPage:
    """Write the list: the sentence, what needs a person, the runs with their strips, and the budgets."""
    page = ScreenPage([[StyledText(text, STRONG)] for text in wrapped(summary.sentence, width)])
    if summary.is_new:
        page.lines += [[], *([StyledText(text)] for text in START)]
        return page
    waiting = [item for item in summary.waiting if _has(sought, item.what, item.run_id, item.by)]
    runs = [run for run in summary.runs if _has(sought, run.goal, run.id, run.status.value, doing(run))]
    if waiting:
        page.lines += [[], [StyledText("Needs attention", STRONG)]]
        for item in waiting:
            page.add(_item_line(item, summary, width), item)
    if runs:
        page.lines += [[], [StyledText("Runs", STRONG)]]
        for run in runs:
            page.add(run_line(run, summary.at, width, strips), run)
    if sought:
        page.lines += [[], [StyledText(f"Only what has “{revealed(sought)}”; / and Enter shows all", DIM)]]
    page.lines += money_lines(summary, width)
    page.lines = [clipped(line, width) for line in page.lines]
    return page


def _has(sought: str, *texts: str | None) -> bool:
    return not sought or any(sought.casefold() in (text or "").casefold() for text in texts)


def _item_line(item: "WaitingItem", summary: "Summary", width: int) -> Line:
    told = facts(item, summary.at)
    room = max(10, width - 2 - min(len(told), width // 2) - 2)
    return [
        StyledText("▲ ", LOUD),
        StyledText(fit(item.what, room)),
        StyledText("  " + fit(told, width - room - 4, right=True), DIM),
    ]


def thing_page(log: "Decklog", thing: "WaitingItem | RunOverview", width: int) -> ScreenPage:
    """Write what something is that was opened."""
    # Only waiting items have a kind.
    if not hasattr(thing, "kind"):
        return _run_page(log, thing.id, width)
    item: Any = thing
    if item.kind.value == "approval":
        return ScreenPage(approvals.lines(log.approvals.show(item.id), log.clock.now(), width))
    if item.kind.value == "stalled":
        return _run_page(log, item.id, width)
    texts = [part for text in revealed_lines(item.what) for part in wrapped(text, width)]
    told = [[StyledText(text, STRONG)] for text in texts]
    return ScreenPage([*told, [StyledText(facts(item, log.clock.now()), LOUD)], [], [StyledText(item.command)]])


def revealed_lines(text: str) -> list[str]:
    return [revealed(line) for line in text.splitlines()] or [""]


def _run_page(log: "Decklog", run_id: str, width: int) -> ScreenPage:
    run, now = log.overview.run(run_id), log.clock.now()
    entries = list(log.journal.find(run_id, limit=_ENTRIES))
    head: list[Line] = [[StyledText(text, STRONG)] for text in wrapped(run.goal, width)]
    counts = ", ".join(f"{count} {name}" for name, count in run.tasks.items() if count)
    spent = dollars(run.cost_microdollars) if run.calls else "nothing"
    head += [
        [
            StyledText(f"{run.status.shape} {run.status.value}", of_word(run.status)),
            StyledText(f"   {run.id}"),
        ],
        [
            StyledText(
                fit(
                    f"tasks: {counts or 'none'}; spent: {spent}; {run.entries:,} entries, the last {span(now - run.last_at)} ago",
                    width,
                )
            )
        ],
    ]
    for task in run.working_on:
        state = "lease ended" if task["lease_ended"] else task["stage"] or "at work"
        head.append([StyledText(fit(f"  {task['worker']}: {task['title']} ({state})", width), DIM)])
    told = [[StyledText(revealed(fit(entry_line(entry, of_one_stream=True), width)))] for entry in entries]
    return ScreenPage([*head, [], [StyledText("Latest entries first", STRONG)], *told])
