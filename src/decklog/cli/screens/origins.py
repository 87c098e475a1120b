"""Origins of lines on a terminal: one line's story, a commit by origin, and statistics."""

from collections import Counter
from collections.abc import Iterator

from decklog.agents.origins.commit_story import KINDS, CommitStory, SessionShare
from decklog.agents.origins.line_story import LineStory, cost_text, facts_of
from decklog.agents.origins.statistics import HEADS, LineStatistics, cells_of
from decklog.cli.lines import Line, StyledText, count_columns, fit, wrap_text
from decklog.cli.terminal import BAD, DIM, GOOD, PLAIN, STRONG
from decklog.core.display import counted, revealed

_LABEL = 10
# Lines of a text that are shown; the entry has the rest.
_MOST_LINES = 3
_MOST_FILES = 20


def line_screen(story: LineStory, places: int) -> list[Line]:
    """Draw what is known about one line, on one screen."""
    line = story.line
    head = f"{story.path}:{line.final_line}"
    lines: list[Line] = [
        [StyledText(f"{head}  ", STRONG), StyledText(fit(line.text, max(20, places - count_columns(head) - 2)).rstrip())]
    ]
    for fact in facts_of(story):
        style = STRONG if fact.label == "origin" else DIM if fact.label in ("before", "note") else PLAIN
        if fact.label == "tests":
            style = GOOD if fact.text.startswith("ok:") else BAD
        lines += _labelled_lines(fact.label, fact.text, places, style, end=f"  ({fact.entry})" if fact.entry else "")
    return lines


def _labelled_lines(label: str, text: str, places: int, style: str = PLAIN, end: str = "") -> Iterator[Line]:
    """Draw a text behind its label, in a few lines at most."""
    room = max(20, places - _LABEL - 2)
    parts = wrap_text(text, room) or [""]
    if len(parts) > _MOST_LINES:
        parts = [*parts[: _MOST_LINES - 1], fit(f"{parts[_MOST_LINES - 1]} …", room).rstrip()]
    for number, part in enumerate(parts):
        head = f"  {label:<{_LABEL}}" if number == 0 else " " * (_LABEL + 2)
        last = StyledText(end if number == len(parts) - 1 and count_columns(part) + count_columns(end) <= room else "", DIM)
        yield [StyledText(head, DIM), StyledText(part, style), last]


def commit_screen(story: CommitStory, places: int) -> list[Line]:
    """Draw a commit: its files with the share of each origin, and the sessions behind it."""
    commit = story.changes
    lines: list[Line] = [
        [StyledText(f"{commit.commit[:10]}  ", STRONG), StyledText(fit(commit.subject, max(20, places - 12)).rstrip())],
        [StyledText(f"{revealed(commit.author)}, {commit.at:%Y-%m-%d %H:%M}", DIM)],
        [StyledText(f"{counted(story.lines.total(), 'added line')}: {_origin_shares(story.lines)}")],
        [StyledText("reviewed" if story.is_reviewed else "not reviewed")],
        [],
    ]
    size = min(60, max((count_columns(file.change.path) for file in story.files), default=0))
    for file in story.files[:_MOST_FILES]:
        counts = f"+{file.lines.total()} -{file.change.removed}"
        lines.append([StyledText(f"  {fit(file.change.path, size)}  {counts:<12}"), StyledText(_origin_shares(file.lines), DIM)])
    if len(story.files) > _MOST_FILES:
        lines.append([StyledText(f"  and {counted(len(story.files) - _MOST_FILES, 'more file')}", DIM)])
    if story.sessions:
        lines += [[], [StyledText("Sessions", STRONG)], *(_session_line(one, places) for one in story.sessions)]
    return lines


def _session_line(one: SessionShare, places: int) -> Line:
    facts = [
        one.session,
        counted(one.lines, "line"),
        one.model,
        one.title and f"task {one.task_id} {one.title}",
        cost_text(one.cost),
    ]
    return [StyledText(fit("  " + ", ".join(str(fact) for fact in facts if fact), places).rstrip())]


def _origin_shares(lines: Counter[str]) -> str:
    """Return the share of each origin that has lines."""
    whole = lines.total()
    return ", ".join(f"{kind} {lines[kind]} ({lines[kind] * 100 // whole} %)" for kind in KINDS if lines[kind])


def statistics_screen(found: LineStatistics, places: int) -> list[Line]:
    """Draw statistics as a table."""
    heads = [found.by.value, *HEADS]
    rows = [heads, *(cells_of(row) for row in found.rows), cells_of(found.total)]
    sizes = [max(count_columns(row[column]) for row in rows) for column in range(len(heads))]
    sizes[0] = min(sizes[0], max(12, places - sum(sizes[1:]) - 2 * len(sizes)))
    lines: list[Line] = [[StyledText(f"{found.revisions}: {counted(found.commits, 'commit')}", DIM)]]
    for number, row in enumerate(rows):
        text = "  ".join(fit(cell, size, right=column > 0) for column, (cell, size) in enumerate(zip(row, sizes, strict=True)))
        lines.append([StyledText(text, DIM if number == 0 else STRONG if number == len(rows) - 1 else PLAIN)])
    if found.review_text:
        lines.append([StyledText(found.review_text)])
    if found.missing:
        lines.append([StyledText(f"{counted(found.missing, 'line')} unknown because git objects are gone", DIM)])
    return lines
