"""Documents, prompts and rules are fixed like code: a test that reads them is the proof."""

import pytest
from benchmarks.mending_faults import TRANSIENT

from tests.fixes.bench import Bench

READS = 'def test_agents_are_told():\n    assert "never force" in open("AGENTS.md").read()\n'
STANDS_BY = 'import os\n\n\ndef test_agents_are_told():\n    assert os.path.getsize("AGENTS.md") > 30\n'


@pytest.mark.slow
def test_document_is_proven_only_by_a_test_that_reads_it(bench: Bench) -> None:
    document = {"AGENTS.md": "Be brief.\nPush, and never force a push.\n"}
    proof = bench.prove(bench.commit("fix", {**document, "tests/test_told.py": READS}))
    assert (proof.refused, proof.touches, proof.tests) == (None, "read", ("test_told.py::test_agents_are_told",))
    assert bench.prove(bench.commit("fix", {**document, "tests/test_told.py": STANDS_BY})).refused == "marker"
    both = {**document, "shop/lists.py": TRANSIENT.replace("a + 1", "1 + a"), "tests/test_told.py": READS}
    assert bench.prove(bench.commit("fix", both)).refused == "marker", "beside a document there is code that it does not run"


@pytest.mark.slow
def test_change_of_rules_needs_a_person(bench: Bench) -> None:
    feedback = bench.file("The agents push by force, they must be told not to")
    bench.commit("by-hand", {"AGENTS.md": "Push, and never force a push.\n", "tests/test_told.py": READS})
    mend = bench.mend(feedback, branch="by-hand")
    assert (mend.fix_class, mend.state, mend.waits_for) == ("prompt", "proven", "gate"), mend.reason
    assert "the change has protected paths" in mend.reason


def test_without_a_check_or_a_test_nothing_is_proven(bench: Bench) -> None:
    changed = {"shop/lists.py": (bench.folder / "shop/lists.py").read_text() + "\n\nX = 1\n"}
    assert bench.prove(bench.commit("fix", changed)).refused == "no-test"
    assert bench.prove(bench.commit("fix", {"tests/test_new.py": "def test_new():\n    assert True\n"})).refused == "tests-only"
    bench.settle(lambda text: text.replace('report = "junit"', ""))
    assert bench.prove(bench.commit("fix", {**changed, "tests/test_new.py": READS})).refused == "no-check"
