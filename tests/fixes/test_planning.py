"""Before a fix: the input of triage, where to look, its size, and what is no fix."""

from pathlib import Path
from typing import Any

import pytest
from benchmarks.mending_faults import FAULTS

from decklog import Decklog
from decklog.models.composer import Prompt
from tests.conductor.repositories import git, write
from tests.conftest import on_both
from tests.fixes.bench import TRIAGE, Bench, answering

# Such a plan waits for a yes: what was found and planned can be looked at.
LARGE = {**TRIAGE, "fix_class": "architectural"}


def triage_naming(*paths: str, **more: Any) -> dict[str, Any]:
    return {**TRIAGE, "candidate_files": [{"path": path, "why": "it is there"} for path in paths], **more}


def without_agents(bench: Bench) -> None:
    bench.settle(lambda text: text.partition("[agents.fake]")[0] + "[models.mine]" + text.partition("[models.mine]")[2])


def test_named_lines_are_used_exactly_and_missing_files_skipped(bench: Bench) -> None:
    bench.script = answering(mend_triage=triage_naming("shop/lists.py:3-5", "shop/gone.py", fix_class="architectural"))
    mend = bench.mend(bench.file("The second function is wrong"))
    places: list[Any] = mend.places
    assert [(one["path"], one["first"], one["last"]) for one in places] == [("shop/lists.py", 3, 5)]
    assert mend.plan["missing"] == ["shop/gone.py"]
    assert "shop/gone.py: named by triage, but missing" in next(iter(bench.log.inbox.find())).body


def test_at_most_twenty_places_are_searched_by_words(bench: Bench) -> None:
    bench.script = answering(mend_triage=LARGE)
    mend = bench.mend(bench.file("What they return is nothing_wrong"))
    places: list[Any] = mend.places
    assert len(places) == 20
    assert all("return" in one["text"] or "nothing_wrong" in one["text"] for one in places)


def test_triage_gets_similar_earlier_failures(bench: Bench) -> None:
    bench.log.memory.remember("failure_patterns", "clamp_low mixed up min and max", source_kind="feedback")
    prompts: list[str] = []
    good = answering(mend_triage=LARGE)

    def script(site: str, prompt: Prompt) -> Any:
        prompts.extend(part.text for part in prompt.parts if site == "mend.triage")
        return good(site, prompt)

    bench.script = script
    bench.mend(bench.file(FAULTS[0].said))
    assert any("clamp_low mixed up min and max" in text for text in prompts)


def test_a_plan_is_large_by_its_lines_or_when_triage_names_two_components(bench: Bench) -> None:
    write(bench.folder, {"web/page.py": "PAGE = 1\n"})
    git(bench.folder, "add", "-A")
    git(bench.folder, "commit", "-q", "-m", "A page")
    without_agents(bench)
    bench.settle(lambda text: f"{text}\n[mend]\nlarge = 20\n")
    bench.script = answering(mend_triage=triage_naming("shop/lists.py:1-30"))
    assert "about 35 lines, limit 20" in str(bench.mend(bench.file("Lists are slow")).reason)
    bench.script = answering(mend_triage=triage_naming("shop/lists.py:1", "web/page.py:1"))
    assert bench.mend(bench.file("Pages of lists are slow")).reason == (
        "the plan is large: it is in two components, shop and web"
    )
    bench.script = answering(mend_triage=triage_naming("shop/lists.py:1", "shop/words.py:1"))
    one_package = bench.mend(bench.file("Words of lists are slow"))
    assert (one_package.plan["large"], one_package.state, one_package.waits_for) == ("", "fixing", "fix")


def test_a_branch_that_changes_nothing_is_no_fix(bench: Bench) -> None:
    mend = bench.mend(bench.file(FAULTS[0].said), branch="main", fix_class="tool")
    assert (mend.state, mend.waits_for, mend.reason) == ("fixing", "fix", "main has nothing beyond the base")


def test_plan_review_message_has_all_parts_of_the_plan(bench: Bench) -> None:
    triage = triage_naming("shop/lists.py:3-5", fix_class="architectural", root_cause="it costs $approval")
    bench.script = answering(mend_triage=triage)
    mend = bench.mend(bench.file("The second function is wrong, see $task"))
    body = next(iter(bench.log.inbox.find())).body
    parts = ("Success criterion:", "Approach:", "Files:", "Alternatives:", "Regression test:", "Cost:", "Risks:", "To approve:")
    assert [part for part in parts if part not in body] == []
    assert "- shop/lists.py: about 10 lines" in body
    assert f"decklog approvals decide {mend.plan['approval']} granted" in body
    # Placeholders are filled in once: those in a value stay.
    assert "wrong, see $task" in body
    assert "Cause: it costs $approval" in body


def test_repository_can_have_its_own_plan_review_message(bench: Bench) -> None:
    write(bench.folder, {"prompts/mend.plan.md": "Please look: $task ($unknown)\n"})
    git(bench.folder, "add", "-A")
    git(bench.folder, "commit", "-q", "-m", "A message")
    bench.settle(lambda text: f'{text}\n[prompt]\nfolder = "prompts"\n')
    bench.script = answering(mend_triage=LARGE)
    bench.mend(bench.file("Lists are slow"))
    assert next(iter(bench.log.inbox.find())).body == "Please look: Lists are slow ($unknown)"


@pytest.mark.slow
@on_both
def test_question_of_a_large_plan_is_answered_by_any_decision(target: str, faulty: Path) -> None:
    with Decklog.open(target) as log:
        bench = Bench(log, faulty, answering(mend_triage=LARGE))
        without_agents(bench)
        fb = [bench.file(fault.said) for fault in FAULTS[:4]]
        granted, denied, dropped, by_hand = [bench.mend(one) for one in fb]
        assert [one.kind for one in log.overview.waiting()] == ["approval"] * 4, "each matter is one"
        assert {one.cause["rule"] for one in log.overview.waiting()} == {"large-change"}
        log.approvals.decide(str(granted.plan["approval"]), "granted", by="ana")
        log.approvals.decide(str(denied.plan["approval"]), "denied", by="ana", rationale="not now")
        # Nobody has to call the loop for that.
        assert [one.state for one in log.inbox.find()].count("answered") == 2
        bench.mending.drop(dropped.id, "we live with it", by="bo")
        bench.mend(fb[3], branch="main")
        assert [one.id for one in log.overview.waiting() if one.kind in ("approval", "question")] == []
        answers = {one.run_id: one.answer for one in log.inbox.find()}
        assert [answers[one.run_id] for one in (granted, denied, dropped, by_hand)] == [
            "granted",
            "denied: not now",
            "withdrawn: we live with it",
            "withdrawn: a person fixes it: main",
        ]
        assert (bench.mend(fb[0]).state, bench.mend(fb[1]).state) == ("fixing", "dropped")
