"""Migrations: numbered SQL files, forward only, each with a checksum.

One text serves both engines; words that the engines spell differently are respelled here. Where more differs, a step is a
pair of files, `NNNN_name.sqlite.sql` and `NNNN_name.postgres.sql`.
"""

import os
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    class Step(NamedTuple):
        version: int
        name: str
        path: str

else:
    from collections import namedtuple

    Step = namedtuple("Step", "version name path")

FOLDER = os.path.join(os.path.dirname(__file__), "migrations")

# The C collation makes PostgreSQL compare text byte by byte, as SQLite does: ids and times sort the same on both.
_POSTGRES_WORDS = {r"\btext\b": 'text collate "C"', r"\)\s*strict\b": ")"}
_SQLITE_WORDS = {r"\bbigint\b": "integer", r"\bbytea\b": "blob", r"\bdouble precision\b": "real"}


@lru_cache
def steps(engine: str) -> "tuple[Step, ...]":
    """List the steps of one engine in order."""
    found = []
    for file in sorted(os.listdir(FOLDER)):
        parts = file.split(".")
        if parts[-1] == "sql" and (len(parts) == 2 or parts[1] == engine):
            found.append(Step(int(file[:4]), parts[0], os.path.join(FOLDER, file)))
    return tuple(found)


def latest(engine: str) -> int:
    return steps(engine)[-1].version


def text_of(step: "Step", engine: str) -> str:
    """Read a step in the engine's own spelling."""
    import re

    with open(step.path, encoding="utf-8") as file:
        text = file.read()
    for word, spelled in (_SQLITE_WORDS if engine == "sqlite" else _POSTGRES_WORDS).items():
        text = re.sub(word, spelled, text)
    return text


def checksum_of(step: "Step") -> str:
    """Digest a step's file as it is written."""
    import hashlib

    with open(step.path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
