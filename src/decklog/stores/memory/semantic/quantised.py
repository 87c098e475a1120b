"""The layers of the model with weights of seven bits, run by onnxruntime where it is installed: about three times as fast.

The graph is made from the weights once, and kept beside them. Seven bits and not eight: processors without instructions of their
own for it add pairs of products in sixteen bits, which eight would overflow.

What is multiplied with them is rounded too, all numbers of a text by one step. In this model a few places of each state are ten
times as large as the others, which would leave the others few steps. So these places are made smaller before they are rounded,
and their weights as much larger; which ones they are is seen by sending sample texts through the exact layers.
"""

import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from decklog.core.errors import Unavailable
from decklog.stores.memory.semantic.arrays import numpy
from decklog.stores.memory.semantic.exact import ExactLayers
from decklog.stores.memory.semantic.onnx_model import OnnxModel
from decklog.stores.memory.semantic.weights import EPSILON, HEADS, OF_HEAD, WIDTH, attention_of, dense_of, layers_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float32]
    Arrays = dict[str, NDArray[Any]]
    Sizes = dict[str, Numbers]

ASKED, TOLD, WIDE, NARROW = "attention.self", "attention.output.dense", "intermediate.dense", "output.dense"
# The graph's file: a digest of the rest, and the graph. Another way to make it has another name.
GRAPH = "layers-7-bits-2.onnx"
_DIGEST_BYTES = 32
_LARGEST = 63
# So many times the usual size may a place have before it is made smaller: less takes more from the weights than it gives.
_USUAL = 3


class QuantisedLayers:
    """All layers as one graph."""

    # What goes through together shares its rounding: alone, a text has the same vector each time, and takes no longer.
    together = 0

    def __init__(self, arrays: "Arrays", place: str, samples: "Callable[[], Iterator[Numbers]]") -> None:
        try:
            import onnxruntime
        except ImportError as problem:
            hint = "Install it anew, or take it away: without it the model is run by numpy."
            raise Unavailable(f"onnxruntime can't be loaded: {problem}", hint=hint) from problem
        options = onnxruntime.SessionOptions()
        # As with numpy: a second thread is for others.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        graph = kept_graph(place) or _keep(place, Graph(arrays, sizes(arrays, samples())).written())
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def __call__(self, state: "Numbers", beyond: "Numbers") -> "Numbers":  # noqa: ARG002 - alone, a text has nothing beyond its end
        told: Numbers = self._session.run(None, {"state": state})[0]
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


def sizes(arrays: "Arrays", samples: "Iterator[Numbers]") -> "Sizes":
    """Return how large each place becomes of what a layer multiplies, by the name of what it is multiplied with."""
    layers = list(zip(layers_in(arrays), ExactLayers(arrays).layers, strict=True))
    found: Sizes = {}
    for state in samples:
        for part, layer in layers:
            taken = layer.taken(state, 1, None)
            told = layer.told(taken, state)
            wide = layer.wide(told)
            for name, given in ((ASKED, state), (TOLD, taken), (WIDE, told), (NARROW, wide)):
                most = numpy.abs(given).max(axis=0)
                found[part + name] = numpy.maximum(found.get(part + name, most), most)
            state = layer.made(wide, told)
    return found


class Graph(OnnxModel):
    """Puts the layers together."""

    def __init__(self, arrays: "Arrays", sizes: "Sizes") -> None:
        super().__init__()
        self._arrays = arrays
        self._sizes = sizes
        self._apart = self.constant(numpy.array([0, 0, 3 * HEADS, OF_HEAD], dtype="int64"))
        self._together = self.constant(numpy.array([0, 0, WIDTH], dtype="int64"))

    def written(self) -> bytes:  # type: ignore[override]
        """Write the graph: it is given the state of each piece of a text."""
        state = "state"
        for part in layers_in(self._arrays):
            state = self._layer(state, part)
        inputs: dict[str, list[int | str]] = {"state": ["texts", "pieces", WIDTH]}
        return super().written(inputs, state)

    def _layer(self, state: str, part: str) -> str:
        told = self._dense(self._attention(state, part), part + TOLD, *dense_of(self._arrays, part + TOLD))
        state = self._scaled(self.one("Add", state, told), part + "attention.output.LayerNorm")
        wide = self._dense(state, part + WIDE, *dense_of(self._arrays, part + WIDE))
        # Bent as by numpy: the form with an integral takes longer.
        narrow = self._dense(self.one("Gelu", wide, approximate="tanh"), part + NARROW, *dense_of(self._arrays, part + NARROW))
        return self._scaled(self.one("Add", state, narrow), part + "output.LayerNorm")

    def _attention(self, state: str, part: str) -> str:
        asked = self._dense(state, part + ASKED, *attention_of(self._arrays, part))
        heads = self.one("Transpose", self.one("Reshape", asked, self._apart), perm=[0, 2, 1, 3])
        query, key, value = self.node("Split", [heads], 3, {"axis": 1, "num_outputs": 3})
        scores = self.one("MatMul", query, self.one("Transpose", key, perm=[0, 1, 3, 2]))
        weights = self.one("Softmax", scores, axis=-1)
        return self.one("Reshape", self.one("Transpose", self.one("MatMul", weights, value), perm=[0, 2, 1, 3]), self._together)

    def _dense(self, state: str, name: str, matrix: "Numbers", bias: "Numbers") -> str:
        """Multiply by a matrix of small whole numbers, each column with what one of them is worth."""
        sizes = self._sizes[name]
        smaller = numpy.maximum(sizes / (_USUAL * numpy.median(sizes)), 1).astype("float32")
        if smaller.max() > 1:
            state = self.one("Mul", state, self.constant(1 / smaller))
            matrix = matrix * smaller[:, None]
        worth = numpy.maximum(numpy.abs(matrix).max(axis=0) / _LARGEST, 1e-12).astype("float32")
        small = self.constant(numpy.rint(matrix / worth).astype("int8"))
        rounded, scale, zero = self.node("DynamicQuantizeLinear", [state], 3, {})
        whole = self.one("Cast", self.one("MatMulInteger", rounded, small, zero), to=1)
        exact = self.one("Mul", whole, self.one("Mul", scale, self.constant(worth)))
        return self.one("Add", exact, self.constant(bias))

    def _scaled(self, state: str, name: str) -> str:
        weight, bias = (self.constant(self._arrays[f"{name}.{what}"]) for what in ("weight", "bias"))
        return self.one("LayerNormalization", state, weight, bias, axis=-1, epsilon=EPSILON)
