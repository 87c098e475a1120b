"""Tests are not passed by changing them, nor what runs them: nothing of that lands without a person's yes."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor.checks import running
from decklog.conductor.checks.examination import Examination, Examiner
from decklog.conductor.context import RunContext
from decklog.conductor.settings import Configuration
from tests.conductor.plans import CALC, TESTS, Work, work_item
from tests.conductor.repositories import copied, git, write

# A change that the tests of the base find red.
WRONG = CALC.replace("return a + b", "return a - b")
SKIPPED = TESTS.replace("():\n", "():\n    raise Skip\n")
FORGED = """
import os, sys
with open(sys.argv[1], "w") as file:
    file.write('<testsuite><testcase classname="test_calc.py" name="test_add"/></testsuite>')
os._exit(0)
"""
# What is written, what is deleted, and what comes of it.
WAYS: dict[str, tuple[dict[str, str], list[str], str]] = {
    "delete the test file": ({"calc.py": WRONG}, ["tests/test_calc.py"], "not green"),
    "empty the test file": ({"calc.py": WRONG, "tests/test_calc.py": ""}, [], "not green"),
    "delete a test": ({"calc.py": CALC, "tests/test_calc.py": TESTS.partition("\n\n\ndef test_double")[0] + "\n"}, [], "red"),
    "rename a test": ({"tests/test_calc.py": TESTS.replace("test_double", "check_double")}, [], "red"),
    "rename the file": ({"calc.py": WRONG, "tests/other_calc.py": TESTS}, ["tests/test_calc.py"], "not green"),
    "skip": ({"calc.py": WRONG, "tests/test_calc.py": SKIPPED}, [], "red"),
    "skip the whole file": ({"calc.py": WRONG, "tests/test_calc.py": "raise SystemExit(0)\n" + TESTS}, [], "red"),
    "edit an assertion": (
        {"calc.py": WRONG, "tests/test_calc.py": TESTS.replace("== 5", "== -1").replace("== 8", "== 0")},
        [],
        "held",
    ),
    "loosen an assertion": (
        {"calc.py": WRONG, "tests/test_calc.py": TESTS.replace("== 5", "< 99").replace("== 8", "< 99")},
        [],
        "held",
    ),
    "catch the assertion": ({"calc.py": WRONG, "tests/test_calc.py": TESTS.replace("    assert", "    True or")}, [], "held"),
    "mock the subject": (
        {
            "calc.py": WRONG,
            "tests/test_calc.py": TESTS.replace(
                "import calc\n", "class calc:\n    add = lambda a, b: a + b\n    double = lambda a: 2 * a\n"
            ),
        },
        [],
        "held",
    ),
    "redefine in the test": (
        {"calc.py": WRONG, "tests/test_calc.py": TESTS.replace("import calc\n", "import calc\ncalc.add = lambda a, b: a + b\n")},
        [],
        "held",
    ),
    "conftest": ({"calc.py": WRONG, "conftest.py": "import calc\ncalc.add = lambda a, b: a + b\n"}, [], "held"),
    "choose tests by options": ({"calc.py": WRONG, "setup.cfg": "test_none"}, [], "red"),
    "options that change nothing": ({"setup.cfg": ""}, [], "held"),
    "pytest.ini": ({"pytest.ini": "[pytest]\naddopts = -k add\n"}, [], "held"),
    "shadow the runner": ({"pytest.py": "print('ok')\n"}, [], "held"),
    "shadow a library": ({"sitecustomize.py": "1\n"}, [], "held"),
    "exit early": ({"calc.py": "import os\nos._exit(0)\n"}, [], "red"),
    "forge the report": ({"calc.py": FORGED}, [], "red"),
    "forge the whole report": (
        {"calc.py": FORGED.replace("</testsuite>", '<testcase classname="test_calc.py" name="test_double"/></testsuite>')},
        [],
        "held",
    ),
    "sleep past the time": ({"calc.py": "import time\ntime.sleep(60)\n"}, [], "red"),
    "behave while tested": (
        {
            "calc.py": CALC.replace("return a + b", "return a + b if 'mini_runner' in sys.argv[0] else a - b").replace(
                "def add", "import sys\n\n\ndef add", 1
            )
        },
        [],
        "held",
    ),
    "behind a form feed": ({"calc.py": f"{CALC}\nimport sys\n\x0csys.argv\n"}, [], "held"),
    "as a header of a patch": ({"calc.py": f"{CALC}\nimport sys\n++ len(sys.argv)\n"}, [], "held"),
    "edit the settings": ({"decklog.toml": "[run]\n"}, [], "held"),
    "edit CI": ({".github/workflows/ci.yml": "on: push\n"}, [], "held"),
    "agent settings": ({".claude/settings.json": "{}\n"}, [], "held"),
    "git attributes": ({".gitattributes": "* merge=ours\n"}, [], "held"),
}
HONEST: dict[str, tuple[dict[str, str], list[str]]] = {
    "new code": ({"calc.py": CALC + "\n\ndef half(a):\n    return a / 2\n"}, []),
    "new test file": ({"tests/test_more.py": "import calc\n\n\ndef test_more():\n    assert calc.add(0, 0) == 0\n"}, []),
    "test added to a file": ({"tests/test_calc.py": TESTS + "\n\ndef test_more():\n    assert calc.add(0, 0) == 0\n"}, []),
    "test made stricter": ({"tests/test_calc.py": TESTS.replace("== 5", "== 5 and calc.add(1, 1) == 2")}, []),
    "test tidied": ({"tests/test_calc.py": TESTS.replace("import calc\n", "import calc as it\n").replace("calc.", "it.")}, []),
    "rewritten": ({"calc.py": CALC.replace("return add(a, a)", "return 2 * a")}, []),
    "other files": ({"docs/use.md": "Use it.\n"}, ["notes.txt"]),
}


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory, first_checked: Path, empty_log_file: Path) -> Any:
    """One run whose base is green, for all ways: what each examines is another tree."""
    home = tmp_path_factory.mktemp("gaming")
    copied(first_checked, home)
    with Decklog.open(shutil.copy(empty_log_file, home / "decklog.db")) as log:
        yield Work(log, home / "repository", work_item("it")).context()


def impatient(context: RunContext) -> Configuration:
    """Give the settings of a run with checks that have half a second."""
    checks = tuple(dataclasses.replace(check, minutes=0.5 / 60) for check in context.configuration.checks)
    return dataclasses.replace(context.configuration, checks=checks)


def examine(
    context: RunContext, name: str, files: dict[str, str], deleted: list[str], settings: Configuration | None = None
) -> Examination:
    """Examine a change of these files, made on the base."""
    folder = context.repository.folder
    git(folder, "checkout", "-q", "--detach", "main")
    write(folder, files)
    for path in deleted:
        (folder / path).unlink()
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", name)
    base, tip = (git(folder, "rev-parse", commit) for commit in ("main", "HEAD"))
    examiner = Examiner(
        context.log, context.run_id, settings or context.configuration, context.runner(lambda: None), task_id=None
    )
    return examiner.examine(base, tip)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_no_way_to_game_the_tests_lands_without_a_person(examined: RunContext, way: str) -> None:
    files, deleted, expected = WAYS[way]
    found = examine(examined, way, files, deleted, impatient(examined) if way == "sleep past the time" else None)
    assert not found.is_green
    assert found.outcome == expected or expected == "not green", found.findings


@pytest.mark.slow
@pytest.mark.parametrize("way", HONEST)
def test_an_honest_change_is_not_held_up(examined: RunContext, way: str) -> None:
    files, deleted = HONEST[way]
    found = examine(examined, way, files, deleted)
    assert found.is_green, found.findings


def test_a_flaky_test_does_not_pass(examined: RunContext, tmp_path: Path) -> None:
    counter = tmp_path / "tried"
    text = (
        "import os\n\n\ndef test_sometimes():\n"
        f"    was = os.path.exists({str(counter)!r})\n    open({str(counter)!r}, 'w').close()\n    assert was\n"
    )
    found = examine(examined, "flaky", {"tests/test_flaky.py": text}, [])
    assert (found.outcome, found.findings[0]["kind"]) == ("red", "flaky")


def test_a_check_that_is_not_there_is_an_error_and_stops_the_run(examined: RunContext) -> None:
    check = dataclasses.replace(examined.configuration.checks[0], command=("no-such-program", "{report}"))
    settings = dataclasses.replace(examined.configuration, checks=(check,))
    examiner = Examiner(examined.log, examined.run_id, settings, examined.runner(lambda: None), task_id=None)
    (finding,) = examiner.base_findings(git(examined.repository.folder, "rev-parse", "main"))
    assert "no program" in finding["text"]


REPORTS = {
    "not XML": "no report",
    "no test": "<testsuite/>",
    "empty": "",
    "entities": '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><testsuite>&undefined;</testsuite>',
}


@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_that_says_nothing_is_none(tmp_path: Path, kind: str) -> None:
    (tmp_path / "report.xml").write_text(REPORTS[kind])
    assert running.read_junit(tmp_path / "report.xml") is None
    assert running.read_junit(tmp_path / "missing.xml") is None


def test_a_census_names_what_is_gone_or_skipped() -> None:
    base = {"a": "passed", "b": "passed", "c": "skipped", "d": "passed", "e": "failed"}
    assert running.census(base, {"a": "passed", "b": "skipped", "d": "failed"}) == ["b"]
    assert running.census(base, {"a": "passed"}) == ["b", "d"]
