"""The last acknowledged entries of this process, compared with the server after a reconnect.

A promoted standby may lack commits that the old primary acknowledged. Each client that made one of them gets an error.
"""

import time
from threading import Lock
from typing import TYPE_CHECKING

from decklog.core.errors import DecklogError, LostWrites

if TYPE_CHECKING:
    from collections.abc import Callable

    from decklog.db.base import Row
    from decklog.db.postgres.connections import LogConnection

# Position and hash of a stream's last entry.
Head = tuple[int, str]
# A failover loses the newest commits, so the streams that were written last are enough.
_MOST_STREAMS = 1000
# A pooler can change the server behind a connection that stays open.
_SECONDS_BETWEEN_CHECKS = 10.0
_STREAM_SIZE = 2**32
# A stream without any entry was archived: its row and its first entry are committed together, so none is lost alone.
_FIND = b"""
select pg_is_in_recovery(), a.pos, e.hash,
       e.pos is null
       and exists (select 1 from streams s where s.name = a.stream and s.no = a.pos >> 32)
       and not exists (select 1 from entries o where o.pos >= (a.pos >> 32) << 32 and o.pos < ((a.pos >> 32) + 1) << 32)
  from unnest($1::text[], $2::bigint[]) as a(stream, pos)
  left join entries e on e.pos = a.pos
"""


class AcknowledgedHeads:
    """The newest entry of each stream that this process committed."""

    def __init__(self, record: "Callable[[LostWrites], None] | None" = None) -> None:
        # Writes a loss into the log.
        self.record = record
        # In the order of their commits.
        self._heads: dict[str, Head] = {}
        self._lock = Lock()
        self._checked_at = time.monotonic()

    def add(self, written: dict[str, Head]) -> None:
        """Remember the heads that a committed transaction wrote."""
        if not written:
            return
        with self._lock:
            for stream, head in written.items():
                self._heads[stream] = max(head, self._heads.pop(stream, head))
            while len(self._heads) > _MOST_STREAMS:
                del self._heads[next(iter(self._heads))]

    def compare(self, connection: "LogConnection") -> None:
        """Check with the first statement of a transaction that the server has the heads, if it may be another server."""
        if connection.is_compared and time.monotonic() - self._checked_at < _SECONDS_BETWEEN_CHECKS:
            return
        with self._lock:
            heads = dict(self._heads)
        if not heads:
            connection.is_compared = True
            return

        def take(rows: "list[Row]") -> None:
            # A standby that lags behind has lost nothing yet.
            if not rows[0][0]:
                connection.is_compared, self._checked_at = True, time.monotonic()
                self._check(heads, {position: hashed for _, position, hashed, is_archived in rows if not is_archived})

        connection.session.queue(_FIND, [list(heads), [position for position, _ in heads.values()]], take)

    def _check(self, heads: dict[str, Head], found: dict[int, str | None]) -> None:
        lost = [
            {"stream": stream, "seq": position % _STREAM_SIZE, "hash": hashed, "found": found[position]}
            for stream, (position, hashed) in heads.items()
            if position in found and found[position] != hashed
        ]
        if lost:
            named = ", ".join(f"{one['stream']}:{one['seq']} {str(one['hash'])[:12]}" for one in lost[:3])
            raise LostWrites(
                f"the server lost entries that it had acknowledged: {named}{' …' if len(lost) > 3 else ''}",
                hint="A standby was promoted before it had them. Compare what was done with the log, and repeat what is missing.",
                lost=lost,
            )

    def report(self, problem: LostWrites) -> None:
        """Write a loss into the log, then forget it; what can't be written is raised again later."""
        lost = {one["stream"]: one for one in problem.details["lost"]}
        with self._lock:
            forgotten = {stream: self._heads.pop(stream) for stream in lost if stream in self._heads}
        if not forgotten or self.record is None:
            return
        try:
            self.record(problem)
        except DecklogError as failure:
            problem.add_note(f"It could not be written down: {failure.message}")
            self.add(forgotten)
            self._checked_at = 0.0
