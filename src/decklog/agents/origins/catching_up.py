"""Intake of waiting hook events before a query, so that its answer has the newest edits."""

import time
from typing import TYPE_CHECKING

from decklog.agents.intake import take_in

if TYPE_CHECKING:
    from decklog.agents.spool import Spool
    from decklog.log import Decklog

_LONGEST_SECONDS = 5.0
_STEP_SECONDS = 0.02


def catch_up(log: "Decklog", spool: "Spool") -> None:
    """Take in waiting events. If another process does so, wait for it, but not long."""
    if log.db.read_only:
        return
    end = time.monotonic() + _LONGEST_SECONDS
    while take_in(log, spool).is_left_to_another and not spool.is_empty and time.monotonic() < end:
        time.sleep(_STEP_SECONDS)
