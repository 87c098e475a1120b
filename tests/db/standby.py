"""A PostgreSQL primary with an asynchronous standby."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psycopg

from decklog import Decklog
from tests.postgres import Server


class Pair:
    """Two servers. `url` leads to the one that takes writes, `standby_url` to the standby."""

    def __init__(self, primary: Server, standby: Server) -> None:
        self._primary, self._standby = primary, standby
        self.primary_url, self.standby_url = primary.url, standby.url
        both = quote(f"{primary.folder},{standby.folder}", safe="")
        self.url = f"postgresql://postgres@/postgres?host={both}&target_session_attrs=read-write"
        self.cut = standby.cut

    def wait_for_standby(self) -> None:
        """Wait until the standby has replayed what the primary has."""
        end = time.monotonic() + 30
        with psycopg.connect(self.primary_url, autocommit=True) as primary, psycopg.connect(self.standby_url) as standby:
            (position,) = primary.execute("select pg_current_wal_lsn()::text").fetchone() or ("",)
            standby.autocommit = True
            while not (standby.execute("select pg_last_wal_replay_lsn() >= %s::pg_lsn", [position]).fetchone() or [False])[0]:
                assert time.monotonic() < end, "the standby does not follow"
                time.sleep(0.05)

    def fail_over(self) -> None:
        """Stop the primary as a crash does, and promote the standby."""
        self._primary.kill()
        self._standby.promote()


@contextmanager
def pair() -> Iterator[Pair]:
    """Start both servers with a migrated log on them."""
    with Server() as primary, Server(primary=primary) as standby:
        servers = Pair(primary, standby)
        Decklog.open(servers.url, migrate=True).close()
        yield servers
