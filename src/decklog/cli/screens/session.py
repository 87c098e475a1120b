"""Draw sessions of coding agents: one line each, or all steps of one by time."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from textwrap import wrap
from typing import TYPE_CHECKING, TextIO

from decklog.agents.session_views import SessionSummary, Step, short_ids
from decklog.cli.lines import Line, StyledText, clip_line, count_columns, fit, render_line
from decklog.cli.terminal import BAD, BUSY, DIM, GOOD, LOUD, PLAIN, STRONG, shows_colours, status_style
from decklog.core.display import counted, dollars, revealed, span, took

if TYPE_CHECKING:
    from decklog.conductor.status import ConductorStatus, ItemStatus

# Lines of a text, of a diff and of an output that are shown; `--full` shows all.
_TEXT_LINES, _DIFF_LINES, _OUTPUT_LINES = 12, 16, 6
_INDENT = " " * 12
_MARKS = {
    None: ("…", BUSY),
    "ok": ("✓", GOOD),
    "failed": ("✗", BAD),
    "denied": ("⊘", LOUD),
    "interrupted": ("✗", BAD),
    "lost": ("?", DIM),
}


def session_lines(found: Sequence[SessionSummary], now: datetime, places: int) -> list[Line]:
    """Draw one line for each session: its id, program, age, length, cost, status and goal."""
    program = max((count_columns(one.program) for one in found), default=0)
    ids = short_ids(found)
    size = max((len(name) for name in ids), default=0)
    lines: list[Line] = []
    for name, one in zip(ids, found, strict=True):
        length = (one.ended_at or now) - one.started_at
        line = [
            StyledText(f"{fit(name, size)}  ", STRONG),
            StyledText(f"{fit(one.program, min(program, 12))}  "),
            StyledText(f"{fit(span(now - one.started_at), 6, right=True)} ago  ", DIM),
            StyledText(f"{fit(span(length), 6, right=True)}  ", DIM),
            StyledText(f"{fit(_cost(one), 8, right=True)}  "),
            StyledText(f"{fit(one.status, 9)}  ", status_style(one.status)),
        ]
        where = f" ({one.task_id})" if one.task_id else ""
        left = max(20, places - sum(count_columns(piece.text) for piece in line))
        lines.append([*line, StyledText(fit(f"{one.goal}{where}", left).rstrip())])
    return lines


def _cost(one: SessionSummary) -> str:
    if not one.microdollars and one.unpriced_calls:
        return "unpriced"
    return dollars(one.microdollars)


def session_head(one: SessionSummary, steps: Sequence[Step], now: datetime, places: int) -> list[Line]:
    """Draw the head of a session: goal, duration, cost, and the command to resume it."""
    calls = [step for step in steps if step.kind == "call"]
    failed = sum(step.is_failed for step in calls)
    length = took((one.ended_at or now) - one.started_at)
    facts = [one.program, one.model, one.folder, one.branch]
    lines: list[Line] = [
        [StyledText(fit(one.goal, places).rstrip(), STRONG)],
        [StyledText("  ".join(revealed(fact) for fact in facts if fact), DIM)],
        [
            StyledText(f"{one.started_at:%Y-%m-%d %H:%M} UTC, {length}, "),
            StyledText(one.status, status_style(one.status)),
            StyledText(f", {_cost(one)}, {counted(len(calls), 'call')}"),
            StyledText(f", {failed} failed" if failed else "", BAD),
        ],
    ]
    if one.task_id:
        lines.append([StyledText(f"run {one.run_id}, work item {one.task_id}", DIM)])
    if one.resume:
        lines.append([StyledText(f"go on with it: {one.resume}", DIM)])
    return [clip_line(line, places) for line in lines]


def step_lines(steps: Sequence[Step], places: int, *, full: bool = False) -> list[Line]:
    """Draw steps with their times; cut long texts unless `full`."""
    return [clip_line(line, places) for step in steps for line in _step_lines(step, places, full)]


def _step_lines(step: Step, places: int, full: bool) -> Iterator[Line]:
    time = StyledText(f"{step.at:%H:%M:%S}  ", DIM)
    inner = "↳ " if step.agent_id else ""
    if step.kind == "call":
        yield from _call_lines(step, time, inner, places, full)
        return
    who, style = {
        "prompt": ("you" if step.who in (None, "person") else str(step.who), STRONG),
        "said": (step.who or "agent", PLAIN),
        "thought": ("thinks", DIM),
        "error": ("error", BAD),
    }.get(step.kind, ("note", DIM))
    label = f"{inner}{revealed(who)}: "
    lines = _limit_lines(
        _wrap_lines(step.text, places - count_columns(time.text), count_columns(label)), None if full else _TEXT_LINES
    )
    first, *rest = lines
    yield [time, StyledText(label, STRONG if step.kind in ("prompt", "error") else DIM), StyledText(first, style)]
    yield from ([StyledText(" " * count_columns(time.text) + line, style)] for line in rest)


def _wrap_lines(text: str, places: int, first: int = 0) -> list[str]:
    """Break a text into lines that fit; the first line has `first` columns less."""
    lines: list[str] = []
    for line in text.strip().splitlines() or [""]:
        taken = 0 if lines else first
        room, indent = max(20, places), " " * (len(line) - len(line.lstrip()))
        broken = wrap(revealed(line), room, initial_indent=" " * taken, subsequent_indent=indent, drop_whitespace=True)
        lines += [broken[0][taken:], *broken[1:]] if broken else [""]
    return lines


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 1 else took(timedelta(seconds=seconds))


def _call_lines(step: Step, time: StyledText, inner: str, places: int, full: bool) -> Iterator[Line]:
    mark, style = _MARKS.get(step.outcome, ("✗", BAD))
    seconds = "" if step.seconds is None else f"  {_format_seconds(step.seconds)}"
    first, *rest = step.text.strip().splitlines() or [step.tool or "call"]
    more = f" (+{counted(len(rest), 'line')})" if rest and not full else ""
    room = max(20, places - count_columns(time.text) - count_columns(inner) - 2 - count_columns(seconds) - count_columns(more))
    yield [
        time,
        StyledText(f"{inner}{mark} ", style),
        StyledText(fit(first, room).rstrip()),
        StyledText(more, DIM),
        StyledText(seconds, DIM),
    ]
    if full:
        yield from ([StyledText(_INDENT + revealed(line))] for line in rest)
    for line in _limit_lines(list(step.diff), None if full else _DIFF_LINES):
        yield [StyledText(_INDENT + revealed(line), GOOD if line.startswith("+") else BAD if line.startswith("-") else DIM)]
    if full or step.is_failed:
        # The end of a failed command's output matters most; a refusal is a sentence.
        output = step.output.strip().splitlines()
        shown = (
            _wrap_lines(step.output, places - len(_INDENT)) if step.outcome == "denied" else [revealed(line) for line in output]
        )
        yield from (
            [StyledText(_INDENT + line, DIM)] for line in _limit_lines(shown, None if full else _OUTPUT_LINES, keep_end=True)
        )


def _limit_lines(lines: list[str], most: int | None, *, keep_end: bool = False) -> list[str]:
    if most is None or len(lines) <= most:
        return lines
    left_out = f"… {counted(len(lines) - most, 'line')} more (--full)"
    return [left_out, *lines[-most:]] if keep_end else [*lines[:most], left_out]


# Landed work items are only counted if there are more than fit.
_LINES_AROUND = 6


def run_frame(status: "ConductorStatus", places: int, height: int) -> list[Line]:
    """Return the lines of a run: its status, then its work items, open ones first."""
    head: Line = [StyledText(fit(status.goal, max(places - 30, 20)), STRONG), StyledText(f"  {status.status}  ", DIM)]
    head.append(StyledText(status.spent()))
    room = max(height - _LINES_AROUND, 3)
    items = sorted(status.items, key=lambda item: (item.state in ("landed", "waits"), item.state == "waits"))
    lines = [head, [StyledText(status.counts())], *(_item_line(item) for item in items[:room])]
    if len(items) > room:
        lines.append([StyledText(f"and {len(items) - room} more", DIM)])
    return [clip_line(line, places) for line in lines]


def _item_line(item: "ItemStatus") -> Line:
    return [
        StyledText(f"▸ {fit(item.name, 16)} "),
        StyledText(fit(item.state, 15), status_style(item.state)),
        StyledText(f" {item.described()}"),
    ]


class RunScreen:
    """Draws a run, each time over the previous drawing."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._drawn = 0
        self._last: list[Line] = []

    def draw(self, status: "ConductorStatus") -> None:
        """Draw the status of a run, unless it is unchanged."""
        size = shutil.get_terminal_size()
        lines = run_frame(status, size.columns, size.lines)
        if lines == self._last:
            return
        colour = shows_colours(self._stream)
        text = "".join(f"{render_line(line, colour=colour)}\x1b[K\n" for line in lines)
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        # Clear the rest of a longer frame.
        self._stream.write(f"{up}{text}\x1b[J")
        self._stream.flush()
        self._drawn, self._last = len(lines), lines
