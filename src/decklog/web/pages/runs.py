"""Runs: a table of all runs, sorted by attention, or as a tree of forks."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, quote_plus

from markupsafe import Markup

from decklog import Page, RunSort, Status
from decklog.core.errors import Invalid
from decklog.core.figures import dollars
from decklog.web.pages.since import since_of
from decklog.web.rendering import NOTHING, age, agent_name, bars, length, name_of, segment, sign, text_of
from decklog.web.site import PageView, SiteRequest, command

PAGE = 50
# Query parameters that filter the list, in addition to the status.
_NARROWS = ("text", "repo", "branch", "since", "parent")
_OPTIONS = {"parent_run_id": "parent-run"}
# The parameter value for families, and the maximum depth of indentation.
FAMILY, LEVELS = "family", 4


# The status filters, in the order of the list.
_WORDS = (
    *(Status.NEEDS_ATTENTION, Status.RUNNING, Status.STALLED, Status.BLOCKED, Status.WAITING, Status.IDLE, Status.PAUSED),
    *(Status.DONE, Status.FAILED, Status.CANCELLED),
)


def lines_of(runs: Iterable[Any], now: datetime, strips: Mapping[str, list[int]], *, is_whole: bool = False) -> Markup:
    """Render the rows of the table. `strips` has the recent activity of runs that had any.

    Direct string formatting is much faster here than a template.
    """
    return Markup("".join([_line(run, now, strips, is_whole=is_whole) for run in runs]))


def families_of(families: Iterable[Any], now: datetime, strips: Mapping[str, list[int]]) -> Markup:
    """Render families, each as a part of the table, with a total row if a family has several runs."""
    parts: list[str] = []
    for family in families:
        is_many = len(family.runs) > 1 or family.is_cut
        parts.append("<tbody>\n")
        parts += [
            _line(member.run, now, strips, is_whole=True, level=min(member.depth, LEVELS), has_more=is_many)
            for member in family.runs
        ]
        parts.append(f"{_sums(family, now) if is_many else ''}</tbody>\n")
    return Markup("".join(parts))


_STRIP = '<svg class="strip" viewBox="0 0 72 12" role="img" aria-label="entries of the last hour"><path d="{}"/></svg>'
_KIN = ' class="kin"'
_BELOW = '<span class="unseen">level {}, child of the run above: </span>'


def _line(
    run: Any,
    now: datetime,
    strips: Mapping[str, list[int]],
    *,
    is_whole: bool,
    level: int = 0,
    has_more: bool = False,
) -> str:
    """Render a run as a row. `level` is its indentation below its parent, `has_more` whether its family has more runs."""
    drawn, planned = bars(strips.get(run.id, ())), run.planned
    where = took = ""
    if is_whole:
        # The folder's name: a whole path is cut off here, and the run's page has it.
        named = f"{(run.repo or '').rpartition('/')[2]} {run.branch or ''}".strip()
        where = f'<td class="wide w">{text_of(named) if named else NOTHING}</td>\n'
        took = f'<td class="n wide">{length(run.started_at, run.ended_at or run.last_at)}</td>'
    return (
        f'<tr id="run-{name_of(run.id)}"{_KIN if has_more else ""} data-row>\n'
        f"<td>{sign(run.status.value)}</td>\n"
        f'<td class="g{f" l{level}" if level else ""}">{_BELOW.format(level) if level else ""}'
        f'<a href="/runs/{segment(run.id)}/overview">{text_of(run.goal)}</a></td>\n'
        f'{where}<td class="d">{text_of(_doing(run))}</td>\n'
        f'<td class="wide">{_STRIP.format(drawn) if drawn else NOTHING}</td>'
        f'<td class="n">{f"{run.done:d} / {planned:d}" if planned else NOTHING}</td>'
        f'<td class="n c-spent">{dollars(run.cost_microdollars) if run.calls else NOTHING}</td>'
        f'{took}<td class="n">{age(run.last_at, now)}</td>\n</tr>\n'
    )


def _sums(family: Any, now: datetime) -> str:
    """Render the total row of a family."""
    sums, first, size = family.sums, family.runs[0].run, len(family.runs)
    tasks = f"{sums['done']:d} / {sums['planned']:d}" if sums["planned"] else ""
    said = f"together, {size} runs"
    if family.is_cut:
        said = f'the first {size} together, there are more: <a href="/runs?parent={quote(family.id, safe="")}">forks of it</a>'
    return (
        f'<tr class="sums" id="family-{name_of(family.id)}"><td></td><td class="g">{said}</td>'
        '<td class="wide"></td><td class="d"></td><td class="wide"></td>'
        f'<td class="n">{tasks}</td>'
        f'<td class="n c-spent">{dollars(sums["cost_microdollars"]) if sums["calls"] else ""}</td>'
        f'<td class="n wide">{length(first.started_at, family.ended_at or family.last_at)}</td>'
        f'<td class="n">{age(family.last_at, now)}</td></tr>\n'
    )


def _doing(run: Any) -> str:
    """Describe who works on what, the outcome of an ended run, or the last message."""
    if run.ended_at is not None and run.summary:
        return str(run.summary)
    if not run.working_on:
        return f"{agent_name(run.last_by)}: {run.last_said}" if run.last_by else str(run.last_said)
    first = run.working_on[0]
    others = f" +{run.workers - 1}" if run.workers > 1 else ""
    return f"{agent_name(first['worker'])}{others}: {'lease ended' if first['lease_ended'] else first['stage'] or first['title']}"


def read(asked: SiteRequest) -> PageView:
    """Load one page of runs."""
    log, word = asked.log, asked.word("status")
    if word is not None and word not in _WORDS:
        raise Invalid(f"there is no status {word!r}; there are {', '.join(_WORDS)}", field="status")
    narrowed = {name: value for name in _NARROWS if (value := asked.word(name))}
    given: dict[str, Any] = {"parent_run_id" if name == "parent" else name: value for name, value in narrowed.items()}
    now, by_family = log.clock.now(), asked.word("as") == FAMILY
    given["since"] = since_of(narrowed.get("since"), now, "since")
    place: dict[str, Any] = {"status": Status(word) if word else None, "limit": PAGE, "after": asked.word("after")}
    sort, descending = _sort(asked.word("sort"))
    page: Page[Any]
    counts, is_cut = dict[str, int](), False
    if by_family:
        kin = log.overview.families_table(**given, **place)
        page, decisions, lines = kin.families, kin.decisions, families_of(kin.families, now, kin.activity)
    else:
        table = log.overview.table(**given, **place, sort=sort, descending=descending)
        page, decisions, lines = table.runs, table.decisions, lines_of(table.runs, now, table.activity, is_whole=True)
        counts, is_cut = table.counts, table.is_cut
    sorting = None if sort is RunSort.ATTENTION else f"{'-' if descending else ''}{sort.value}"
    chosen = {"as": FAMILY if by_family else None, "status": word, "sort": sorting, **narrowed}
    shown: dict[str, Any] = {"lines": lines, "by_family": by_family, "word": word, "words": _WORDS}
    shown |= {"is_first": asked.word("after") is None, "narrowed": narrowed}
    parent = narrowed.get("parent")
    shown["names"] = log.overview.names(run_ids=[parent]) if parent else {}
    shown |= {"counts": counts, "is_cut": is_cut, "heads": None if by_family else _heads(sort, descending=descending)}
    shown["address"] = lambda **changed: _address({**chosen, **changed})
    said = _command("families" if by_family else "runs", {"status": word, **given})
    return PageView("runs.html", "Runs", said, page, shown, next=page.next, place="runs", decisions=decisions)


def _sort(text: str | None) -> tuple[RunSort, bool]:
    """Parse the sort column; a `-` prefix means descending."""
    if text is None:
        return RunSort.ATTENTION, True
    name = text.removeprefix("-")
    if name not in list(RunSort):
        raise Invalid(f"there is no sort {text!r}; there are {', '.join(RunSort)}", field="sort")
    return RunSort(name), text.startswith("-")


def _heads(sort: RunSort, *, descending: bool) -> dict[str, tuple[str, str]]:
    """Return for each sortable column its `aria-sort` value and the sort that its head links to."""
    heads = {}
    for one in RunSort:
        is_this = one is sort
        # Texts sort ascending first, numbers descending. The head of the sorted column reverses the order.
        is_down = not descending if is_this else one is not RunSort.RUN
        said = "none" if not is_this else "descending" if descending else "ascending"
        heads[one.value] = (said, f"{'-' if is_down else ''}{one.value}")
    heads["attention"] = ("other" if sort is RunSort.ATTENTION else "none", "")
    return heads


_PLAIN_WORD = re.compile("[A-Za-z0-9_.~-]*")


def _address(asked: Mapping[str, str | None]) -> str:
    """Build the address of the list with these filters."""
    given = [f"{name}={value if _PLAIN_WORD.fullmatch(value) else quote_plus(value)}" for name, value in asked.items() if value]
    return f"/runs?{'&'.join(given)}" if given else "/runs"


def _command(verb: str, asked: Mapping[str, Any]) -> str:
    """Build the terminal command that lists the same runs."""
    said = {name: f"{value:%Y-%m-%dT%H:%M:%SZ}" if isinstance(value, datetime) else value for name, value in asked.items()}
    options = [word for name, value in said.items() if value for word in (f"--{_OPTIONS.get(name, name)}", value)]
    return command("overview", verb, *options)


def lately(runs: Iterable[Any], now: datetime) -> list[str]:
    """Return the ids of runs with entries in the last hour; the strips of all others are empty."""
    return [run.id for run in runs if run.last_at >= now - timedelta(hours=1)]
