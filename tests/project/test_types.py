"""Whoever writes against `decklog` with mypy in strict mode has nothing to silence, and needs no deep import."""

import ast
import subprocess
import sys
import tomllib
from enum import Enum
from importlib.util import find_spec
from pathlib import Path

import pytest

from decklog import NewTask
from decklog.cli.parameters import list_parameters
from tests.db.processes import ROOT, environment
from tests.project.documents import GENERATED, PYTHON, Block, blocks_of, pages
from tests.registry import operations

SAMPLE = ROOT / "tests/project/sample.py"
ASYNC_SAMPLE = ROOT / "tests/project/async_sample.py"
# Every call is wrong: not awaited, of another type, of no verb.
NOT_AWAITED = """
import decklog

async def main(log: decklog.AsyncDecklog) -> None:
    task: decklog.Task = log.tasks.add("r", "title")
    await log.tasks.add("r", "title", priority="high")
    await log.tasks.ad("r", "title")
"""
# Not everybody who runs the tests has these.
KITS = ("agents", "claude_agent_sdk")
# Libraries of thousands of files, whose types no program of a user sees unless it is made with a kit.
OF_KITS = ("anthropic.*", "openai.*")
CACHE = ROOT / ".mypy_cache" / "users"
# A file of a story that does not use Decklog is the reader's own program.
EXAMPLES = [
    block
    for page in pages()
    for block in blocks_of(page)
    if block.language == PYTHON and (block.file_name is None or "decklog" in block.text)
]


def program_of(block: Block) -> str:
    """Return an example as a program; those of the reference use an open log."""
    return f"from decklog import Decklog\n\nlog: Decklog\n{block.text}" if block.page in GENERATED else block.text


def unseen() -> list[str]:
    """Return modules that no program of a user sees; the check of the package skips them too."""
    left_out = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["overrides"]
    (others,) = [one["module"] for one in left_out if one.get("follow_imports") == "skip" and OF_KITS[0] not in one["module"]]
    return [*others, *(() if any(map(find_spec, KITS)) else OF_KITS)]


@pytest.mark.slow
def test_programs_of_users_are_well_typed(tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    for sample in (SAMPLE, ASYNC_SAMPLE):
        (folder / sample.name).write_text(sample.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "not_awaited.py").write_text(NOT_AWAITED)
    (folder / "misspelt.py").write_text("import decklog\n\nprint(decklog.TaskStatus.DONE)\n")
    for number, block in enumerate(EXAMPLES):
        if all(find_spec(kit) for kit in KITS if f"from {kit} import" in block.text):
            (folder / f"{block.page.replace('/', '_')}_{number}.py".replace(".md", "")).write_text(
                program_of(block), encoding="utf-8"
            )
    complaints = complaints_of(folder)
    (misspelt,) = [line for line in complaints if line.startswith("misspelt.py")]
    assert 'Module has no attribute "TaskStatus"' in misspelt
    not_awaited = [line for line in complaints if line.startswith("not_awaited.py") and ": error:" in line]
    expected = ("Coroutine", "priority", "has no attribute")
    assert len(not_awaited) == 3, not_awaited
    assert all(word in line for word, line in zip(expected, not_awaited, strict=True)), not_awaited
    assert [line for line in complaints if not line.startswith(("misspelt", "not_awaited"))] == []


def complaints_of(folder: Path) -> list[str]:
    """Check users' programs with mypy, with no settings but strict."""
    settings = folder.parent / "mypy.ini"
    settings.write_text(f"[mypy]\nstrict = true\n[mypy-{','.join(unseen())}]\nfollow_imports = skip\n")
    words = [sys.executable, "-m", "mypy", "--config-file", str(settings), "--cache-dir", str(CACHE), "--no-error-summary"]
    files = sorted(file.name for file in folder.iterdir())
    done = subprocess.run([*words, *files], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.slow
def test_the_program_that_awaits_does_its_work_on_either_engine(target: str) -> None:
    words = [sys.executable, "-W", "error", str(ASYNC_SAMPLE), target]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "True", "pending", "True"]


@pytest.mark.slow
def test_the_program_does_its_work_on_either_engine(target: str) -> None:
    words = [sys.executable, str(SAMPLE), target]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3", "True", "granted", "3", "3", "budget_exceeded", "True"]


def test_the_program_imports_nothing_of_ours_but_the_package() -> None:
    tree = ast.parse(SAMPLE.read_text(encoding="utf-8"))
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    sources = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [name for name in imported + sources if name.startswith("decklog")] == ["decklog"]


def _aliases() -> dict[str, set[str]]:
    """Collect the words that a type checker accepts for each enumeration of the stores."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "src/decklog").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.BinOp(
                        left=ast.Name(id=enumeration), right=ast.Subscript(value=ast.Name(id="Literal"), slice=words)
                    ),
                ) if name == f"{enumeration}Like":
                    found[enumeration] = (
                        set(ast.literal_eval(words)) if isinstance(words, ast.Tuple) else {ast.literal_eval(words)}
                    )
    return found


@pytest.mark.slow
def test_literals_of_every_enumeration_pass_a_type_checker() -> None:
    taken = {parameter.type for _, operation in operations() for parameter in list_parameters(operation)}
    kinds = {
        kind.__name__: {str(word.value) for word in kind} for kind in taken if isinstance(kind, type) and issubclass(kind, Enum)
    }
    assert _aliases() == kinds


def test_a_new_task_has_the_arguments_of_add() -> None:
    arguments = {
        parameter.name
        for store, operation in operations()
        if (store, operation.name) == ("tasks", "add")
        for parameter in list_parameters(operation)
    }
    assert {*NewTask.__annotations__} == arguments - {"run_id"}
