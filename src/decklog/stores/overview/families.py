"""Families of runs: each run without a parent, with its forks and the runs of its sub-agents, newest first."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from decklog.core.clock import to_text
from decklog.core.errors import Busy, Denied, ReadOnly
from decklog.db.base import Database, Row
from decklog.db.where import page_size, parse_enum, placed
from decklog.records.operations import reads_in_steps
from decklog.records.record import Page
from decklog.records.values import to_json
from decklog.stores.base import Store
from decklog.stores.overview import summary, task_counts, waiting
from decklog.stores.overview.run_facts import OverviewMoment, OverviewOutdated, RunOverview, load_runs
from decklog.stores.overview.run_list import NEWEST_GOING_ON, STATES, RunFilter, place_in
from decklog.stores.overview.spending import BudgetOverview, budget_overviews
from decklog.stores.overview.status import Status, StatusLike
from decklog.stores.overview.waiting import WaitingItem

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Base(OverviewMoment):
    """What every overview starts with."""

    budgets: list[BudgetOverview]
    items: list[WaitingItem]

    @property
    def tasks(self) -> set[str | None]:
        """The tasks that wait for a person."""
        return {item.task_id for item in self.items if item.holds_up}

    def look(self, db: Database, sql: str, given: Mapping[str, Any]) -> list[RunOverview]:
        """Load the runs of a statement."""
        return load_runs(db, sql, db.values.bind(given)[0], self)

    def runs_of(self, db: Database, run_ids: Sequence[str]) -> list[RunOverview]:
        """Load runs by their ids, newest first."""
        marks, ids = placed(run_ids)
        return self.look(db, f"select * from runs where id in ({marks})", ids) if run_ids else []


# Limits for the runs of all families of a page, and for the depth. A cut family is marked.
MOST_WALKED, MOST_LEVELS = 600, 8
# Maximum depth of an unfinished run below the first run of its family.
_MOST_ABOVE = 100
_CHILD = "(select k.id from runs k where k.parent_run_id = {run}.id order by k.started_at, k.id limit 1)"
_SIBLING = """(select k.id from runs k
   where k.parent_run_id = c.parent_run_id and (k.started_at, k.id) > (c.started_at, c.id)
   order by k.started_at, k.id
   limit 1)"""
# Each step goes from a run to its first child and its next sibling with one lookup each, so a run with very many forks
# costs only what is shown. Both engines stop the recursion at the outer limit.
_WALK = f"""
with recursive {{above}} kin (first, id, parent, started_at, depth, child, sibling) as (
  select r.id, r.id, nullif(r.id, r.id), r.started_at, 0, {_CHILD.format(run="r")}, nullif(r.id, r.id)
    from ({{firsts}}) r
  union all
  select kin.first, c.id, c.parent_run_id, c.started_at, kin.depth + 1 - w.is_sibling, {_CHILD.format(run="c")}, {_SIBLING}
    from kin
   cross join (select 0 as is_sibling union all select 1) w
    join runs c on c.id = case when w.is_sibling = 1 then kin.sibling when kin.depth < {MOST_LEVELS} then kin.child end
)
select first, id, parent, started_at, depth, child, sibling from kin limit {MOST_WALKED}
"""
_ABOVE = f"""
above (id, parent, height) as (
  select a.id, a.parent_run_id, 0 from runs a where a.id in ({{ids}})
  union all
  select a.id, a.parent_run_id, above.height + 1
    from above
    join runs a on a.id = above.parent
   where above.height < {_MOST_ABOVE}
),
"""
_FIRSTS_ABOVE = "(select * from runs where id in (select id from above)) runs"


@dataclass(frozen=True)
class FamilyQuery:
    """Which families are requested: by status, filter of their first runs, number of runs, and cursor."""

    word: Status | None
    wanted: RunFilter
    size: int
    after: str | None

    @property
    def place(self) -> list[str] | None:
        return None if self.after is None else place_in(self.after, 2)

    @property
    def state(self) -> str | None:
        return STATES.get(self.word) if self.word else None


@dataclass(frozen=True)
class Member:
    """A run of a family; `depth` is the number of its ancestors in the family."""

    run: RunOverview
    depth: int

    def as_dict(self) -> dict[str, Any]:
        return {**self.run.as_dict(), "depth": self.depth}


@dataclass(frozen=True, kw_only=True)
class Family:
    """A run with its descendants, each directly below its parent. The sums are of the listed runs.

    `is_cut` is true if there are more runs than listed.
    """

    runs: list[Member]
    is_cut: bool

    @property
    def id(self) -> str:
        return self.runs[0].run.id

    @property
    def sums(self) -> dict[str, Any]:
        """The sums of work and cost over its runs."""
        runs = [member.run for member in self.runs]
        names = ("done", "planned", "entries", "workers", "waiting", "cost_microdollars", "calls", "unpriced_calls")
        return {name: sum([getattr(run, name) for run in runs]) for name in names}

    @property
    def last_at(self) -> datetime:
        return max(member.run.last_at for member in self.runs)

    @property
    def ended_at(self) -> datetime | None:
        """When the last of its runs ended; None if one is unfinished."""
        ends = [member.run.ended_at for member in self.runs]
        return None if None in ends else max(end for end in ends if end is not None)

    def as_dict(self) -> dict[str, Any]:
        ended_at = self.ended_at
        times = {"last_at": to_text(self.last_at), "ended_at": to_text(ended_at) if ended_at else None}
        return {
            "id": self.id,
            "runs": [member.as_dict() for member in self.runs],
            "sums": self.sums,
            **times,
            "is_cut": self.is_cut,
        }


@dataclass(frozen=True)
class FamiliesTable:
    """A page of families, the number of open decisions in the log, and the activity of the last hour by run."""

    families: "Page[Family]"
    decisions: int
    activity: dict[str, list[int]]


@dataclass(frozen=True)
class _Walked:
    """A family under construction: its runs with depths, each directly below its parent."""

    id: str
    started_at: str
    runs: list[tuple[str, int]]
    is_cut: bool


def read_families(db: Database, query: FamilyQuery, base: Base) -> Page[Family]:
    """Load a page of families."""
    found, end = _found(db, query, base)
    shown, size = list[_Walked](), 0
    for family in found:
        if shown and size + len(family.runs) > query.size:
            end = [shown[-1].started_at, shown[-1].id]
            break
        is_longer = len(family.runs) > query.size
        shown.append(replace(family, runs=family.runs[: query.size], is_cut=family.is_cut or is_longer))
        size += len(shown[-1].runs)
    by_id = {run.id: run for run in base.runs_of(db, [run_id for family in shown for run_id, _ in family.runs])}
    families = [
        Family(runs=[Member(by_id[run_id], depth) for run_id, depth in family.runs], is_cut=family.is_cut) for family in shown
    ]
    return Page(families, next=to_json(end) if end else None)


def _found(db: Database, query: FamilyQuery, base: Base) -> tuple[list[_Walked], list[str] | None]:
    """Find the next families, one more than fits on a page, and the cursor if the search stopped early."""
    most, place, above = query.size + 1, query.place, ""
    if query.wanted.parent_run_id is not None:
        firsts, bound = "select id, started_at from runs where id = :first", {"first": query.wanted.parent_run_id}
        return _walked(db.rows(_WALK.format(above="", firsts=firsts), db.values.bind(bound)[0])[1]), None
    if query.word is None or query.state is not None:
        firsts, bound = query.wanted.firsts(query.state, place, most)
    else:
        # No index has the status of an active run, so the newest are checked.
        ids = [run.id for run in base.look(db, NEWEST_GOING_ON, {}) if run.status is query.word]
        if not ids:
            return [], None
        marks, named = placed(ids)
        above = _ABOVE.format(ids=marks)
        firsts, bound = query.wanted.firsts(None, place, most, _FIRSTS_ABOVE)
        bound |= named
    found = _walked(db.rows(_WALK.format(above=above, firsts=firsts), db.values.bind(bound)[0])[1])
    if above or len(found) >= most:
        return found, None
    sql, bound = query.wanted.end_of_look(query.state, place)
    end = db.one(sql, db.values.bind(bound)[0])
    return found, None if end is None else [*end]


def _walked(rows: Iterable[Row]) -> list[_Walked]:
    """Build families from the visited runs, the most recently started first."""
    known = {row[1]: row for row in rows}
    below: dict[str, list[str]] = {}
    is_cut = dict.fromkeys((row[0] for row in known.values()), False)
    for first, run_id, parent, _, depth, child, sibling in known.values():
        if depth:
            below.setdefault(parent, []).append(run_id)
        if (child is not None and child not in known) or (sibling is not None and sibling not in known):
            is_cut[first] = True
    firsts = sorted(is_cut, key=lambda first: (known[first][3], first), reverse=True)
    return [_Walked(first, known[first][3], _in_order(first, known, below), is_cut[first]) for first in firsts]


def _in_order(first: str, known: Mapping[str, Row], below: Mapping[str, list[str]]) -> list[tuple[str, int]]:
    """List a family in order of start, each run followed by its descendants."""
    if first not in below:
        return [(first, known[first][4])]
    listed, waiting = list[tuple[str, int]](), [first]
    while waiting:
        run_id = waiting.pop()
        listed.append((run_id, known[run_id][4]))
        waiting += sorted(below.get(run_id, ()), key=lambda child: (known[child][3], child), reverse=True)
    return listed


class Families(Store):
    """Loads what overviews consist of, and lists runs with their descendants."""

    def _read_with_base(self, job: Callable[[Base], T]) -> T:
        """Read one consistent state. If marks are far behind, move them first, unless the log is read-only."""
        # In an outer read transaction, moved marks would not be visible.
        if not (self._db.read_only or self._db.is_reading):
            try:
                return self._db.read(lambda: job(self._base(can_move_marks=True)), same_plans=True)
            except OverviewOutdated as outdated:
                with suppress(Denied, ReadOnly, Busy):
                    for run_id in outdated.run_ids:
                        self._db.write(partial(task_counts.catch_up, self._db, run_id))
        return self._db.read(lambda: job(self._base()), same_plans=True)

    def _base(self, *, can_move_marks: bool = False) -> Base:
        now = self._now()
        budgets = budget_overviews(self._db, now)
        items = waiting.decisions(self._db, now, budgets)
        return Base(
            now=now,
            steady_now=self._steady_now(),
            can_move_marks=can_move_marks,
            waiting=waiting.by_run(items),
            budgets=budgets,
            items=items,
        )

    @reads_in_steps
    def families(
        self,
        *,
        status: StatusLike | None = None,
        repo: str | None = None,
        branch: str | None = None,
        text: str | None = None,
        parent_run_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> "Page[Family]":
        """List root runs, newest first, each with its forks, sub-agent runs and sums.

        A page has families with up to `limit` runs together; of a larger family the first `limit` are shown. Filters apply to the
        first run of a family, and an active status to any of its runs. `parent_run_id` shows this run and its children.
        """
        size, wanted = page_size(limit), RunFilter(repo, branch, text, parent_run_id, since, until)
        word = None if status is None else parse_enum(Status, status, "status")
        query = FamilyQuery(word, wanted, size, after)
        return self._read_with_base(lambda base: read_families(self._db, query, base))

    def families_table(
        self, *, status: Status | None = None, limit: int = 20, after: str | None = None, **filters: Any
    ) -> FamiliesTable:
        """List families as `families` does, with the activity of the last hour and open decisions, in one consistent read."""
        query = FamilyQuery(status, RunFilter(**filters), page_size(limit), after)

        def read(base: Base) -> FamiliesTable:
            page = read_families(self._db, query, base)
            runs = [member.run for family in page for member in family.runs]
            return FamiliesTable(page, len(base.items), summary.last_hour(self._db, runs, base.now))

        return self._read_with_base(read)
