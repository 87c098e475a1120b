"""Feedback and its mending on the command line."""

import json
from pathlib import Path

import pytest
from benchmarks.mending_faults import FAULTS, files

from decklog import Decklog
from tests.cli.conftest import Program
from tests.conductor.repositories import git
from tests.fixes.bench import Bench

FAULT = FAULTS[1]


@pytest.mark.slow
def test_feedback_is_filed_and_fixed_by_a_branch_with_commands_at_every_wait(
    decklog: Program, bench: Bench, sqlite_target: str, tmp_path: Path
) -> None:
    bench.settle(lambda text: text.replace('mend = "mine"', "").replace("[review]", "[review]\nmodel_passes = []"))
    bench.commit("by-hand", files(FAULT, "true", tmp_path / "c"))
    bench.commit("empty-test", files(FAULT, "misdirected", tmp_path / "c"))
    bench.log.close()

    def run(*words: str, code: int = 0) -> str:
        done = decklog(*words, cwd=bench.folder, DECKLOG_DB=sqlite_target, XDG_STATE_HOME=str(tmp_path / "state"))
        assert done.code == code, (words, done)
        return done.out

    filed = json.loads(run("feedback", FAULT.said, "--severity", "high", "--on", "https://example.test/1", "--json"))["data"]
    assert (filed["severity"], filed["state"], filed["context_url"]) == ("high", "pending", "https://example.test/1")
    assert f"decklog mend {filed['id']}" in run("mend")
    assert "waits for model" in run("mend", filed["id"], code=7)
    assert f"decklog mend drop {filed['id']} --reason WHY" in run("mend")
    assert "not proven, misdirected" in run("mend", filed["id"], "--branch", "empty-test", code=6)
    # Pass 7 asks a model in any case; there is none, so a person has to approve.
    waiting = run("mend", filed["id"], "--branch", "by-hand", code=6)
    assert "is proven" in waiting
    assert f"decklog review ask {filed['id']}" in waiting
    approval = run("review", "ask", filed["id"]).strip()
    answer = f"decklog approvals decide {approval} granted --by NAME --rationale WHY"
    for output in (run("mend"), run("mend", filed["id"], code=7)):
        assert answer in output
        assert "review ask" not in output
    assert answer in run("approvals", "show", approval)
    assert approval in run("now", code=7)
    run("approvals", "decide", approval, "granted", "--by", "ana", "--rationale", "I have read it")
    assert "is published" in run("mend", "--all", code=7)
    assert f"decklog mend {filed['id']}\n" in run("now", code=7)
    git(bench.folder, "merge", "-q", "--no-edit", f"mend/{filed['id']}")
    assert "is closed" in run("mend", filed["id"])
    assert "Nothing to fix" in run("mend")


def test_unknown_verb_is_not_taken_for_feedback(decklog: Program, sqlite_target: str) -> None:
    refused = decklog("--db", sqlite_target, "feedback", "broken")
    assert (refused.code, 'decklog feedback "…"' in refused.err) == (2, True)
    with Decklog.open(sqlite_target) as log:
        assert list(log.feedback.find()) == []
