"""Which of a source's links can be made: each pair of tasks has one, a part has one whole, and nothing waits for itself."""

from typing import TYPE_CHECKING

from decklog.importing.gathering import Gathered
from decklog.stores.tasks.task import LinkKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# Of two kinds between the same two the first is made.
_RANKS = {kind: rank for rank, kind in enumerate(LinkKind)}
_SCHEMA = (
    """
    create table links (
      id text primary key, task text not null, other text not null, kind text not null, rank integer not null
    ) without rowid
    """,
    "create table refused (id text primary key, why text not null) without rowid",
    # What can be done only after what, of both kinds that say so; those without an id are here already.
    "create table edges (first text not null, later text not null, id text, primary key (later, first, id)) without rowid",
    "create table ends (node text primary key) without rowid",
    "create table next_ends (node text primary key) without rowid",
)
_MAKE = "insert or ignore into refused "
_MISSING = """
select l.id, l.task, l.other from links l
 where not exists (select 1 from rows r where r.source = ? and r.id = l.other)
    or not exists (select 1 from rows r where r.source = ? and r.id = l.task)
"""
_RULES = (
    _MAKE + "select id, 'it links ' || task || ' with itself' from links where task = other",
    _MAKE
    + """
    select l.id, l.task || ' is linked with ' || l.other || ' already, as ' || b.kind
      from links l join links b on b.task = l.task and b.other = l.other and (b.rank, b.id) < (l.rank, l.id)
     where b.id not in (select id from refused)
     order by b.rank desc, b.id desc
    """,
    _MAKE
    + """
    select l.id, l.task || ' is a part of ' || b.other || ' already'
      from links l join links b on b.task = l.task and b.kind = l.kind and b.id < l.id
     where l.kind = 'parent' and b.id not in (select id from refused)
    """,
)
_EDGES = """
insert or ignore into edges
select case kind when 'blocks' then other else task end, case kind when 'blocks' then task else other end, id
  from links where kind in ('blocks', 'parent') and id not in (select id from refused)
"""


class LinkOrder:
    """The links of the items that were gathered, and why some of them can't be made."""

    def __init__(self, gathered: Gathered, items: str) -> None:
        self._db = gathered.db
        self._items = items
        for statement in _SCHEMA:
            self._db.execute(statement).fetchall()

    def add(self, link_id: str, task: str, other: str, kind: LinkKind) -> None:
        """Hold a link, its ends named as the source names them."""
        row = (link_id, task, other, kind.value, _RANKS[kind])
        self._db.execute("insert or ignore into links values (?, ?, ?, ?, ?)", row).fetchall()

    def judge(self, present: "Iterable[tuple[str, str, str]]", is_here: "Callable[[str], bool]") -> None:
        """Find the links that can't be made beside those that are here, which are given as task, other and kind."""
        missing: list[Any] = self._db.execute(_MISSING, (self._items, self._items)).fetchall()
        for link_id, *ends in missing:
            gone = next((end for end in ends if not self._has(end) and not is_here(end)), None)
            if gone is not None:
                self._refuse(link_id, f"{gone} is not in the source")
        for rule in (*_RULES, "create index links_by_task on links (task)", _EDGES):
            self._db.execute(rule).fetchall()
        for task, other, kind in present:
            edge = (other, task, "") if kind == LinkKind.BLOCKS else (task, other, "")
            self._db.execute("insert or ignore into edges values (?, ?, ?)", edge).fetchall()
        self._find_circles()

    def _has(self, item: str) -> bool:
        return self._db.first("select 1 from rows where source = ? and id = ?", (self._items, item)) is not None

    def _refuse(self, link_id: str, why: str) -> None:
        self._db.execute("insert or ignore into refused values (?, ?)", (link_id, why)).fetchall()

    def _find_circles(self) -> None:
        """Take away what no circle can hold, from both ends; what is left is little, and is walked through link by link."""
        self._db.execute("create index edges_by_first on edges (first, later)").fetchall()
        self._peel("first", "later")
        self._peel("later", "first")
        after: dict[str, set[str]] = {}
        left: list[Any] = self._db.execute("select first, later, id from edges order by id, first, later").fetchall()
        for first, later, link_id in left:
            if link_id and _leads(after, later, first):
                self._refuse(link_id, f"{first} and {later} would wait for each other in a circle")
            else:
                after.setdefault(first, set()).add(later)

    def _peel(self, near: str, far: str) -> None:
        """Take away the edges of everything that leads nowhere, again and again; each edge is looked at once."""
        start = f"insert or ignore into ends select {far} from edges where {far} not in (select {near} from edges)"
        self._db.execute(start).fetchall()
        while self._db.first("select 1 from ends limit 1") is not None:
            for step in (
                f"insert or ignore into next_ends select {near} from edges where {far} in (select node from ends)",
                f"delete from edges where {far} in (select node from ends)",
                "delete from ends",
                f"insert into ends select node from next_ends n where not exists (select 1 from edges e where e.{near} = n.node)",
                "delete from next_ends",
            ):
                self._db.execute(step).fetchall()

    def why_not(self, link_id: str) -> str | None:
        """Return why a link can't be made; None when it can."""
        found = self._db.first("select why from refused where id = ?", (link_id,))
        return found[0] if found else None

    def open_count(self, task: str) -> int:
        """Count what a task has to wait for, as the source tells it."""
        sql = """
            select count(*) from links l
             where l.task = ? and l.kind = 'blocks'
               and not exists (select 1 from refused f where f.id = l.id)
               and not exists (select 1 from rows r where r.source = ? and r.id = l.other and r.is_done)
            """
        found = self._db.first(sql, (task, self._items))
        return int(found[0]) if found else 0

    def others_of(self, task: str) -> set[str]:
        """Name what the source links a task with."""
        return {other for (other,) in self._db.execute("select other from links where task = ?", (task,))}


def _leads(after: "dict[str, set[str]]", start: str, goal: str) -> bool:
    """Return whether one thing is done, by way of others, before another."""
    waiting, seen = [start], {start}
    while waiting:
        node = waiting.pop()
        if node == goal:
            return True
        new = after.get(node, set()) - seen
        seen |= new
        waiting += new
    return False
