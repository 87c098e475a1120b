"""The server stops working for a verification whose client was killed."""

import signal
import subprocess
import sys

import psycopg
import pytest

from decklog import Decklog
from tests.waiting import wait_until

# Verifies a log with one check that takes the server many minutes.
_CLIENT = """
import sys
from decklog import Decklog
from decklog.journal.verify import Verifier

def slow(_classes):
    log.db.rows("select count(*) from generate_series(1, 20000000000)", {})
    return iter(())

log = Decklog.open(sys.argv[1], read_only=True)
Verifier(log.db, {}, {"a slow check": slow}).run(None, None)
"""
_WORKING = (
    "select count(*) from pg_stat_activity where query like '%generate_series(1, 20000000000)%' and pid <> pg_backend_pid()"
)


@pytest.mark.slow
def test_no_backend_works_5_seconds_after_its_verifying_client_was_killed(log: Decklog, target: str) -> None:
    if log.db.engine != "postgres":
        pytest.skip("SQLite has no server")
    with psycopg.connect(target, autocommit=True) as watcher:

        def is_working() -> bool:
            [count] = watcher.execute(_WORKING).fetchone() or (0,)
            return bool(count)

        with subprocess.Popen([sys.executable, "-c", _CLIENT, target]) as client:
            wait_until(is_working)
            client.send_signal(signal.SIGKILL)
        wait_until(lambda: not is_working(), 5.0)
