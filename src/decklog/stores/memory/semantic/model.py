"""The model that is kept here, as recall asks for it: known by its name at once, and read when a text is first embedded."""

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from decklog.core import fork_safety as forks
from decklog.core.errors import Unavailable
from decklog.core.extras import install_hint
from decklog.stores.memory.semantic import kept

if TYPE_CHECKING:
    from decklog.stores.memory.semantic.encoder import MiniLM

# The distribution that carries the weights, where it is installed; nothing of it is run.
PACKAGE = "decklog_model"


class KeptModel:
    """The sentence model of this machine."""

    name = kept.NAME
    dimensions = 384
    # Of the answers to questions in other words one in fifty has less; of questions about something else, most find nothing more.
    least = 0.25

    def __init__(self, place: str) -> None:
        self.place = place
        self._lock = forks.lock()
        self._encoder: MiniLM | None = None

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Return a vector of length 1 for each text."""
        with self._lock:
            if self._encoder is None:
                from decklog.stores.memory.semantic.encoder import MiniLM

                self._encoder = MiniLM(self.place)
        return self._encoder.embed(texts)


_known: dict[str, KeptModel] = {}


def kept_model() -> KeptModel:
    """Return the model of this machine; `Unavailable` says what is missing or damaged, and what to do."""
    if find_spec("numpy") is None:
        raise Unavailable("numpy is not installed", hint=install_hint("recall"))
    place = found_at()
    if not kept.is_there(place):
        raise Unavailable("the model is not installed", hint="Install it: decklog memory model install")
    if (flaw := kept.flaw(place)) is not None:
        raise Unavailable(f"the model is damaged: {flaw}", hint="Install it anew: decklog memory model install")
    return _known.setdefault(place, KeptModel(place))


def found_at() -> str:
    """Return the folder of the model: the user's own, or that of the distribution that carries it."""
    place = kept.folder()
    if not kept.is_there(place) and (carried := find_spec(PACKAGE)) is not None and carried.origin is not None:
        return os.path.dirname(carried.origin)
    return place
