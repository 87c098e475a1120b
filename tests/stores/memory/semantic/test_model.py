"""The model of this machine: what it is made of, what it does, and what is said where it is missing."""

import importlib
import json
import math
import os
import struct
import sys
from pathlib import Path

import numpy
import pytest

from decklog.core.errors import Damaged, Unavailable
from decklog.stores.memory.semantic import model as models
from decklog.stores.memory.semantic.minilm import LONGEST, MiniLM, WordPieces, read_tensors
from tests.stores.memory.semantic.places import REAL

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "lock", "##ed", "##s", "dead", "##lock", "e", ".", "_", "東"]


def _pieces(text: str) -> list[str]:
    return [WORDS[number] for number in WordPieces(WORDS).numbers(text)[1:-1]]


def test_words_are_cut_into_the_longest_pieces_that_there_are() -> None:
    assert _pieces("Deadlocked. LOCKS") == ["dead", "##lock", "##ed", ".", "lock", "##s"]
    assert _pieces("é_lock") == ["e", "_", "lock"]
    assert _pieces("locket 東東") == ["[UNK]", "東", "東"]
    assert _pieces("") == []


def test_a_text_without_end_is_cut_off_in_no_time() -> None:
    assert len(WordPieces(WORDS).numbers("lock " * 100_000)) == LONGEST
    assert _pieces("l" * 1_000_000) == ["[UNK]"]


def test_the_vector_of_a_text_has_length_one_and_does_not_depend_on_other_texts(tmp_path: Path) -> None:
    draw = numpy.random.default_rng(7)
    shapes = {"embeddings.word_embeddings": (len(WORDS), 384), "embeddings.token_type_embeddings": (2, 384)}
    shapes |= {"embeddings.position_embeddings": (64, 384), "embeddings.LayerNorm": (384,)}
    for layer in ("encoder.layer.0.", "encoder.layer.1."):
        shapes |= {f"{layer}attention.self.{name}": (384, 384) for name in ("query", "key", "value")}
        shapes |= {f"{layer}attention.output.dense": (384, 384), f"{layer}intermediate.dense": (1536, 384)}
        shapes |= {f"{layer}output.dense": (384, 1536)}
        shapes |= {f"{layer}{name}.LayerNorm": (384,) for name in ("attention.output", "output")}
    header, numbers = {}, b""
    for name, shape in shapes.items():
        for part, of_shape in (("weight", shape), ("bias", shape[:1])):
            packed = draw.normal(0, 0.5, of_shape).astype("<f4").tobytes()
            header[f"{name}.{part}"] = {
                "dtype": "F32",
                "shape": of_shape,
                "data_offsets": [len(numbers), len(numbers) + len(packed)],
            }
            numbers += packed
    _file(tmp_path / models.WEIGHTS, json.dumps(header).encode(), numbers)
    (tmp_path / models.VOCABULARY).write_text("\n".join(WORDS))
    texts = ["lock locks", "deadlock", "lock"]
    vectors = MiniLM(str(tmp_path / models.WEIGHTS), str(tmp_path / models.VOCABULARY)).embed(texts)
    assert [sum(part * part for part in vector) for vector in vectors] == pytest.approx([1, 1, 1], abs=1e-5)
    assert vectors == [models.KeptModel(str(tmp_path)).embed([text])[0] for text in texts]
    assert vectors[0] != vectors[2]


def _file(path: Path, listed: bytes, numbers: bytes = b"") -> str:
    path.write_bytes(struct.pack("<Q", len(listed)) + listed + numbers)
    return str(path)


def test_arrays_are_read_by_their_names(tmp_path: Path) -> None:
    said = {"__metadata__": {}, "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}}
    found = read_tensors(_file(tmp_path / "a", json.dumps(said).encode(), struct.pack("<2f", 1.5, -2.0)))
    assert found["a"].tolist() == [[1.5], [-2.0]]


def test_a_numpy_that_is_broken_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "decklog.stores.memory.semantic.minilm")
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with pytest.raises(Unavailable, match="numpy can't be loaded") as raised:
        importlib.import_module("decklog.stores.memory.semantic.minilm")
    assert raised.value.hint == "Install it again: pip install --force-reinstall numpy"
    assert "OPENBLAS_NUM_THREADS" not in os.environ


@pytest.mark.parametrize(
    "listed",
    [
        b"{",
        b'{"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "BF7", "shape": [2], "data_offsets": [0, 8]}}',
        b'{"a": 1}',
        b" " * ((1 << 20) + 1),
    ],
)
def test_a_damaged_list_of_arrays_is_refused(tmp_path: Path, listed: bytes) -> None:
    with pytest.raises(Damaged, match="can't be read"):
        read_tensors(_file(tmp_path / "a", listed, bytes(8)))


def test_it_is_said_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECKLOG_MODELS", str(tmp_path))
    with pytest.raises(Unavailable, match="the model is not installed"):
        models.kept_model()
    os.mkdir(tmp_path / models.NAME)
    with pytest.raises(Unavailable, match=r"the model is damaged: model\.safetensors is not there"):
        models.kept_model()
    (tmp_path / models.NAME / "model.safetensors").write_bytes(b"cut off")
    (tmp_path / models.NAME / "vocab.txt").write_bytes(b"")
    with pytest.raises(Unavailable, match="7 bytes instead of 90,868,376"):
        models.kept_model()
    monkeypatch.setattr(models, "find_spec", lambda _name: None)
    with pytest.raises(Unavailable, match="numpy is not installed"):
        models.kept_model()


def test_a_distribution_that_carries_the_model_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / models.PACKAGE).mkdir()
    (tmp_path / models.PACKAGE / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert models.found_at() == str(tmp_path / models.PACKAGE)


@pytest.mark.skipif(REAL is None, reason="the model is not installed: decklog memory model install")
def test_the_real_model_says_what_is_near_what() -> None:
    assert REAL is not None
    model = models.KeptModel(REAL)
    texts = ["The tests deadlock on two locks", "two threads wait for each other forever", "a recipe for tomato soup"]
    one, near, far = model.embed(texts)
    [alone] = model.embed(texts[:1])
    assert math.dist(one, alone) < 1e-5
    assert sum(part * part for part in one) == pytest.approx(1, abs=1e-5)
    assert _product(one, near) > 0.35
    assert _product(one, far) < 0.15


def _product(one: list[float], other: list[float]) -> float:
    return sum(left * right for left, right in zip(one, other, strict=True))
