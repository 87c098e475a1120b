"""The layers of the model with weights of seven bits, run by onnxruntime where it is installed: about three times as fast.

The graph is made from the weights once, and kept beside them. Seven bits and not eight: processors without instructions of their
own for it add pairs of products in sixteen bits, which eight would overflow.
"""

import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from decklog.meaning.arrays import numpy
from decklog.meaning.onnx_model import OnnxModel
from decklog.meaning.weights import EPSILON, HEADS, OF_HEAD, WIDTH, attention_of, dense_of, layers_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float32]
    Arrays = dict[str, NDArray[Any]]

# The graph's file: a digest of the rest, and the graph. Another way to make it has another name.
GRAPH = "layers-7-bits-1.onnx"
_DIGEST_BYTES = 32
_LARGEST = 63


class QuantisedLayers:
    """All layers as one graph."""

    # What goes through together shares its rounding: alone, a text has the same vector each time, and takes no longer.
    together = 0

    def __init__(self, arrays: "Arrays", place: str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        # As with numpy: a second thread is for others.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        graph = kept_graph(place) or _keep(place, Graph(arrays).written())
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def __call__(self, state: "Numbers", beyond: "Numbers") -> "Numbers":
        told: Numbers = self._session.run(None, {"state": state, "beyond": beyond})[0]
        return told


def kept_graph(place: str) -> bytes | None:
    """Read the graph that is kept; None where there is none, or another than was written."""
    try:
        with open(os.path.join(place, GRAPH), "rb") as file:
            digest, graph = file.read(_DIGEST_BYTES), file.read()
    except OSError:
        return None
    return graph if sha256(graph).digest() == digest else None


def _keep(place: str, graph: bytes) -> bytes:
    """Keep a graph for the next process, where something can be written; another process may do so at the same time."""
    path = os.path.join(place, GRAPH)
    own = f"{path}.{os.getpid()}"
    try:
        with open(own, "wb") as file:
            file.write(sha256(graph).digest() + graph)
        os.replace(own, path)
    except OSError:
        with suppress(OSError):
            os.unlink(own)
    return graph


class Graph(OnnxModel):
    """Puts the layers together."""

    def __init__(self, arrays: "Arrays") -> None:
        super().__init__()
        self._arrays = arrays
        self._apart = self.constant(numpy.array([0, 0, 3 * HEADS, OF_HEAD], dtype="int64"))
        self._together = self.constant(numpy.array([0, 0, WIDTH], dtype="int64"))

    def written(self) -> bytes:  # type: ignore[override]
        """Write the graph: it is given the state of each piece, and what lies beyond a text's end."""
        state = "state"
        for part in layers_in(self._arrays):
            state = self._layer(state, part)
        inputs: dict[str, list[int | str]] = {"state": ["texts", "pieces", WIDTH], "beyond": ["texts", 1, 1, "pieces"]}
        return super().written(inputs, state)

    def _layer(self, state: str, part: str) -> str:
        told = self._dense(self._attention(state, part), *dense_of(self._arrays, part + "attention.output.dense"))
        state = self._scaled(self.one("Add", state, told), part + "attention.output.LayerNorm")
        wide = self._bent(self._dense(state, *dense_of(self._arrays, part + "intermediate.dense")))
        narrow = self._dense(wide, *dense_of(self._arrays, part + "output.dense"))
        return self._scaled(self.one("Add", state, narrow), part + "output.LayerNorm")

    def _attention(self, state: str, part: str) -> str:
        asked = self._dense(state, *attention_of(self._arrays, part))
        heads = self.one("Transpose", self.one("Reshape", asked, self._apart), perm=[0, 2, 1, 3])
        query, key, value = self.node("Split", [heads], 3, {"axis": 1})
        scores = self.one("MatMul", query, self.one("Transpose", key, perm=[0, 1, 3, 2]))
        weights = self.one("Softmax", self.one("Add", scores, "beyond"), axis=-1)
        return self.one("Reshape", self.one("Transpose", self.one("MatMul", weights, value), perm=[0, 2, 1, 3]), self._together)

    def _dense(self, state: str, matrix: "Numbers", bias: "Numbers") -> str:
        """Multiply by a matrix of small whole numbers, each column with what one of them is worth."""
        worth = numpy.maximum(numpy.abs(matrix).max(axis=0) / _LARGEST, 1e-12).astype("float32")
        small = self.constant(numpy.rint(matrix / worth).astype("int8"))
        rounded, scale, zero = self.node("DynamicQuantizeLinear", [state], 3, {})
        whole = self.one("Cast", self.one("MatMulInteger", rounded, small, zero), to=1)
        exact = self.one("Mul", whole, self.one("Mul", scale, self.constant(worth)))
        return self.one("Add", exact, self.constant(bias))

    def _scaled(self, state: str, name: str) -> str:
        weight, bias = (self.constant(self._arrays[f"{name}.{what}"]) for what in ("weight", "bias"))
        return self.one("LayerNormalization", state, weight, bias, axis=-1, epsilon=EPSILON)

    def _bent(self, state: str) -> str:
        """Bend numbers as the model was trained with: half of each, and of it as much again as the error function says."""
        root, half, one = (self.constant(numpy.array(value, dtype="float32")) for value in (2**0.5, 0.5, 1.0))
        error = self.one("Erf", self.one("Div", state, root))
        return self.one("Mul", self.one("Mul", state, self.one("Add", error, one)), half)
