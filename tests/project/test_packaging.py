"""Metadata of the project: version, extras, lock files and set-up."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from decklog import __version__
from tests.db.processes import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
# For those who work on Decklog, not for those who work with it.
OURS = {"dev", "bench", "browser", "editor", "site"}
# Kits that people build agents with, by what a program imports: too large to come with everything, and not there in most tests.
KITS = {"openai-agents": "agents", "claude-agent-sdk": "claude_agent_sdk"}
FOR_USERS = sorted(set(EXTRAS) - OURS - {"all", *KITS})
LOCK = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
SMALL_LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PINS = {canonicalize_name(name): Version(version) for name, version in re.findall(r"^([\w.-]+)==(\S+)", LOCK, re.MULTILINE)}


def required(extra: str) -> list[Requirement]:
    """Return the requirements of an extra, with those of the extras it names."""
    found = []
    for requirement in map(Requirement, EXTRAS[extra]):
        if requirement.name == "decklog":
            found += [inner for name in sorted(requirement.extras) for inner in required(name)]
        else:
            found.append(requirement)
    return found


def test_the_version_has_one_source() -> None:
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    assert PROJECT["dynamic"] == ["version"]
    assert ProjectMetadata(str(ROOT), PluginManager()).version == __version__


def test_extra_all_names_every_extra_for_users() -> None:
    assert [Requirement(text).extras for text in EXTRAS["all"]] == [set(FOR_USERS)]


@pytest.mark.parametrize("extra", FOR_USERS)
def test_an_extra_has_code_behind_it(extra: str) -> None:
    for requirement in required(extra):
        modules = modules_of(canonicalize_name(requirement.name))
        assert not words_of_ours().isdisjoint(modules), f"no code uses {requirement.name}"


@pytest.mark.parametrize(("extra", "module"), KITS.items())
def test_a_kit_has_an_adapter_which_nothing_else_imports(extra: str, module: str) -> None:
    assert [requirement.name for requirement in required(extra)] == [extra]
    importing = re.compile(rf"^(?:from|import) {module}\b", re.MULTILINE)
    found = [path for path in (ROOT / "src").rglob("*.py") if importing.search(path.read_text(encoding="utf-8"))]
    assert [path.parent.name for path in found] == ["adapters"]


@cache
def words_of_ours() -> frozenset[str]:
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


@cache
def homes_of_modules() -> Mapping[str, list[str]]:
    return packages_distributions()


def modules_of(distribution: str) -> list[str]:
    return [module for module, homes in homes_of_modules().items() if distribution in map(canonicalize_name, homes)]


@pytest.mark.parametrize("requirement", [*map(Requirement, PROJECT["dependencies"]), *required("dev")], ids=str)
def test_dependencies_are_in_the_lock_file(requirement: Requirement) -> None:
    pinned = PINS.get(canonicalize_name(requirement.name))
    assert pinned is not None, f"{requirement} is not in the lock file: run `make lock`"
    assert requirement.specifier.contains(pinned, prereleases=True), f"the lock file has {pinned}: run `make lock`"


def test_every_pin_has_hashes_and_no_url() -> None:
    assert len(PINS) > 40
    for lock in (LOCK, SMALL_LOCK):
        blocks = re.split(r"\n(?=\S)", lock.strip())
        assert [block for block in blocks if not block.startswith("#") and "--hash=sha256:" not in block] == []
        assert "://" not in lock
        assert "index-url" not in lock


def test_both_lock_files_pin_the_same_versions() -> None:
    small = re.findall(r"^([\w.-]+)==(\S+)", SMALL_LOCK, re.MULTILINE)
    assert {name for name, _ in small} >= {"apsw", "click", "google-re2"}
    versions = {name: Version(version) for name, version in small if canonicalize_name(name) in PINS}
    assert versions == {name: PINS[canonicalize_name(name)] for name in versions}


def test_the_python_versions_that_are_named_are_those_that_are_tested() -> None:
    import yaml

    versions = re.findall(r"Python :: (3\.\d+)'", str(PROJECT["classifiers"]))
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == versions
    assert PROJECT["requires-python"] == f">={versions[0]}"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python whose new environments use the pip that is here: to install one anew is most of what a set-up costs."""
    program = tmp_path / "python"
    bare = f'if [ "$1 $2" = "-m venv" ]; then shift 2; set -- -m venv --without-pip "$@"; fi\nexec "{sys.executable}" "$@"\n'
    program.write_text(f"#!/bin/sh\n{bare}")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("target", "lock", "stamp"),
    [("demo", "requirements.lock", ".ready"), (".venv/.installed", "requirements-dev.lock", ".installed")],
)
def test_missing_dependency_ends_the_set_up_and_is_named(clone: Path, python: Path, target: str, lock: str, stamp: str) -> None:
    (clone / lock).write_text(f"no-such-package-for-decklog==1.0 --hash=sha256:{'0' * 64}\n")
    if target != "demo":
        subprocess.run([python, "-m", "venv", clone / ".venv"], check=True)
        (clone / ".venv/.ready").touch()
    variables = {**os.environ, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PYTHONPATH": sysconfig.get_path("purelib")}
    words = ["make", target, f"PYTHON={python}"]
    done = subprocess.run(words, cwd=clone, env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    assert "no-such-package-for-decklog" in done.stderr
    assert not (clone / ".venv" / stamp).exists()
