"""Opens a database on a server; without its driver, names the package to install."""

from typing import TYPE_CHECKING, Any

from decklog.core.errors import Unavailable
from decklog.core.extras import install_hint

if TYPE_CHECKING:
    from decklog.db.base import Database


def open_server(url: str, **settings: Any) -> "Database":
    """Open a PostgreSQL database; without its driver, say how to get it."""
    try:
        from decklog.db.postgres.database import open_postgres
    except ImportError as problem:
        raise Unavailable(
            f"PostgreSQL needs a package that is not installed: {problem.name}",
            hint=install_hint("postgres"),
        ) from problem
    return open_postgres(url, **settings)
