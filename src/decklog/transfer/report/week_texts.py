"""A week in Markdown, for a chat or a mail, and as a page."""

from html import escape
from typing import TYPE_CHECKING

from decklog.core.figures import counted, dollars, sparkline
from decklog.transfer.report.document import figures, in_the_way, needs_you, table
from decklog.transfer.report.page import toned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from decklog.transfer.report.week import RunWeek, Week

_RUN_HEADS = ("run", "status", "done this week", "still open", "spent")
_MODEL_HEADS = ("model", "calls", "spent")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MARKED = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def markdown(week: "Week") -> "Iterator[str]":
    """Write the week as Markdown, line by line."""
    yield f"# {week.title}"
    yield ""
    yield f"{_headline(week)}."
    yield from _listed("Needs you", waiting(week))
    yield from _listed("Blocked", blocked(week))
    if week.runs:
        yield from ("", "## Runs", "", *_aligned(_RUN_HEADS, [_cells(run) for run in week.runs], numbers=3))
    yield from _listed("Answered", [_decision(one) for one in week.decided])
    if week.calls:
        yield from ("", "## Money", "", f"{_spent(week)}. By day: {_days(week)} `{_chart(week)}`", "")
        yield from _aligned(_MODEL_HEADS, list(_models(week)), numbers=2)
    yield from _listed("Learned", week.lessons)


def page(week: "Week") -> "Iterator[str]":
    """Yield the parts of the week's page."""
    yield f"<h1>{escape(week.title)}</h1>\n<p>{escape(_headline(week))}.</p>\n"
    yield figures(_figures(week))
    yield needs_you(waiting(week))
    yield in_the_way(blocked(week))
    if week.runs:
        yield "<h2>Runs</h2>\n"
        rows = ((goal, toned(status), *rest) for goal, status, *rest in map(_cells, week.runs))
        yield from table(_RUN_HEADS, rows, numbers=_RUN_HEADS[2:])
    if week.decided:
        yield "<h2>Answered</h2>\n"
        yield f"<ul>{''.join(f'<li>{escape(_decision(one))}</li>' for one in week.decided)}</ul>\n"
    if week.calls:
        yield f'<h2>Money</h2>\n<p>{escape(_spent(week))}.</p>\n<p class="soft">By day: {escape(_days(week))}</p>\n'
        yield from table(_MODEL_HEADS, _models(week), numbers=_MODEL_HEADS[1:])
    if week.lessons:
        yield f"<h2>Learned</h2>\n<ul>{''.join(f'<li>{escape(lesson)}</li>' for lesson in week.lessons)}</ul>\n"


def waiting(week: "Week") -> list[str]:
    """Name what waits for a person, as `decklog now` does."""
    return [f"{_flat(item.what)} ({', '.join(part for part in (item.by, item.run_id) if part)})" for item in week.waiting]


def blocked(week: "Week") -> list[str]:
    """Name the tasks that can't go on, and why."""
    return [f"{task['title']} ({task['run_id']}): {_flat(task['blocker'])}" for task in week.blocked]


def _headline(week: "Week") -> str:
    waits, stuck = len(week.waiting), f"; {counted(len(week.blocked), 'task')} blocked" if week.blocked else ""
    return (
        f"{counted(len(week.runs), 'run')}, {_ended(week)} completed; {counted(week.tasks_done, 'task')} done; "
        f"{dollars(week.spent_microdollars)} spent; {counted(waits, 'decision') if waits else 'nothing'} "
        f"{'wait' if waits > 1 else 'waits'} for you{stuck}"
    )


def _ended(week: "Week") -> int:
    return sum(run.status == "done" for run in week.runs)


def _figures(week: "Week") -> "Iterator[tuple[str, str]]":
    yield dollars(week.spent_microdollars), f"spent; {dollars(week.spent_before_microdollars)} the week before"
    yield str(week.tasks_done), "tasks done"
    yield str(_ended(week)), f"of {counted(len(week.runs), 'run')} completed"
    yield str(len(week.waiting)), f"waiting for you{f'; {len(week.blocked):,} blocked' if week.blocked else ''}"


def _cells(run: "RunWeek") -> tuple[str, ...]:
    left = f"{run.tasks_open}{f' and {run.tasks_blocked} blocked' if run.tasks_blocked else ''}"
    goal = f"{run.goal} ({run.summary})" if run.summary else run.goal
    return _flat(goal), run.status, str(run.tasks_done), left, dollars(run.spent_microdollars)


def _decision(one: "dict[str, object]") -> str:
    why = f" ({_flat(str(one['rationale']))})" if one["rationale"] else ""
    return f"{one['decided_by']}: {one['state']}, {_flat(str(one['question'] or ''))}{why}"


def _spent(week: "Week") -> str:
    unknown = f", {week.unpriced_calls} of them of unknown price" if week.unpriced_calls else ""
    before = dollars(week.spent_before_microdollars)
    return f"{dollars(week.spent_microdollars)} in {counted(week.calls, 'call')}{unknown}; {before} the week before"


def _chart(week: "Week") -> str:
    return sparkline([int(day["microdollars"]) for day in week.days])


def _days(week: "Week") -> str:
    return ", ".join(f"{_WEEKDAYS[number]} {dollars(int(day['microdollars']))}" for number, day in enumerate(week.days))


def _models(week: "Week") -> "Iterator[tuple[str, str, str]]":
    return ((row["key"] or "", f"{row['calls']:,}", dollars(row["cost_microdollars"])) for row in week.models)


def _listed(title: str, items: list[str]) -> "Iterator[str]":
    if items:
        yield from ("", f"## {title}", "", *(f"- {_plain(_flat(item))}" for item in items))


def _aligned(heads: tuple[str, ...], rows: "Sequence[tuple[str, ...]]", *, numbers: int) -> "Iterator[str]":
    """Write a table whose columns also stand under each other as plain text; the last ones are numbers."""
    cells = [heads, *(tuple(map(_plain, row)) for row in rows)]
    sizes = [max(3, *(len(row[place]) for row in cells)) for place in range(len(heads))]
    words = len(heads) - numbers
    lines = ["-" * size if place < words else "-" * (size - 1) + ":" for place, size in enumerate(sizes)]
    for row in (heads, lines, *cells[1:]):
        sized = enumerate(zip(row, sizes, strict=True))
        yield f"| {' | '.join(text.ljust(size) if place < words else text.rjust(size) for place, (text, size) in sized)} |"


def _plain(text: str) -> str:
    """Keep what agents wrote from being read as Markdown."""
    return text.translate(_MARKED)


def _flat(text: str | None) -> str:
    return " ".join((text or "").split())
