"""`decklog top`: a live overview on the whole terminal. Decisions work like `approvals decide`."""

import curses
import locale
import os
import select
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from decklog.cli.lines import Line, StyledText, clip_line, count_columns, fit, wrap_text
from decklog.cli.screens import approval as approvals
from decklog.cli.screens.now import FIRST_STEPS, current_work, money_lines, run_line, waiting_facts
from decklog.cli.show import format_entry
from decklog.cli.signing import owner_signature
from decklog.cli.terminal import BAD, BUSY, DIM, GOOD, LOUD, PLAIN, STRONG, are_colours_wanted, status_style
from decklog.core.display import dollars, revealed, span
from decklog.core.errors import DecklogError
from decklog.log import Decklog

if TYPE_CHECKING:
    from decklog import RunOverview, Summary, WaitingItem

    Thing = WaitingItem | RunOverview

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
    things: "list[Thing]" = field(default_factory=list)

    def add(self, line: Line, thing: "Thing | None" = None) -> None:
        if thing is not None:
            self.rows.append(len(self.lines))
            self.things.append(thing)
        self.lines.append(line)


def overview_page(summary: "Summary", strips: dict[str, list[int]], sought: str, width: int) -> ScreenPage:
    """Write the list: the sentence, what needs a person, the runs with their strips, and the budgets."""
    page = ScreenPage([[StyledText(text, STRONG)] for text in wrap_text(summary.sentence, width)])
    if summary.is_new:
        page.lines += [[], *([StyledText(text)] for text in FIRST_STEPS)]
        return page
    waiting = [item for item in summary.waiting if _has(sought, item.what, item.run_id, item.by)]
    runs = [run for run in summary.runs if _has(sought, run.goal, run.id, run.status.value, current_work(run))]
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
    page.lines = [clip_line(line, width) for line in page.lines]
    return page


def _has(sought: str, *texts: str | None) -> bool:
    return not sought or any(sought.casefold() in (text or "").casefold() for text in texts)


def _item_line(item: "WaitingItem", summary: "Summary", width: int) -> Line:
    details = waiting_facts(item, summary.at)
    room = max(10, width - 2 - min(len(details), width // 2) - 2)
    return [
        StyledText("▲ ", LOUD),
        StyledText(fit(item.what, room)),
        StyledText("  " + fit(details, width - room - 4, right=True), DIM),
    ]


def thing_page(log: Decklog, thing: "Thing", width: int) -> ScreenPage:
    """Draw the page of an opened item or run."""
    # Only waiting items have a kind.
    if not hasattr(thing, "kind"):
        return _run_page(log, thing.id, width)
    item: Any = thing
    if item.kind.value == "approval":
        return ScreenPage(approvals.approval_lines(log.approvals.show(item.id), log.clock.now(), width))
    if item.kind.value == "stalled":
        return _run_page(log, item.id, width)
    texts = [part for text in revealed_lines(item.what) for part in wrap_text(text, width)]
    question = [[StyledText(text, STRONG)] for text in texts]
    return ScreenPage([*question, [StyledText(waiting_facts(item, log.clock.now()), LOUD)], [], [StyledText(item.command)]])


def revealed_lines(text: str) -> list[str]:
    return [revealed(line) for line in text.splitlines()] or [""]


def _run_page(log: Decklog, run_id: str, width: int) -> ScreenPage:
    run, now = log.overview.run(run_id), log.clock.now()
    entries = list(log.journal.find(run_id, limit=_ENTRIES))
    head: list[Line] = [[StyledText(text, STRONG)] for text in wrap_text(run.goal, width)]
    counts = ", ".join(f"{count} {name}" for name, count in run.tasks.items() if count)
    spent = dollars(run.cost_microdollars) if run.calls else "nothing"
    head += [
        [
            StyledText(f"{run.status.shape} {run.status.value}", status_style(run.status)),
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
    latest = [[StyledText(revealed(fit(format_entry(entry, of_one_stream=True), width)))] for entry in entries]
    return ScreenPage([*head, [], [StyledText("Latest entries first", STRONG)], *latest])


_TICK_MILLISECONDS = 200
_ESCAPE, _ENTER = "\x1b", ("\n", "\r")


class Cancelled(Exception):
    """The person pressed Escape."""


def run(log: Decklog, *, seconds: float = 2.0) -> None:
    """Show the overview until the person quits."""
    locale.setlocale(locale.LC_ALL, "")
    # Curses waits a second after Escape for the rest of a key sequence; terminals send sequences at once.
    os.environ.setdefault("ESCDELAY", "25")
    curses.wrapper(lambda window: Top(log, window, seconds).loop())


class Top:
    """The state of the screen: the summary, the marked row and the opened item."""

    def __init__(self, log: Decklog, window: curses.window, seconds: float) -> None:
        self._log = log
        self._window = window
        self._seconds = seconds
        self._marked = 0
        self._first = 0
        self._sought = ""
        self._message = ""
        self._opened: Thing | None = None
        self._is_help = False
        self._read_at = 0.0
        self._summary: Summary | None = None
        self._strips: dict[str, list[int]] = {}
        self._page = ScreenPage()
        self._styles = _styles()

    def loop(self) -> None:
        """Read, draw and handle keys until the person quits."""
        self._window.timeout(_TICK_MILLISECONDS)
        _cursor(0)
        while True:
            self._read()
            self._draw()
            key = self._key()
            if (key is None and _is_hung_up()) or (key is not None and not self._do(key)):
                return

    # Reading

    def _read(self, *, now: bool = False) -> None:
        if self._summary is not None and not now and time.monotonic() - self._read_at < self._seconds:
            return
        self._read_at = time.monotonic()
        try:
            self._summary = self._log.overview.now(limit=SHOWN)
            self._strips = self._log.overview.activity([run.id for run in self._summary.runs])
        except DecklogError as problem:
            # Keep the old summary on the screen, with the reason.
            self._message = f"not read: {problem.message}"

    def _lay_out(self) -> None:
        height, width = self._window.getmaxyx()
        width = max(1, width - 1)
        if self._is_help:
            self._page = ScreenPage([[StyledText(text)] for text in HELP])
        elif self._opened is not None:
            try:
                self._page = thing_page(self._log, self._opened, width)
            except DecklogError as problem:
                self._page = ScreenPage([[StyledText(problem.message, LOUD)], [StyledText(problem.hint or "", DIM)]])
        elif self._summary is not None:
            self._page = overview_page(self._summary, self._strips, self._sought, width)
            self._marked = max(0, min(self._marked, len(self._page.rows) - 1))
            self._keep_in_sight(height - 1)
        self._first = max(0, min(self._first, len(self._page.lines) - (height - 1)))

    def _keep_in_sight(self, room: int) -> None:
        if not self._page.rows or self._marked == 0:
            self._first = 0
            return
        line = self._page.rows[self._marked]
        self._first = min(max(self._first, line - room + 1), line)

    # Drawing

    def _draw(self) -> None:
        self._lay_out()
        height, width = self._window.getmaxyx()
        self._window.erase()
        marked = self._page.rows[self._marked] if self._page.rows and self._opened is None and not self._is_help else -1
        for place, line in enumerate(self._page.lines[self._first : self._first + height - 1]):
            self._put(place, line, is_marked=place + self._first == marked)
        self._put(height - 1, self._foot(width - 1))
        self._window.refresh()

    def _foot(self, width: int) -> Line:
        if self._message:
            return [StyledText(fit(self._message, width), STRONG)]
        when = f"live, {self._summary.at:%H:%M:%S} UTC" if self._summary else "reading"
        keys = "j k scroll · a approve · d deny · q back" if self._opened is not None or self._is_help else KEYS
        return [StyledText(fit(keys, max(0, width - len(when) - 1)), DIM), StyledText(" " + when, DIM)]

    def _put(self, place: int, line: Line, *, is_marked: bool = False) -> None:
        height, width = self._window.getmaxyx()
        if not 0 <= place < height:
            return
        column = 0
        for piece in clip_line(line, max(0, width - 1)):
            style = self._styles[piece.style] | (curses.A_REVERSE if is_marked else 0)
            try:
                self._window.addstr(place, column, piece.text, style)
            except curses.error:
                return  # the window was made smaller; the next drawing uses the new size
            column += count_columns(piece.text)

    # Typing

    def _key(self) -> str | int | None:
        try:
            return self._window.get_wch()
        except curses.error:
            return None  # nothing was typed
        except KeyboardInterrupt:
            return "q" if self._opened is None else _ESCAPE

    def _do(self, key: str | int) -> bool:
        """Handle a key; return False to quit."""
        self._message = ""
        if key in ("q", _ESCAPE):
            return self._back(key)
        if key in ("j", curses.KEY_DOWN, "k", curses.KEY_UP):
            self._move(1 if key in ("j", curses.KEY_DOWN) else -1)
        elif key in (curses.KEY_NPAGE, " ", curses.KEY_PPAGE):
            self._move(10 if key != curses.KEY_PPAGE else -10)
        elif key in (*_ENTER, "o", curses.KEY_ENTER):
            self._open()
        elif key == "?":
            self._is_help, self._first = True, 0
        elif key == "r":
            self._read(now=True)
        elif key == curses.KEY_RESIZE:
            # The terminal may have changed the screen.
            self._window.clearok(True)
        elif key == "/":
            self._find()
        elif key in ("a", "d"):
            self._decide("granted" if key == "a" else "denied")
        return True

    def _back(self, key: str | int) -> bool:
        if not self._is_help and self._opened is None:
            return key != "q"
        self._is_help, self._opened, self._first = False, None, 0
        return True

    def _move(self, steps: int) -> None:
        if self._opened is not None or self._is_help:
            self._first += steps
        else:
            self._marked = max(0, min(self._marked + steps, len(self._page.rows) - 1))

    def _open(self) -> None:
        if self._opened is None and not self._is_help and self._page.things:
            self._opened, self._first = self._page.things[self._marked], 0

    def _find(self) -> None:
        try:
            self._sought, self._marked = self._ask("Find", hidden=False).strip(), 0
        except Cancelled:
            self._sought = ""

    # Deciding

    def _decide(self, verdict: str) -> None:
        thing = self._opened or (self._page.things[self._marked] if self._page.things else None)
        if thing is None or getattr(thing, "kind", None) != "approval":
            self._message = "Only an approval is approved or denied here; Enter shows what else to type."
            return
        # Show the item while the person types the reason: nobody should decide unread, or by one key.
        self._opened, self._first = thing, 0
        self._draw()
        try:
            decided = self._decided(thing.id, verdict)
            self._message = f"{decided.state} by {decided.decided_by}" + ("" if decided.is_proven else ", unproven")
            self._opened = None
            self._read(now=True)
        except Cancelled:
            self._message = "Nothing was decided."
        except DecklogError as problem:
            self._message = f"Nothing was decided: {problem.message}"

    def _decided(self, approval_id: str, verdict: str) -> Any:
        log = self._log
        shown, trust = log.approvals.show(approval_id), log.trust.show()
        question = "Why do you approve (Esc goes back)" if verdict == "granted" else "Why do you deny (needed; Esc goes back)"
        reason = self._ask(question, hidden=False).strip()
        if verdict == "denied" and not reason:
            raise Cancelled
        digest = shown["subject_digest"]
        if verdict == "granted" and shown["about"]["check"] == "not in the log":
            digest = self._ask("SHA-256 of what you looked at", hidden=False).strip()
        name = str(trust["owner"]) if trust["is_bound"] else self._ask("Your name", hidden=False).strip()
        with owner_signature(log, None, self._ask):
            return log.approvals.decide(
                approval_id,
                verdict,  # type: ignore[arg-type]
                by=name,
                rationale=reason or None,
                subject_digest=digest,
            )

    def _ask(self, what: str, *, hidden: bool) -> str:
        """Ask in the last line; Escape goes back."""
        typed = ""
        _cursor(1)
        try:
            while True:
                self._show_question(what, "•" * len(typed) if hidden else typed)
                key = self._key()
                if key is None or key == curses.KEY_RESIZE:
                    continue
                if key in _ENTER or key == curses.KEY_ENTER:
                    return typed
                if key in (_ESCAPE, "\x03"):
                    raise Cancelled
                if key in (curses.KEY_BACKSPACE, "\x7f", "\x08"):
                    typed = typed[:-1]
                elif isinstance(key, str) and key.isprintable():
                    typed += key
        finally:
            _cursor(0)

    def _show_question(self, what: str, typed: str) -> None:
        height, width = self._window.getmaxyx()
        self._draw()
        room = max(1, width - 1 - count_columns(what) - 2)
        shown = revealed(typed)
        self._window.move(max(0, height - 1), 0)
        self._window.clrtoeol()
        self._put(height - 1, [StyledText(f"{what}: ", LOUD), StyledText(shown[-room:])])
        self._window.refresh()


def _styles() -> dict[str, int]:
    """Return the curses attributes of each style, in colour if possible and allowed."""
    styles = {PLAIN: curses.A_NORMAL, LOUD: curses.A_BOLD, STRONG: curses.A_BOLD, DIM: curses.A_DIM}
    styles |= dict.fromkeys((GOOD, BAD, BUSY), curses.A_NORMAL)
    if curses.has_colors():
        curses.use_default_colors()
    if curses.has_colors() and are_colours_wanted():
        colours = {LOUD: curses.COLOR_YELLOW, GOOD: curses.COLOR_GREEN, BAD: curses.COLOR_RED, BUSY: curses.COLOR_CYAN}
        for number, (style, colour) in enumerate(colours.items(), 1):
            curses.init_pair(number, colour, -1)
            styles[style] |= curses.color_pair(number)
    return styles


def _is_hung_up() -> bool:
    """Return whether the terminal is gone. Reading a key would then return at once, forever."""
    terminal = select.poll()
    terminal.register(sys.stdin, 0)
    return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in terminal.poll(0))


def _cursor(visibility: int) -> None:
    try:
        curses.curs_set(visibility)
    except curses.error:
        return  # some terminals can't hide it
