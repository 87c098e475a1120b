"""The layers of the model with their weights as they are, multiplied by numpy."""

from typing import TYPE_CHECKING, Any

from decklog.stores.memory.semantic.arrays import numpy
from decklog.stores.memory.semantic.weights import EPSILON, HEADS, OF_HEAD, WIDTH, attention_of, dense_of, layers_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float32]

# How much of a number, and of its cube, is in what it is bent by.
_PLAIN, _CUBED = numpy.float32(0.7978845608), numpy.float32(0.7978845608 * 0.044715)


class ExactLayers:
    """All layers, one after the other."""

    # So many pieces go through together: more would not fit the caches, fewer would not fill the multiplications.
    together = 2_048

    def __init__(self, arrays: "dict[str, NDArray[Any]]") -> None:
        self.layers = [TransformerLayer(arrays, part) for part in layers_in(arrays)]

    def __call__(self, state: "Numbers", beyond: "Numbers") -> "Numbers":
        texts, pieces, _ = state.shape
        flat = state.reshape(-1, WIDTH)
        # Of a text alone, as a question is, nothing has to be kept out.
        kept_out = beyond if beyond.any() else None
        for layer in self.layers:
            flat = layer(flat, texts, kept_out)
        return flat.reshape(texts, pieces, WIDTH)


class TransformerLayer:
    """One layer: what each piece takes from the others, and what it makes of it."""

    def __init__(self, arrays: "dict[str, NDArray[Any]]", part: str) -> None:
        self._asked, self._asked_bias = attention_of(arrays, part)
        self._told, self._told_bias = dense_of(arrays, part + "attention.output.dense")
        self._after_told = Scale(arrays, part + "attention.output.LayerNorm")
        self._wide, self._wide_bias = dense_of(arrays, part + "intermediate.dense")
        self._narrow, self._narrow_bias = dense_of(arrays, part + "output.dense")
        # What is bent comes twice as large.
        self._narrow = self._narrow * numpy.float32(0.5)
        self._after = Scale(arrays, part + "output.LayerNorm")

    def __call__(self, state: "Numbers", texts: int, beyond: "Numbers | None") -> "Numbers":
        told = self.told(self.taken(state, texts, beyond), state)
        return self.made(self.wide(told), told)

    def taken(self, state: "Numbers", texts: int, beyond: "Numbers | None") -> "Numbers":
        """Return what each piece takes from those of its text, by how well they answer what it asks."""
        asked = state @ self._asked
        asked += self._asked_bias
        query, key, value = asked.reshape(texts, -1, 3, HEADS, OF_HEAD).transpose(2, 0, 3, 1, 4)
        scores = query @ key.transpose(0, 1, 3, 2)
        if beyond is not None:
            scores += beyond
        scores -= numpy.maximum.reduce(scores, axis=-1, keepdims=True)
        numpy.exp(scores, out=scores)
        scores /= numpy.add.reduce(scores, axis=-1, keepdims=True)
        taken: Numbers = (scores @ value).transpose(0, 2, 1, 3).reshape(-1, WIDTH)
        return taken

    def told(self, taken: "Numbers", state: "Numbers") -> "Numbers":
        """Return each piece with what it has taken."""
        told: Numbers = taken @ self._told
        told += self._told_bias
        told += state
        return self._after_told(told)

    def wide(self, told: "Numbers") -> "Numbers":
        """Return what each piece is looked at for, bent and twice as large."""
        wide = told @ self._wide
        wide += self._wide_bias
        return _bent(wide)

    def made(self, wide: "Numbers", told: "Numbers") -> "Numbers":
        """Return what each piece makes of that."""
        made: Numbers = wide @ self._narrow
        made += self._narrow_bias
        made += told
        return self._after(made)


class Scale:
    """Brings each vector to the same mean and spread."""

    def __init__(self, arrays: "dict[str, NDArray[Any]]", name: str) -> None:
        self._weight, self._bias = arrays[name + ".weight"], arrays[name + ".bias"]

    def __call__(self, state: "Numbers") -> "Numbers":
        """Change a state in place: at a question's length, making an array takes as long as filling it."""
        mean = numpy.add.reduce(state, axis=-1, keepdims=True)
        mean /= WIDTH
        state -= mean
        # Summed in this order: weights of seven bits turn a difference in the last digit into another vector.
        spread = numpy.einsum("...w,...w->...", state, state)
        spread /= WIDTH
        spread += EPSILON
        numpy.sqrt(spread, out=spread)
        state /= spread[..., None]
        state *= self._weight
        state += self._bias
        return state


def _bent(value: "Numbers") -> "Numbers":
    """Bend numbers as the model was trained with, twice as large, in the form that needs no integral.

    That differs in the fourth digit.
    """
    inner = value * value
    inner *= _CUBED
    inner += _PLAIN
    inner *= value
    numpy.tanh(inner, out=inner)
    inner += 1
    inner *= value
    return inner
