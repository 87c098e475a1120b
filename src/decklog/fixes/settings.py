"""`[mend]` of `decklog.toml`, read from the commit that a fix starts from, and never from the fix."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from decklog.conductor.settings import load
from decklog.core.errors import Invalid

WAYS = ("branch", "pr", "patch")


@dataclass(frozen=True, kw_only=True)
class MendSettings:
    """How feedback is mended. `publish` says what becomes of a fix that the gate let through: nothing leaves the machine unless
    it is `pr`. `rounds` is how often an agent is told what was wrong with its fix; more changed lines than `large` need a yes.
    """

    publish: str = "branch"
    remote: str = "origin"
    rounds: int = 2
    large: int = 200


def read(content: bytes | None) -> MendSettings:
    """Read the settings of a commit; refuse what is not known, naming it."""
    table: Mapping[str, Any] = load(content or b"").get("mend", {})
    known = [one.name for one in fields(MendSettings)]
    for key in table:
        if key not in known:
            raise Invalid(f"[mend] has no {key!r}", hint=f"There are {', '.join(known)}.", field=key)
    settings = MendSettings(**table)
    if settings.publish not in WAYS:
        raise Invalid(f"publish is {settings.publish!r}", hint=f"Use one of {', '.join(WAYS)}.", field="publish")
    for name in ("rounds", "large"):
        if type(getattr(settings, name)) is not int or getattr(settings, name) < 1:
            raise Invalid(f"{name} is {getattr(settings, name)!r}; it is a whole number from 1 on", field=name)
    return settings
