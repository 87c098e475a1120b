"""Suggests an existing id for one that was mistyped or given only in part."""

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decklog.db.base import Database

# How many ids are compared before and after its place in the order.
_AROUND = 20
_SHORTEST_BEGINNING = 4
_ALIKE = 0.75
_AROUND_IT = f"""
select * from (
  select {{column}} from {{table}} where {{column}} >= :wanted order by {{column}} limit {_AROUND}
) behind
union all
select * from (
  select {{column}} from {{table}} where {{column}} < :wanted order by {{column}} desc limit {_AROUND}
) before
"""


def meant(db: "Database", table: str, wanted: object, otherwise: str | None = None, *, column: str = "id") -> str | None:
    """Say in a hint which id was most likely meant, and what to do if it was not; that alone when none is near."""
    near = nearest(db, table, wanted, column=column) if isinstance(wanted, str) else None
    if near is None:
        return otherwise
    return f"Did you mean {near}?" + (f" If not, {otherwise[0].lower()}{otherwise[1:]}" if otherwise else "")


def nearest(db: "Database", table: str, wanted: str, *, column: str = "id") -> str | None:
    """Find the id that begins so, when only one does, or the one that is most alike."""
    bound, _ = db.values.bind({"wanted": wanted})
    sql = _AROUND_IT.format(table=table, column=column)
    known = [row[0] for row in db.read(lambda: db.rows(sql, bound))[1]]
    begun = [one for one in known if one.startswith(wanted)] if len(wanted) >= _SHORTEST_BEGINNING else []
    if begun:
        return str(begun[0]) if len(begun) == 1 else None
    # Who counts things knows the number that was meant: run-8 is no slip for run-7.
    others = [one for one in known if _without_numbers(one) != _without_numbers(wanted)]
    return next(iter(get_close_matches(wanted, others, 1, _ALIKE)), None)


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "0", text)
