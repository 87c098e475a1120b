"""The examples in the policy file: each dangerous one is held by its own rule, each harmless one is allowed."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from decklog.guard.policy import Decision, judge

FILE = Path(judge.__code__.co_filename).parent / "policy.toml"


def entries() -> list[dict[str, Any]]:
    tables = tomllib.loads(FILE.read_text(encoding="utf-8")).values()
    return [entry for table in tables if isinstance(table, list) for entry in table if "id" in entry]


ENTRIES = {entry["id"]: entry for entry in entries()}


@pytest.mark.parametrize("rule", ENTRIES)
def test_a_rule_holds_its_dangerous_examples_and_allows_its_harmless_ones(rule: str) -> None:
    for command in ENTRIES[rule].get("dangerous", ()):
        verdict = judge(command)
        assert (verdict.rule, verdict.decision is Decision.ALLOW) == (rule, False), command
    for command in ENTRIES[rule].get("harmless", ()):
        assert judge(command).is_allowed, command


def test_nearly_every_rule_has_a_dangerous_example() -> None:
    without = [rule for rule, entry in ENTRIES.items() if not entry.get("dangerous")]
    assert len(without) <= len(ENTRIES) // 12, without
