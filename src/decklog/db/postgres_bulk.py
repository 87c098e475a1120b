"""Writing a great many rows to PostgreSQL at once."""

import re
from operator import itemgetter

from decklog.db import schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import psycopg

PLAIN_INSERT = re.compile(r"insert into (?P<table>\w+) \((?P<names>[\w, ]+)\)\s+values \((?P<values>[\w:, ]+)\)")


def text_index() -> str:
    """Read how the text index is made from the step that made it."""
    text = schema.text_of(schema.steps("postgres")[0], "postgres")
    start = text.index("create index entries_by_text")
    return text[start : text.index(";", start)].replace("create index", "create index if not exists")


def copy(cursor: "psycopg.Cursor[Any]", table: str, names: str, rows: "list[dict[str, Any]]") -> None:
    """Insert rows with COPY, which takes a tenth of the time of as many inserts."""
    ordered = itemgetter(*names.split(", "))
    with cursor.copy(f"copy {table} ({names}) from stdin".encode()) as writing:
        for row in rows:
            writing.write_row(ordered(row))
