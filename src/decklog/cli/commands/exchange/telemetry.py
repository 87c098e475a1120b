"""Runs as spans of OpenTelemetry, and spans as runs."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from decklog.cli import terminal
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.commands.transfer import Formats
from decklog.cli.manager import for_the_manager
from decklog.cli.show import show
from decklog.cli.terminal import ProgressMeter

if TYPE_CHECKING:
    from decklog.mcp.token import Token
    from decklog.plugins.adapters.otel.receiver import Receiver

RECEIVERS = {"otlp": ("exchange.telemetry", "receive_otlp")}
receive = for_the_manager(Formats(RECEIVERS, name="receive", help="Receive spans of OpenTelemetry from other programs."))
# What OpenTelemetry's own libraries read.
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
_TOKEN = "DECKLOG_OTLP_TOKEN"


# What is on record leaves the machine by it.
@for_the_manager
@click.command("otlp")
@click.argument("run_ids", metavar="RUN…", nargs=-1, required=True)
@click.option(
    "--to", "address", metavar="URL", help="a collector, such as http://localhost:4318; else OTEL_EXPORTER_OTLP_ENDPOINT"
)
@click.option("--file", "path", metavar="FILE", help="write a file of JSON lines instead")
@click.option("--header", "headers", metavar="NAME=VALUE", multiple=True, help="also OTEL_EXPORTER_OTLP_HEADERS, out of sight")
@click.option(
    "--encoding",
    type=click.Choice(["protobuf", "json"]),
    default="protobuf",
    show_default=True,
    help="encoding of what is sent",
)
@click.option("--without-texts", is_flag=True, help="leave out what was said, asked and answered, and payloads")
@click.option("--follow", is_flag=True, help="go on sending until the run has ended")
@click.option("--seconds", type=float, default=60, show_default=True, help="how long to wait for a collector that is busy")
@click.option("--replace", is_flag=True, help="put it in the place of the file that is there")
@click.pass_obj
def export_otlp(call: Invocation, /, run_ids: tuple[str, ...], path: str | None, without_texts: bool, **given: Any) -> int:
    """Send runs, with those below them, as spans of OpenTelemetry: agents, chats, tools, by its conventions.

    Send them again at any time: a span has the same id every time, and is sent once it has ended.
    """
    from decklog.plugins.adapters.otel.export import OtlpExport

    if path is not None and (given["address"] or given["follow"]):
        raise WrongUsage("--file is instead of sending", hint="Leave out --to and --follow, or --file.")
    if given["follow"] and len(run_ids) > 1:
        raise WrongUsage("--follow goes with one run", hint="Start one for each run.")
    with call.open(writing=False) as log, ProgressMeter() as meter:
        export = OtlpExport(log, run_ids, texts=not without_texts, progress=meter)
        if path is not None:
            done = export.write(path, replace=given["replace"])
        else:
            from decklog.plugins.adapters.otel import otlp
            from decklog.plugins.adapters.otel.export import Sender

            kind = otlp.JSON if given["encoding"] == "json" else otlp.PROTOBUF
            headers = _headers(given["headers"])
            sender = Sender(_address(given["address"]), log.clock, headers=headers, kind=kind, patience_seconds=given["seconds"])
            done = export.send(sender, follow=given["follow"])
    return _show(call, done)


def _address(given: str | None) -> str:
    address = given or next(filter(None, map(os.environ.get, _ENDPOINTS)), None)
    if address is None:
        raise WrongUsage("nothing says where to send the spans", hint="Add --to http://localhost:4318, or --file FILE.")
    return address


def _headers(given: tuple[str, ...]) -> dict[str, str]:
    """Join headers of the environment, written there as in a query, with those of the call."""
    from urllib.parse import unquote

    found: dict[str, str] = {}
    for text in ",".join(os.environ.get(name, "") for name in _HEADERS).split(","):
        name, _, value = text.partition("=")
        if name.strip():
            found[unquote(name).strip().lower()] = unquote(value).strip()
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            raise WrongUsage(f"{name!r} has no value", hint="Such as --header x-api-key=VALUE")
        found[name.strip().lower()] = value.strip()
    return found


def _show(call: Invocation, done: dict[str, Any]) -> int:
    """Show what was sent. Rejected spans are a failure; other messages of the collector are warnings."""
    warnings = [f"the collector says: {text}" for text in done.get("messages", ())]
    if done["waiting"]:
        warnings.append(f"{done['waiting']} spans have not ended yet: send the run again when it has")
    if done["left_out"]:
        missing = ", ".join(f"{what} ({count})" for what, count in done["left_out"].items())
        warnings.append(f"spans do not tell how these changed: {missing}")
    shown = done if call.json else {name: value for name, value in done.items() if name not in ("messages", "left_out")}
    show(shown, as_json=call.json, warnings=warnings)
    return int(bool(done.get("rejected")))


@click.command("otlp")
@click.option("--port", type=click.IntRange(0, 65535), default=4318, show_default=True, help="0 takes any that is free")
@click.option("--host", default="127.0.0.1", show_default=True, help="listen for other machines: with TLS or behind a proxy")
@click.option("--name", "names", multiple=True, metavar="NAME", help="another name that requests may call it by")
@click.option("--tls-cert", "certificate", metavar="FILE", help="the certificate, with those that vouch for it")
@click.option("--tls-key", "key", metavar="FILE", help="the certificate's key")
@click.option("--behind-proxy", "proxy", metavar="NAME", help="what a proxy with TLS is called; it leaves Host as it is")
@click.option("--token-file", metavar="FILE", help=f"where the token is, made if it is not there; else {_TOKEN}, or a new one")
@click.option("--by-conversation", is_flag=True, help="a run for each conversation that spans name, instead of each trace")
@click.pass_obj
def receive_otlp(call: Invocation, /, token_file: str | None, certificate: str | None, key: str | None, **settings: Any) -> int:
    """Listen for spans of OpenTelemetry by OTLP over HTTP, and put them on record: each trace is a run.

    Senders present the token: OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20TOKEN".
    """
    from decklog.mcp.token import find_token
    from decklog.plugins.adapters.otel.receiver import Receiver

    if (certificate is None) != (key is None):
        raise WrongUsage("--tls-cert and --tls-key belong together", hint="Use both.")
    pair = None if certificate is None or key is None else (certificate, key)
    token = find_token(token_file, os.environ, _TOKEN)
    if token.is_new and not sys.stderr.isatty():
        raise WrongUsage(
            "a new token would be shown to nobody, since this is no terminal",
            hint=f"Name a file for it: --token-file FILE, or set {_TOKEN}.",
        )
    with call.open(create=True) as log:
        receiver = Receiver(log, token, certificate=pair, **settings)
        _announce(receiver, token)
        receiver.serve()
    return 0


def _announce(receiver: "Receiver", token: "Token") -> None:
    terminal.say(receiver.address)
    sys.stdout.flush()
    if token.is_new:
        sys.stderr.write(f"Token, shown only now: {token.text}\n")
