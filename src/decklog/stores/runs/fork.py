"""Time travel for runs: see one as it was, compare two moments, and start anew from one."""

from datetime import datetime

from decklog.errors import Invalid, NotFound
from decklog.operations import reads, writes
from decklog.records import Record, from_json, to_json
from decklog.stores.base import Store, moment_of
from decklog.stores.journal.time_index import Times
from decklog.stores.journal.writer import STREAM_SIZE
from decklog.stores.runs.run import Run, check_run_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from decklog.stores.runs.snapshot import Snapshot

_ID_LENGTH = 26


class TimeTravel(Store):
    @reads
    def snapshot(self, run_id: str, *, at: str | None = None) -> "Snapshot":
        """Give the whole picture of a run, now or as of an entry or a time."""
        return self._take(run_id, at)

    @reads
    def diff(self, before: str, after: str) -> "list[dict[str, Any]]":
        """List what differs between two moments, each given as RUN, RUN:ENTRY or RUN@TIME."""
        from decklog.stores.runs.snapshot import difference

        return difference(self._moment(before), self._moment(after))

    def _moment(self, text: str) -> "Snapshot":
        run_id, mark, when = text.partition("@") if "@" in text else text.rpartition(":")
        return self._take(run_id, when, recent=False) if mark else self._take(text, None, recent=False)

    def _take(self, run_id: str, at: "str | int | datetime | None", *, recent: bool = True) -> "Snapshot":
        # Imported when it is needed: most calls about runs only look at the row.
        from decklog.stores.runs.snapshot import Photographer

        start, until = self._span(run_id, at)
        return Photographer(self.journal).take(run_id, start, until, recent=recent)

    def _span(self, run_id: str, at: "str | int | datetime | None") -> tuple[int, int]:
        """Give the positions right before a run's first entry and of the entry that is meant."""
        number = self.journal.number_of(run_id)
        if number is None:
            raise NotFound(f"there is no run {run_id}", table="runs", id=run_id)
        start, newest = number * STREAM_SIZE, self.journal.newest_position(number)
        if at is None:
            return start, newest
        moment = moment_of(at)
        until = Times(self.db).last_until(number, moment) if isinstance(moment, datetime) else start + moment
        if not start < until <= newest:
            raise NotFound(f"run {run_id} has entries 1 to {newest - start}; there is none for {at}", run_id=run_id)
        return start, until

    @writes
    def fork(
        self,
        run_id: str,
        *,
        at: str | None = None,
        new_run_id: str | None = None,
        goal: str | None = None,
        branch: str | None = None,
        worktree: str | None = None,
    ) -> Run:
        """Start a new run from a run as it was at an entry or a time; the git branch and worktree are yours to make.

        Every record of the run is copied under a new id; money that was spent is not.
        """
        start, until = self._span(run_id, at)
        seq = until - start
        new_id = self.ids.new("run") if new_run_id is None else new_run_id
        check_run_id(new_id, "new_run_id")
        if self.seek(Run, new_id) is not None:
            raise Invalid(f"there is a run {new_id} already; choose another id", field="new_run_id")
        images = self._images(start, until)
        names = _Renaming(self, run_id, new_id, images)
        for record_class, image in images:
            self._copy(record_class, record_class.forked(names.apply(record_class, image), self.db), run_id, seq)
        return self._set_fork(new_id, run_id, seq, {"goal": goal, "branch": branch, "worktree": worktree})

    def _images(self, start: int, until: int) -> "list[tuple[type[Record], dict[str, Any]]]":
        """List the newest column values of every record that a fork has, those that others refer to first."""
        from decklog.stores.runs.snapshot import Photographer

        classes = self.journal.record_classes()
        newest = {(table, record_id): image for table, record_id, image in Photographer(self.journal).images(start, until)}
        found = [(classes[table], image) for (table, _), image in newest.items() if not image.get("removed")]
        order = list(classes)
        copied = [pair for pair in found if pair[0].copied_by_fork]
        return sorted(copied, key=lambda pair: order.index(pair[0].table))

    def _copy(self, record_class: type[Record], image: "dict[str, Any]", parent: str, seq: int) -> None:
        self.put(record_class, image, note=f"forked from {parent}:{seq}", new_stream=record_class is Run)

    def _set_fork(self, new_id: str, parent: str, seq: int, given: "dict[str, Any]") -> Run:
        changes = {name: value for name, value in given.items() if value is not None}
        assignments = "".join(f"{name} = :new_{name}, " for name in changes)
        return self.change(
            Run,
            new_id,
            f"""
            update runs set {assignments} parent_run_id = :parent, parent_seq = :seq, updated_at = :now
             where id = :id
            returning *
            """,
            note=f"forked from {parent}:{seq}",
            parent=parent,
            seq=seq,
            now=self.now(),
            **{f"new_{name}": value for name, value in changes.items()},
        )


class _Renaming:
    """Gives every copied record an id of its own, and points references at the copies."""

    def __init__(self, store: Store, run_id: str, new_id: str, images: "list[tuple[type[Record], dict[str, Any]]]") -> None:
        self._names = {run_id: new_id}
        for record_class, image in images:
            if record_class is not Run and record_class.identity == ("id",):
                self._names[str(image["id"])] = store.ids.new(_prefix(record_class, str(image["id"])))

    def apply(self, record_class: type[Record], image: "dict[str, Any]") -> "dict[str, Any]":
        columns = {name: image.get(name) for name in record_class.columns()}
        renamed = {name: self._value(name, value) for name, value in columns.items()}
        if record_class is Run:
            renamed["key"] = None
        if "reservation_id" in renamed:
            # The parent's money is not the fork's to settle.
            renamed["reservation_id"] = None
        return renamed

    def _value(self, name: str, value: "Any") -> "Any":
        if not isinstance(value, str):
            return value
        if value in self._names and (name.endswith("id") or name in ("depends_on", "superseded_by", "key")):
            return self._names[value]
        if value.startswith("[") and any(old in value for old in self._names):
            return to_json(self._inside(from_json(value)))
        return value

    def _inside(self, value: "Any") -> "Any":
        if isinstance(value, list):
            return [self._inside(item) for item in value]
        return self._names.get(value, value) if isinstance(value, str) else value


def _prefix(record_class: type[Record], record_id: str) -> str:
    """Give the beginning of a copy's id: that of an id of ours, or the kind of record where a caller chose the id."""
    head, mark, rest = record_id.partition("_")
    return head if mark and len(rest) == _ID_LENGTH and head.isalpha() else record_class.__name__.lower()
