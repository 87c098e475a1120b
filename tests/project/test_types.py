"""Whoever writes against `decklog` with mypy in strict mode has nothing to silence, and needs no deep import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.db.processes import ROOT, environment
from tests.project.documents import PYTHON, Block, blocks_of, pages

SAMPLE = ROOT / "tests/project/sample.py"
EXAMPLES = [block for page in pages() for block in blocks_of(page) if block.language == PYTHON]


def complaints(file: Path, cache: Path) -> str:
    """Give what mypy says of a user's program, with no settings but strict."""
    words = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "",
        "--cache-dir",
        str(cache),
        "--no-error-summary",
        str(file),
    ]
    done = subprocess.run(words, cwd=file.parent, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def test_a_program_with_nothing_but_import_decklog_is_well_typed(tmp_path: Path) -> None:
    program = tmp_path / "sample.py"
    program.write_text(SAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    assert complaints(program, ROOT / ".mypy_cache/users") == ""


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: f"{block.page}:{block.line}")
def test_an_example_of_the_documents_is_well_typed(block: Block, tmp_path: Path) -> None:
    program = tmp_path / "example.py"
    program.write_text(block.text, encoding="utf-8")
    assert complaints(program, ROOT / ".mypy_cache/users") == ""


def test_a_name_that_is_not_there_is_told_by_the_type_checker(tmp_path: Path) -> None:
    program = tmp_path / "misspelt.py"
    program.write_text("import decklog\n\nprint(decklog.TaskStatus.DONE)\n")
    assert 'Module has no attribute "TaskStatus"' in complaints(program, ROOT / ".mypy_cache/users")


def test_the_program_does_its_work_on_either_engine(target: str) -> None:
    words = [sys.executable, str(SAMPLE), target]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3", "True", "granted", "3", "3", "budget_exceeded", "True"]


def test_the_program_imports_nothing_of_ours_but_the_package() -> None:
    tree = ast.parse(SAMPLE.read_text(encoding="utf-8"))
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    sources = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [name for name in imported + sources if name.startswith("decklog")] == ["decklog"]
