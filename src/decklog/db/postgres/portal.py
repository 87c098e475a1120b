"""Rows that come a part at a time, through a cursor of the server's."""

import time

import psycopg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    Connection = psycopg.Connection[Any]

_TOGETHER = 2000


def each(connection: "Connection", sql: str, parameters: "Mapping[str, Any]") -> "Iterator[tuple[Any, ...]]":
    """Run a statement inside of a transaction; give its rows one by one, without holding them all."""
    name = f"each_{time.monotonic_ns()}"
    fetch = f"fetch forward {_TOGETHER} from {name}".encode()
    # Sent together: most results have no more rows than come at once, and cost two ways to the server and back.
    with connection.pipeline():
        connection.execute(f"declare {name} no scroll cursor for {sql}".encode(), parameters, prepare=False)
        cursor = connection.execute(fetch, prepare=False)
    rows = cursor.fetchall()
    try:
        yield from rows
        while len(rows) == _TOGETHER:
            rows = connection.execute(fetch, prepare=False).fetchall()
            yield from rows
    except GeneratorExit:
        _give_up(connection, name)
        raise
    connection.execute(f"close {name}".encode(), prepare=False)


def _give_up(connection: "Connection", name: str) -> None:
    """Close a cursor whose rows nobody wants any more. Going back to a savepoint, or the end of the transaction, has done so."""
    if connection.closed or connection.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
        return
    if connection.execute("select 1 from pg_cursors where name = %s", (name,)).fetchone():
        connection.execute(f"close {name}".encode(), prepare=False)
