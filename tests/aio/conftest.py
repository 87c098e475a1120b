"""Asynchronous tests run on both engines, under asyncio and under trio. Most take `alog`."""

import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest

from decklog import AsyncClaim, AsyncDecklog, Decklog
from tests.waiting import wait_until

LOOPS = ("asyncio", "trio")
# One for each connection that a log uses at most, and one that listens.
MOST_THREADS = 17


class Failure(Exception):
    pass


async def claimed(alog: AsyncDecklog, worker: str = "w", **more: Any) -> AsyncClaim:
    """Claim a task that is there."""
    claim = await alog.tasks.claim("run_1", worker=worker, **more)
    assert claim is not None
    return claim


def our_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("decklog")]


def open_files(path: str) -> list[str]:
    """Name the descriptors of this process that lead to a log's files."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return [name for name in found if name.startswith(path)]


@pytest.fixture(params=LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def started(log: Decklog) -> Iterator[Decklog]:
    """A log with a run; afterwards no thread and no file of it may be left."""
    log.runs.start("Make the parser faster", run_id="run_1")
    yield log
    log.close()
    wait_until(lambda: our_threads() == [], 10)
    wait_until(lambda: open_files(log.db.target) == [], 10)


@pytest.fixture
async def alog(started: Decklog, anyio_backend: str) -> AsyncIterator[AsyncDecklog]:
    """The log as tasks see it."""
    async with AsyncDecklog(started) as alog:
        yield alog
