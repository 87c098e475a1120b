"""What a short call imports. An agent makes thousands of them, and most of each is spent on imports."""

import inspect
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.cli.late_import import import_later
from decklog.cli.parameters import parameters_of
from decklog.operations import Operation
from tests.db.processes import unmeasured
from tests.every import every
from tests.registry import named, operations

# What Python's own modules import is another list in each version, and dataclasses need `inspect` in later ones: here is that of
# 3.11. What of ours is imported is the same in all.
_IS_LISTED = sys.version_info[:2] == (3, 11)
_PYTHON = """
_collections _contextvars _datetime _functools _json _operator _sha2 _sha256 _weakrefset apsw collections.abc contextvars
dataclasses datetime enum errno fcntl gc itertools json json.decoder json.encoder json.scanner keyword math types
"""
_OURS = """
decklog decklog.app decklog.blocks decklog.cli decklog.cli.call decklog.cli.derived decklog.cli.exits decklog.cli.late_import
decklog.kept_code
decklog.place decklog.place.locate decklog.dataclass decklog.digests decklog.prepared decklog.db.checksums
decklog.cli.parameters decklog.cli.shape decklog.cli.show decklog.cli.styles decklog.cli.table decklog.cli.terminal decklog.clock
decklog.db decklog.db.base decklog.db.deadlines decklog.db.packing decklog.db.callers decklog.forks
decklog.db.schema decklog.db.sqlite
decklog.db.sqlite.checkpoints decklog.db.sqlite.clock decklog.db.sqlite.connections decklog.db.sqlite.database
decklog.db.sqlite.errors decklog.db.sqlite.fair_lock decklog.db.sqlite.file decklog.db.sqlite.group_commit
decklog.db.sqlite.migrate decklog.db.sqlite.readers decklog.db.sqlite.transactions decklog.db.statements
decklog.db.undoing decklog.db.where decklog.errors decklog.ids decklog.operations decklog.records decklog.redaction
decklog.stores decklog.stores.base decklog.stores.journal
decklog.stores.journal.attribution decklog.stores.journal.blobs decklog.stores.journal.chain
decklog.stores.journal.entry decklog.stores.journal.journal decklog.stores.journal.rows
decklog.stores.journal.preparing decklog.stores.journal.time_index decklog.stores.journal.writer decklog.values decklog.wrapping
"""
_TASKS = """
decklog.fork_rules
decklog.stores.checks decklog.stores.of_run decklog.stores.work decklog.stores.work.claim decklog.stores.work.claimable
decklog.stores.work.held decklog.stores.work.leases decklog.stores.work.links decklog.stores.work.ready_tags
decklog.stores.work.task decklog.stores.work.tasks
encodings.ascii
"""
# The short way: who calls, what it has, and its answers, in the place of the long way's.
_SHORT = """
decklog.caller decklog.caller.agents decklog.caller.claims decklog.caller.worker decklog.cli.short decklog.cli.short.program
decklog.short decklog.short.answer decklog.short.caller decklog.short.verbs
"""
EACH = frozenset(f"{_PYTHON} {_OURS}".split())
TASKS = EACH | frozenset(_TASKS.split())
SHORT = (TASKS | frozenset(_SHORT.split())) - {
    "decklog.cli.derived",
    "decklog.cli.show",
    "decklog.cli.styles",
    "decklog.cli.table",
}


# Runs a command as the program does, and tells what was imported, be it by Python or from where compiled code is kept. What
# only stands for a module is not one.
_TELL = """
import os, sys
place, before, end = sys.argv.pop(1), set(sys.modules), os._exit

def tell(code):
    with open(place, "w", encoding="utf-8") as file:
        file.writelines(f"{name}\\n" for name, module in sys.modules.items() if name not in before and type(module) is type(sys))
    end(code)

os._exit = tell
from decklog.cli import main
main()
"""


@cache
def redaction_imports() -> frozenset[str]:
    """Name what the first redaction of a process imports."""
    code = "import sys; from decklog.redaction import scan; scan('password is unset'); print(*sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", code], env=unmeasured(), capture_output=True, text=True, timeout=300, check=True
    )
    return frozenset(shown.stdout.split())


def imported(folder: Path, *words: str) -> set[str]:
    """Name what a command on a folder's log imports."""
    told = folder / "imported"
    command = [sys.executable, "-c", _TELL, str(told), "--db", str(folder / "log.db"), *words]
    subprocess.run(command, env=unmeasured(), capture_output=True, timeout=300, check=True)
    return set(told.read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("journal", "append", "run_1", "hello", "--key", "k"), EACH),
        (("tasks", "add", "run_1", "one more"), TASKS),
        (("tasks", "claim", "run_1", "--worker", "w"), TASKS),
        (("tasks", "finish", "TASK", "--fence", "1"), TASKS),
        (("tasks", "extend", "TASK", "--fence", "1"), TASKS),
        (("next", "--as", "v"), SHORT),
        (("done", "what was done", "--task", "TASK", "--fence", "1"), SHORT),
        (("note", "a thought", "--run", "run_1"), SHORT),
    ],
)
def test_a_short_call_imports_what_it_needs_and_nothing_else(
    tmp_path: Path, words: tuple[str, ...], allowed: frozenset[str]
) -> None:
    with Decklog.open(tmp_path / "log.db") as log:
        log.runs.start("x", run_id="run_1")
        task = log.tasks.add("run_1", "one")
        if "TASK" in words:
            log.tasks.claim("run_1", worker="w")
    words = tuple(task.id if word == "TASK" else word for word in words)
    found = imported(tmp_path, *words)
    assert "decklog.stores.journal.writer" in found
    allowed = allowed | redaction_imports()
    assert {name for name in found - allowed if _IS_LISTED or name.startswith("decklog")} == set()


@pytest.mark.parametrize("words", [("now",), ("runs", "find"), ("approvals", "find"), ("serve", "--help"), ("help", "all")])
def test_no_command_but_the_one_that_serves_imports_what_the_dashboard_needs(tmp_path: Path, words: tuple[str, ...]) -> None:
    Decklog.open(tmp_path / "log.db").close()
    found = imported(tmp_path, *words)
    of_the_web = {name for name in found if name.partition(".")[0] in ("starlette", "uvicorn", "jinja2", "anyio", "h11")}
    assert of_the_web == set()
    assert not any(name.startswith("decklog.web") for name in found)


@pytest.mark.parametrize("words", [("now",), ("runs", "find"), ("where",), ("doctor",)])
def test_no_plain_command_imports_what_reads_source_or_compresses_files(tmp_path: Path, words: tuple[str, ...]) -> None:
    with Decklog.open(tmp_path / "log.db") as log:
        log.runs.start("x", run_id="run_1")
    found = imported(tmp_path, *words)
    of_source = {"inspect", "ast", "dis"} if _IS_LISTED else set[str]()
    assert found & {*of_source, "shutil", "lzma", "bz2"} == set()


def test_a_module_that_comes_later_is_the_real_one_once_it_is_used() -> None:
    code = f"""
import sys
from {import_later.__module__} import import_later
import_later("colorsys")
import_later("colorsys", ONE_THIRD="a third")
import_later("sys")
assert sys.modules["sys"] is sys
import colorsys
assert colorsys.ONE_THIRD == "a third" and "__file__" not in vars(colorsys)
from colorsys import rgb_to_hsv
assert rgb_to_hsv(1, 0, 0) == colorsys.rgb_to_hsv(1, 0, 0) == (0.0, 1.0, 1)
import colorsys
assert colorsys.__file__.endswith("colorsys.py") and sys.modules["colorsys"] is colorsys
"""
    subprocess.run([sys.executable, "-c", code], env=unmeasured(), timeout=300, check=True)


@every(("store", "operation"), **named(operations()))
def test_the_words_of_a_verb_are_those_of_its_signature(store: str, operation: Operation) -> None:
    signed = list(inspect.signature(operation.function).parameters.values())[1:]
    found = parameters_of(operation)
    assert [parameter.name for parameter in found] == [one.name for one in signed], store
    for parameter, one in zip(found, signed, strict=True):
        assert parameter.required == (one.default is one.empty)
        assert parameter.required or parameter.default == one.default
        assert parameter.positional == (one.kind is not one.KEYWORD_ONLY)
