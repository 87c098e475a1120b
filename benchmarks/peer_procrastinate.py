"""procrastinate on PostgreSQL: jobs that do nothing are deferred, then its own worker drains them."""

import asyncio
import logging
import sys
import time

from benchmarks.children import work_as_child


async def drain(url: str, count: int, concurrency: int) -> float:
    """Defer, then time the worker from its first job to its last: all but the last were fetched, run and ended in that time."""
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=url, min_size=concurrency + 2, max_size=concurrency + 2))
    begun: list[float] = []

    @app.task(name="work")
    async def work(**_: object) -> None:
        begun.append(time.perf_counter())

    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        await work.batch_defer_async(*({"number": number, "body": "x" * 150} for number in range(count)))
        await app.run_worker_async(concurrency=concurrency, wait=False, install_signal_handlers=False, listen_notify=False)
    return (count - 1) / (begun[-1] - begun[0])


def main(url: str, count: str, concurrency: str) -> None:
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    work_as_child(lambda _: [asyncio.run(drain(url, int(count), int(concurrency)))])


if __name__ == "__main__":
    main(*sys.argv[1:])
