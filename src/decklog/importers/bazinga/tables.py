"""Bazinga's tables as questions to a log that is a SQLite file."""

import os
import re
from functools import lru_cache

_TIME = re.compile(r"\btime\((\w+\.\w+)\)")
_SPELLED = r"replace(replace(substr(\1, 1, 26), 'T', ' '), '.000000', '')"


@lru_cache
def questions(schema: str) -> dict[str, str]:
    """Give each table's name and the select that answers for it, of a log that is attached under a name."""
    with open(os.path.join(os.path.dirname(__file__), "tables.sqlite.sql"), encoding="utf-8") as file:
        text = _TIME.sub(_SPELLED, file.read()).replace(" log.", f" {schema}.")
    found = {}
    for part in text.split("\n\n-- ")[1:]:
        name, _, select = part.partition("\n")
        found[name] = select.strip().rstrip(";")
    return found
