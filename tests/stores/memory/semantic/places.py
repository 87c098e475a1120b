"""Where the model of this machine is, before tests are told that there is none."""

import os

from decklog.stores.memory.semantic import kept

_given = os.environ.pop("DECKLOG_MODELS", None)
_place = kept.folder()
if _given is not None:
    os.environ["DECKLOG_MODELS"] = _given
REAL = _place if kept.is_there(_place) and kept.flaw(_place) is None else None
