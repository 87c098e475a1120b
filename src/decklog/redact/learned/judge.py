"""Judges the values that the rules have left, by weights that were learned from examples."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache

from decklog.redact.learned.evidence import Context, Tongue, evidence, worth_asking
from decklog.redact.learned.pieces import near_family
from decklog.redact.view import Found, View

KIND = "likely"


class Judge:
    """What each piece of evidence weighs, and how much is enough."""

    def __init__(self, weights: dict[str, int], enough: int, tongue: Tongue) -> None:
        self._weights = weights
        self._enough = enough
        self._tongue = tongue

    def find(self, view: View, taken: Iterable[Found] = ()) -> Iterator[Found]:
        """Find the values that are likely a secret, apart from those that are taken already."""
        places = together(taken)
        for piece in near_family(view.text, view.data):
            values = [one for one in worth_asking(piece, self._tongue) if not is_taken(places, *one.within(piece))]
            context = Context(piece) if values else None
            for one in values:
                if context and self.weigh(evidence(context, one, self._tongue)) >= self._enough:
                    yield Found(*one.within(piece), KIND)

    def weigh(self, found: set[str]) -> int:
        """Give the sum of what was found."""
        weights = self._weights
        return sum([weights[name] for name in found if name in weights])


def together(taken: Iterable[Found]) -> list[int]:
    """Give where what is taken begins and ends, in turn; what overlaps is one."""
    places: list[int] = []
    for start, end, _ in sorted(taken):
        if places and start <= places[-1]:
            places[-1] = max(places[-1], end)
        else:
            places += [start, end]
    return places


def is_taken(places: list[int], start: int, end: int) -> bool:
    """Tell whether something from a start to an end lies in what is taken."""
    place = bisect_right(places, start)
    return place % 2 == 1 or (place < len(places) and places[place] < end)


@cache
def learned() -> Judge:
    """Give the judge by the weights that came with the package."""
    # Here, and not before: only a text that has something to be judged needs them.
    import json
    from importlib.resources import files

    table = json.loads(files(__package__).joinpath("weights.json").read_text(encoding="utf-8"))
    weights = {name: int(weight) for weight, names in table["weights"].items() for name in names}
    return Judge(weights, table["enough"], Tongue(table["pairs"], table["words"].split()))


def find(view: View, taken: Iterable[Found] = ()) -> Iterator[Found]:
    """Find the values that are likely a secret, apart from those that are taken already."""
    return learned().find(view, taken)
