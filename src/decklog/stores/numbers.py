"""Numbers that count within a run: two who add at the same time get two numbers, and order never depends on a clock."""

from decklog.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decklog.records import Record
    from decklog.stores.base import Store


def lock_run(store: "Store", run_id: str) -> int:
    """Make this transaction the only one that writes to a run; give the number of the run's stream.

    Blobs are written after it: two transactions that take both in different orders would wait for each other.
    """
    number = None if run_id.startswith("@") else store.db.lock_stream(run_id)
    if number is None:
        raise no_run(run_id)
    return number


def check_run(store: "Store", run_id: str) -> None:
    """Refuse a run that is not in the log."""
    if run_id.startswith("@") or store.journal.number_of(run_id) is None:
        raise no_run(run_id)


def no_run(run_id: str) -> NotFound:
    return NotFound(
        f"there is no run {run_id!r}",
        hint="Start it first: decklog runs start GOAL --run-id ID",
        table="runs",
        id=run_id,
    )


def next_number(store: "Store", record_class: "type[Record]", run_id: str, column: str = "number", **within: str) -> int:
    """Give the number after the highest among a run's records; an empty text in `within` stands for none."""
    lock_run(store, run_id)
    conditions = "".join(f" and coalesce({name}, '') = :{name}" for name in within)
    row = store.db.one(
        f"select coalesce(max({column}), 0) + 1 from {record_class.table} where run_id = :run_id{conditions}",
        {"run_id": run_id, **within},
    )
    assert row is not None
    return int(row[0])
