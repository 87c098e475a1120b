"""Vectors in a row, compared with a question's: by numpy where it is installed, and else, slowly, by Python alone.

Up to 30,000 of them are compared as they are. Of more than that only the signs of all numbers are compared at first, and then the
best by their numbers in eight bits each: that takes a quarter of the room, and of 100,000 three quarters of the time.
"""

from array import array
from heapq import nlargest
from importlib.util import find_spec
from math import sqrt
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, Protocol

from decklog.db.search.vectors import unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

# Of so many or fewer, each is compared with all its digits: up to about here that takes no longer than the two steps do.
EXACT = 30_000
# So many of the best by their signs are compared by their numbers.
_LOOKED_AT = 2_000
# From so many, spread over all, it is read how near a question is to lessons in general.
_SAMPLE = 4_000
# So many spreads above the mean are one in forty, among which the nearest nearly always are.
_FAR_ABOVE = 2.0
_SMALLEST_ROOM = 256


class Near(NamedTuple):
    """The cosines of the nearest and of those that were asked for, by their places; and how near lessons are in general."""

    cosines: "dict[int, float]"
    mean: float
    spread: float


class VectorRows(Protocol):
    """Vectors of length 1, packed as 32-bit floats, each at its place."""

    def append(self, vectors: "Sequence[bytes]") -> None:
        """Put vectors behind those that there are."""

    def replace(self, place: int, by: int) -> None:
        """Put the vector of one place into another."""

    def shorten(self) -> None:
        """Take the last vector away."""

    def near(self, vector: "Sequence[float]", places: "Sequence[int] | None", also: "Sequence[int]", limit: int) -> Near:
        """Find the nearest among some places, or all of them; give the cosines of others too."""


def rows_for(dimensions: int, count: int) -> VectorRows:
    """Return an empty row of vectors that is fit for so many."""
    if find_spec("numpy") is None:
        return PlainRows()
    return QuantisedRows(dimensions) if count > EXACT else ExactRows(dimensions)


class PlainRows:
    """Vectors as Python keeps them."""

    def __init__(self) -> None:
        self._vectors: list[array[float]] = []

    def append(self, vectors: "Sequence[bytes]") -> None:
        self._vectors += [unpacked(vector) for vector in vectors]

    def replace(self, place: int, by: int) -> None:
        self._vectors[place] = self._vectors[by]

    def shorten(self) -> None:
        del self._vectors[-1]

    def near(self, vector: "Sequence[float]", places: "Sequence[int] | None", also: "Sequence[int]", limit: int) -> Near:
        among = range(len(self._vectors)) if places is None else places
        cosines = {place: self._cosine(vector, place) for place in among}
        best = nlargest(limit, cosines, key=cosines.__getitem__)
        more = {place: cosines.get(place, 0.0) if place in cosines else self._cosine(vector, place) for place in also}
        return Near({**{place: cosines[place] for place in best}, **more}, *_spread(cosines.values()))

    def _cosine(self, vector: "Sequence[float]", place: int) -> float:
        return float(sum(map(mul, vector, self._vectors[place])))


def _spread(cosines: "Iterable[float]") -> tuple[float, float]:
    listed = list(cosines)
    mean = sum(listed) / max(len(listed), 1)
    return mean, sqrt(sum((cosine - mean) ** 2 for cosine in listed) / max(len(listed), 1))


class _Table:
    """An array that grows by doubling."""

    def __init__(self, width: int, kind: str) -> None:
        from decklog.stores.memory.semantic.arrays import numpy

        self.count = 0
        self._whole: Any = numpy.empty((_SMALLEST_ROOM, width), dtype=kind)

    @property
    def rows(self) -> "Any":
        return self._whole[: self.count]

    def append(self, rows: "Any") -> None:
        from decklog.stores.memory.semantic.arrays import numpy

        needed = self.count + len(rows)
        if needed > len(self._whole):
            grown = numpy.empty((max(needed, 2 * len(self._whole)), self._whole.shape[1]), dtype=self._whole.dtype)
            grown[: self.count] = self.rows
            self._whole = grown
        self._whole[self.count : needed] = rows
        self.count = needed


class ExactRows:
    """Vectors as numpy compares them."""

    def __init__(self, dimensions: int) -> None:
        self._table = _Table(dimensions, "float32")

    def append(self, vectors: "Sequence[bytes]") -> None:
        self._table.append(_matrix(vectors))

    def replace(self, place: int, by: int) -> None:
        self._table.rows[place] = self._table.rows[by]

    def shorten(self) -> None:
        self._table.count -= 1

    def near(self, vector: "Sequence[float]", places: "Sequence[int] | None", also: "Sequence[int]", limit: int) -> Near:
        from decklog.stores.memory.semantic.arrays import numpy

        asked = numpy.asarray(vector, dtype="float32")
        all_cosines = self._table.rows @ asked
        cosines = all_cosines if places is None else all_cosines[numpy.asarray(places, dtype="int64")]
        mean, spread = _mean_and_spread(cosines)
        best = _best_above(cosines, limit, mean + _FAR_ABOVE * spread)
        found = dict(zip((best if places is None else [places[at] for at in best]), map(float, cosines[best]), strict=True))
        found |= {place: float(all_cosines[place]) for place in also}
        return Near(found, mean, spread)


class QuantisedRows:
    """Vectors by the signs of their numbers and by their numbers in eight bits, with what one of these is worth."""

    def __init__(self, dimensions: int) -> None:
        self._signs = _Table((dimensions + 63) // 64, "uint64")
        self._small = _Table(dimensions, "int8")
        self._worth = _Table(1, "float32")

    def append(self, vectors: "Sequence[bytes]") -> None:
        from decklog.stores.memory.semantic.arrays import numpy

        matrix = _matrix(vectors)
        worth = numpy.maximum(numpy.abs(matrix).max(axis=1, keepdims=True) / 127, 1e-12).astype("float32")
        self._signs.append(self._signs_of(matrix))
        self._small.append(numpy.rint(matrix / worth).astype("int8"))
        self._worth.append(worth)

    def _signs_of(self, matrix: "Any") -> "Any":
        from decklog.stores.memory.semantic.arrays import numpy

        missing = -matrix.shape[1] % 64
        return numpy.packbits(numpy.pad(matrix > 0, ((0, 0), (0, missing))), axis=1).view("uint64")

    def replace(self, place: int, by: int) -> None:
        for table in (self._signs, self._small, self._worth):
            table.rows[place] = table.rows[by]

    def shorten(self) -> None:
        for table in (self._signs, self._small, self._worth):
            table.count -= 1

    def near(self, vector: "Sequence[float]", places: "Sequence[int] | None", also: "Sequence[int]", limit: int) -> Near:
        from decklog.stores.memory.semantic.arrays import numpy

        asked = numpy.asarray(vector, dtype="float32")
        among = None if places is None else numpy.asarray(places, dtype="int64")
        signs = self._signs.rows if among is None else self._signs.rows[among]
        differing = numpy.bitwise_count(signs ^ self._signs_of(asked[None, :])).sum(axis=1, dtype="int32")
        likely = _best(-differing, _LOOKED_AT)
        likely = likely if among is None else among[likely]
        cosines = self._cosines(asked, likely)
        best = _best(cosines, limit)
        found = dict(zip(map(int, likely[best]), map(float, cosines[best]), strict=True))
        others = numpy.asarray(also, dtype="int64")
        found |= dict(zip(also, map(float, self._cosines(asked, others)), strict=True))
        step = max(len(signs) // _SAMPLE, 1)
        sample = numpy.arange(0, len(signs), step) if among is None else among[::step]
        return Near(found, *_mean_and_spread(self._cosines(asked, sample)))

    def _cosines(self, asked: "Any", places: "Any") -> "Any":
        return (self._small.rows[places] @ asked) * self._worth.rows[places, 0]


def _matrix(vectors: "Sequence[bytes]") -> "Any":
    from decklog.stores.memory.semantic.arrays import numpy

    return numpy.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)


def _best(scores: "Any", limit: int) -> "Any":
    from decklog.stores.memory.semantic.arrays import numpy

    if len(scores) <= limit:
        return numpy.arange(len(scores))
    return numpy.argpartition(-scores, limit - 1)[:limit]


def _best_above(scores: "Any", limit: int, above: float) -> "Any":
    """Do as `_best`, where the best are nearly always above a number: of these few it takes a tenth of the time."""
    from decklog.stores.memory.semantic.arrays import numpy

    few = numpy.flatnonzero(scores > above)
    return few[_best(scores[few], limit)] if len(few) >= limit else _best(scores, limit)


def _mean_and_spread(cosines: "Any") -> tuple[float, float]:
    return (float(cosines.mean(dtype="float64")), float(cosines.std(dtype="float64"))) if len(cosines) else (0.0, 0.0)
