"""What a call imports: the rooms that its command needs, and nothing of the large ones."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.cli.parameters import list_parameters
from decklog.records.operations import Operation, keyword_fields
from tests.db.processes import unmeasured
from tests.every import every
from tests.registry import named, operations

# Rooms and libraries that only some commands need. Each takes longer to import than a short call takes in all.
_LARGE = (
    *("click", "starlette", "uvicorn", "jinja2", "anyio", "psycopg", "numpy", "tree_sitter", "cryptography", "mcp", "asyncio"),
    *("decklog.web", "decklog.conductor", "decklog.review", "decklog.plugins.importers", "decklog.mcp", "decklog.transfer"),
)
_RUN = """
import sys
from decklog.cli import run
code = run(sys.argv[1:])
print("\\n".join(sys.modules), file=sys.stderr)
sys.exit(code)
"""


def imported(folder: Path, *words: str) -> set[str]:
    """Return the modules that a command on a folder's log imports."""
    command = [sys.executable, "-c", _RUN, "--db", str(folder / "log.db"), *words]
    done = subprocess.run(command, env=unmeasured(), capture_output=True, text=True, timeout=300, check=True)
    return set(done.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("journal", "append", "run_1", "hello", "--key", "k"),
        ("tasks", "add", "run_1", "one more"),
        ("tasks", "claim", "run_1", "--worker", "w"),
        ("next", "--as", "v"),
        ("note", "a thought", "--run", "run_1"),
        ("runs", "find"),
    ],
)
def test_a_short_call_imports_no_large_room(tmp_path: Path, words: tuple[str, ...]) -> None:
    with Decklog.open(tmp_path / "log.db") as log:
        log.runs.start("x", run_id="run_1")
        log.tasks.add("run_1", "one")
    found = imported(tmp_path, *words)
    assert "decklog.log" in found
    assert [name for name in found if name.startswith(tuple(f"{large}." for large in _LARGE)) or name in _LARGE] == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [("now",), ("approvals", "find"), ("serve", "--help"), ("help", "all")])
def test_only_serve_imports_what_the_dashboard_needs(tmp_path: Path, words: tuple[str, ...]) -> None:
    Decklog.open(tmp_path / "log.db").close()
    found = imported(tmp_path, *words)
    of_the_web = {name for name in found if name.partition(".")[0] in ("starlette", "uvicorn", "jinja2", "h11")}
    assert of_the_web == set()
    assert not any(name.startswith("decklog.web") for name in found)


@every(("store", "operation"), **named(operations()))
def test_the_words_of_a_verb_are_those_of_its_signature(store: str, operation: Operation) -> None:
    fields = keyword_fields(inspect.unwrap(operation.function)) or {}
    written = list(inspect.signature(operation.function).parameters.values())[1:]
    signed = [one for one in written if one.kind is not one.VAR_KEYWORD]
    signed += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in fields]
    found = list_parameters(operation)
    assert [parameter.name for parameter in found] == [one.name for one in signed], store
    for parameter, one in zip(found, signed, strict=True):
        assert parameter.required == (one.default is one.empty)
        assert parameter.required or parameter.default == one.default
        assert parameter.positional == (one.kind is not one.KEYWORD_ONLY)
