"""Rows that come a part at a time, through a cursor of the server's."""

import time
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from decklog.db.base import Row
    from decklog.db.postgres.connections import PatientConnection

    # Does something on the wire, and tells in our words what the server says against it.
    Hear = Callable[..., Any]

_TOGETHER = 2000


def each(connection: "PatientConnection", sql: bytes, values: "list[Any]", hear: "Hear") -> "Iterator[Row]":
    """Run a statement inside of a transaction; give its rows one by one, without holding them all."""
    wire, name = connection.wire, f"each_{time.monotonic_ns()}".encode()
    fetch, transaction = b"fetch forward %d from %b" % (_TOGETHER, name), wire.transaction
    # Most results have no more rows than come at once, and cost one way to the server and back: what opens the cursor goes with
    # what is fetched from it, and what closes it with whatever is asked next.
    hear(wire.single_later, b"declare %b no scroll cursor for %b" % (name, sql), values)
    rows = hear(wire.single_rows, fetch)
    try:
        yield from rows
        while len(rows) == _TOGETHER:
            rows = hear(wire.single_rows, fetch)
            yield from rows
    except GeneratorExit:
        _give_up(connection, name, hear)
        raise
    if wire.transaction is transaction:
        wire.single_later(b"close " + name)


def _give_up(connection: "PatientConnection", name: bytes, hear: "Hear") -> None:
    """Close a cursor whose rows nobody wants any more. Going back to a savepoint, or the end of the transaction, has done so."""
    if connection.closed or connection.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
        return
    _, known = hear(connection.wire.rows, b"select 1 from pg_cursors where name = $1", [name.decode()])
    if known:
        hear(connection.wire.ask, b"close " + name)
