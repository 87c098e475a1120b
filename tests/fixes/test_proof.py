"""A test proves a fix if it fails without it for the claimed reason, passes with it, runs it, and is stable."""

import os
from pathlib import Path

import pytest
from benchmarks.mending_faults import FAULTS, KINDS, files

from tests.fixes.bench import Bench

FULL = "DECKLOG_TEST_FULL" in os.environ
# One fault for each kind of test here; `make test-full` tries them all.
CASES = [(number, kind) for number, kind in enumerate(KINDS)] if not FULL else [(n, k) for n in range(40) for k in KINDS]


@pytest.mark.slow
def test_only_a_true_test_proves_a_fix(bench: Bench, tmp_path: Path) -> None:
    wrong = {}
    for number, kind in CASES:
        fault = FAULTS[number]
        change = bench.commit("fix", files(fault, kind, tmp_path / f"{fault.name}-{kind}"))
        proof = bench.prove(change)
        expected = None if kind == "true" else kind
        if proof.refused != expected:
            wrong[fault.name, kind] = (proof.refused, proof.text)
    assert wrong == {}


@pytest.mark.slow
def test_the_same_interpreter_runs_the_test_without_the_fix_and_with_it(bench: Bench, tmp_path: Path) -> None:
    record = tmp_path / "interpreters"
    fix = files(FAULTS[0], "true", tmp_path / "c")
    test = next(path for path in fix if "test" in path)
    noting = f"import sys\n\nwith open({str(record)!r}, 'a') as file:\n    file.write(sys.executable + '\\n')\n"
    proof = bench.prove(bench.commit("fix", {**fix, test: noting + str(fix[test])}))
    ran = record.read_text().splitlines()
    assert (proof.refused, len(ran) >= 6, len(set(ran))) == (None, True, 1), proof.text
