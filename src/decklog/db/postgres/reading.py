"""Statements that only read, asked by the calls of libpq: around a short one, psycopg's cursors take five times as long."""

import select
from collections import OrderedDict
from contextlib import suppress

import psycopg
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from decklog.db.base import Row

# From this time on a statement's plan is kept. A call that soon ends asks once, and would go to the server twice for it.
_OFTEN = 2
_MOST_KEPT = 500
_CANCEL_SECONDS = 2.0
_NO_SUCH_STATEMENT = "26000"


class Forgotten(Exception):
    """The server has let go of statements that were prepared. It is no error: whoever hears it asks again."""


class Reader:
    """Reads through one connection, inside of the transaction that is open on it, and knows which statements are prepared."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)
        self._socket = select.poll()
        self._socket.register(self._pgconn.socket, select.POLLIN)
        # How often each was asked, by its text and the types of its parameters, or the name under which it is prepared.
        self._known: OrderedDict[tuple[bytes, tuple[int, ...]], int | bytes] = OrderedDict()
        self._number = 0

    def ask(self, command: bytes) -> None:
        """Run a command that has neither parameters nor rows."""
        self._pgconn.send_query(command)
        self._answer()

    def rows(self, sql: bytes, parameters: "Sequence[Any]") -> "tuple[pq.abc.PGresult, list[Row]]":
        """Run a statement with its parameters in order; give its result, which names its columns, and all rows."""
        transformer, pgconn = self._transformer, self._pgconn
        values = transformer.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        types, formats = transformer.types or (), transformer.formats
        name = self._name_of(sql, types)
        if name is None:
            pgconn.send_query_params(sql, values, param_types=types, param_formats=formats)
        else:
            pgconn.send_query_prepared(name, values, param_formats=formats)
        result = self._answer()
        transformer.set_pgresult(result)
        return result, transformer.load_rows(0, result.ntuples, tuple)

    def _name_of(self, sql: bytes, types: "tuple[int, ...]") -> bytes | None:
        """Give the name under which a statement is prepared; None while it was not asked often enough."""
        key = sql, types
        known = self._known.get(key, 0)
        if isinstance(known, bytes):
            self._known.move_to_end(key)
            return known
        name = None
        if known + 1 >= _OFTEN:
            self._number += 1
            name = f"decklog_{self._number}".encode()
            self._pgconn.send_prepare(name, sql, types)
            self._answer()
        self._known[key] = known + 1 if name is None else name
        self._make_room()
        return name

    def _make_room(self) -> None:
        if len(self._known) > _MOST_KEPT:
            _, oldest = self._known.popitem(last=False)
            if isinstance(oldest, bytes):
                self.ask(b"deallocate " + oldest)

    def _answer(self) -> "pq.abc.PGresult":
        """Wait for what comes back; a signal interrupts it, and then the statement is not waited for."""
        try:
            result = self._received()
        except BaseException:
            # Its answer may still come: this connection can't be used for anything else.
            if not self._connection.closed:
                with suppress(psycopg.Error):
                    self._connection.cancel_safe(timeout=_CANCEL_SECONDS)
                self._connection.close()
            raise
        if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            return result
        problem = error_from_result(result, self._connection.info.encoding)
        if problem.sqlstate == _NO_SUCH_STATEMENT:
            self._known.clear()
            raise Forgotten from problem
        raise problem

    def _received(self) -> "pq.abc.PGresult":
        pgconn, result = self._pgconn, None
        while pgconn.flush():
            # Neither side may wait for the other to read: what comes is taken while there is more to send.
            select.select([pgconn.socket], [pgconn.socket], [])
            pgconn.consume_input()
        while True:
            while pgconn.is_busy():
                self._socket.poll()
                pgconn.consume_input()
            following = pgconn.get_result()
            if following is None:
                break
            result = following
        if result is None:
            raise psycopg.OperationalError("the server gave no answer")
        return result
