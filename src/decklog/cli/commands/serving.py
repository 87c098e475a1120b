"""Serve the dashboard to browsers, and tools to agents over MCP."""

import os
import sys
from dataclasses import replace
from threading import Thread
from types import ModuleType
from typing import TYPE_CHECKING

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.groups import for_the_owner
from decklog.cli.show import show
from decklog.cli.signing import load_token, print_address
from decklog.core.errors import Unavailable
from decklog.core.extras import install_hint
from decklog.location.locate import LogLocation

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.mcp.token import Token
    from decklog.web.hosts import Elsewhere
    from decklog.web.site import DashboardSite


def serve_dashboard(
    call: Invocation,
    port: int | None,
    read_only: bool,
    key: str | None,
    metrics_token: str | None = None,
    **elsewhere: str | None,
) -> None:
    """Serve the selected log until a signal ends the server. `elsewhere` has the options for remote access."""
    server = _import_server()
    far = _remote_access(elsewhere)
    place = call.place()
    place.must_exist()
    with place.open(read_only=read_only or place.is_read_only) as log:
        site = replace(_build_site(log, place, port, key, far), metrics_token=_metrics_token(metrics_token))
        sockets = server.listening(site.names.port, None if far is None or far.is_near else far.host)
        with server.ready(site, far) as answer:
            _print_link(site, as_json=call.json)
            if sys.stdin.isatty():
                Thread(target=_print_links, args=(site,), name="decklog links", daemon=True).start()
            answer(sockets)


def _import_server() -> ModuleType:
    try:
        from decklog.web import server
    except ImportError as problem:
        raise Unavailable(
            f"the dashboard needs a package that is not installed: {problem.name}", hint=install_hint("web")
        ) from None
    return server


def _metrics_token(path: str | None) -> "Token | None":
    from decklog.mcp.token import find_token

    return None if path is None else find_token(path, {})


def _remote_access(given: dict[str, str | None]) -> "Elsewhere | None":
    from decklog.web.hosts import Elsewhere

    return Elsewhere(**given) if any(given.values()) else None


def _build_site(
    log: "Decklog", place: LogLocation, port: int | None, key: str | None, far: "Elsewhere | None"
) -> "DashboardSite":
    from decklog.web.hosts import FIRST_PORT, load_server_names
    from decklog.web.live import ChangeFeed
    from decklog.web.sessions import BrowserSessions
    from decklog.web.site import DashboardSite

    sessions = BrowserSessions(now=log.clock.now)
    if far is not None:
        names, password = far.names(port or FIRST_PORT), far.password()
        return DashboardSite(log, _log_name(place), names, sessions, ChangeFeed(log), key, password)
    return DashboardSite(log, _log_name(place), load_server_names(place.target, port), sessions, ChangeFeed(log), key)


def _log_name(place: LogLocation) -> str:
    """Return a short name for the log: its folder or its database."""
    if place.is_server:
        return place.shown.partition("?")[0].rpartition("/")[2] or "decklog"
    folder = os.path.dirname(os.path.realpath(place.path))
    return os.path.basename(os.path.dirname(folder) if os.path.basename(folder) == ".decklog" else folder) or "decklog"


def _print_link(site: "DashboardSite", *, as_json: bool = False) -> None:
    link = f"{site.names.origin}/login#{site.sessions.new_link()}"
    if as_json:
        show({"origin": site.names.origin, "login": link}, as_json=True)
    else:
        click.echo(f"{link}\n  valid for one browser and five minutes; Enter prints another, Ctrl-C stops")
    sys.stdout.flush()


def _print_links(site: "DashboardSite") -> None:
    for _ in sys.stdin:
        _print_link(site)


def _prepare_process() -> None:
    """Prepare signals and logging for a long-running process."""
    import logging
    import signal

    # A thread that waits for input can't be stopped, so end at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Don't log the requests and tokens of clients to stderr.
    logging.getLogger().addHandler(logging.NullHandler())


def _serve_http(server: object, port: int, token_file: str | None) -> int:
    from decklog.mcp.http import listen, serve
    from decklog.mcp.token import VARIABLE

    token = load_token(token_file, VARIABLE)
    serve(server, listen(port), token, lambda address: print_address(address, token))  # type: ignore[arg-type]
    return 0


@for_the_owner
@click.command()
@click.option("--port", type=click.IntRange(1024, 65535), metavar="N", help="port; otherwise the last one used, or 8471")
@click.option("--read-only", is_flag=True, help="show everything, allow no decisions")
@click.option("--key", metavar="FILE", help="the owner's key file; each decision prompts for its passphrase")
@click.option("--metrics-token", metavar="FILE", help="file with the token for /metrics; created if it is missing")
@click.option("--host", metavar="ADDRESS", help="listen for other machines: with TLS or behind a proxy, and with a password")
@click.option("--name", metavar="NAME", help="host name of this machine, if other machines do not use its address")
@click.option("--tls-cert", "certificate", metavar="FILE", help="certificate with its chain")
@click.option("--tls-key", "certificate_key", metavar="FILE", help="key of the certificate")
@click.option(
    "--behind-proxy", "proxy", metavar="NAME", help="host name of a proxy with TLS, which must pass the Host header unchanged"
)
@click.option(
    "--password-file", metavar="FILE", help="file whose first line is the password for other machines; only you may read it"
)
@click.pass_obj
def serve(
    call: Invocation, /, port: int | None, read_only: bool, key: str | None, metrics_token: str | None, **elsewhere: str | None
) -> int:
    """Open the dashboard on this machine: what runs, what it costs, what waits for a decision, and any run at any moment.

    It listens on the loopback under its own name, unless --host is given. The link that it prints logs one browser in, once,
    within five minutes; Enter prints another. Ctrl-C ends it and every session.
    """
    serve_dashboard(call, port, read_only, key, metrics_token, **elsewhere)
    return 0


@click.command()
@click.option("--http", "port", type=click.IntRange(0, 65535), metavar="PORT", help="On HTTP of this machine; 0 takes any.")
@click.option("--token-file", metavar="FILE", help="The token is in this file, or is put there if there is none.")
@click.pass_obj
def mcp(call: Invocation, port: int | None, token_file: str | None) -> int:
    """Serve tools to agents by the Model Context Protocol: next, done, note, ask and others.

    On standard input and output, for the program that starts it. A log that is not there yet is looked for at every call.

    With --http it answers on 127.0.0.1 alone. Each request shows a token: from --token-file, which only its user may be able to
    read, from DECKLOG_MCP_TOKEN, or a new one that is shown on the terminal once. The header Decklog-Worker names the client's
    worker; without it the session does.
    """
    if token_file is not None and port is None:
        raise WrongUsage("--token-file needs --http", hint="Add --http PORT, or leave it out.")
    _prepare_process()
    try:
        from decklog.mcp.server import build
        from decklog.mcp.source import LogSource
    except ModuleNotFoundError as missing:
        what = f"the MCP server needs the package mcp, and {missing.name} is not installed"
        raise Unavailable(what, hint=install_hint("mcp")) from None
    source = LogSource(call.db)
    if port is not None:
        return _serve_http(build(source), port, token_file)
    from decklog.mcp.stdio import serve

    if sys.stdin.isatty():
        # A person at a terminal does not type JSON-RPC.
        sys.stderr.write(
            "Waiting for an MCP client on standard input; `decklog setup claude --mcp` registers this server. Ctrl-C stops.\n"
        )
    serve(build(source))
    return 0


@for_the_owner
@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--enforce", is_flag=True, help="Make the agent ask before it acts, as far as it can be made to; on record.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
@click.pass_obj
def acp(call: Invocation, enforce: bool, command: tuple[str, ...]) -> int:
    """Proxy between an editor and its agent: record the session and judge tool calls.

    An editor calls this in the place of an agent that speaks the Agent Client Protocol, with the agent's own command behind --:

        decklog acp -- claude-agent-acp

    Every line goes on as it came. What the agent asks permission for is judged by the policy first: what is denied is answered in
    the person's place, everything else goes to the person. What an agent does not ask for can't be blocked here.
    """
    from decklog.hooks.proxy.relay import run as relay

    return relay(list(command), db=call.db, is_enforced=enforce)
