"""A plug-in that fails is reported with its package; the others go on."""

from pathlib import Path

import pytest

from decklog import Decklog
from decklog.cli import run
from tests.plugins.conftest import Install

CODE = """
from datetime import UTC, datetime
from pathlib import Path
from decklog import Invalid
from decklog.plugins import *
NOW = datetime(2026, 1, 1, tzinfo=UTC)
class Items:
    summary = "Import items."
    def detect(self, path): return path.suffix == ".py"
    def read(self, path, context):
        yield ImportedTask(id="item-0", title="fine", created_at=NOW)
        given = {"id": "item-A", "title": "A", "created_at": NOW}
        yield eval(path.read_text())
class WithoutSummary:
    detect = read = None
class NeedsWords(Items):
    def __init__(self, words): pass
class Agent:
    title, scopes, executable, guard = "Own", ("user",), None, "Only advice."
    def files(self, setting): raise KeyError("folder")
"""
IMPORTER = {"importer.jsonitems": "other_plugins:Items"}


def _import(tmp_path: Path, text: str, *words: str) -> int:
    source = tmp_path / "source.py"
    source.write_text(text)
    Decklog.open(tmp_path / "log.db").close()
    return run(["--db", str(tmp_path / "log.db"), "import", "jsonitems", str(source), *words])


def test_the_help_lists_a_plugin_that_cannot_be_loaded_with_the_others(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {"importer.gone": "other_plugins:Gone", "importer.needs": "other_plugins:NeedsWords"}
    install({**IMPORTER, **broken, "importer.silent": "other_plugins:WithoutSummary"}, CODE)

    assert run(["import", "--help"]) == 0
    lines = " ".join(capsys.readouterr().out.split())
    assert "jsonitems Import items." in lines
    assert "gone (can't be loaded: module 'other_plugins' has no attribute 'Gone')" in lines
    assert "silent (can't be loaded: 'WithoutSummary' object has no attribute 'summary')" in lines
    assert "needs (can't be loaded: " in lines
    for words in (["silent", "x"], ["silent", "--help"], ["silent"]):
        assert run(["import", *words]) == 1
        assert "the plug-in importer silent can't be loaded: 'Wi" in (said := capsys.readouterr().err)
        assert "pip uninstall other-plugins" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ImportedTask(**given | {'title': 5})", " at item-A: title is a text; got 5"),
        ("ImportedTask(**given | {'created_at': datetime(2026, 1, 1)})", " at item-A: created_at has no time zone; add one"),
        ("ImportedTask(**given, updated_at='today')", " at item-A: updated_at is a datetime; got 'today'"),
        ("ImportedTask(**given, priority=500)", " at item-A: priority is a whole number, 0 to 100; got 500"),
        ("ImportedTask(**given, tags='ab')", " at item-A: tags is a list of texts; got 'ab'"),
        ("ImportedTask(**given, tags=[1])", " at item-A: each of tags is a text; got 1"),
        ("ImportedTask(**given, state='open')", " at item-A: state is one of pending, running, "),
        ("ImportedTask(**given, more={'at': NOW})", " at item-A: this value can't be written as JSON: "),
        (
            "ImportedTask(**given, state=TaskState.RUNNING)",
            " at item-A: an imported task can't be running; yield TaskState.PAUSED",
        ),
        ("ImportedComment(id='1', task_id='item-A', author='a', body=None, at=NOW)", " at item-A: body is a text; got None"),
        ("{}", " at dict: an importer yields tasks, links, comments and events, not dict"),
        ("int('x')", ": ValueError: invalid literal for int() with base 10: 'x'"),
    ],
)
def test_a_failure_of_an_importer_names_the_item_and_the_package(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    install(IMPORTER, CODE)

    assert _import(tmp_path, text) == 1
    shown = capsys.readouterr().err
    assert f"the plug-in importer jsonitems failed{said}" in shown
    assert "Report it to the package other-plugins" in shown
    assert "Traceback" not in shown
    with Decklog.open(tmp_path / "log.db") as log:
        assert list(log.runs.find()) == []


def test_values_that_are_as_good_as_the_interface_are_taken(install: Install, tmp_path: Path) -> None:
    install(IMPORTER, CODE)

    given = "**given, state='done', tags=('a', 'b'), more=__import__('types').MappingProxyType({'x': 1})"
    assert _import(tmp_path, f"ImportedTask({given})") == 0
    with Decklog.open(tmp_path / "log.db") as log:
        task = log.tasks.get("item-A")
    assert (task.state, task.tags, task.inputs) == ("done", ["a", "b"], {"jsonitems": {"x": 1}})


def test_a_file_that_an_importer_refuses_leads_to_its_own_help(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(IMPORTER, CODE)
    (tmp_path / "bad.json").write_text("[")

    assert _import(tmp_path, "exec(\"raise Invalid('no items')\")") == 1
    refused = capsys.readouterr().err
    database = str(tmp_path / "log.db")
    assert run(["--db", database, "import", "jsonitems", str(tmp_path / "bad.json")]) == 1
    other = capsys.readouterr().err
    assert run(["--db", database, "import", "jsonitems", str(tmp_path / "nothing.json")]) == 3
    missing = capsys.readouterr().err

    assert "no items" in refused
    assert "does not look like data of jsonitems" in other
    for shown in (refused, other, missing):
        assert "See its options: decklog import jsonitems --help" in shown


def test_a_failure_of_an_agent_program_names_the_package(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install({"agent.own": "other_plugins:Agent"}, CODE)

    assert run(["setup", "own", "--user", "--print"]) == 1
    shown = capsys.readouterr().err
    assert "the plug-in agent own failed: KeyError: 'folder'" in shown
    assert "Report it to the package other-plugins" in shown
