"""What goes on: once, for a person or a shell prompt, live on the whole terminal, and in a browser."""

import sys

import click

from decklog.cli import terminal
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.derived import acting
from decklog.cli.manager import for_the_manager
from decklog.cli.screens.now import LISTED, show_now


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1, 200),
    default=LISTED,
    metavar="N",
    help=f"number of items to list of each kind, default {LISTED}",
)
@click.pass_obj
def now(call: Invocation, limit: int) -> int:
    """Show what needs a person, what runs, what has stalled and what it costs.

    Exit code 0 when nothing waits for a decision, 7 when something does: `decklog now --brief` fits a shell prompt.
    """
    return show_now(call, limit)


@for_the_manager
@click.command()
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=2.0, metavar="X", help="read anew so often, default 2")
@click.pass_obj
def top(call: Invocation, seconds: float) -> int:
    """Show `now` live, on the whole terminal: move, open, read, approve or deny, quit.

    `?` shows the keys. An approval is decided with a reason and, where an owner is registered, the owner's password or key.
    """
    if not (sys.stdin.isatty() and terminal.is_terminal()):
        raise WrongUsage("top needs a terminal", hint="decklog now prints the same once.")
    import curses

    from decklog.cli.screens.top import run

    with call.open() as log, acting(log, call):
        try:
            run(log, seconds=seconds)
        except curses.error as problem:
            raise WrongUsage(f"this terminal can't show it: {problem}", hint="decklog now prints the same once.") from None
    return 0


@for_the_manager
@click.command()
@click.option("--port", type=click.IntRange(1024, 65535), metavar="N", help="listen there; otherwise where it did last, or 8471")
@click.option("--read-only", is_flag=True, help="show everything and decide nothing")
@click.option("--key", metavar="FILE", help="the owner's key file; each decision prompts for its passphrase")
@click.option("--metrics-token", metavar="FILE", help="file with the token for /metrics; created if it is missing")
@click.option("--host", metavar="ADDRESS", help="listen for other machines: with TLS or behind a proxy, and with a password")
@click.option("--name", metavar="NAME", help="what other machines call this one, if not by its address")
@click.option("--tls-cert", "certificate", metavar="FILE", help="the certificate, with those that vouch for it")
@click.option("--tls-key", "certificate_key", metavar="FILE", help="the certificate's key")
@click.option("--behind-proxy", "proxy", metavar="NAME", help="what a proxy with TLS is called; it leaves Host as it is")
@click.option("--password-file", metavar="FILE", help="whose first line other machines log in with; nobody else may read it")
@click.pass_obj
def serve(
    call: Invocation, /, port: int | None, read_only: bool, key: str | None, metrics_token: str | None, **elsewhere: str | None
) -> int:
    """Open the dashboard on this machine: what runs, what it costs, what waits for a decision, and any run at any moment.

    It listens on the loopback under its own name, unless --host is given. The link that it prints logs one browser in, once,
    within five minutes; Enter prints another. Ctrl-C ends it and every session.
    """
    from decklog.cli.dashboard.serving import run

    run(call, port, read_only, key, metrics_token, **elsewhere)
    return 0
