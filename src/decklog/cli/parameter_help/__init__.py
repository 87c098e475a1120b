"""Descriptions of the parameters of store verbs and shortcuts, read from `texts.toml`."""

import os
from functools import cache
from typing import Any

SHORT = "short"


@cache
def _texts() -> dict[str, dict[str, Any]]:
    # Slow to import, and needed only for the help of one verb.
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "texts.toml"), "rb") as file:
        return tomllib.load(file)


def shared_help() -> dict[str, str]:
    """Return the descriptions that apply to every store, by parameter name."""
    return _texts()["shared"]


def parameter_help(store: str, verb: str, name: str) -> str | None:
    """Return the description of a parameter: the verb's own, else the store's, else the shared one."""
    own = _texts().get(store, {})
    for table in (own.get(verb, {}), own, _texts()["shared"]):
        text = table.get(name)
        if isinstance(text, str):
            return text
    return None
