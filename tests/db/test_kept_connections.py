"""Connections to PostgreSQL: how many a log has, and that the tests' own carry nothing from one log to the next."""

from typing import Any

import pytest

from decklog import Decklog

LEAVINGS = "set statement_timeout = 12345; create temp table mine (x integer); select pg_advisory_lock(7); listen mine"
LEFT = """
select pg_backend_pid(), current_setting('statement_timeout'), to_regclass('mine')::text,
       (select count(*) from pg_listening_channels()),
       (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())
"""


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_a_connection_serves_the_next_log_as_if_it_were_new(target: str) -> None:
    with Decklog.open(target) as log, connections_of(log) as one:
        backend, *fresh = one.execute(LEFT).fetchone()
        one.execute(LEAVINGS)
    with Decklog.open(target) as log, connections_of(log) as one, connections_of(log) as two:
        found = {number: left for number, *left in (one.execute(LEFT).fetchone(), two.execute(LEFT).fetchone())}
    assert found[backend] == fresh


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_a_log_that_one_caller_uses_has_one_connection(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("Make the parser faster", run_id="run_1")
        assert log.runs.get("run_1").id == "run_1"
        assert log.db.connections.pool().get_stats()["connections_num"] == 1  # type: ignore[attr-defined]


def connections_of(log: Any) -> Any:
    """Take a connection of an open log, which has as many as are taken at once."""
    return log.db.connections.pool().connection()
