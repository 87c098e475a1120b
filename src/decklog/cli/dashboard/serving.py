"""Serving the dashboard: which log, under which name, and the links that log a browser in."""

import os
import sys
from dataclasses import replace
from threading import Thread
from types import ModuleType
from typing import TYPE_CHECKING

import click

from decklog.cli.call import Invocation
from decklog.cli.show import show
from decklog.core.errors import Unavailable
from decklog.core.extras import install_hint

if TYPE_CHECKING:
    from decklog.location.locate import LogLocation
    from decklog.log import Decklog
    from decklog.mcp.token import Token
    from decklog.web.hosts import Elsewhere
    from decklog.web.site import DashboardSite


def run(
    call: Invocation,
    port: int | None,
    read_only: bool,
    key: str | None,
    metrics_token: str | None = None,
    **elsewhere: str | None,
) -> None:
    """Serve the selected log until a signal ends it. `elsewhere` has the options for access from other machines."""
    server = _server()
    far = _far(elsewhere)
    place = call.place()
    place.must_exist()
    with place.open(read_only=read_only or place.is_read_only) as log:
        site = replace(_site(log, place, port, key, far), metrics_token=_token(metrics_token))
        sockets = server.listening(site.names.port, None if far is None or far.is_near else far.host)
        with server.ready(site, far) as answer:
            _tell(site, as_json=call.json)
            if sys.stdin.isatty():
                Thread(target=_more_links, args=(site,), name="decklog links", daemon=True).start()
            answer(sockets)


def _server() -> ModuleType:
    try:
        from decklog.web import server
    except ImportError as problem:
        raise Unavailable(
            f"the dashboard needs a package that is not installed: {problem.name}", hint=install_hint("web")
        ) from None
    return server


def _token(path: str | None) -> "Token | None":
    from decklog.mcp.token import find_token

    return None if path is None else find_token(path, {})


def _far(given: dict[str, str | None]) -> "Elsewhere | None":
    from decklog.web.hosts import Elsewhere

    return Elsewhere(**given) if any(given.values()) else None


def _site(log: "Decklog", place: "LogLocation", port: int | None, key: str | None, far: "Elsewhere | None") -> "DashboardSite":
    from decklog.web.hosts import FIRST_PORT, remembered
    from decklog.web.live import Feed
    from decklog.web.sessions import BrowserSessions
    from decklog.web.site import DashboardSite

    sessions = BrowserSessions(now=log.clock.now)
    if far is not None:
        names, password = far.names(port or FIRST_PORT), far.password()
        return DashboardSite(log, _name(place), names, sessions, Feed(log), key, password)
    return DashboardSite(log, _name(place), remembered(place.target, port), sessions, Feed(log), key)


def _name(place: "LogLocation") -> str:
    """Name the log as its people do: by the folder that it is kept for, or by its database."""
    if place.is_server:
        return place.shown.partition("?")[0].rpartition("/")[2] or "decklog"
    folder = os.path.dirname(os.path.realpath(place.path))
    return os.path.basename(os.path.dirname(folder) if os.path.basename(folder) == ".decklog" else folder) or "decklog"


def _tell(site: "DashboardSite", *, as_json: bool = False) -> None:
    link = f"{site.names.origin}/login#{site.sessions.new_link()}"
    if as_json:
        show({"origin": site.names.origin, "login": link}, as_json=True)
    else:
        click.echo(f"{link}\n  good for one browser and five minutes; Enter makes another, Ctrl-C ends it")
    sys.stdout.flush()


def _more_links(site: "DashboardSite") -> None:
    for _ in sys.stdin:
        _tell(site)
