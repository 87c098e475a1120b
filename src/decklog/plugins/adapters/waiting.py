"""Writing from a loop that awaits, without holding it up."""

from collections.abc import Callable
from typing import Any

from decklog.aio.calls import Job, insisted
from decklog.aio.transaction import present as transaction_of
from decklog.log import Decklog


async def away(log: Decklog, act: Callable[[], Any]) -> bool:
    """Write without blocking the loop, and finish even if cancelled; return whether it was."""
    transaction = transaction_of(log)
    if transaction is None and log.is_in_transaction:
        # A plain transaction is this thread's own.
        act()
        return False
    future, was_cancelled = await insisted(Job(act), log.submit if transaction is None else transaction.submit)
    future.result()
    return was_cancelled
