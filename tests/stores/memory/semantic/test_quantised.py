"""Weights of seven bits say what the weights themselves say; the graph of them is made once and kept beside them."""

import json
import math
import struct
import sys
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import pytest

from decklog.core.errors import Unavailable
from decklog.stores.memory.semantic import encoder, exact, kept, quantised, tensors
from decklog.stores.memory.semantic.onnx_model import OnnxModel
from decklog.stores.memory.semantic.weights import WIDTH

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "lock",
    "the",
    "file",
    "before",
    "you",
    "write",
    "tests",
    "wait",
    "for",
    "a",
    "server",
]
TEXTS = ["lock the file before you write", "the tests wait for a server", "you wait"]
WIDE = 4 * WIDTH
SHAPES = {
    "attention.self.query": (WIDTH, WIDTH),
    "attention.self.key": (WIDTH, WIDTH),
    "attention.self.value": (WIDTH, WIDTH),
    "attention.output.dense": (WIDTH, WIDTH),
    "intermediate.dense": (WIDE, WIDTH),
    "output.dense": (WIDTH, WIDE),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two layers with numbers drawn from a seed."""
    folder = tmp_path_factory.mktemp("model")
    (folder / kept.VOCABULARY).write_text("\n".join(PIECES))
    _write(folder / kept.WEIGHTS, _arrays(numpy.random.default_rng(7)))
    return folder


def _arrays(draw: Any) -> dict[str, Any]:
    found = {
        "embeddings.word_embeddings.weight": draw.normal(0, 1, (len(PIECES), WIDTH)),
        "embeddings.token_type_embeddings.weight": draw.normal(0, 0.1, (2, WIDTH)),
        "embeddings.position_embeddings.weight": draw.normal(0, 0.1, (64, WIDTH)),
        **_scale("embeddings.LayerNorm", draw),
    }
    for part in ("encoder.layer.0.", "encoder.layer.1."):
        for name, shape in SHAPES.items():
            found[f"{part}{name}.weight"] = draw.normal(0, 0.05, shape)
            found[f"{part}{name}.bias"] = draw.normal(0, 0.05, shape[0])
        found |= _scale(f"{part}attention.output.LayerNorm", draw) | _scale(f"{part}output.LayerNorm", draw)
    return found


def _scale(name: str, draw: Any) -> dict[str, Any]:
    return {f"{name}.weight": draw.normal(1, 0.1, WIDTH), f"{name}.bias": draw.normal(0, 0.1, WIDTH)}


def _write(path: Path, arrays: dict[str, Any]) -> None:
    listed, numbers = {}, b""
    for name, array in arrays.items():
        packed = array.astype("<f4").tobytes()
        listed[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(numbers), len(numbers) + len(packed)]}
        numbers += packed
    said = json.dumps(listed).encode()
    path.write_bytes(struct.pack("<Q", len(said)) + said + numbers)


def _model(place: Path, layers: Any = None) -> encoder.MiniLM:
    model = encoder.MiniLM(str(place))
    if layers is not None:
        model._layers = layers
    return model


@pytest.mark.slow
def test_seven_bits_say_nearly_what_all_bits_say(place: Path) -> None:
    whole = _model(place, exact.ExactLayers(tensors.read(str(place / kept.WEIGHTS)))).embed(TEXTS)
    small = _model(place)
    assert isinstance(small._layers, quantised.QuantisedLayers)
    cosines = [sum(map(float.__mul__, one, other)) for one, other in zip(small.embed(TEXTS), whole, strict=True)]
    assert min(cosines) > 0.99
    assert max(cosines) < 1, "these are other numbers, or the graph was not run"


def test_a_few_large_places_leave_the_others_their_digits() -> None:
    draw = numpy.random.default_rng(8)
    state, matrix = draw.normal(0, 1, (1, 9, WIDTH)).astype("float32"), draw.normal(0, 0.05, (WIDTH, 20)).astype("float32")
    # As trained models have them: large numbers that little is made of.
    state[..., :3] *= 30
    matrix[:3] /= 30
    seen, unseen = (
        numpy.abs(_multiplied(state, matrix, sizes) - state @ matrix).max()
        for sizes in (numpy.abs(state).max(axis=(0, 1)), numpy.ones(WIDTH))
    )
    assert seen < unseen / 3


def _multiplied(state: Any, matrix: Any, sizes: Any) -> Any:
    graph = quantised.Graph({}, {"dense": sizes})
    made = graph._dense("state", "dense", matrix, numpy.zeros(matrix.shape[1], dtype="float32"))
    written = OnnxModel.written(graph, {"state": ["texts", "pieces", WIDTH]}, made)
    return onnxruntime.InferenceSession(written, providers=["CPUExecutionProvider"]).run(None, {"state": state})[0]


def test_a_text_has_the_same_vector_alone_and_among_others(place: Path) -> None:
    model = _model(place)
    assert [model.embed([text])[0] for text in TEXTS] == model.embed(TEXTS)


def test_without_the_library_numpy_multiplies(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "find_spec", lambda _: None)
    model = _model(place)
    assert isinstance(model._layers, exact.ExactLayers)
    assert all(math.dist(one, model.embed([text])[0]) < 1e-5 for text, one in zip(TEXTS, model.embed(TEXTS), strict=True))


def test_a_library_that_is_broken_is_told_with_what_to_do(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "find_spec", lambda _: "there")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(Unavailable, match="onnxruntime can't be loaded") as raised:
        _model(place)
    assert raised.value.hint == "Install it anew, or take it away: without it the model is run by numpy."


def test_the_graph_is_kept_and_made_anew_when_it_is_damaged(place: Path) -> None:
    path = place / quantised.GRAPH
    path.unlink(missing_ok=True)
    told = _model(place).embed(TEXTS)
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], bytes([whole[0] ^ 1]) + whole[1:], b""):
        path.write_bytes(damaged)
        assert quantised.kept_graph(str(place)) is None
        assert _model(place).embed(TEXTS) == told
        assert path.read_bytes() == whole
    assert [file.name for file in place.iterdir() if file.name.startswith(f"{quantised.GRAPH}.")] == []


def test_where_nothing_can_be_written_the_graph_is_made_each_time(place: Path, tmp_path: Path) -> None:
    for name in (kept.WEIGHTS, kept.VOCABULARY):
        (tmp_path / name).symlink_to(place / name)
    (tmp_path / quantised.GRAPH).mkdir()
    assert _model(tmp_path).embed(TEXTS) == _model(place).embed(TEXTS)
    assert {file.name for file in tmp_path.iterdir()} == {kept.WEIGHTS, kept.VOCABULARY, quantised.GRAPH}
