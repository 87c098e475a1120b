"""The view of one run, now or as of an entry: head, counts, activity strip, timeline and latest entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from decklog.core.errors import Invalid
from decklog.db.base import Database
from decklog.db.packing import decompress_start
from decklog.db.where import placed
from decklog.journal.entry import Entry, EntryKind
from decklog.journal.rows import COLUMNS, SELECT
from decklog.records.record import Page, Record
from decklog.stores.overview import spending
from decklog.stores.overview.board import BoardColumn, columns
from decklog.stores.overview.run_facts import RunOverview, load_run
from decklog.stores.overview.view import View
from decklog.stores.overview.waiting import WaitingItem

MOST_ASKED = 200
# The number of records shown per kind.
MOST_RECORDS = 50
# The number of tasks that are searched for those of a role.
MOST_TASKS = 200
# The beginning of a long text that is loaded: enough for a page in any script.
_HEAD_BYTES = 8192
# The most frequent kinds have no index, so this number of entries is searched for them.
MOST_LOOKED_AT = 20_000
_OF_KIND = {
    EntryKind.TOOL: f"and kind = 'tool' and pos >= :before - {MOST_LOOKED_AT}",
    EntryKind.CHANGE: f"and kind = 'change' and pos >= :before - {MOST_LOOKED_AT}",
}
_RECORDED = f"""
{SELECT}
 where record_table = 'runs' and record_id = :run_id and stream = :run_id and pos <= :until
 order by seq desc
 limit 1
"""
# The newest entries of approvals that may have been open at a moment.
_ASKED = f"""
{SELECT}
 where pos in (
   select (select max(p.pos) from entries p where p.record_table = 'approvals' and p.record_id = a.id and p.pos <= :until)
     from approvals a
    where a.run_id = :run_id and (a.decided_at is null or a.decided_at >= (select at from entries where pos = :until))
    order by a.number desc
    limit {MOST_ASKED}
 )
"""
# The roles first: most runs have no such task, and tasks have many columns.
_OF_ROLES = f"""
select *
  from tasks
 where id in (
   select id
     from (select id, role from tasks where run_id = :run_id order by created_at, id limit {MOST_TASKS}) first_tasks
    where role in ({{roles}})
 )
 order by created_at, id
"""
# Running and held-up tasks come first, so that a run with many tasks does not hide them.
_FIRST_TASKS = """
select * from (select * from tasks where run_id = :run_id and state = 'running' order by leased_until limit :most) running
union all
select * from (
  select * from tasks
   where run_id = :run_id and (state = 'blocked' or state = 'waiting' or state = 'paused')
   order by priority desc, created_at, id limit :most
) held
union all
select * from (
  select * from tasks
   where run_id = :run_id and state in ('pending', 'done', 'abandoned')
   order by created_at, id limit :most
) others
limit :most
"""
_MILESTONES = f"{SELECT} where pos in ({{ids}}) order by pos desc"
_TEXTS = """
select digest, case when length(bytes) < size then bytes end, substr(bytes, 1, :most), size
  from blobs
 where digest in ({ids})
"""


@dataclass(frozen=True, kw_only=True)
class RunView(View):
    """A run as of entry `seq` of `last`. `overview` is its current status; `run` is its record as of an earlier entry.

    The strip covers the whole run. Long texts of entries are left out; `texts` has their beginning and their size in bytes.
    `waiting` counts what holds up the run, or which of its newest 200 approvals were open then. `decisions` counts all open
    decisions of the log now.
    """

    run_id: str
    seq: int
    last: int
    moment: datetime
    totals: dict[str, int]
    activity: dict[str, Any]
    lanes: dict[str, Any]
    entries: list[Entry]
    texts: dict[str, dict[str, Any]]
    waiting: int
    decisions: int
    tasks: list[Any]
    next_tasks: str | None
    board: list[BoardColumn]
    overview: RunOverview | None = None
    run: dict[str, Any] | None = None
    # The newest records of the requested kinds, by table, and the cursor to the older ones of each.
    records: dict[str, list[Any]] = field(default_factory=dict)
    older: dict[str, str | None] = field(default_factory=dict)
    # Those of the run's first tasks with one of the requested roles.
    of_roles: list[Any] = field(default_factory=list)
    # Running tasks, held-up tasks and then the first of the others, as they are now.
    first_tasks: list[Any] = field(default_factory=list)
    # The newest important entries, each with its kind: failure, question, checkpoint or pivot.
    milestones: list[tuple[str, Entry]] = field(default_factory=list)
    spent: "RunSpending | None" = None
    # The decisions of the run that wait, for now; those that hold it up come first.
    asks: list[WaitingItem] = field(default_factory=list)

    @property
    def is_now(self) -> bool:
        return self.overview is not None

    def as_dict(self) -> dict[str, Any]:
        milestones = [{"what": what, "entry": entry.as_dict()} for what, entry in self.milestones]
        return {**super().as_dict(), "milestones": milestones, "is_now": self.is_now}


@dataclass(frozen=True)
class RunSpending(View):
    """The spending of a run at some of its entries; for now also by model and agent, with the run's budgets."""

    line: list[tuple[int, int]]
    by: list[dict[str, Any]]
    budgets: list[Any]


@dataclass(frozen=True, kw_only=True)
class ViewRequest:
    """The requested parts of a run view and their sizes; 0 leaves a part out."""

    at: str | None
    since: str | None
    before: int | None
    kind: EntryKind | None
    buckets: int
    lanes: int
    entries: int
    tasks: int
    after: str | None
    board: int
    records: list[type[Record]]
    roles: list[str]
    first_tasks: int
    spent: int
    milestones: int


def kinds(classes: Mapping[str, type[Record]], tables: list[str]) -> list[type[Record]]:
    """Return the record classes of a run for table names. Raise Invalid for an unknown table."""
    known = {table: record for table, record in classes.items() if record.home is None}
    for table in tables:
        if not isinstance(table, str) or table not in known:
            raise Invalid(f"a run has no records {table!r}; it has {', '.join(sorted(known))}", field="records")
    return [known[table] for table in dict.fromkeys(tables)]


def build_view(
    db: Database, wanted: ViewRequest, base: Any, record: type[Record], history: Any, place: Any, story: Any
) -> RunView:
    """Build the view of a run. `base` is what every overview starts with; the last three are the run's history."""
    run_id, is_now = place.run_id, wanted.at is None
    seq, first = history.entry_for(place, wanted.at), history.entry_for(place, wanted.since, is_end=False)
    counts, span = history.tally(place, story, seq), (min(first, seq), seq)
    entries = _latest(db, place.start, seq, wanted) if wanted.entries else []
    tasks = history.records(place, story, record, str(seq), wanted.tasks, wanted.after) if wanted.tasks else Page()
    cost = counts["cost_microdollars"]
    line = history.spent(place, story, seq, wanted.spent, cost) if wanted.spent else []
    newest = history.newest(place, story, wanted.records, seq, MOST_RECORDS, wanted.before)
    activity = history.activity(place, story, (1, place.head), wanted.buckets)
    return RunView(
        **_head(db, base, history, place, wanted.at, seq, counts),
        activity=activity,
        lanes=history.lanes(place, story, span, wanted.lanes) if wanted.lanes else _no_lanes(run_id, *span),
        entries=entries,
        texts=texts(db, entries),
        tasks=list(tasks),
        next_tasks=tasks.next,
        board=columns(db, run_id, wanted.board, story, base) if wanted.board else [],
        records={table: records for table, (records, _) in newest.items()},
        older={table: older for table, (_, older) in newest.items()},
        of_roles=_of_roles(db, record, run_id, wanted.roles) if wanted.roles else [],
        first_tasks=record.from_rows(*db.rows(_FIRST_TASKS, {"run_id": run_id, "most": wanted.first_tasks}))
        if wanted.first_tasks
        else [],
        spent=_spent(db, base, place, is_now, line) if wanted.spent else None,
        milestones=_milestones(db, place.start, activity["marks"], seq, wanted.milestones),
    )


def _milestones(db: Database, start: int, marks: Sequence[dict[str, Any]], until: int, most: int) -> list[tuple[str, Entry]]:
    """Load the newest marked entries of a run up to an entry, newest first."""
    kinds = {start + mark["seq"]: mark["what"] for mark in marks if mark["seq"] <= until}
    positions = sorted(kinds)[-most:] if most else []
    if not positions:
        return []
    names, ids = placed(positions)
    return [(kinds[start + entry.seq], entry) for entry in _entries(db, _MILESTONES.format(ids=names), ids)]


def _of_roles(db: Database, record: type[Record], run_id: str, roles: list[str]) -> list[Any]:
    """Load those of a run's first tasks that have one of the roles, by creation."""
    marks, bound = placed(roles)
    return record.from_rows(*db.rows(_OF_ROLES.format(roles=marks), {**bound, "run_id": run_id}))


def _spent(db: Database, base: Any, place: Any, is_now: bool, line: list[tuple[int, int]]) -> RunSpending:
    """Load the spending by model and agent, if it is for now, and the run's budgets."""
    by = spending.of_run(db, place.run_id) if is_now else []
    return RunSpending(line, by, [one for one in base.budgets if one.run_id == place.run_id])


def build_head(db: Database, base: Any, history: Any, side: Any) -> RunView:
    """Build only the head of a run's page at a moment."""
    parts: dict[str, Any] = {"activity": {}, "entries": [], "texts": {}, "tasks": [], "next_tasks": None, "board": []}
    lanes = _no_lanes(side.place.run_id, 1, side.seq)
    return RunView(**_head(db, base, history, side.place, side.at, side.seq, side.counts), lanes=lanes, **parts)


def _head(db: Database, base: Any, history: Any, place: Any, at: str | None, seq: int, counts: dict[str, int]) -> dict[str, Any]:
    """Return the status of a run: now, or at an entry with its time, the run's record then, and the approvals open then."""
    head = {
        "run_id": place.run_id,
        "seq": seq,
        "last": place.head,
        "totals": history.shown(counts, seq),
        "decisions": len(base.items),
    }
    if at is None:
        shown = load_run(db, place.run_id, counts, base)
        asks = [item for item in base.items if item.run_id == place.run_id]
        asks.sort(key=lambda item: (not item.holds_up, item.place))
        return {**head, "moment": shown.last_at, "waiting": shown.waiting, "overview": shown, "asks": asks}
    bound = {"run_id": place.run_id, "until": place.start + seq}
    [last] = _entries(db, f"{SELECT} where pos = :until", {"until": bound["until"]})
    questions: list[Any] = [entry.payload for entry in _entries(db, _ASKED, bound)]
    open_ones = sum(image.get("state") == "open" for image in questions)
    return {**head, "moment": last.at, "waiting": open_ones, "run": _entries(db, _RECORDED, bound)[0].payload}


def _no_lanes(run_id: str, first: int, last: int) -> dict[str, Any]:
    return {"run_id": run_id, "first": first, "last": last, "attempts": [], "left_out": 0}


def _latest(db: Database, start: int, seq: int, wanted: ViewRequest) -> list[Entry]:
    """List the latest entries of a run up to a moment, or before a number. `start` is its first position.

    Texts that entries refer to by digest are not loaded.
    """
    kind = wanted.kind
    narrowed = "" if kind is None else _OF_KIND.get(kind, f"and kind = '{kind.value}' and kind not in ('tool', 'change')")
    bound = {"start": start, "before": start + min(seq + 1, wanted.before or seq + 1), "most": wanted.entries}
    return _entries(db, f"{SELECT} where pos > :start and pos < :before {narrowed} order by pos desc limit :most", bound)


def _entries(db: Database, sql: str, bound: dict[str, Any]) -> list[Entry]:
    return [Entry.from_row(COLUMNS[1:], row[1:]) for row in db.rows(sql, bound)[1]]


def texts(db: Database, entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """Load the beginnings of long texts that entries refer to by digest."""
    named = [digest for entry in entries for digest in (entry.body_digest, entry.payload_digest) if digest is not None]
    if not named:
        return {}
    marks, ids = placed(named)
    rows = db.rows(_TEXTS.format(ids=marks), {**ids, "most": _HEAD_BYTES})[1]
    heads = [
        (digest, bytes(head) if packed is None else decompress_start(packed, _HEAD_BYTES), size)
        for digest, packed, head, size in rows
    ]
    return {digest: {"head": head.decode(errors="ignore"), "bytes": size} for digest, head, size in heads}


# Counts stop at this number; a page shows 1,000+.
MOST_COUNTED = 1000
_COUNTED = {
    "checks": ("verdicts", "run_id"),
    "reviews": ("reviews", "run_id"),
    "criteria": ("criteria", "run_id"),
    "phases": ("phases", "run_id"),
    "artifacts": ("artifacts", "run_id"),
    "states": ("state_versions", "run_id"),
    "forks": ("runs", "parent_run_id"),
}
_CONTENTS = "select " + ", ".join(
    f"(select count(*) from (select 1 from {table} where {column} = :run_id limit {MOST_COUNTED}) {name}) as {name}"
    for name, (table, column) in _COUNTED.items()
)


def contents(db: Database, run_id: str) -> dict[str, Any]:
    """Count the records of a run except tasks and entries, up to 1,000 of each; with its recorded status.

    `is_conducted` is 1 for a run of `decklog run`.
    """
    started = "case when r.metadata like '%\"conductor\"%' then 1 else 0 end as is_conducted"
    names, rows = db.rows(f"{_CONTENTS}, {started}, r.status from runs r where r.id = :run_id", {"run_id": run_id})
    return dict(zip(names, rows[0], strict=True))


# The columns that name the work item and the agent of a task.
_LABELS = "id, tags, case when role = 'work' then result end as work_result"


def labels(db: Database, task_ids: list[str]) -> list[dict[str, Any]]:
    """Load the columns that label tasks on a timeline."""
    if not task_ids:
        return []
    marks, bound = placed(task_ids)
    names, rows = db.rows(f"select {_LABELS} from tasks where id in ({marks})", db.values.bind(bound)[0])
    return [dict(zip(names, row, strict=True)) for row in rows]


def graph(db: Database, run_id: str, most: int) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Load the first tasks of a run, and their dependencies as pairs of a task and its dependency."""
    columns = f"{_LABELS}, title, state, worker, role, open_dependencies, priority"
    names, rows = db.rows(
        f"select {columns} from tasks where run_id = :run_id order by created_at, id limit {int(most)}", {"run_id": run_id}
    )
    waits = "select task_id, depends_on from dependencies where run_id = :run_id and kind = 'blocks' order by task_id, depends_on"
    links = [(str(task_id), str(needed)) for task_id, needed in db.rows(waits, {"run_id": run_id})[1]]
    return [dict(zip(names, row, strict=True)) for row in rows], links


@dataclass(frozen=True, kw_only=True)
class Comparison(View):
    """Both moments with their heads only. `differences` is None if a run is too long to compare."""

    sides: list[RunView]
    differences: list[dict[str, Any]] | None
    decisions: int


def build_comparison(db: Database, base: Any, history: Any, comparison: Any) -> Comparison:
    """Build both sides as of their moments."""
    sides = [build_head(db, base, history, side) for side in comparison.sides]
    return Comparison(sides=sides, differences=comparison.differences, decisions=len(base.items))
