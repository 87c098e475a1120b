"""A run that failed: whose fault it was, a pause that loses nothing, and a run that goes on when its cause is mended."""

import json
from pathlib import Path

import pytest
from benchmarks.mending_faults import FAULTS, files

from decklog import Conflict, Invalid, NotFound
from decklog.fixes.failed_runs import take_up
from tests.fixes.bench import Bench, answering

FAULT = FAULTS[5]


def failed(bench: Bench, why: str) -> str:
    run = bench.log.runs.start("Make it better")
    bench.log.tasks.add(run.id, "Do it", task_id=f"{run.id}.a", objective="As it is written", max_attempts=1)
    claim = bench.log.tasks.claim(run.id, worker="w")
    assert claim is not None
    claim.block("stuck", why)
    return run.id


def test_failure_is_classified_by_its_message_or_not_at_all(bench: Bench) -> None:
    trace = f'Traceback:\n  File "{bench.folder}/shop/lists.py", line 3, in x\nKeyError: 1'
    cases = {"Error 429: rate limit reached": "outside", "red in round 2, tests fail": "task", trace: "own-code"}
    for why, whose in cases.items():
        found = take_up(bench.mending, failed(bench, why))
        assert (found.whose, bool(found.mend_id)) == (whose, whose == "own-code"), found
        assert bench.log.runs.get(found.run_id).status == "paused"
    assert bench.called_sites == []
    sure = {"kind": "own-code", "evidence": "Its prompt says so.", "confidence": 49}
    bench.script = answering(mend_failure=json.dumps(sure))
    run_id = failed(bench, "It did something odd")
    assert take_up(bench.mending, run_id).whose == "outside"
    assert bench.called_sites == ["mend.failure"]
    with pytest.raises(Conflict, match="has no failed task"):
        take_up(bench.mending, bench.log.runs.start("Fine").id)


def test_unknown_cause_changes_nothing_until_a_person_decides(bench: Bench) -> None:
    run_id = failed(bench, "It did something odd")
    bench.script = answering(mend_failure="I can not say")
    before = bench.log.runs.get(run_id)
    found = take_up(bench.mending, run_id)
    assert (found.whose, found.confidence, found.snapshots, found.mend_id) == ("unknown", 0, (), None)
    assert f"decklog mend --run {run_id} --whose task|own-code|outside" in found.next
    assert bench.log.runs.get(run_id) == before
    decided = take_up(bench.mending, run_id, "task")
    assert (decided.whose, decided.confidence, bench.log.runs.get(run_id).status) == ("task", 100, "paused")
    assert take_up(bench.mending, run_id, "own-code").mend_id is not None
    with pytest.raises(Invalid, match="'the moon' is not a kind of cause"):
        take_up(bench.mending, run_id, "the moon")
    with pytest.raises(NotFound, match="no run nosuch") as missing:
        take_up(bench.mending, "nosuch")
    assert "Start it" not in str(missing.value.hint)


@pytest.mark.slow
def test_run_is_resumed_after_the_agent_is_fixed(bench: Bench, tmp_path: Path) -> None:
    bench.script = answering(mend_failure=json.dumps({"kind": "own-code", "evidence": "The average is wrong.", "confidence": 80}))
    run_id = failed(bench, "It went on with a wrong number")
    found = take_up(bench.mending, run_id)
    assert (found.whose, found.snapshots) == ("own-code", (f"{run_id}.a",))
    snapshot = bench.log.states.get_snapshot(run_id, f"{run_id}.a").document
    assert (snapshot["original_prompt"], snapshot["state_at_pause"]) == ("As it is written", "blocked")
    assert take_up(bench.mending, run_id).mend_id == found.mend_id, "the same failure is mended once"
    bench.commit("by-hand", files(FAULT, "true", tmp_path / "c"))
    mend = bench.mend(str(found.mend_id), branch="by-hand")
    with pytest.raises(Conflict, match="belongs to mend"):
        take_up(bench.mending, mend.run_id)
    bench.merge(f"mend/{mend.feedback_id}")
    assert bench.mend(mend.id).state == "closed"
    assert bench.log.runs.get(run_id).status == "active"
