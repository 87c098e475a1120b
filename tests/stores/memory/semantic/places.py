"""Where the model of this machine is, before tests are told that there is none."""

import os

from decklog.stores.memory.semantic import model

_given = os.environ.pop("DECKLOG_MODELS", None)
_place = model.folder()
if _given is not None:
    os.environ["DECKLOG_MODELS"] = _given
REAL = _place if os.path.isdir(_place) and model.flaw(_place) is None else None
