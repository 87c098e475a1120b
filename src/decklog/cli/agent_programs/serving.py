"""Answering agents that call tools: the MCP server as a process."""

import os
import sys
from typing import TYPE_CHECKING

from decklog.cli import terminal
from decklog.cli.call import Invocation, WrongUsage
from decklog.core.errors import Unavailable
from decklog.core.extras import install_hint

if TYPE_CHECKING:
    from decklog.mcp.token import Token


def serve_mcp(call: Invocation, port: int | None, token_file: str | None) -> int:
    """Answer on standard input and output, or on HTTP."""
    if token_file is not None and port is None:
        raise WrongUsage("--token-file is for HTTP", hint="Add --http PORT, or leave it out.")
    _prepare()
    try:
        from decklog.mcp.server import build
        from decklog.mcp.source import LogSource
    except ModuleNotFoundError as missing:
        what = f"the MCP server needs the package mcp, and {missing.name} is not installed"
        raise Unavailable(what, hint=install_hint("mcp")) from None
    source = LogSource(call.db)
    if port is not None:
        return _over_http(build(source), port, token_file)
    from decklog.mcp.stdio import serve

    if sys.stdin.isatty():
        # A person at a terminal does not type JSON-RPC.
        sys.stderr.write(
            "Waiting for a program that calls tools; `decklog setup claude --mcp` has one start this. Ctrl-C ends.\n"
        )
    serve(build(source))
    return 0


def _prepare() -> None:
    """Make a program that lives on of one that was meant to live for a moment."""
    import gc
    import logging
    import signal

    gc.enable()
    # A thread that waits for input can't be stopped, so end at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What clients send is no business of a log on standard error, and neither is what they show.
    logging.getLogger().addHandler(logging.NullHandler())


def _over_http(server: object, port: int, token_file: str | None) -> int:
    from decklog.mcp.http import listen, serve
    from decklog.mcp.token import VARIABLE, find_token

    token = find_token(token_file, os.environ)
    if token.is_new and not sys.stderr.isatty():
        raise WrongUsage(
            "a new token would be shown to nobody, since this is no terminal",
            hint=f"Name a file for it: --token-file FILE, or set {VARIABLE}.",
        )
    serve(server, listen(port), token, lambda address: _announce(address, token))  # type: ignore[arg-type]
    return 0


def _announce(address: str, token: "Token") -> None:
    terminal.say(address)
    sys.stdout.flush()
    if token.is_new:
        sys.stderr.write(f"Token, shown only now: {token.text}\n")
