"""What runs for every change: the workflows call targets that exist, and `.ci/run` fails when a test does."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ON_VERBS, WAITING
from tests.db.processes import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_targets_that_exist(path: Path) -> None:
    called = re.findall(r"\bmake ([a-z-]+)", " ".join(step.get("run", "") for step in steps(path)))
    assert called
    assert set(called) <= TARGETS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_takes_actions_by_their_content(path: Path) -> None:
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}
    used = [step["uses"] for step in steps(path) if "uses" in step]
    assert [name for name in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []


def test_every_target_is_declared() -> None:
    declared = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    assert declared is not None
    assert set(declared[1].split()) == TARGETS


def test_before_a_commit_the_same_is_checked_as_by_make_lint() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    parts = re.findall(r"^lint: (.+)$", MAKEFILE, re.MULTILINE)[0].split()
    recipes = [MAKEFILE.partition(f"\n{part}: $(STAMP)\n")[2].partition("\n\n")[0] for part in parts]
    lines = [line.strip() for recipe in recipes for line in recipe.splitlines()]
    linted = [line.removeprefix("@$(BIN)/").partition(" src ")[0] for line in lines]
    assert [hook["entry"].removeprefix(".venv/bin/").replace(" --force-exclude", "") for hook in hooks] == linted


@pytest.mark.parametrize("failing", ["ruff", "lint-imports", "mypy", "pytest"])
def test_any_failure_fails_make_test(tmp_path: Path, failing: str) -> None:
    bin = tmp_path / ".venv/bin"
    bin.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("ruff", "lint-imports", "mypy", "pytest"):
        (bin / name).write_text(f"#!/bin/sh\necho {name} >>called\nexit {int(name == failing)}\n")
        (bin / name).chmod(0o755)
    for stamp in (".ready", ".installed"):
        (tmp_path / ".venv" / stamp).touch()
    done = subprocess.run(["make", "test"], cwd=tmp_path, env=of_no_make(), capture_output=True, timeout=60, check=False)
    assert done.returncode != 0
    called = (tmp_path / "called").read_text().split()
    assert failing in called
    if failing != "mypy":
        assert ("pytest" in called) is (failing == "pytest")


def test_the_tests_that_are_begun_first_are_there() -> None:
    assert [name for name in WAITING if not (ROOT / name).is_file()] == []


def test_ci_runs_what_make_test_leaves_out() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    full = text.partition("\ntest-full:")[2].partition("\n\n")[0]
    assert [name for name in ON_VERBS if name.removeprefix("tests/").rstrip("/") not in full] == []
    assert "--left-out" in text.partition("\ntest-slow:")[2].partition("\n\n")[0]
    assert "part test-slow --left-out" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_the_hooks_are_well_formed() -> None:
    import pre_commit.clientlib

    assert pre_commit.clientlib.load_config(ROOT / ".pre-commit-config.yaml")


ALL = ".PHONY: test test-browser test-agents\ntest:\n\t@echo tested\ntest-browser:\n\t@echo browsed\ntest-agents:\n\t@{agents}\n"


def of_no_make() -> dict[str, str]:
    """Return the environment without what `make` sets: these tests run under `make test`."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}


def ci(folder: Path, makefile: str, **programs: str) -> "subprocess.CompletedProcess[str]":
    """Run `.ci/run` with a makefile and fake installers."""
    (folder / ".ci").mkdir()
    (folder / "bin").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci")
    (folder / "Makefile").write_text(makefile)
    for name, text in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    variables = {**of_no_make(), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    words = ["bash", ".ci/run"]
    return subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, timeout=300, check=False)


def test_tests_that_are_not_there_are_not_asked_for(tmp_path: Path) -> None:
    done = ci(tmp_path, "test:\n\t@echo tested\n", npm="echo installed")
    assert (done.returncode, done.stdout) == (0, "tested\n")


def test_failed_installation_is_reported_and_the_rest_runs(tmp_path: Path) -> None:
    done = ci(tmp_path, ALL.format(agents="echo asked"), chromium="exit 0", npm="exit 1")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["tested", "test-agents: left out, what it needs could not be installed", "browsed"]


def test_a_test_that_fails_fails_the_whole(tmp_path: Path) -> None:
    done = ci(tmp_path, ALL.format(agents="false"), chromium="exit 0", npm="exit 0")
    assert done.returncode != 0


def test_failed_step_runs_twice_at_most(tmp_path: Path) -> None:
    for name, again, code in (("once", "echo passed", 0), ("twice", "false", 2)):
        (folder := tmp_path / name).mkdir()
        done = ci(folder, f"test:\n\t@false\nlint:\n\t@echo linted\ntest-failed:\n\t@{again}\n")
        assert done.returncode == code
        assert done.stdout.splitlines()[:2] == ["== test: the tests that failed, again, one by one", "linted"]
