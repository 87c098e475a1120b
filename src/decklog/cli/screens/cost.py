"""Draw costs: the total, bars by model, day, session or repository, and the result of importing sessions."""

import os
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from decklog.agents.sessions import HISTORIES
from decklog.cli.lines import Line, StyledText, clip_line, count_columns, fit
from decklog.cli.terminal import BUSY, DIM, STRONG, width
from decklog.core.display import bar, compact, counted, dollars, revealed, sparkline, took
from decklog.core.errors import NotFound
from decklog.location.locate import main_repository
from decklog.log import Decklog

if TYPE_CHECKING:
    from decklog.agents.history import HistorySummary

# The values of `--by`, and the ledger's grouping for each.
GROUPINGS = {"model": "model", "day": "day", "session": "session", "repo": "worktree"}
_LISTED = 14
_DAYS = 60
_COSTLIEST = 3
_FIGURES = (
    *("calls", "input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens"),
    *("cost_microdollars", "unpriced_calls"),
)
_NARROWEST_NAME, _NARROWEST_GOAL, _WIDEST_NAME = 12, 20, 44
# The length of a bar; on a narrow terminal, a shorter one.
_BAR, _SHORT_BAR, _NARROW = 24, 8, 76
_NO_KEY = {"model": "no model", "day": "no day", "session": "no run", "repo": "no folder"}
Row = dict[str, Any]
_UNLESS_TERMINAL = 100
_MODELS = 6
_KINDS = 4


def gather_costs(log: Decklog, by: str = "model", *, since: datetime | None = None, agent: str | None = None) -> Row:
    """Sum up costs by `by`, by day and for the costliest sessions; amounts are in microdollars."""
    summary = log.ledger.summary(by=GROUPINGS[by], since=since, agent=agent)  # type: ignore[arg-type]
    sessions = [*log.ledger.summary(by="session", since=since, agent=agent)["rows"]]
    days = [*log.ledger.summary(by="day", since=since, agent=agent)["rows"]]
    models = summary if by == "model" else log.ledger.summary(by="model", since=since, agent=agent)
    rows: list[Row] = [{**row} for row in summary["rows"]]
    if by == "repo":
        rows = _by_repository(rows)
    if by == "session":
        rows = [_add_goal(log, row) if place < _LISTED else row for place, row in enumerate(rows)]
    named = [row for row in sessions if row["key"] is not None]
    return {
        "by": by,
        "rows": rows,
        "total": summary["total"],
        "sessions": len(named),
        "days": [{"day": row["key"], "cost_microdollars": row["cost_microdollars"]} for row in days],
        "costliest_sessions": [_add_goal(log, {**row}) for row in named[:_COSTLIEST]],
        "unpriced": {str(row["key"]): row["unpriced_calls"] for row in models["rows"] if row["unpriced_calls"]},
    }


def _by_repository(rows: Iterable[Row]) -> list[Row]:
    """Sum up the folders of each repository, with its linked worktrees. A removed folder keeps its name."""
    found: dict[str | None, Row] = {}
    for row in rows:
        key = row["key"] and (main_repository(row["key"]) or row["key"])
        whole = found.setdefault(key, {"key": key, **dict.fromkeys(_FIGURES, 0)})
        for name in _FIGURES:
            whole[name] += row[name]
    return sorted(found.values(), key=lambda row: (-row["cost_microdollars"], -row["calls"]))


def _add_goal(log: Decklog, row: Row) -> Row:
    """Add the goal and the start of a session's run."""
    try:
        run = log.runs.get(row["key"]) if row["key"] else None
    except NotFound:
        run = None
    return {**row, "goal": run and run.goal, "started_at": run and run.started_at.isoformat()}


def cost_screen(spent: Row, width: int) -> list[Line]:
    """Draw the whole screen."""
    if not spent["total"]["calls"]:
        return [[StyledText("Nothing was spent yet.", STRONG)], [StyledText("Import sessions: decklog import claude")]]
    parts = [head_lines(spent), row_lines(spent, width)]
    if spent["by"] != "day" and len(spent["days"]) > 1:
        parts.append([_day_line(spent["days"])])
    if spent["by"] != "session":
        parts.append(costliest_lines(spent, width))
    parts.append(unpriced_lines(spent))
    lines = [line for part in parts if part for line in ([], *part)]
    return [clip_line(line, width) for line in lines[1:]]


def head_lines(spent: Row) -> list[Line]:
    """Draw the total cost, and the shares of token kinds."""
    total, days = spent["total"], [one["day"] for one in spent["days"]]
    sessions = f" in {counted(spent['sessions'], 'session')}" if spent["sessions"] else ""
    period = f", {days[0]}" + (f" to {days[-1]}" if days[-1] != days[0] else "")
    return [
        [
            StyledText(dollars(total["cost_microdollars"]), STRONG),
            StyledText(f" for {counted(total['calls'], 'call')}{sessions}{period}"),
        ],
        [StyledText(_token_shares(total), DIM)],
    ]


def _token_shares(total: Row) -> str:
    parts = {
        "cache reads": total["cache_read_tokens"],
        "cache writes": total["cache_create_tokens"],
        "input": total["input_tokens"],
        "output": total["output_tokens"],
    }
    whole = sum(parts.values())
    shares = ", ".join(f"{_percent(count, whole)} {name}" for name, count in parts.items() if count)
    return f"{compact(whole)} tokens: {shares}" if shares else "no tokens"


def _percent(part: int, whole: int) -> str:
    share = part * 100 / whole if whole else 0
    return "<1 %" if 0 < share < 1 else f"{share:.0f} %"


def row_lines(spent: Row, width: int, listed: int = _LISTED) -> list[Line]:
    """Draw a bar for each row, the costliest first and days in order, and a line for the rest."""
    by, rows = spent["by"], spent["rows"]
    shown = rows[-listed:] if by == "day" else rows[:listed]
    names = [_row_name(by, row) for row in shown]
    amounts = [dollars(row["cost_microdollars"]) for row in shown]
    most = max((row["cost_microdollars"] for row in shown), default=0)
    whole = spent["total"]["cost_microdollars"]
    money = max((len(amount) for amount in amounts), default=0)
    calls = max((len(_count_calls(row)) for row in shown), default=0)
    long = _BAR if width >= _NARROW else _SHORT_BAR
    # Name, bar, amount, share and calls, two blanks apart.
    name = min(
        max(map(count_columns, names), default=0), max(_NARROWEST_NAME, min(_WIDEST_NAME, width - long - money - calls - 15))
    )
    lines: list[Line] = []
    for row, label, amount in zip(shown, names, amounts, strict=True):
        cost = row["cost_microdollars"]
        drawn = bar(cost * 100 / most, long) if most else " " * long
        lines.append(
            [
                StyledText(f"{fit(label, name)}  "),
                StyledText(drawn.replace("░", " "), BUSY),
                StyledText(f"  {amount:>{money}}", STRONG),
                StyledText(f"  {_percent(cost, whole):>5}"),
                StyledText(f"  {_count_calls(row):>{calls}}", DIM),
            ]
        )
    left = [row for row in rows if row not in shown]
    if left:
        rest = dollars(sum(row["cost_microdollars"] for row in left))
        lines.append([StyledText(f"and {len(left):,} more: {rest}", DIM)])
    return lines


def _row_name(by: str, row: Row) -> str:
    if row["key"] is None:
        return _NO_KEY[by]
    if by == "session":
        return str(row.get("goal") or row["key"])
    if by == "repo":
        home = os.path.expanduser("~")
        return str(row["key"]).replace(home, "~", 1) if str(row["key"]).startswith(home + os.sep) else str(row["key"])
    return str(row["key"])


def _count_calls(row: Row) -> str:
    return counted(row["calls"], "call")


def _day_line(days: list[Row]) -> Line:
    """Draw the last days, also those without a call."""
    known = {one["day"]: one["cost_microdollars"] for one in days}
    first, last = (datetime.fromisoformat(days[place]["day"]).toordinal() for place in (0, -1))
    every = [datetime.fromordinal(number).date().isoformat() for number in range(max(first, last - _DAYS + 1), last + 1)]
    top = max(every, key=lambda day: known.get(day, 0))
    return [
        StyledText("By day    "),
        StyledText(sparkline([known.get(day, 0) for day in every]), BUSY),
        StyledText(f"  {counted(len(every), 'day')}, most on {top}: {dollars(known[top])}", DIM),
    ]


def costliest_lines(spent: Row, width: int) -> list[Line]:
    """Write the costliest sessions, one in a line."""
    rows = spent["costliest_sessions"]
    amounts = [dollars(row["cost_microdollars"]) for row in rows]
    size = max(map(len, amounts), default=0)
    goals = [str(row["goal"] or "") for row in rows]
    left = width - 10 - size - 4 - max((count_columns(row["key"]) for row in rows), default=0)
    goal = min(max(map(count_columns, goals), default=0), max(_NARROWEST_GOAL, min(_WIDEST_NAME, left)))
    heads = ["Costliest ", *(" " * 10 for _ in rows[1:])]
    return [
        [
            StyledText(head),
            StyledText(f"{amount:>{size}}", STRONG),
            StyledText(f"  {fit(text, goal)}"),
            StyledText(f"  {revealed(row['key'])}", DIM),
        ]
        for head, row, amount, text in zip(heads, rows, amounts, goals, strict=True)
    ]


def unpriced_lines(spent: Row) -> list[Line]:
    """Name the models without a known price: their calls are not in the sum."""
    if not spent["unpriced"]:
        return []
    total = spent["total"]["unpriced_calls"]
    names = revealed(", ".join(f"{name} ({count:,})" for name, count in spent["unpriced"].items()))
    return [
        [StyledText(f"Not in the sum: {counted(total, 'call')} without a known price: {names}")],
        [StyledText("Set a price: decklog prices set --help", DIM)],
    ]


def spent_by_program(log: Decklog, program: str) -> dict[str, Any]:
    """Add up what the sessions of a coding agent have spent, by model."""
    return {"spent": gather_costs(log, agent=program)}


def import_lines(program: str, done: "HistorySummary", spent: dict[str, Any], seconds: float) -> list[Line]:
    """Write what was imported, what the sessions in the log have spent, and what to do next."""
    title = HISTORIES[program].title if program in HISTORIES else program
    if done.files:
        found = f"Imported {counted(len(done.sessions), 'session')} of {title}"
        new = counted(done.new, "new entry", "new entries")
        facts = f" from {counted(done.files, 'file')} in {took(timedelta(seconds=seconds))}, {new}"
    else:
        found, facts = f"Nothing new of {title}", ""
    unchanged = f", {counted(done.unchanged, 'file')} unchanged" if done.unchanged else ""
    lines: list[Line] = [[StyledText(found, STRONG), StyledText(f"{facts}{unchanged}")], *_redacted_lines(done)]
    if done.edits:
        lines += [[StyledText(f"{counted(done.edits, 'edit')} of files found again in git: decklog blame FILE")]]
    known = spent["spent"]
    if known["total"]["calls"]:
        lines += [[], *head_lines(known), *row_lines(known, width(_UNLESS_TERMINAL), _MODELS)]
        lines += [*costliest_lines(known, width(_UNLESS_TERMINAL))[:1], *unpriced_lines(known)]
    lines = [clip_line(line, width(_UNLESS_TERMINAL)) for line in lines]
    return [*lines, [], [StyledText("Next: decklog cost, decklog serve, decklog now", DIM)]]


def _redacted_lines(done: "HistorySummary") -> list[Line]:
    if not done.redacted:
        return []
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in done.redacted.most_common(_KINDS))
    more = ", …" if len(done.redacted) > _KINDS else ""
    return [[StyledText(f"{counted(done.redacted.total(), 'secret')} redacted: {kinds}{more}")]]
