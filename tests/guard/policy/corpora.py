"""The corpora of commands the policy is scored on.

Each line of a `.jsonl` file is a command with the decision it should get at least (dangerous) or exactly (harmless).
"""

import json
from dataclasses import dataclass
from pathlib import Path

from decklog.guard.policy import Decision, Policy, judge

HERE = Path(__file__).parent
DANGEROUS = (
    "dangerous",
    "dangerous_second",
    "dangerous_third",
    "dangerous_hidden",
    "dangerous_fourth",
    "dangerous_fifth",
    "dangerous_sixth",
    "dangerous_seventh",
    "dangerous_eighth",
    "dangerous_ninth",
    "dangerous_tenth",
    "dangerous_eleventh",
    "dangerous_twelfth",
)
HARMLESS = (
    "harmless",
    "harmless_second",
    "harmless_third",
    "harmless_daily",
    "harmless_fourth",
    "harmless_fifth",
    "harmless_sixth",
    "harmless_seventh",
    "harmless_eighth",
    "harmless_ninth",
    "harmless_tenth",
    "harmless_eleventh",
    "harmless_twelfth",
)


@dataclass(frozen=True)
class Case:
    """One command of a corpus."""

    command: str
    expect: Decision
    group: str


@dataclass(frozen=True)
class Score:
    """How a corpus fared: how many commands were held (not allowed), and which were misjudged."""

    name: str
    total: int
    held: int
    misjudged: tuple[str, ...]

    @property
    def held_percent(self) -> float:
        """Return the share of commands held."""
        return 100 * self.held / self.total

    @property
    def misjudged_percent(self) -> float:
        """Return the share of commands judged too leniently or too strictly."""
        return 100 * len(self.misjudged) / self.total


def cases(name: str) -> list[Case]:
    """Read one corpus."""
    lines = (HERE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Case(row["command"], Decision(row["expect"]), row["group"]) for row in rows]


def score(name: str, policy: Policy | None = None) -> Score:
    """Judge one corpus."""
    held, misjudged = 0, []
    for case in cases(name):
        decision = judge(case.command, policy).decision
        held += decision is not Decision.ALLOW
        too_strict = case.expect is Decision.ALLOW and decision is not Decision.ALLOW
        if decision < case.expect or too_strict:
            misjudged.append(f"{case.expect.value} but {decision.value}: {case.command}")
    return Score(name, len(cases(name)), held, tuple(misjudged))
