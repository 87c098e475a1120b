"""The newest records of some kinds as they were at an entry of their run: one statement for all of them."""

from typing import Any

from decklog.db.base import Database, Row
from decklog.records.record import Record
from decklog.records.values import from_json
from decklog.stores.runs.timeline import FIRSTS, RunStory

_IMAGE = """
select p.payload from entries p
 where p.record_table = :table{number} and p.record_id = f.record_id and p.stream = :run_id and p.seq <= :at
 order by p.seq desc
 limit 1
"""
_KEPT = f"""
select {{number}} as kind, f.seq, f.record_id, ({_IMAGE}) as payload
  from (
    select seq, record_id from {FIRSTS}
     where run_id = :run_id and record_table = :table{{number}} and seq <= :last
     order by seq desc
     limit :most
  ) f
"""
# Those that came to be after the last mark are known by name.
_LATER = f"""
select {{number}} as kind, 0 as seq, f.record_id, ({_IMAGE}) as payload
  from (select distinct record_id from entries where record_table = :table{{number}} and record_id in ({{marks}})) f
"""


def newest(
    db: Database,
    run_id: str,
    story: RunStory,
    classes: list[type[Record]],
    *,
    at: int,
    size: int,
    before: int | None = None,
) -> dict[str, tuple[list[Any], str | None]]:
    """Give by table the records that came to be last, or before an entry, newest first, and where the older ones begin."""
    last = min(at, (before or at + 1) - 1)
    later = [[one for one in story.firsts.get(kind.table, []) if one[0] <= last][-size - 1 :] for kind in classes]
    rows = _rows(db, {"run_id": run_id, "at": at}, classes, later, {"last": last, "most": size + 1} if story.since else None)
    begun: dict[tuple[int, str], int] = {
        (number, record_id): seq for number, found in enumerate(later) for seq, record_id in found
    }
    result: dict[str, tuple[list[Any], str | None]] = {}
    for number, kind in enumerate(classes):
        own: list[tuple[int, str]] = [
            (begun.get((number, record_id), int(seq)), payload) for one, seq, record_id, payload in rows if one == number
        ]
        own.sort(key=lambda one: -one[0])
        images = [from_json(payload) for _, payload in own[:size]]
        found = [kind.from_image(image) for image in images if not image.get("removed")]
        result[kind.table] = found, str(own[size - 1][0]) if len(own) > size else None
    return result


def _rows(
    db: Database,
    bound: dict[str, Any],
    classes: list[type[Record]],
    later: list[list[tuple[int, str]]],
    kept: dict[str, int] | None,
) -> list[Row]:
    """Read the images of what is kept in the table of firsts, if anything is, and of what came later."""
    arms = []
    for number, (kind, found) in enumerate(zip(classes, later, strict=True)):
        if kept is not None:
            arms.append(_KEPT.format(number=number))
        if found:
            names = {f"id{number}_{place}": record_id for place, (_, record_id) in enumerate(found)}
            arms.append(_LATER.format(number=number, marks=", ".join(f":{name}" for name in names)))
            bound = {**bound, **names}
        if kept is not None or found:
            bound = {**bound, f"table{number}": kind.table}
    if not arms:
        return []
    text = " union all ".join(f"select * from ({arm}) a{place}" for place, arm in enumerate(arms))
    return db.rows(text, {**bound, **(kept or {})})[1]
