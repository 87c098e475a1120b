"""Finds positions by time. In a stream with ascending times, bisection replaces an index."""

from datetime import datetime

from decklog.core.clock import to_text
from decklog.db.base import Database
from decklog.db.where import Where
from decklog.journal.rows import STREAM_SIZE

# Bisects the positions of a stream: a few dozen lookups in one statement, so that it takes one round trip.
_BISECT = """
with recursive halves (low, high) as (
  select cast(:start as bigint) + 1,
         coalesce((select max(pos) from entries where pos >= :start and pos < :end), cast(:start as bigint)) + 1
  union all
  select case when e.at < :time then e.pos + 1 else h.low end,
         case when e.at < :time then h.high else e.pos end
    from halves h
    join entries e on e.pos = (h.low + h.high) / 2
   where h.low < h.high
)
select low from halves where low = high
"""


# Streams with entries in a time span, and whether all of their entries are. Unordered streams always count.
_STREAMS = f"""
select no, in_order = 1 and created_at >= :since and last_at <= :until
  from (
    select s.no, s.in_order, s.created_at,
           (select e.at from entries e where e.pos >= s.no * {STREAM_SIZE} and e.pos < (s.no + 1) * {STREAM_SIZE}
             order by e.pos desc limit 1) as last_at
      from streams s
     where s.no >= :lowest
       and s.no <= :highest
       and (s.in_order = 0 or s.created_at <= :until)
  ) written
 where in_order = 0
    or last_at >= :since
 order by no {{order}}
 limit :most
"""
# Sort before and after all times.
_MIN_TIME, _MAX_TIME = "", "~"


class Times:
    """Finds entries of a time span."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def narrow(self, where: Where, number: int | None, since: datetime | None, until: datetime | None) -> None:
        """Add the condition for a time span, as positions if times are ascending."""
        if since is None and until is None:
            return
        if number is None or not self._in_order(number):
            where.between("at", since, until)
            return
        if since is not None:
            where.add("pos >= :since", since=self._first_at_or_after(number, to_text(since)))
        if until is not None:
            # Texts of times have a fixed length, so one more character sorts right after the time itself.
            where.add("pos < :until", until=self._first_at_or_after(number, to_text(until) + " "))

    def streams(
        self, since: datetime | None, until: datetime | None, *, after: int | None, oldest_first: bool, most: int
    ) -> list[tuple[int, bool]]:
        """Return the numbers of streams that may have entries in a time span, and whether all of their entries are in it."""
        place = None if after is None else after // STREAM_SIZE
        bound = {
            "since": _MIN_TIME if since is None else to_text(since),
            "until": _MAX_TIME if until is None else to_text(until),
            "lowest": place if oldest_first and place is not None else 0,
            "highest": place if not oldest_first and place is not None else STREAM_SIZE,
            "most": most,
        }
        _, rows = self._db.rows(_STREAMS.format(order="asc" if oldest_first else "desc"), bound)
        return [(number, bool(is_whole)) for number, is_whole in rows]

    def last_until(self, number: int, moment: datetime) -> int:
        """Return the last position of a stream at a time, or its start if there is none.

        Without ascending times, only changes of records count.
        """
        if self._in_order(number):
            return self._first_at_or_after(number, to_text(moment) + " ") - 1
        found = self._find_position("max(pos)", "at <= :time and record_table is not null", number, moment)
        return number * STREAM_SIZE if found is None else found

    def first_from(self, number: int, moment: datetime) -> int:
        """Return the position of a stream's first entry at or after a time, or the position after its last entry."""
        if self._in_order(number):
            return self._first_at_or_after(number, to_text(moment))
        found = self._find_position("min(pos)", "at >= :time", number, moment)
        return self._first_at_or_after(number, _MAX_TIME) if found is None else found

    def _find_position(self, position: str, condition: str, number: int, moment: datetime) -> int | None:
        sql = f"select {position} from entries where pos >= :start and pos < :end and {condition}"
        bound = {"start": number * STREAM_SIZE, "end": (number + 1) * STREAM_SIZE, "time": to_text(moment)}
        row = self._db.one(sql, bound)
        return row[0] if row else None

    def _in_order(self, number: int) -> bool:
        row = self._db.one("select in_order from streams where no = :number", {"number": number})
        return bool(row and row[0])

    def _first_at_or_after(self, number: int, time: str) -> int:
        start = number * STREAM_SIZE
        row = self._db.one(_BISECT, {"start": start, "end": start + STREAM_SIZE, "time": time})
        assert row is not None
        return int(row[0])
