"""Test runs are deterministic; `make explore` searches anew, and its finds can be replayed."""

import ast
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.db.processes import ROOT, environment
from tests.searches import EVERY_TIME, EXPLORE

RARELY_WRONG = """
from hypothesis import given
from hypothesis import strategies as st

@given(st.integers(0, 2**32))
def test_a_claim_that_is_false(number):
    assert number < 1000, f"the number is {number}"
"""
RIGHT = RARELY_WRONG.replace("number < 1000", "number >= 0")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one test file, with our ways of searching."""
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "conftest.py").write_text("import tests.searches\n")
    return tmp_path


def explore(project: Path, text: str) -> "subprocess.CompletedProcess[str]":
    (project / "test_claim.py").write_text(text)
    return run(project, "-m", "tests.explore", "--minutes", "0.001", "--processes", "0", ".")


def run(project: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    # To look for plugins, and to import those that nothing here uses, is half of what such a process takes.
    variables = environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_ADDOPTS="-p xdist.plugin -p _hypothesis_pytestplugin")
    return subprocess.run(
        [sys.executable, *words], cwd=project, env=variables, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.slow
def test_a_find_is_shown_with_the_command_that_finds_it_again(project: Path) -> None:
    found = explore(project, RARELY_WRONG)
    assert found.returncode == 1, found.stdout + found.stderr
    command = shlex.split(found.stdout.rpartition("Replay it with:\n")[2])
    assert command[-1] == "test_claim.py::test_a_claim_that_is_false"
    again = run(project, *command[1:])
    assert again.returncode == 1
    assert "the number is 1000" in again.stdout


@pytest.mark.slow
def test_search_without_a_find_reports_its_rounds(project: Path) -> None:
    done = explore(project, RIGHT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "Rounds: 1. Nothing found."


@pytest.mark.slow
def test_a_test_run_tries_the_same_examples_as_the_last(project: Path) -> None:
    (project / "test_claim.py").write_text(RIGHT.replace("    assert", "    print(number)\n    assert"))
    first, second = (run(project, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider") for _ in range(2))
    numbers = [line for line in first.stdout.splitlines() if line.isdigit()]
    assert len(numbers) >= 20
    assert numbers == [line for line in second.stdout.splitlines() if line.isdigit()]


def test_this_run_is_one_of_the_two_kinds() -> None:
    kinds = {EVERY_TIME: True, EXPLORE: False}
    assert settings().derandomize in kinds.values()
    assert {name: settings.get_profile(name).derandomize for name in kinds} == kinds


def has_no_seed(node: ast.AST) -> bool:
    """Tell whether a use of chance leaves it open what comes."""
    if isinstance(node, ast.Call):
        return not node.args and (is_of_random(node.func, "Random") or getattr(node.func, "id", None) == "Random")
    return is_of_random(node) and not is_of_random(node, "Random")


def is_of_random(node: ast.AST, name: str | None = None) -> bool:
    if not isinstance(node, ast.Attribute) or getattr(node.value, "id", None) != "random":
        return False
    return name is None or node.attr == name


def left_to_chance(text: str) -> list[str]:
    return [f"{node.lineno}: {ast.unparse(node)}" for node in ast.walk(ast.parse(text)) if has_no_seed(node)]


@pytest.mark.parametrize("text", ["random.Random()", "Random()", "random.choice([1])", "random.SystemRandom()"])
def test_chance_without_a_seed_is_seen(text: str) -> None:
    assert left_to_chance(text)
    assert not left_to_chance("random.Random(3)\ndice.choice([1])")


@pytest.mark.slow
def test_no_test_leaves_anything_to_chance() -> None:
    files = [file for file in sorted((ROOT / "tests").rglob("*.py")) if file.name != "explore.py"]
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}
    # Parsing all files takes a second; those that use chance contain the word.
    found = {file: left_to_chance(text) for file, text in texts.items() if "random" in text.lower()}
    assert len(found) > 20
    assert {file: places for file, places in found.items() if places} == {}
