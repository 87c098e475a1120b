from typing import Any

import pytest

from decklog import CheckVerdict, Decklog, Invalid, ManualClock, NotFound

GIVEN: dict[str, Any] = {"tree": "t1", "definition": "d1", "environment": "e1"}


def said(log: Decklog, run_id: str, outcome: Any, **given: Any) -> CheckVerdict:
    return log.verdicts.record(run_id, "tests", outcome, **{**GIVEN, **given})


def test_a_verdict_counts_for_its_tree_its_definition_and_its_environment_alone(log: Decklog, run_id: str) -> None:
    first = said(log, run_id, "pass", exit_code=0, duration_ms=12, findings=[{"id": "a"}])
    assert log.verdicts.known(run_id, "t1", definition="d1", environment="e1") == first
    assert (first.is_pass, first.findings) == (True, [{"id": "a"}])
    for name in GIVEN:
        asked = {**GIVEN, name: "other"}
        assert log.verdicts.known(run_id, asked.pop("tree"), **asked) is None


def test_the_newest_verdict_counts(log: Decklog, run_id: str, clock: ManualClock) -> None:
    for outcome in ("fail", "pass", "error"):
        said(log, run_id, outcome)
        clock.advance(seconds=1)
    found = log.verdicts.known(run_id, "t1", definition="d1", environment="e1")
    assert found is not None
    assert found.outcome == "error"
    assert [one.outcome for one in log.verdicts.find(run_id, tree="t1")] == ["error", "pass", "fail"]


@pytest.mark.parametrize("outcome", ["fail", "error", "flaky", "not-run"])
def test_only_a_pass_makes_a_tree_green(log: Decklog, run_id: str, outcome: str) -> None:
    said(log, run_id, "pass")
    said(log, run_id, outcome, definition="d2")
    assert log.verdicts.missing(run_id, "t1", definitions=["d1"], environment="e1") == []
    assert log.verdicts.missing(run_id, "t1", definitions=["d1", "d2", "d3"], environment="e1") == ["d2", "d3"]


def test_a_verdict_needs_what_it_is_about(log: Decklog, run_id: str) -> None:
    with pytest.raises(Invalid, match="tree can't be blank"):
        said(log, run_id, "pass", tree=" ")
    with pytest.raises(Invalid):
        said(log, run_id, "maybe")
    with pytest.raises(NotFound):
        log.verdicts.get("verdict_none")
