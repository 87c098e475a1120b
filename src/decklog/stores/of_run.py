"""Stores whose records belong to runs. They lock the run for decisions, and write only differences."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from decklog.core.errors import Conflict, DecklogError, Invalid, NotFound
from decklog.db.base import Database
from decklog.db.where import suggest_id
from decklog.journal.rows import find_stream_number
from decklog.records.record import Record
from decklog.stores.base import Store

R = TypeVar("R", bound=Record)


def lock_run(db: Database, run_id: str) -> int:
    """Lock a run for writing until the transaction ends, and return the number of its stream.

    Blobs are written after it: two transactions that take both in different orders would deadlock.
    """
    number = None if run_id.startswith("@") else db.lock_stream(run_id)
    if number is None:
        raise run_not_found(db, run_id)
    return number


def check_run(db: Database, run_id: str) -> None:
    """Raise NotFound if the run does not exist."""
    if run_id.startswith("@") or find_stream_number(db, run_id) is None:
        raise run_not_found(db, run_id)


# The end states of runs, repeated here because stores of work do not import the module of runs.
_ENDED = ("completed", "failed", "cancelled")


def check_open(db: Database, run_id: str, consequence: str) -> None:
    """Raise Conflict if a run has ended. The answer is reliable while the caller has locked the run."""
    row = db.one("select status from runs where id = :run_id", {"run_id": run_id})
    if row is not None and row[0] in _ENDED:
        raise Conflict(
            f"run {run_id} is {row[0]}; {consequence}",
            hint=f"Take it up again first: decklog runs update {run_id} --status active",
            run_id=run_id,
            status=row[0],
        )


_START = "Start it first: decklog runs start GOAL --run ID"


def run_not_found(db: Database, run_id: str, otherwise: str = _START) -> NotFound:
    """Return a NotFound error that names the archive of a run, or suggests the closest existing run."""
    if (file := db.read(db.archived).get(run_id)) is not None:
        return NotFound(
            f"the entries of run {run_id} are archived in {file}",
            hint=f"Read them: decklog runs show {run_id} --archives FOLDER. Bring them back: decklog archive restore FILE",
            id=run_id,
            archive=file,
        )
    return NotFound(
        f"there is no run {run_id!r}",
        hint=suggest_id(db, "runs", run_id, otherwise),
        table="runs",
        id=run_id,
    )


def next_number(db: Database, record_class: type[Record], run_id: str, column: str = "number", **within: str) -> int:
    """Return the number after the highest among a run's records; an empty text in `within` means null."""
    lock_run(db, run_id)
    conditions = "".join(f" and coalesce({name}, '') = :{name}" for name in within)
    row = db.one(
        f"select coalesce(max({column}), 0) + 1 from {record_class.table} where run_id = :run_id{conditions}",
        {"run_id": run_id, **within},
    )
    assert row is not None
    return int(row[0])


class RunBound(Store):
    """A store of records that each belong to one run."""

    def set_fields(self, record: R, changes: Mapping[str, Any], *, note: str | None = None) -> R:
        """Write the fields that differ. If none does, return the record marked `already` and write nothing."""
        differing = self._differing_fields(record, changes)
        if not differing:
            return record.mark_already()
        return self._update(type(record), [getattr(record, name) for name in record.identity], differing, note=note)

    def _refusal(self, record_class: type[Record], record_id: str | Sequence[str]) -> DecklogError:
        """Return the error for a conditional change that matched no row, with the run and its part."""
        if self._seek(record_class, record_id) is None and not isinstance(record_id, str):
            run_id, part = record_id
            return not_found(record_class, run_id, part)
        return super()._refusal(record_class, record_id)


def not_found(record_class: type[Record], run_id: str, part: object, *, listed_by: str | None = None) -> NotFound:
    """Return a NotFound error for a part of a run, with the command that lists the existing ones."""
    kind = record_class.noun()
    return NotFound(
        f"run {run_id} has no {kind} {part!r}",
        hint=f"List what it has: decklog {listed_by or record_class.table + ' find'} {run_id}",
        table=record_class.table,
        run_id=run_id,
        id=part,
    )


def given_fields(parameters: dict[str, Any], *without: str) -> dict[str, Any]:
    """Return the given parameters of a verb; None means not given."""
    left_out = {"self", *without}
    return {name: value for name, value in parameters.items() if value is not None and name not in left_out}


def parse_cleared(names: list[str] | None, clearable: Sequence[str], given: Mapping[str, Any]) -> dict[str, None]:
    """Parse the names of fields to clear."""
    for name in names or []:
        if name not in clearable:
            raise Invalid(f"{name} can't be cleared; these can: {', '.join(clearable)}", field="clear")
        if name in given:
            raise Invalid(f"{name} is given and cleared in one call; do one of them", field="clear")
    return dict.fromkeys(names or [])
