"""The dashboard as one ASGI application: routes, pages, forms and error pages."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, quote

from anyio import to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from decklog.core.errors import DecklogError, Denied, Invalid, NotFound
from decklog.web import actions, health, live
from decklog.web.hosts import Password
from decklog.web.indexing import keep_indexed
from decklog.web.login import SANDBOX, App, BodyTooLarge, LoginRequired, RequestGuard, login_address, page_after_login, peer_uid
from decklog.web.pages import finding, inbox, lines, others, run, runs, spend, tasks, work_item
from decklog.web.pages.entries import read_entry
from decklog.web.rendering import TYPES, assets, compressed_asset, edition, page, segment
from decklog.web.sessions import BY_PASSWORD, NO_COOKIE, BrowserSession, build_cookie
from decklog.web.site import TITLES, DashboardSite, PageView, SiteRequest, error_envelope, http_status, public_error

Reader = Callable[[SiteRequest], PageView]
Endpoint = Callable[[Request], Any]

# Each page and its address. The same address with `.json` serves its data. The first matching route wins.
PAGES: dict[str, Reader] = {
    "/now": runs.read_now,
    "/runs": runs.read,
    "/inbox": inbox.read,
    "/inbox/{kind}/{id:path}": inbox.item,
    "/spend": spend.read,
    "/search": finding.search,
    "/more": finding.more,
    "/compare": others.compare,
    "/memory": others.memory,
    "/workflow": others.workflow_page,
    "/trust": others.trust,
    "/system": others.system,
    "/lines": lines.read,
    "/lines/commit": lines.commit,
    "/lines/file": lines.file,
    "/lines/why": lines.why,
    "/tasks": tasks.read,
    "/tasks/{task_id:path}/change": tasks.read_change,
    "/tasks/{task_id:path}": tasks.one,
    "/reviews/{review_id:path}": others.review_page,
    "/act/{verb}/{id:path}": actions.read,
    "/palette": finding.palette,
    "/views": finding.views,
    "/runs/{run_id:path}/items/{item}": work_item.read,
    "/runs/{run_id:path}/changes": work_item.changes,
    "/runs/{run_id:path}/rows": run.rows,
    "/runs/{run_id:path}/entries/{seq:int}": read_entry,
    "/runs/{run_id:path}/{tab:tab}": run.read,
}
READERS = 8


class _Tab(StringConvertor):
    """A tab of a run by name. One route for all tabs is faster than one route each, which are tried in order."""

    regex = "|".join(run.TABS)


register_url_convertor("tab", _Tab())
_log = logging.getLogger("decklog.web")


def application(site: DashboardSite) -> App:
    """Build the ASGI application of a dashboard."""
    routes = [Route("/", _page_endpoint(site, runs.read_now))]
    for path, read in PAGES.items():
        routes += [Route(f"{path}.json", _json_endpoint(site, read)), Route(path, _page_endpoint(site, read))]
    routes += [
        Route("/runs/{run_id:path}", lambda request: _redirect(f"/runs/{segment(request.path_params['run_id'])}/overview")),
        Route("/workflow.svg", _drawing_endpoint(site)),
        Route("/artifacts/{id:path}", _artifact_endpoint(site)),
        Route("/events", _events_endpoint(site)),
        Route("/login", _login_endpoint(site)),
        Route("/login", _log_in_endpoint(site), methods=["POST"]),
        Route("/logout", _log_out_endpoint(site), methods=["POST"]),
        Route("/system/sessions/{name}/end", _form_endpoint(site, others.end_session), methods=["POST"]),
        Route("/system/verify", _form_endpoint(site, others.verify_log), methods=["POST"]),
        Route("/static/{edition}/{name:path}", _static),
        Route("/favicon.ico", lambda request: _static_file(request, "icon.svg")),
        *health.routes(site),
    ]
    if not site.is_read_only:
        decide, change = _form_endpoint(site, inbox.decide), _form_endpoint(site, tasks.change)
        routes.insert(0, Route("/inbox/{kind}/{id:path}/decide", decide, methods=["POST"]))
        routes.insert(0, Route("/tasks/{task_id:path}/change", change, methods=["POST"]))
        routes.insert(0, Route("/views/save", _form_endpoint(site, finding.save_view), methods=["POST"]))
        routes.insert(0, Route("/views/remove", _form_endpoint(site, finding.remove_view), methods=["POST"]))
        routes.insert(0, Route("/act/{verb}/{id:path}", _form_endpoint(site, actions.act), methods=["POST"]))
    handlers: Any = {404: _not_found(site), 405: _not_found(site), BodyTooLarge: _too_large, 500: _internal_error}
    starlette = Starlette(routes=routes, lifespan=_lifespan(site), exception_handlers=handlers)
    return RequestGuard(LoginRequired(starlette, site.sessions, site.metrics_token), site.names)


def _lifespan(site: DashboardSite) -> Any:
    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        # Each reader blocks a thread. More threads would only wait for each other.
        to_thread.current_default_thread_limiter().total_tokens = READERS
        indexing = asyncio.create_task(keep_indexed(site.log))
        yield
        indexing.cancel()
        with suppress(asyncio.CancelledError):
            await indexing

    return lifespan


def _build_request(site: DashboardSite, request: Request, form: dict[str, str] | None = None) -> SiteRequest:
    path = {name: str(value) for name, value in request.path_params.items()}
    return SiteRequest(site, request.state.session, path, dict(request.query_params), form or {}, _json_url(request))


def _json_url(request: Request) -> str:
    """Return the address of the page's JSON form."""
    path = "/now" if request.url.path == "/" else request.url.path.removesuffix("/decide")
    return f"{path}.json" + (f"?{request.url.query}" if request.url.query else "")


def _page_endpoint(site: DashboardSite, read: Reader) -> Endpoint:
    def endpoint(request: Request) -> Response:
        site_request = _build_request(site, request)
        try:
            view = read(site_request)
            return _redirect(view.to) if view.to else _html(site_request, view)
        except Exception as problem:  # noqa: BLE001 - every error becomes an error page
            return _error_page(site_request, problem)

    return endpoint


def _drawing_endpoint(site: DashboardSite) -> Endpoint:
    def endpoint(request: Request) -> Response:
        try:
            return Response(others.workflow_picture(_build_request(site, request)), media_type="image/svg+xml")
        except Exception as problem:  # noqa: BLE001 - every error is answered without a picture
            _log_error(problem)
            return Response("The drawing is not available.\n", http_status(problem), media_type="text/plain; charset=utf-8")

    return endpoint


def _artifact_endpoint(site: DashboardSite) -> Endpoint:
    """Build the endpoint that sends an artifact as a download, which browsers don't render as a page."""

    def endpoint(request: Request) -> Response:
        try:
            artifact = site.log.artifacts.get(request.path_params["id"])
            content = site.log.artifacts.content_bytes(artifact.id)
        except Exception as problem:  # noqa: BLE001 - every error becomes an error page
            return _error_page(_build_request(site, request), problem)
        name = quote(artifact.path.rpartition("/")[2] or "artifact", safe="")
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{name}", "content-security-policy": SANDBOX}
        return Response(content, headers=headers, media_type="application/octet-stream")

    return endpoint


def _json_endpoint(site: DashboardSite, read: Reader) -> Endpoint:
    def endpoint(request: Request) -> Response:
        try:
            view = read(_build_request(site, request))
        except Exception as problem:  # noqa: BLE001 - every error becomes a JSON error
            _log_error(problem)
            return _envelope(error_envelope(problem), http_status(problem))
        return _envelope({"ok": True, "data": to_data(view.data), "next": view.next, "warnings": []}, 200)

    return endpoint


def to_data(value: Any) -> Any:
    """Return a result as plain JSON values."""
    if hasattr(value, "as_dict"):
        return to_data(value.as_dict())
    if isinstance(value, dict):
        return {key: to_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(item) for item in value]
    return value


def _envelope(content: dict[str, Any], status: int) -> Response:
    # Escape markup characters, so that a browser that guesses HTML finds no script in it.
    text = json.dumps(content).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Response(text, status, media_type="application/json; charset=utf-8")


def _html(site_request: SiteRequest, view: PageView) -> Response:
    decisions = site_request.log.overview.decisions() if view.decisions is None else view.decisions
    now_ = site_request.log.clock.now()
    token = site_request.session.form_token("logout", "")
    common = {"site": site_request.site, "json_url": site_request.json_url}
    text = page(site_request, view, now=now_, decisions=decisions, logout_token=token, **common)
    return Response(text, view.status, media_type="text/html; charset=utf-8")


def _error_page(site_request: SiteRequest, problem: Exception) -> Response:
    _log_error(problem)
    status = http_status(problem)
    shown = {"problem": public_error(problem), "status": status}
    view = PageView(
        "error.html", TITLES[status], "decklog doctor", None, shown, status=status, decisions=_decisions(site_request)
    )
    try:
        return _html(site_request, view)
    except DecklogError:
        return Response(f"{TITLES[status]}.\n", status, media_type="text/plain; charset=utf-8")


def _decisions(site_request: SiteRequest) -> int:
    """Count the open decisions for the navigation bar of an error page. Return 0 if the log can't be read."""
    try:
        return site_request.log.overview.decisions()
    except DecklogError:
        return 0


def _log_error(problem: Exception) -> None:
    if not isinstance(problem, DecklogError):
        _log.error("a page failed", exc_info=problem)


def _redirect(path: str) -> Response:
    return RedirectResponse(path, 303)


def _redirect_to_login() -> Response:
    return RedirectResponse("/login", 303, headers={"set-cookie": NO_COOKIE})


async def _parse_form(request: Request) -> dict[str, str]:
    """Parse a form's fields. A field that is given twice is dropped."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise Invalid("a form must be sent as application/x-www-form-urlencoded")
    try:
        pairs = parse_qsl((await request.body()).decode("ascii"), keep_blank_values=True, max_num_fields=20, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise Invalid("the form can't be parsed") from None
    if len({name for name, _ in pairs}) != len(pairs):
        raise Invalid("the form has the same field twice")
    return dict(pairs)


def _form_endpoint(site: DashboardSite, act: Callable[[SiteRequest], PageView | str]) -> Endpoint:
    """Build the endpoint that passes a form to `act`. It redirects to the returned address, or shows the form again."""

    async def endpoint(request: Request) -> Response:
        site_request = _build_request(site, request)
        try:
            site_request = _build_request(site, request, await _parse_form(request))
            answer = await run_in_threadpool(act, site_request)
            if isinstance(answer, str):
                return _redirect(segment(answer)) if site.sessions.has(site_request.session) else _redirect_to_login()
            return await run_in_threadpool(_html, site_request, answer)
        except BodyTooLarge:
            raise
        except Exception as problem:  # noqa: BLE001 - every error becomes an error page
            return await run_in_threadpool(_error_page, site_request, problem)

    return endpoint


# The messages of the login page, by the field that was wrong.
_LOGIN_PROBLEMS = {
    "password": "Wrong password, or too many wrong ones in the last minute.",
    "code": "This code was used already, or is older than five minutes. Press Enter in the terminal for a new one.",
}


def _login_endpoint(site: DashboardSite) -> Endpoint:
    """Build the endpoint of the login page. It redirects to `next` if the browser is logged in already."""

    def endpoint(request: Request) -> Response:
        following = page_after_login(request.query_params.get("next"))
        # Redirect only with a target page: the address may have a login code in its fragment, which a redirect would keep.
        if following and site.sessions.known(request.headers.get("cookie"), peer_uid(request.scope)) is not None:
            return _redirect(following)
        wrong = request.query_params.get("wrong")
        return _login_page(site, wrong=wrong if wrong in _LOGIN_PROBLEMS else None, following=following)

    return endpoint


def _login_page(
    site: DashboardSite, status: int = 200, *, wrong: str | None = None, problem: str | None = None, following: str | None = None
) -> Response:
    view = PageView("login.html", "Log in", "decklog serve", None, status=status)
    shown = {"problem": problem or _LOGIN_PROBLEMS.get(wrong or ""), "wrong": wrong, "following": following}
    text = page(None, view, has_password=site.password is not None, **shown)
    return Response(text, status, media_type="text/html; charset=utf-8")


def _log_in_endpoint(site: DashboardSite) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            form = await _parse_form(request)
        except Invalid as problem:
            return _login_page(site, 400, problem=problem.message)
        agent, uid = request.headers.get("user-agent", ""), peer_uid(request.scope)
        following, wrong = page_after_login(form.get("next")), "code"
        if site.password is not None and "password" in form:
            session = await run_in_threadpool(_check_password, site, site.password, form["password"], agent, uid)
            wrong = "password"
        else:
            session = site.sessions.log_in(form.get("token", "").strip(), agent, uid)
        if session is None:
            # Redirect, so that reloading the page does not send the wrong password again.
            return _redirect(login_address(wrong=wrong, following=following))
        site.feed.renew()
        headers = {"set-cookie": build_cookie(session, is_secure=site.names.is_secure)}
        return RedirectResponse(following or "/", 303, headers=headers)

    return endpoint


def _check_password(site: DashboardSite, password: Password, given: str, agent: str, uid: int | None) -> BrowserSession | None:
    """Log in with the password. After too many wrong passwords every login is refused for a while."""
    guesses = site.sessions.passwords
    if guesses.pause() > 0:
        return None
    if not password.fits(given):
        guesses.count_wrong()
        return None
    guesses.forget_wrong()
    return site.sessions.begin(BY_PASSWORD, agent, uid)


def _log_out_endpoint(site: DashboardSite) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        session, form = request.state.session, await _parse_form(request)
        if not session.is_form_token(form.get("token", ""), "logout", ""):
            problem = Denied("the form belongs to another session")
            return await run_in_threadpool(_error_page, _build_request(site, request), problem)
        if form.get("everywhere"):
            site.sessions.log_out_all()
        site.sessions.log_out(session)
        site.feed.renew()
        return _redirect_to_login()

    return endpoint


def _events_endpoint(site: DashboardSite) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        session = request.state.session
        if session.streams >= live.MOST_OF_A_SESSION or site.feed.listener_count >= live.MOST_STREAMS:
            return _envelope(error_envelope(Denied("too many streams are open")), 429)
        stream = site.feed.stream(lambda: site.sessions.has(session))
        headers = {"x-accel-buffering": "no", "cache-control": "no-store"}
        return StreamingResponse(_count_stream(session, stream), media_type="text/event-stream", headers=headers)

    return endpoint


async def _count_stream(session: Any, stream: AsyncIterator[str]) -> AsyncIterator[str]:
    session.streams += 1
    try:
        async for text in stream:
            yield text
    finally:
        session.streams -= 1


def _static(request: Request) -> Response:
    if request.path_params["edition"] != edition():
        return Response("This file is from another version. Reload the page.\n", 404, media_type="text/plain; charset=utf-8")
    return _static_file(request, request.path_params["name"])


def _static_file(request: Request, name: str) -> Response:
    if name not in assets():
        return Response("There is no such file.\n", 404, media_type="text/plain; charset=utf-8")
    kind = TYPES[name[name.rindex(".") :]]
    headers = {"content-type": kind, "cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(assets()[name], headers=headers)
    return Response(compressed_asset(name), headers={**headers, "content-encoding": "gzip"})


def _not_found(site: DashboardSite) -> Callable[[Request, Any], Response]:
    def handler(request: Request, problem: Any) -> Response:
        missing = NotFound("there is no page at this address", hint="Use the navigation bar above, or More.")
        if request.url.path.endswith(".json"):
            return _envelope(error_envelope(missing), problem.status_code)
        if problem.status_code == 404 and getattr(request.state, "session", None) is not None:
            return _error_page(_build_request(site, request), missing)
        return Response("There is no such page.\n", problem.status_code, media_type="text/plain; charset=utf-8")

    return handler


def _too_large(_: Request, __: Exception) -> Response:
    return Response("The request is too large.\n", 413, media_type="text/plain; charset=utf-8")


def _internal_error(_: Request, problem: Exception) -> Response:
    _log_error(problem)
    return Response("Internal error.\n", 500, media_type="text/plain; charset=utf-8")
