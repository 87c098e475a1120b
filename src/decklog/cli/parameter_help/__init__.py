"""Descriptions of the parameters of store verbs and shortcuts, read from `texts.toml`."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

SHORT = "short"


@cache
def _texts() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files(__name__) / "texts.toml").read_text(encoding="utf-8"))


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
