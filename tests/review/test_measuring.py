"""Stage 2 measures which changed statements tests run and which mutants they notice; it stops nothing."""

import pytest

from decklog.review.proof.measuring import mutants
from decklog.review.result import StageResult
from tests.conductor.plans import CALC, TESTS
from tests.review.changes import SETTINGS, WATCHED, Desk

MEASURED = WATCHED.replace("measure_seconds = 0", "measure_seconds = 30")
STEPS = """

def steps(a, b):
    if a > b:
        return 0
    total = a + b
    return total * 2
"""
WEAK = "\n\ndef test_steps():\n    assert calc.steps(1, 1) == 4\n"


def functional(desk: Desk, files: dict[str, str], settings: str = MEASURED) -> StageResult:
    desk.settle(settings)
    change = desk.commit(files)
    return desk.gate(change).run_stage(2)


@pytest.mark.slow
def test_statements_that_no_test_runs_are_named_and_hold_nothing(desk: Desk) -> None:
    found = functional(desk, {"calc.py": CALC + STEPS, "tests/test_calc.py": TESTS + WEAK})
    first = (CALC + STEPS).splitlines().index("    if a > b:") + 1
    told = {(one.kind, one.line) for one in found.findings}
    assert (found.status, told) == ("pass", {("not-run", first + 1), ("measured", None)})
    assert found.findings[-1].text == "tests run 3 of 4 changed statements and notice 3 of 3 mutants"


@pytest.mark.slow
def test_small_changes_that_no_test_notices_are_named_and_hold_nothing(desk: Desk) -> None:
    tests = TESTS + "\n\ndef test_steps():\n    assert calc.steps(2, 1) == 0\n    assert calc.steps(1, 2) != 7\n"
    found = functional(desk, {"calc.py": CALC + STEPS, "tests/test_calc.py": tests})
    unnoticed = {one.text for one in found.findings if one.kind == "unnoticed"}
    assert found.status == "pass"
    assert {"no test notices when `a + b` is `a - b`", "no test notices when `total * 2` is `total // 2`"} <= unnoticed


@pytest.mark.slow
def test_what_can_not_be_measured_is_said_to_be_unproven_and_holds_nothing(desk: Desk) -> None:
    files = {"calc.py": CALC + STEPS, "tests/test_calc.py": TESTS + WEAK, "page.js": "export const one = 1;\n"}
    found = functional(desk, files, SETTINGS.replace("measure_seconds = 0", "measure_seconds = 30"))
    told = [one.text for one in found.findings if one.kind == "not-measured"]
    assert (found.status, len(told)) == ("pass", 2)
    assert told[0] == "unproven: which lines tests run of .js is unknown: only Python can be watched"
    assert told[1].startswith("unproven: the probe saw nothing of tests")


def test_small_changes_are_one_a_line_and_leave_texts_and_annotations_alone() -> None:
    source = 'x: "list[int]" = [1, 2]\ny = f"{x + 1}"\nz = not x or y == 3\nname = "a"\n'
    found = [(one.line, one.before, one.after) for one in mutants("a.py", source.encode(), {1, 2, 3, 4})]
    assert found == [(1, "1", "2"), (3, "not x or y == 3", "not x and y == 3")]
