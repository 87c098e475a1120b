"""Import what other systems recorded, and take bazinga projects over."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from decklog.cli.call import Invocation
from decklog.cli.groups import for_the_owner
from decklog.cli.plugin_group import PluginGroup, build_command, load_class
from decklog.cli.projects import Consent, accept_project
from decklog.cli.show import show
from decklog.cli.terminal import ProgressMeter
from decklog.core.display import sized
from decklog.core.errors import Invalid, NotFound
from decklog.core.plugins import PluginKind
from decklog.location.locate import find_log_above

if TYPE_CHECKING:
    from decklog.importing.report import Report
    from decklog.log import Decklog
    from decklog.plugins import Importer


_dry_run = click.option("--dry-run", is_flag=True, help="show what would happen, and change nothing")
_seconds = click.option("--seconds", type=float, default=600, show_default=True, help="how long reading the source may take")


def _run(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a tracker's items come into a run of another name."""
    text = "the run that gets the tasks"
    return click.option("--run", "run_id", metavar="RUN", default=default, show_default=True, help=text)


def import_command(name: str, importer: "Importer | type[Importer]") -> click.Command:
    """Build the command of an importer plug-in."""
    made = importer() if isinstance(importer, type) else importer

    @click.command(name, help=f"{made.summary}\n\nRun it again at any time: what is here already is not written twice.")
    @click.argument("path")
    @_run(name)
    @_dry_run
    @click.pass_obj
    def command(call: Invocation, path: str, run_id: str, dry_run: bool) -> int:
        from decklog.plugins.trackers import RecordImport

        with _log(call, path, dry_run) as log, ProgressMeter() as meter:
            done = RecordImport(log, path, made, name=name, run_id=run_id, dry_run=dry_run, progress=meter).run()
        return _show(call, done)

    return command


import_ = for_the_owner(
    PluginGroup(
        PluginKind.IMPORTER, import_command, name="import", help="Import sessions, data of other trackers, or an exported log."
    )
)


def _data_home() -> str:
    return os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")


def _tracker_command(
    name: str,
    importer: str,
    text: str,
    *options: Callable[[Any], Any],
    argument: str = "path",
    default: Callable[[], str] | None = None,
) -> click.Command:
    """Build the command of an importer; `importer` names its class below `decklog.plugins`, which takes the options."""

    def run(call: Invocation, /, dry_run: bool, **given: Any) -> int:
        source = given.pop(argument) or (default() if default else "")
        with _log(call, source, dry_run) as log, ProgressMeter() as meter:
            done = load_class(importer)(log, source, dry_run=dry_run, progress=meter, **given).run()
        return _show(call, done)

    return build_command(name, text, run, click.argument(argument, required=default is None), *options)


_AGAIN = "Run it again at any time"
import_bazinga = _tracker_command(
    "bazinga",
    "importers.bazinga.importer:BazingaImport",
    f"""Import a bazinga database of any version.

    The file is only read. {_AGAIN}: what is here already stays, and what is new or changed is added.""",
    _dry_run,
    _seconds,
    argument="file",
)
import_runstore = _tracker_command(
    "runstore",
    "importers.runstore.importer:RunStoreImport",
    """Import a RunStore database; its attempts become the history of their tasks.

    A task that was in progress is paused here, because nobody here holds it: resume it when nobody there works on it.""",
    _dry_run,
    _seconds,
    argument="file",
)
import_gaia = _tracker_command(
    "gaia",
    "importers.gaia.importer:GaiaImport",
    """Import a gaia-coder home: its seven databases, paused tasks, self-edits and learnings.

    A task that was running is paused here, because nobody here holds it: resume it when nobody there works on it.""",
    _run("gaia-coder"),
    _dry_run,
    _seconds,
    argument="directory",
)
import_beads = _tracker_command(
    "beads",
    "importers.beads:BeadsImport",
    f"""Import beads' issues with their dependencies and comments, and memories: a repository, or a file of `bd export`.

    The file is only read. {_AGAIN}: of an issue that was changed on both sides the newer is taken.""",
    _run("beads"),
    _dry_run,
    default=lambda: ".",
)
import_taskmaster = _tracker_command(
    "taskmaster",
    "importers.taskmaster.importer:TaskMasterImport",
    f"""Import Task Master's tasks and subtasks: a repository, or a tasks.json. Every tag but master gets its own run.

    The file is only read. {_AGAIN}; tags and tasks that are gone from it stay here.""",
    _run("taskmaster"),
    _dry_run,
    default=lambda: ".",
)
import_hermes = _tracker_command(
    "hermes",
    "importers.hermes:HermesImport",
    """Import Hermes Kanban's boards: the program's folder (~/.hermes), or one kanban.db. Each board has a run.

    A copy is read. A task that was running is paused here, because nobody here holds it.""",
    _run("hermes"),
    _dry_run,
    _seconds,
    default=lambda: os.path.expanduser("~/.hermes"),
)
import_vibe_kanban = _tracker_command(
    "vibe-kanban",
    "importers.vibekanban:VibeKanbanImport",
    """Import Vibe Kanban's projects: the program's folder (~/.local/share/vibe-kanban), or its database. Each has a run.

    A copy is read. Attempts, sessions, processes with their logs, and turns of agents become entries of their tasks.""",
    _run("vibe-kanban"),
    _dry_run,
    _seconds,
    default=lambda: os.path.join(_data_home(), "vibe-kanban"),
)


@click.command("github")
@click.argument("source")
@_run("github")
@_dry_run
@_seconds
@click.pass_obj
def import_github(call: Invocation, source: str, run_id: str, dry_run: bool, seconds: float) -> int:
    """Import GitHub's issues with their comments: OWNER/REPOSITORY by the program gh, or a file that gh or the API wrote.

    Nothing is changed there. Run it again at any time: of an issue that was changed on both sides the newer is taken.
    """
    from decklog.plugins.importers.github import REPOSITORY, GithubImport

    # A file of that name goes first.
    is_asked = REPOSITORY.match(source) is not None and not os.path.exists(source)
    with _log(call, "." if is_asked else source, dry_run) as log, ProgressMeter() as meter:
        path = source if is_asked else os.path.abspath(source)
        taken = GithubImport(log, path, run_id=run_id, dry_run=dry_run, seconds=seconds, progress=meter).run()
    return _show(call, taken)


@click.command("markdown")
@click.argument("file")
@_dry_run
@click.pass_obj
def import_markdown(call: Invocation, file: str, dry_run: bool) -> int:
    """Import a plan that `decklog export markdown` wrote and somebody edited: texts, priorities, links, new tasks.

    What was changed here since it was written stays; what was changed on both sides is a message in the inbox.
    """
    from decklog.plugins.importers.markdown import MarkdownImport

    with _log(call, file, dry_run) as log:
        taken = MarkdownImport(log, file, dry_run=dry_run).run()
    return _show(call, taken)


@click.command("langgraph")
@click.argument("source", metavar="FILE|URL")
@_dry_run
@_seconds
@click.pass_obj
def import_langgraph(call: Invocation, source: str, dry_run: bool, seconds: float) -> int:
    """Import LangGraph's checkpoints: the file of its SQLite saver, or the database of the other. Each thread is a run.

    Nothing is changed there, and no object in it is ever made: each is kept as the name of its class and its arguments.
    """
    from decklog.location.locate import without_password
    from decklog.plugins.importers.langgraph import SERVERS, LangGraphImport

    is_server = source.startswith(SERVERS)
    shown = without_password(source) if is_server else source
    with _log(call, "." if is_server else source, dry_run) as log, ProgressMeter() as meter:
        taken = LangGraphImport(log, source, shown=shown, dry_run=dry_run, seconds=seconds, progress=meter).run()
    return _show(call, taken)


import_otlp = _tracker_command(
    "otlp",
    "adapters.otel.importer:OtlpImport",
    """Import saved spans of OpenTelemetry: a file of OTLP in JSON, as collectors and `export otlp` write it.

    Each trace is a run, with its steps, calls of tools and spend. Run it again at any time: a span is taken once.""",
    click.option("--by-conversation", is_flag=True, help="a run for each conversation that spans name, instead of each trace"),
    _dry_run,
    argument="file",
)
_everywhere = click.option("--all", "everywhere", is_flag=True, help="import sessions of all folders, not only this one")


def _agent_command(name: str, text: str, folder: Callable[[], str] | None = None) -> click.Command:
    """Build the command that imports the sessions of a coding agent.

    `folder` has the sessions of an agent that does not keep them by folder; those of others are of this repository, or all.
    """

    def run(call: Invocation, path: str | None, dry_run: bool, everywhere: bool = False) -> int:
        if folder is not None:
            return _history(call, name, path or folder(), dry_run)
        return _sessions(call, name, path, everywhere, dry_run)

    everywhere = [_everywhere] if folder is None else []
    return build_command(name, text, run, click.argument("path", required=False), *everywhere, _dry_run)


import_claude = _agent_command(
    "claude",
    """Import the sessions of Claude Code from its transcripts: those of this repository, all (--all), or a folder or file.

    The files are only read. Sessions that hooks or an earlier import recorded are not written again. Claude Code deletes its
    transcripts after thirty days.""",
)
import_codex = _agent_command(
    "codex",
    """Import the sessions of Codex from its rollouts: those of this repository, all of them (--all), or a folder or file.

    The files are only read. Sessions that hooks or an earlier import recorded are not written again.""",
)
import_gemini = _agent_command(
    "gemini",
    """Import Gemini CLI's sessions from its chat files: all of this user's, those below a folder, or one file.

    The files are only read. Sessions that hooks or an earlier import recorded are not written again.""",
    lambda: os.path.expanduser("~/.gemini/tmp"),
)
import_opencode = _agent_command(
    "opencode",
    """Import opencode's sessions from its database: this user's, those below a folder, or one file.

    A copy of the file is read, and of that only sessions, messages and their parts. Sessions that hooks or an earlier import
    recorded are not written again.""",
    lambda: os.path.join(_data_home(), "opencode"),
)


def _sessions(call: Invocation, program: str, path: str | None, everywhere: bool, dry_run: bool) -> int:
    """Import a path that was named, or the agent's own folder: the sessions of this repository, or all."""
    from decklog.agents.sessions import HISTORIES, roots_of
    from decklog.cli.agent_settings import find_project

    if path is not None:
        return _history(call, program, path, dry_run)
    folder = HISTORIES[program].folder()
    if not os.path.isdir(folder):
        raise NotFound(
            f"no sessions of {HISTORIES[program].title} found: there is no folder {folder}",
            hint=f"Name another folder or file: decklog import {program} PATH",
            path=folder,
        )
    root = None if everywhere else find_project()
    return _history(call, program, folder, dry_run, None if root is None else roots_of(root))


def _history(call: Invocation, program: str, path: str, dry_run: bool, roots: list[str] | None = None) -> int:
    from decklog.agents.history import HistoryImport
    from decklog.agents.spool import Spool
    from decklog.cli.screens.cost import import_lines, spent_by_program
    from decklog.location.locate import locate, spool_folder

    begun = time.monotonic()
    with _log(call, path, dry_run) as log:
        spool = Spool(spool_folder(locate(call.db)))
        with ProgressMeter(sized) as meter:
            done = HistoryImport(log, program, path, spool, roots=roots, dry_run=dry_run, progress=meter).run()
        if dry_run:
            return show(done.as_dict(), as_json=call.json, warnings=done.warnings)
        spent = spent_by_program(log, program)
    lines = import_lines(program, done, spent, time.monotonic() - begun)
    return show({**done.as_dict(), **spent}, as_json=call.json, text=lines, warnings=done.warnings)


def _log(call: Invocation, source: str, dry_run: bool) -> "AbstractContextManager[Decklog]":
    """Open the log that gets the records. A dry run creates none, nor does a source that is not there."""
    if not os.path.exists(source):
        raise NotFound(f"no such file or folder: {source}", path=source)
    if os.path.isfile(source) and os.path.getsize(source) == 0:
        raise Invalid(f"{source} is empty: nothing to import", path=source)
    is_here = not dry_run or call.place().exists
    return call.open(create=True) if is_here else call.open_temporary()


def _show(call: Invocation, report: "Report") -> int:
    """Show a report: for programs as data, for people as a table with what needs a look below it. Losses are a failure."""
    if call.json:
        show(report, as_json=True, warnings=report.losses)
        return int(bool(report.losses))
    if report.dry_run:
        sys.stderr.write("Dry run: nothing was changed.\n")
    show([{"table": table, **counts} for table, counts in report.tables.items()], as_json=False)
    for note in report.notes:
        sys.stderr.write(f"note: {note}\n")
    if report.notes_left_out:
        sys.stderr.write(f"note: and {report.notes_left_out} more\n")
    if report.losses:
        sys.stderr.write(f"The import of {report.path} is incomplete: {'; '.join(report.losses[:3])}\n")
    return int(bool(report.losses))


_TAKE_OVER = "take-over"


@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def bazinga(call: Invocation, words: tuple[str, ...]) -> int:
    """Run a command of bazinga-db; prompts and scripts written for it keep working.

    `decklog bazinga take-over [PROJECT]` turns a project that bazinga-db itself kept into one that Decklog keeps.
    """
    if words[:1] == (_TAKE_OVER,):
        name = f"decklog bazinga {_TAKE_OVER}"
        return int(take_over.main(list(words[1:]), prog_name=name, obj=call, standalone_mode=False) or 0)
    from decklog.plugins.legacy.bazinga.program import run

    return run([*(["--db", call.db] if call.db else []), *words], find_log_above, Consent())


@click.command(_TAKE_OVER)
@click.argument("project", required=False)
@click.option("--accept-losses", is_flag=True, help="go on though some rows can't be read or kept")
@click.pass_obj
def take_over(call: Invocation, project: str | None, accept_losses: bool) -> int:
    """Take a bazinga project over in place: the one named, or the one around this folder.

    Its records go into a Decklog log and its scripts call Decklog, so agents and prompts go on as they are; bazinga.db stays
    current for those who read it by SQL. The old file and the old scripts are kept, as NAME.before-decklog. Nothing is changed
    until everything has arrived.
    """
    from decklog.plugins.bazinga_project import detect
    from decklog.plugins.importers.bazinga.take_over import TakeOver
    from decklog.plugins.legacy.bazinga.base import BazingaBase

    with ProgressMeter() as meter:
        taken = TakeOver(project or detect()[0] or ".", accept_losses=accept_losses, progress=meter).run()
    # What readers open is brought up to date where the project was taken over before.
    with BazingaBase(taken["database"]) as desk:
        accept_project(taken["database"], desk.log)
    if call.json:
        return show(taken, as_json=True)
    if taken["already"]:
        sys.stderr.write(f"{taken['project']} was taken over already.\n")
    else:
        show([{"table": table, **counts} for table, counts in taken["report"]["tables"].items()], as_json=False)
        sys.stderr.write(f"Taken over into the log {taken['log']}; the old file is {taken['kept']}\n")
        sys.stderr.write(f"Kept current for those who read it by themselves: {taken['database']}\n")
    for script in taken["scripts"]:
        sys.stderr.write(f"Calls Decklog now: {script}\n")
    return 0
