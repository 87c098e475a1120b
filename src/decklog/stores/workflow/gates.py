"""Circuit breakers for shared resources, such as an account that has reached its quota."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from decklog.db.where import Where
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store
from decklog.stores.checks import check_filled, check_span, check_time

# The waiting time doubles with each failed try in a row, up to this number of times.
MOST_DOUBLINGS = 5


class GateState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"


GateStateLike = GateState | Literal["open", "closed"]


@dataclass(frozen=True, kw_only=True)
class Gate(Record):
    """Something that many share. While it is closed nobody goes through; from `opens_at` on one at a time may try.

    A closed gate without `opens_at` stays closed until somebody opens it. `closings` counts how often in a row it was closed.
    """

    table = "gates"
    identity = ("name",)
    home = "@workflow"

    name: str
    state: GateState
    updated_at: datetime
    reason: str = ""
    closed_at: datetime | None = None
    opens_at: datetime | None = None
    closings: int = 0

    def is_shut(self, now: datetime) -> bool:
        """Whether no try is allowed."""
        return self.state is GateState.CLOSED and (self.opens_at is None or self.opens_at > now)


class Gates(Store):
    """Pause calls to a shared resource, let one caller at a time probe it, then open it for all."""

    records = (Gate,)

    @writes
    def close(
        self,
        name: str,
        reason: str,
        *,
        until: datetime | None = None,
        retry_seconds: float | None = None,
        began_at: datetime | None = None,
    ) -> Gate:
        """Close a gate until a stated time; without one, or with one that is past, until `retry_seconds` from now.

        Each time in a row doubles the wait. With neither, it stays closed until somebody opens it.
        A call that began (`began_at`) before the gate was closed changes nothing, unless it states a later time.
        """
        now = self._now()
        if retry_seconds is not None:
            check_span(retry_seconds, "retry_seconds")
        stated = None if until is None else check_time("until", until)
        # Lock the stream, which may not exist yet, so that two concurrent calls do not both add a new gate.
        self._db.lock_stream(Gate.home or "")
        known = self._seek_by(Gate, for_update=True, name=check_filled("name", name))
        if known is None:
            self._add(Gate, note="made", name=name, state=GateState.OPEN, updated_at=now)
            known = self._seek_by(Gate, for_update=True, name=name)
            assert known is not None
        if _is_old_news(known, began_at, stated):
            return known.mark_already()
        was_closed = known.state is GateState.CLOSED
        changes = {
            "reason": check_filled("reason", reason),
            "closings": known.closings + 1,
            "closed_at": known.closed_at if was_closed else now,
            "opens_at": _opening(now, stated, retry_seconds, known.closings),
        }
        return self._set(name, GateState.CLOSED, f"closed: {reason}", changes)

    @writes(hands_out=True)
    def enter(self, name: str, *, hold_seconds: float = 60.0) -> Gate | None:
        """Pass a gate; nothing while it is closed. When its time has come, one caller may try.

        The next may try `hold_seconds` later, or as soon as somebody opens it.
        """
        check_span(hold_seconds, "hold_seconds")
        now = self._now()
        known = self._seek_by(Gate, for_update=True, name=name)
        if known is None:
            return Gate(name=name, state=GateState.OPEN, updated_at=now)
        if known.state is GateState.OPEN:
            return known
        if known.is_shut(now):
            return None
        return self._set(name, GateState.CLOSED, "one is let through to try", {"opens_at": now + timedelta(seconds=hold_seconds)})

    @writes
    def retry(self, name: str) -> Gate:
        """Let a closed gate be tried at once; an open one stays as it is."""
        known = self._fetch_for_update(Gate, name)
        if known.state is GateState.OPEN:
            return known.mark_already()
        return self._set(name, GateState.CLOSED, "may be tried at once", {"opens_at": self._now()})

    @writes
    def open(self, name: str, *, reason: str = "") -> Gate:
        """Open a gate for everybody; one that is open stays as it is."""
        known = self._fetch_for_update(Gate, name)
        if known.state is GateState.OPEN:
            return known.mark_already()
        changes = {"reason": reason, "closings": 0, "closed_at": None, "opens_at": None}
        return self._set(name, GateState.OPEN, f"opened: {reason}" if reason else "opened", changes)

    def _set(self, name: str, state: GateState, note: str, changes: dict[str, object]) -> Gate:
        return self._update(Gate, name, {"state": state, **changes}, note=note)

    @reads
    def get(self, name: str) -> Gate:
        """Get a gate."""
        return self._fetch(Gate, name)

    @reads
    def find(self, *, state: GateStateLike | None = None, limit: int = 20, after: str | None = None) -> Page[Gate]:
        """List gates by their names."""
        where = Where(Gate, state=state)
        return self._page(Gate, where, order=("name",), limit=limit, after=after)


def _opening(now: datetime, stated: datetime | None, retry_seconds: float | None, closings: int) -> datetime | None:
    if stated is not None and stated > now:
        return stated
    if retry_seconds is None:
        return None
    return now + timedelta(seconds=retry_seconds * 2 ** min(closings, MOST_DOUBLINGS))


def _is_old_news(known: Gate, began_at: datetime | None, stated: datetime | None) -> bool:
    """Return whether the gate was closed after the failed call began, for at least the same time."""
    if known.closed_at is None or began_at is None or began_at > known.closed_at:
        return False
    return stated is None or (known.opens_at is not None and stated <= known.opens_at)
