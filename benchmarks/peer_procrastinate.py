"""procrastinate on PostgreSQL: jobs that do nothing are deferred, then its own workers drain them."""

import asyncio
import logging
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.children import Crew, alone, work_as_child

if TYPE_CHECKING:
    from procrastinate import App


def rate(url: str, count: int, *, processes: int, concurrency: int) -> float:
    """Return the jobs a second of some workers, each with a number of concurrent jobs."""
    alone("benchmarks.peer_procrastinate", url, str(count))
    with Crew("benchmarks.peer_procrastinate", [(url, "", str(concurrency))] * processes) as crew:
        begun = [moment for moments in crew.ask()[1] for moment in moments]
    if len(begun) != count:
        raise RuntimeError(f"{len(begun)} of {count} jobs were done")
    # From the first job to the last: all but the last were fetched, run and ended in that time.
    return (count - 1) / (max(begun) - min(begun))


def _app(url: str, connections: int, begun: list[float]) -> "App":
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=url, min_size=connections, max_size=connections))

    @app.task(name="work")
    async def work(**_: object) -> None:
        begun.append(time.monotonic())

    return app


async def fill(url: str, count: int) -> list[float]:
    """Defer `count` jobs."""
    app = _app(url, 2, [])
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        await app.tasks["work"].batch_defer_async(*({"number": number, "body": "x" * 150} for number in range(count)))
    return []


async def drain(url: str, concurrency: int) -> list[float]:
    """Work until nothing is left; give when each job began, by a clock that all processes share."""
    begun: list[float] = []
    app = _app(url, concurrency + 2, begun)
    async with app.open_async():
        await app.run_worker_async(concurrency=concurrency, wait=False, install_signal_handlers=False, listen_notify=False)
    return begun


def main(url: str, count: str, concurrency: str = "1") -> None:
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    work_as_child(lambda _: asyncio.run(fill(url, int(count)) if count else drain(url, int(concurrency))))


if __name__ == "__main__":
    main(*sys.argv[1:])
