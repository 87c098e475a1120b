"""`[provenance]` of `decklog.toml`."""

import tomllib
from dataclasses import dataclass

from decklog.core.errors import Invalid

TABLE = "provenance"


@dataclass(frozen=True)
class ProvenanceSettings:
    """Whether edits of agents are captured."""

    capture: bool = True


def read_settings(content: bytes) -> ProvenanceSettings:
    """Parse `[provenance]` of a `decklog.toml`; raise Invalid for an unknown setting."""
    try:
        table = tomllib.loads(content.decode()).get(TABLE, {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise Invalid(f"decklog.toml can't be read: {problem}") from None
    if not isinstance(table, dict) or table.keys() - {"capture"} or not isinstance(table.get("capture", True), bool):
        raise Invalid("[provenance] has one setting, capture, which is true or false", field=TABLE)
    return ProvenanceSettings(**table)
