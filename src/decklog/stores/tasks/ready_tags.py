"""The tags of claimable tasks: maintained by triggers, verified against the tasks, and rebuilt."""

from collections.abc import Iterator
from typing import Any

from decklog.db.base import Database
from decklog.records.values import from_json

TABLE = "ready_tags"
_COLUMNS = ("task_id", "tag", "run_id", "assigned_to", "rank", "created_at")
_KEPT = f"select {', '.join(_COLUMNS)} from {TABLE} order by {', '.join(_COLUMNS)}"
_TRUE = """
select id, tags, run_id, coalesce(assigned_to, ''), -priority, created_at
  from tasks
 where state = 'pending' and open_dependencies = 0 and tags <> '[]'
 order by id
"""


def audit(db: Database) -> Iterator[dict[str, Any]]:
    """Yield a problem for each task whose indexed tags differ from its tags."""
    kept: dict[Any, list[tuple[Any, ...]]] = {}
    for task_id, *row in db.each_as_is(_KEPT, {}):
        kept.setdefault(task_id, []).append(tuple(row))
    yield from (_wrong(task_id) for task_id, true in _true(db) if kept.pop(task_id, []) != true)
    yield from map(_wrong, kept)


def _true(db: Database) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    for task_id, tags, *place in db.each(_TRUE, {}):
        yield task_id, [(tag, *place) for tag in sorted(_texts(tags))]


def _texts(tags: str) -> set[str]:
    try:
        found = from_json(tags)
    except ValueError:
        return set()
    return {tag for tag in found if isinstance(tag, str)} if isinstance(found, list) else set()


def _wrong(task_id: Any) -> dict[str, Any]:
    what = f"{TABLE} of task {task_id} are not the tags that it can be claimed by"
    return {"what": what, "table": TABLE, "record_id": str(task_id)}


def derive(db: Database) -> None:
    """Rebuild the table from the tasks."""
    db.count(f"delete from {TABLE}", {})
    batch: list[tuple[Any, ...]] = []
    for task_id, rows in list(_true(db)):
        batch += [(task_id, *row) for row in rows]
    db.insert(TABLE, _COLUMNS, batch)
