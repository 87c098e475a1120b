"""Write a log in other forms, sync it with other trackers, and receive spans."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.groups import SuggestingGroup, for_the_owner
from decklog.cli.plugin_group import build_command, load_class
from decklog.cli.show import show
from decklog.cli.signing import load_token, print_address
from decklog.cli.terminal import ProgressMeter

if TYPE_CHECKING:
    from decklog.importing.sync import Sync


@click.group(cls=SuggestingGroup)
def export() -> None:
    """Write a log, or one run of it, in another form."""


@export.command("jsonl")
@click.argument("folder")
@click.option("--run", "stream", metavar="RUN", help="only this run")
@click.pass_obj
def export_jsonl(call: Invocation, folder: str, stream: str | None) -> int:
    """Write every stream as a file of JSON lines that git can merge, hash chain and blobs included."""
    from decklog.transfer.jsonl import JsonlExport

    with call.open(writing=False) as log, ProgressMeter() as meter:
        return show(JsonlExport(log, folder, meter).run(stream), as_json=call.json)


@export.command("html")
@click.argument("run_id", metavar="RUN")
@click.option("--out", metavar="FILE", help="the page to write; otherwise RUN.html in this folder")
@click.option("--overwrite", is_flag=True, help="replace FILE if it is there already")
@click.pass_obj
def export_html(call: Invocation, run_id: str, out: str | None, overwrite: bool) -> int:
    """Write one run as a single HTML page for a report, with its timeline and whether it verifies."""
    from decklog.transfer.report.page import write_page

    with call.open(writing=False) as log:
        return show(write_page(log, run_id, out, overwrite=overwrite), as_json=call.json)


def _tracker_export(
    name: str, exporter: str, text: str, *options: Callable[[Any], Any], argument: str = "file", has_progress: bool = True
) -> click.Command:
    """Add and return the command of an exporter; `exporter` names its class below `decklog.plugins`."""

    def run(call: Invocation, /, **given: Any) -> int:
        with call.open(writing=False) as log, ProgressMeter() as meter:
            progress = {"progress": meter} if has_progress else {}
            return _show_written(call, load_class(exporter)(log, given.pop(argument), **given, **progress).run())

    command = build_command(name, text, run, click.argument(argument), *options)
    export.add_command(command)
    return command


def _run(text: str, **settings: Any) -> Callable[[Any], Any]:
    return click.option("--run", "run_id", metavar="RUN", help=text, **settings)


_replace = click.option("--replace", is_flag=True, help="overwrite an existing file")
export_bazinga = _tracker_export(
    "bazinga",
    "importers.bazinga.export:BazingaExport",
    """Write the log as a bazinga database of its newest version (19); FILE must not be there yet.

    Tasks, approvals and what else that system has no table for stay here.""",
    has_progress=False,
)
export_runstore = _tracker_export(
    "runstore",
    "importers.runstore.export:RunStoreExport",
    """Write the log as a RunStore database; FILE must not be there yet.

    A task that is paused is in progress there, so that nobody is given it. Questions without a verdict stay here.""",
)
export_gaia = _tracker_export(
    "gaia",
    "importers.gaia.export:GaiaExport",
    """Write the log as a gaia-coder home: seven databases, paused tasks, self-edits and learnings.

    DIRECTORY must not be there yet, or be empty. The tasks of all runs come together in it.""",
    argument="directory",
)
export_beads = _tracker_export(
    "beads",
    "importers.beads:BeadsExport",
    """Write tasks as beads' issues, a line each in the order of their ids, with links, comments and memories.

    What was imported from there comes back as it was, unless it was changed here. `bd import -i FILE` takes it in.""",
    _run("only this run"),
    _replace,
)
export_taskmaster = _tracker_export(
    "taskmaster",
    "importers.taskmaster.sync:TaskMasterExport",
    """Write a run's tasks as Task Master's tasks.json, parts as subtasks; runs that came from other tags go along.

    What was imported from there comes back as it was, unless it was changed here.""",
    _run("the run of the tag master", default="taskmaster", show_default=True),
    _replace,
)
export_markdown = _tracker_export(
    "markdown",
    "importers.markdown:MarkdownExport",
    """Write a run's plan as Markdown, a section a task, to be read and edited; `decklog import markdown` takes it back.

    git merges two such files where they changed different tasks.""",
    _run("the run whose plan is written", required=True),
    _replace,
)


def _show_written(call: Invocation, written: dict[str, Any]) -> int:
    """Show the result of an export: as data for programs, as a table for people."""
    warnings = [f"refused: {text}" for text in written["refused"]]
    if written["left_out"]:
        missing = ", ".join(f"{what} ({count})" for what, count in written["left_out"].items())
        warnings.append(f"{written['path']} has no place for {missing}")
    if call.json:
        return show(written, as_json=True, warnings=warnings)
    show([{"table": table, "rows": count} for table, count in written["tables"].items()], as_json=False, warnings=warnings)
    sys.stderr.write(f"Written: {written['path']}\n")
    return 0


@for_the_owner
@click.group(cls=SuggestingGroup)
def sync() -> None:
    """Sync a run with another tracker, both ways."""


def _tracker_sync(name: str, syncer: str, text: str, argument: Callable[[Any], Any], *options: Callable[[Any], Any]) -> None:
    """Add the command that syncs with a tracker; `syncer` names its class below `decklog.plugins`."""

    def run(call: Invocation, /, path: str, **settings: Any) -> int:
        return _sync(call, load_class(syncer), path, **settings)

    run_option = _run("the run that has the tasks", default=name, show_default=True)
    dry_run = click.option("--dry-run", is_flag=True, help="show what would happen, and change nothing")
    sync.add_command(build_command(name, f"{text}\n\n{_BOTH_SIDES}", run, argument, run_option, dry_run, *options))


_BOTH_SIDES = """Changes on one side since the last sync are applied to the other. Fields changed on both sides stay as they are,
and are reported in the inbox."""
_path = click.argument("path", default=".")
_tracker_sync("beads", "importers.beads:BeadsSync", "Sync a run with beads' issues.jsonl: a repository, or the file.", _path)
_tracker_sync(
    "taskmaster",
    "importers.taskmaster.sync:TaskMasterSync",
    "Sync runs with Task Master's tasks.json: a repository, or the file.",
    _path,
)
_tracker_sync(
    "github",
    "importers.github:GithubSync",
    "Sync a run with a repository's GitHub issues, by the program gh and its login.",
    click.argument("path", metavar="OWNER/REPOSITORY"),
    click.option("--seconds", type=float, default=600, show_default=True, help="how long a call of gh may take"),
)


def _sync(call: Invocation, kind: "type[Sync]", path: str, **settings: Any) -> int:
    with call.open(create=not settings["dry_run"]) as log:
        done = kind(log, path, **settings).run()
    disputes = [f"{one['item']}: {one['field']} was changed on both sides, and stays as it is on each" for one in done.disputed]
    if call.json:
        return show(done.as_dict(), as_json=True, warnings=disputes)
    if done.dry_run:
        sys.stderr.write("Dry run: nothing was changed.\n")
    totals = done.totals
    counts = {"items": done.items, "taken": totals["taken"], "given": totals["given"], "disputed": len(done.disputed)}
    show([{**counts, "gone": totals["gone"]}], as_json=False, warnings=disputes)
    for note in done.notes:
        sys.stderr.write(f"note: {note}\n")
    return 0


@for_the_owner
@click.group(cls=SuggestingGroup)
def receive() -> None:
    """Receive spans of OpenTelemetry from other programs."""


# The variables of OpenTelemetry's own libraries.
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
_TOKEN = "DECKLOG_OTLP_TOKEN"


# Owner-only: it sends records to another machine.
@for_the_owner
@export.command("otlp")
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
@click.option("--seconds", type=float, default=60, show_default=True, help="how long to wait for a busy collector")
@click.option("--replace", is_flag=True, help="overwrite an existing file")
@click.pass_obj
def export_otlp(call: Invocation, /, run_ids: tuple[str, ...], path: str | None, without_texts: bool, **given: Any) -> int:
    """Send runs, with those below them, as spans of OpenTelemetry: agents, chats, tools, by its conventions.

    Send them again at any time: a span has the same id every time, and is sent once it has ended.
    """
    from decklog.plugins.adapters.otel.export import OtlpExport

    if path is not None and (given["address"] or given["follow"]):
        raise WrongUsage("--file excludes --to and --follow", hint="Leave out --to and --follow, or --file.")
    if given["follow"] and len(run_ids) > 1:
        raise WrongUsage("--follow takes only one run", hint="Start one command for each run.")
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
        raise WrongUsage("there is no address to send the spans to", hint="Add --to http://localhost:4318, or --file FILE.")
    return address


def _headers(given: tuple[str, ...]) -> dict[str, str]:
    """Return the headers of the environment, which are percent-encoded there, and of the call."""
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
    warnings = [f"the collector answered: {text}" for text in done.get("messages", ())]
    if done["waiting"]:
        warnings.append(f"{done['waiting']} spans have not ended yet: send the run again when it has")
    if done["left_out"]:
        missing = ", ".join(f"{what} ({count})" for what, count in done["left_out"].items())
        warnings.append(f"spans do not contain the changes of: {missing}")
    shown = done if call.json else {name: value for name, value in done.items() if name not in ("messages", "left_out")}
    show(shown, as_json=call.json, warnings=warnings)
    return int(bool(done.get("rejected")))


@receive.command("otlp")
@click.option("--port", type=click.IntRange(0, 65535), default=4318, show_default=True, help="0 takes any that is free")
@click.option("--host", default="127.0.0.1", show_default=True, help="listen for other machines: with TLS or behind a proxy")
@click.option("--name", "names", multiple=True, metavar="NAME", help="another name that requests may call it by")
@click.option("--tls-cert", "certificate", metavar="FILE", help="certificate with its chain")
@click.option("--tls-key", "key", metavar="FILE", help="key of the certificate")
@click.option(
    "--behind-proxy", "proxy", metavar="NAME", help="host name of a proxy with TLS, which must pass the Host header unchanged"
)
@click.option("--token-file", metavar="FILE", help=f"where the token is, made if it is not there; else {_TOKEN}, or a new one")
@click.option("--by-conversation", is_flag=True, help="a run for each conversation that spans name, instead of each trace")
@click.pass_obj
def receive_otlp(call: Invocation, /, token_file: str | None, certificate: str | None, key: str | None, **settings: Any) -> int:
    """Listen for spans of OpenTelemetry by OTLP over HTTP, and put them on record: each trace is a run.

    Senders present the token: OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20TOKEN".
    """
    from decklog.plugins.adapters.otel.receiver import Receiver

    if (certificate is None) != (key is None):
        raise WrongUsage("--tls-cert and --tls-key belong together", hint="Use both.")
    pair = None if certificate is None or key is None else (certificate, key)
    token = load_token(token_file, _TOKEN)
    with call.open(create=True) as log:
        receiver = Receiver(log, token, certificate=pair, **settings)
        print_address(receiver.address, token)
        receiver.serve()
    return 0
