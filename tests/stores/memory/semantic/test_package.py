"""The wheel of the weights: from the pinned files alone, and the same every time."""

import runpy
import zipfile
from pathlib import Path

import pytest

from decklog.stores.memory.semantic import model
from tests.db.processes import ROOT
from tests.stores.memory.semantic.test_installing import FILES, PINS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(model, "PINS", PINS)
    monkeypatch.setattr(model.damage, "__defaults__", (PINS,))
    (tmp_path / "kept").mkdir()
    for name, content in {**FILES, "LICENSE": b"Apache-2.0"}.items():
        (tmp_path / "kept" / name).write_bytes(content)
    return tmp_path / "kept"


def _build(folder: Path, target: Path) -> Path:
    path: Path = runpy.run_path(str(ROOT / "packages" / "decklog-model" / "build.py"))["build"](folder, target)
    return path


def test_the_wheel_has_the_weights_their_licence_and_nothing_that_runs(folder: Path, tmp_path: Path) -> None:
    one, other = (_build(folder, tmp_path / name) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as archive:
        names = [name for name in archive.namelist() if "dist-info" not in name]
        assert sorted(names) == [f"decklog_model/{name}" for name in ("LICENSE", "__init__.py", "model.safetensors", "vocab.txt")]
        assert archive.read("decklog_model/vocab.txt") == FILES["vocab.txt"]
        assert "Requires-Dist" not in archive.read("decklog_model-1.0.0.dist-info/METADATA").decode()


def test_other_weights_and_weights_without_their_licence_are_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "LICENSE").unlink()
    with pytest.raises(SystemExit, match="LICENSE is not there"):
        _build(folder, tmp_path)
    (folder / "vocab.txt").write_bytes(b"[PAD]\n[CLS]!")
    with pytest.raises(SystemExit, match="its SHA-256 is"):
        _build(folder, tmp_path)
