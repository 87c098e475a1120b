"""A plug-in that fails is reported with its package; the others go on."""

import pytest

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
"""
IMPORTER = {"importer.jsonitems": "other_plugins:Items"}


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
