"""Endpoints for monitoring: whether the server runs, whether it can use its log, and metrics."""

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from decklog.core.errors import DecklogError
from decklog.core.metrics import prometheus_text
from decklog.transfer.doctor import check_ready, measure_gauges
from decklog.web.site import DashboardSite

LIVE, READY, METRICS = "/livez", "/readyz", "/metrics"
# A database that does not answer within this time is not ready.
_SECONDS = 2.0
_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


def routes(site: DashboardSite) -> list[Route]:
    """Build the routes of the endpoints."""
    return [Route(LIVE, _live), Route(READY, _Readiness(site).answer), Route(METRICS, _metrics(site))]


async def _live(_: Request) -> Response:
    return PlainTextResponse("ok\n")


class _Readiness:
    """Checks the log in a separate thread, one check at a time: a server that hangs takes no thread from the pages."""

    def __init__(self, site: DashboardSite) -> None:
        self._site = site
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decklog ready")
        self._check: Future[None] | None = None

    async def answer(self, _: Request) -> Response:
        if self._check is None or self._check.done():
            self._check = self._thread.submit(check_ready, self._site.log)
        try:
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._check)), _SECONDS)
        except TimeoutError:
            return PlainTextResponse(f"the log did not answer within {_SECONDS:g} seconds\n", 503)
        except DecklogError as problem:
            # Hide the message, which may name the server: clients have not logged in here.
            return PlainTextResponse(f"not ready: {problem.code}\n", 503)
        return PlainTextResponse("ok\n")


def _metrics(site: DashboardSite) -> Any:
    async def endpoint(_: Request) -> Response:
        found = await run_in_threadpool(measure_gauges, site.log)
        return Response(prometheus_text(found), media_type=_FORMAT)

    return endpoint
