"""Runs: every run in a line, the newest first, by the word for how it stands; one by one, or with what came of each."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from decklog import Page, Status
from decklog.characters import revealed
from decklog.errors import Invalid
from decklog.figures import dollars
from decklog.web.pages.since import since_of
from decklog.web.rendering import age, bars, length, segment, sign
from decklog.web.site import Asked, View, command

PAGE = 50
# What a list is narrowed by beside the status, as the address has it.
_NARROWS = ("text", "repo", "branch", "since", "parent")
_OPTIONS = {"parent_run_id": "parent-run"}
# How the address asks for families, and how deep runs are indented in them.
FAMILY, LEVELS = "family", 4


class Line(NamedTuple):
    """A run as a table shows it, in words alone and in the order that the template takes them: it asks for none by its name.

    `level` is how deep it is indented below what it came of, and `has_more` whether its family goes on in the next line.
    """

    id: str
    path: str
    sign: Markup
    goal: str
    doing: str
    where: str
    figures: Markup
    level: int = 0
    has_more: bool = False


class Sums(NamedTuple):
    """What the runs of a family add up to, in the words of a line."""

    id: str
    size: int
    tasks: str
    spent: str
    age: Markup
    took: str
    is_cut: bool


def lines_of(runs: Iterable[Any], now: datetime, strips: Mapping[str, list[int]], *, is_whole: bool = False) -> list[Line]:
    """Make the lines of a table; `strips` has the last hours of those runs that had anything to say in it."""
    return [
        Line(
            id=run.id,
            path=segment(run.id),
            sign=sign(run.status.value),
            goal=revealed(run.goal),
            doing=revealed(_doing(run)),
            where=revealed(f"{run.repo or ''} {run.branch or ''}".strip()),
            figures=_figures(
                bars(strips.get(run.id, ())),
                f"{run.done} / {planned}" if (planned := run.planned) else _NOTHING,
                dollars(run.cost_microdollars) if run.calls else _NOTHING,
                length(run.started_at, run.ended_at or now) if is_whole else None,
                age(run.last_at, now),
            ),
        )
        for run in runs
    ]


_NOTHING = '<span class="nothing">–</span>'
_STRIP = '<svg class="strip" viewBox="0 0 72 12" role="img" aria-label="entries of the last hour"><path d="{}"/></svg>'


def _figures(drawn: str, tasks: str, spent: str, took: str | None, last: Markup) -> Markup:
    """Write the cells of a line that have nobody's text in them at once: a template takes as long for each as for a word."""
    strip = _STRIP.format(drawn) if drawn else _NOTHING
    cells = (("wide", strip), ("n", tasks), ("n c-spent", spent), ("n wide", took), ("n", last))
    # Nothing in it is anybody's text: digits and words of ours.
    return Markup("".join([f'<td class="{name}">{said}</td>' for name, said in cells if said is not None]))


def families_of(families: Iterable[Any], now: datetime, strips: Mapping[str, list[int]]) -> list[tuple[list[Line], Sums | None]]:
    """Make the lines of families, and of those with more than one run what they add up to."""
    found: list[tuple[list[Line], Sums | None]] = []
    for family in families:
        lines = lines_of([member.run for member in family.runs], now, strips, is_whole=True)
        is_many = len(lines) > 1 or family.is_cut
        levels = [
            line._replace(level=min(member.depth, LEVELS), has_more=is_many)
            for line, member in zip(lines, family.runs, strict=True)
        ]
        found.append((levels, _sums(family, now) if is_many else None))
    return found


def _sums(family: Any, now: datetime) -> Sums:
    sums, first = family.sums, family.runs[0].run
    return Sums(
        id=family.id,
        size=len(family.runs),
        tasks=f"{sums['done']} / {sums['planned']}" if sums["planned"] else "",
        spent=dollars(sums["cost_microdollars"]) if sums["calls"] else "",
        age=age(family.last_at, now),
        took=length(first.started_at, family.ended_at or now),
        is_cut=family.is_cut,
    )


def _doing(run: Any) -> str:
    """Say who works on what, or what was said last."""
    if not run.working_on:
        return f"{run.last_by}: {run.last_said}" if run.last_by else str(run.last_said)
    first = run.working_on[0]
    others = f" +{run.workers - 1}" if run.workers > 1 else ""
    return f"{first['worker']}{others}: {'lease ended' if first['lease_ended'] else first['stage'] or first['title']}"


def read(asked: Asked) -> View:
    """Read one page of runs."""
    log, word = asked.log, asked.word("status")
    if word is not None and word not in list(Status):
        raise Invalid(f"there is no status {word!r}; there are {', '.join(Status)}", field="status")
    narrowed = {name: value for name in _NARROWS if (value := asked.word(name))}
    given: dict[str, Any] = {"parent_run_id" if name == "parent" else name: value for name, value in narrowed.items()}
    now, by_family = log.clock.now(), asked.word("as") == FAMILY
    given["since"] = since_of(narrowed.get("since"), now, "since")
    place: dict[str, Any] = {"status": Status(word) if word else None, "limit": PAGE, "after": asked.word("after")}
    page: Page[Any]
    if by_family:
        kin = log.overview.families_table(**given, **place)
        page, decisions, families = kin.families, kin.decisions, families_of(kin.families, now, kin.pulse)
    else:
        table = log.overview.table(**given, **place)
        page, decisions, families = table.runs, table.decisions, [(lines_of(table.runs, now, table.pulse, is_whole=True), None)]
    chosen = {"as": FAMILY if by_family else None, "status": word, **narrowed}
    shown: dict[str, Any] = {"families": families if page else [], "by_family": by_family, "word": word, "words": list(Status)}
    shown |= {"is_first": asked.word("after") is None, "narrowed": narrowed}
    shown["address"] = lambda **changed: _address({**chosen, **changed})
    said = _command("families" if by_family else "runs", {"status": word, **given})
    return View("runs.html", "Runs", said, page, shown, next=page.next, place="runs", decisions=decisions)


def _address(asked: Mapping[str, str | None]) -> str:
    """Write where runs are listed that are as asked for."""
    given = {name: value for name, value in asked.items() if value}
    return f"/runs?{urlencode(given)}" if given else "/runs"


def _command(verb: str, asked: Mapping[str, Any]) -> str:
    """Write what lists the same runs at a terminal."""
    said = {name: f"{value:%Y-%m-%dT%H:%M:%SZ}" if isinstance(value, datetime) else value for name, value in asked.items()}
    options = [word for name, value in said.items() if value for word in (f"--{_OPTIONS.get(name, name)}", value)]
    return command("overview", verb, *options)


def lately(runs: Iterable[Any], now: datetime) -> list[str]:
    """Name the runs that have entries of the last hour: the strips of all others are empty."""
    return [run.id for run in runs if run.last_at >= now - timedelta(hours=1)]
