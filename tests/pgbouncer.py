"""PgBouncer before the tests' PostgreSQL, with its own folder and socket."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

import psycopg

PROGRAM = shutil.which("pgbouncer", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
MISSING = "pgbouncer is not installed (apt-get install pgbouncer)"
_PORT = 6432
_SETTINGS = """
[databases]
* = host={server}
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = trust
admin_users = postgres
auth_file = {folder}/users.txt
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 2000
max_db_connections = 0
logfile = {folder}/log
"""


class PgBouncer:
    """A pooler that runs as the owner of the server's socket: PgBouncer refuses to run as root."""

    def __init__(self, server: str, mode: str, *, size: int = 20) -> None:
        assert PROGRAM is not None, MISSING
        socket = parse_qs(urlsplit(server).query)["host"][0]
        owner = os.stat(socket)
        self._user = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.getuid() == 0 else {}
        self.folder = Path(tempfile.mkdtemp(prefix="decklog-pgbouncer-"))
        self._mode, self._size = mode, size
        self._write_settings(socket)
        (self.folder / "users.txt").write_text('"postgres" ""\n')
        if self._user:
            os.chown(self.folder, owner.st_uid, owner.st_gid)
        self._process: subprocess.Popen[bytes] | None = None

    def _write_settings(self, socket: str) -> None:
        settings = _SETTINGS.format(server=socket, port=_PORT, folder=self.folder, mode=self._mode, size=self._size)
        (self.folder / "pgbouncer.ini").write_text(settings)

    def lead_to(self, server: str) -> None:
        """Lead its clients to another server. They keep their connections to the pooler."""
        self._write_settings(parse_qs(urlsplit(server).query)["host"][0])
        with psycopg.connect(self._admin, autocommit=True) as connection:
            connection.execute("reload")

    @property
    def _admin(self) -> str:
        return f"postgresql://postgres@/pgbouncer?host={self.folder}&port={_PORT}"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        command = [str(PROGRAM), "--quiet", str(self.folder / "pgbouncer.ini")]
        self._process = subprocess.Popen(command, **self._user)
        end = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self._admin).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < end
                time.sleep(0.02)

    def stop(self) -> None:
        """Kill it: all connections of clients and to the server are lost."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def address_of(self, url: str) -> str:
        """Return the address of a database of the server through the pooler."""
        name = urlsplit(url).path.lstrip("/")
        return f"postgresql://postgres@/{name}?host={self.folder}&port={_PORT}"

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
