"""Builds conditions from optional filters, and checks paging arguments."""

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from decklog.core.clock import from_text, to_text
from decklog.core.errors import Invalid
from decklog.db.base import Database
from decklog.records.record import Record

E = TypeVar("E", bound=StrEnum)

MAX_PAGE = 1000


class Where:
    """Builds a `where` clause from fields of a record. Unknown columns are errors, so nothing can be injected."""

    def __init__(self, record_class: type[Record], **filters: Any) -> None:
        self._record_class = record_class
        self.clauses: list[str] = []
        self.bound: dict[str, Any] = {}
        self.equal(**filters)

    def equal(self, **filters: Any) -> None:
        """Add a condition for each filter that is not None. Values of enumerations are checked."""
        for name, value in filters.items():
            if value is not None:
                self._known(name)
                enumeration = self._record_class.enumeration_of(name)
                self.clauses.append(f"{name} = :{name}")
                self.bound[name] = value if enumeration is None else parse_enum(enumeration, value, name)

    def between(self, name: str, since: datetime | None, until: datetime | None) -> None:
        """Add conditions for a time from `since` up to and including `until`."""
        self._known(name)
        if since is not None:
            self.add(f"{name} >= :since", since=to_text(since))
        if until is not None:
            self.add(f"{name} <= :until", until=to_text(until))

    def add(self, clause: str, **bound: Any) -> None:
        self.clauses.append(clause)
        self.bound |= bound

    def copy(self) -> "Where":
        """Return a copy that can be narrowed further."""
        copy = Where(self._record_class)
        copy.clauses, copy.bound = list(self.clauses), dict(self.bound)
        return copy

    def _known(self, name: str) -> None:
        fields = self._record_class.columns()
        if name not in fields:
            raise Invalid(f"{self._record_class.table} has no field {name!r}; it has {', '.join(sorted(fields))}")

    @property
    def condition(self) -> str:
        return " and ".join(self.clauses)

    @property
    def sql(self) -> str:
        return f"where {self.condition}" if self.clauses else ""


def parse_enum(enumeration: type[E], value: str, name: str) -> E:
    """Parse a member of an enumeration."""
    try:
        return enumeration(value)
    except ValueError:
        raise Invalid(
            f"{name} can't be {value!r}; it is one of {', '.join(enumeration)}",
            field=name,
            allowed=list(enumeration),
        ) from None


def page_size(limit: int) -> int:
    """Check the limit of a page."""
    if not 1 <= limit <= MAX_PAGE:
        raise Invalid(f"limit is {limit}; a page has 1 to {MAX_PAGE} rows", field="limit")
    return limit


def parse_position(text: str | int | None) -> int | None:
    """Parse the cursor of a page."""
    try:
        return None if text is None else int(text)
    except ValueError:
        raise Invalid(f"{text!r} is not a cursor; use the `next` of the previous page", field="after") from None


def parse_moment(when: str | int | datetime, stream: str) -> int | datetime:
    """Parse an entry number (`17`, or `STREAM:17` of this stream) or a time."""
    if isinstance(when, (int, datetime)):
        return when
    named, colon, number = when.rpartition(":")
    if number.isascii() and number.isdigit() and (not colon or named == stream):
        return int(number)
    try:
        return from_text(when)
    except ValueError:
        raise Invalid(
            f"{when!r} is not a moment of {stream}: use an entry number, {stream}:NUMBER or a time such as 2026-11-15T08:30:00Z",
            field="when",
        ) from None


_SIZES = (1, 8, 32, 64, 128, 512)


def size_for(count: int) -> int:
    """Round up to one of a few sizes, so that few statements serve lists of any length."""
    return next((size for size in _SIZES if size >= count), count)


def placed(ids: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """Build the parameters of an `in` list, padded to one of a few sizes."""
    filled = [*ids, *([ids[-1] if ids else ""] * (size_for(len(ids)) - len(ids)))]
    bound = {f"id{place}": one for place, one in enumerate(filled)}
    return ", ".join(f":{name}" for name in bound), bound


# The number of ids to compare before and after it in order.
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


def suggest_id(db: Database, table: str, wanted: object, otherwise: str | None = None, *, column: str = "id") -> str | None:
    """Return a hint with the closest id, or with another suggestion."""
    near = nearest(db, table, wanted, column=column) if isinstance(wanted, str) else None
    if near is None:
        return otherwise
    return f"Did you mean {near}?" + (f" If not, {otherwise[0].lower()}{otherwise[1:]}" if otherwise else "")


def nearest(db: Database, table: str, wanted: str, *, column: str = "id") -> str | None:
    """Find the only id with this prefix, or the most similar id."""
    bound, _ = db.values.bind({"wanted": wanted})
    sql = _AROUND_IT.format(table=table, column=column)
    known = [row[0] for row in db.read(lambda: db.rows(sql, bound))[1]]
    begun = [one for one in known if one.startswith(wanted)] if len(wanted) >= _SHORTEST_BEGINNING else []
    if begun:
        return str(begun[0]) if len(begun) == 1 else None
    # Imported here because only errors need it.
    from difflib import get_close_matches

    # Ids that differ only in digits, such as run-7 and run-8, are not typos.
    others = [one for one in known if _without_numbers(one) != _without_numbers(wanted)]
    return next(iter(get_close_matches(wanted, others, 1, _ALIKE)), None)


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "0", text)
