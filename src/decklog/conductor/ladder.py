"""The ladder of escalation: the same trouble again goes to the next agent, then to a person, each rung once."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from decklog.values import to_json

# So often an agent may end in the same trouble: the second time it had been told.
REPEATS = 2
# What makes two findings the same; a check's output differs with every run.
_SAME = ("check", "kind", "tests", "paths")
# What else is true of every round of a piece: how often a person let it go on, and who is to work on it.
RACER = "racer"
_KEPT = ("more_rounds", "yeses", "wanted_agent", "wanted_model", RACER)
START: Mapping[str, object] = {"rung": 0, "trouble": "", "repeats": 0}


def climb(inputs: Mapping[str, object], trouble: str, rungs: int, *, at_once: bool = False) -> dict[str, object] | None:
    """Say where a piece stands on the ladder after this trouble, as inputs of its next attempt; None above the last rung.

    With `at_once` the next agent is wished for: it comes without a second try, if there is one.
    """
    repeats = int(str(inputs.get("repeats", 0))) + 1 if trouble == inputs.get("trouble") else 1
    rung = rung_of(inputs) + 1
    if repeats < REPEATS and not (at_once and rung < rungs):
        return {"trouble": trouble, "repeats": repeats}
    return {**START, "rung": rung} if rung < rungs else None


def rung_of(inputs: Mapping[str, object]) -> int:
    """Say on which rung a piece stands."""
    return int(str(inputs.get("rung", 0)))


def trouble_of(findings: Sequence[Mapping[str, Any]]) -> str:
    """Name what was found, so that the same again has the same name."""
    kept = [{name: finding.get(name) for name in _SAME} for finding in findings]
    return hashlib.sha256(to_json(kept).encode()).hexdigest()[:16]


def standing(inputs: Mapping[str, object]) -> dict[str, object]:
    """Take what says where a piece stands out of its inputs, for the next round."""
    return {name: inputs[name] for name in (*START, *_KEPT) if name in inputs}
