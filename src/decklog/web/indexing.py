"""The text index, kept up to date while the dashboard runs."""

import asyncio
import logging

from anyio import to_thread

from decklog.core.errors import DecklogError
from decklog.log import Decklog

_PAUSE_SECONDS, _IDLE_SECONDS = 0.05, 5.0
_log = logging.getLogger("decklog.web")


async def keep_indexed(log: Decklog) -> None:
    """Index new entries in small steps until cancelled: first of unfinished runs, then of all."""
    if log.db.read_only:
        return
    left = 0
    while True:
        await asyncio.sleep(_PAUSE_SECONDS if left else _IDLE_SECONDS)
        left = 0
        try:
            left = await to_thread.run_sync(_step, log)
        except DecklogError as problem:
            # The log may be busy or unavailable for a moment; pages show that.
            _log.info("the text index is not updated: %s", problem)


def _step(log: Decklog) -> int:
    """Index some entries and return how many are left."""
    return log.journal.index_some(going_on=True) or log.journal.index_some()
