"""Bazinga's tables as questions to a log that is a SQLite file."""

import os
import re
from functools import lru_cache

_TIME = r"\btime\((\w+\.\w+)\)"
_SPELLED = r"replace(replace(substr(\1, 1, 26), 'T', ' '), '.000000', '')"


@lru_cache
def _texts() -> dict[str, str]:
    with open(os.path.join(os.path.dirname(__file__), "tables.sqlite.sql"), encoding="utf-8") as file:
        text = file.read()
    found = {}
    for part in text.split("\n\n-- ")[1:]:
        name, _, select = part.partition("\n")
        found[name] = select.strip().rstrip(";")
    return found


def question(table: str, schema: str) -> str:
    """Return the select that answers for one table, of a log that is attached under a name."""
    return re.sub(_TIME, _SPELLED, _texts()[table]).replace(" log.", f" {schema}.")


def questions(schema: str) -> dict[str, str]:
    """Return each table's name and its select."""
    return {table: question(table, schema) for table in _texts()}
