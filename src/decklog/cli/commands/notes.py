"""`decklog notes`: exchange attribution with other tools and clones."""

import sys
from contextlib import nullcontext
from typing import Any

import click

from decklog.agents.origins.exporting import ExportSummary, NoteExport, export_notes, what_is_published
from decklog.agents.origins.importing import import_entire, import_notes, import_traces
from decklog.agents.origins.statistics import attribute_merged
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.commands.origins import open_log_and_repository
from decklog.cli.groups import SuggestingGroup, for_the_owner
from decklog.cli.show import show
from decklog.core.display import counted
from decklog.log import Decklog
from decklog.provenance.formats.agent_trace import format_trace, parse_traces
from decklog.provenance.git import GitRepository
from decklog.provenance.settings import git_failures, repository_at

_MOST_SHOWN = 10
_REFSPEC = "+refs/notes/ai:refs/notes/ai"
_format = click.option("--format", "form", type=click.Choice(["git-ai", "agent-trace"]), default="git-ai", help="default git-ai")
_dry_run = click.option("--dry-run", is_flag=True, help="show what would happen, and change nothing")


@click.group(cls=SuggestingGroup)
def notes() -> None:
    """Exchange the origins of lines as Git AI notes or Agent Trace records; import Entire's branch."""


@notes.command()
@click.argument("revisions", metavar="[A..B]", default="HEAD")
@click.option("--stash", is_flag=True, help="write the origins of stashes to refs/notes/ai-stash instead")
@_format
@click.option("--out", metavar="FILE", help="file for Agent Trace records; stdout unless given")
@click.option("--prompts", is_flag=True, help="include the prompts of sessions, without their secrets")
@click.option("--force", is_flag=True, help="replace notes that other tools wrote")
@_dry_run
@click.pass_obj
def export(
    call: Invocation, revisions: str, stash: bool, form: str, out: str | None, prompts: bool, force: bool, dry_run: bool
) -> int:
    """Write the origins of commits to refs/notes/ai, or as Agent Trace records.

    Only lines of one session or one known person are attested. Mixed and unknown lines are left out of notes.
    """
    if form == "agent-trace" and (prompts or force or stash):
        raise WrongUsage("--stash, --prompts and --force are for Git AI notes, not for records of Agent Trace")
    with open_log_and_repository(call) as (log, repo):
        if form == "agent-trace":
            return _export_traces(call, repo, log, revisions, None if dry_run else out, is_shown=not dry_run)
        found = export_notes(repo, log, None if stash else revisions, prompts=prompts, force=force, dry_run=dry_run)
    lines = [f"{'Would write' if dry_run else 'Wrote'} {counted(found.written, 'note')}; {found.unchanged} unchanged."]
    if found.kept_of_others:
        lines.append(f"{counted(found.kept_of_others, 'note')} of other tools kept; --force replaces them.")
    if not stash:
        lines.append("Nothing is published yet. See what a push would publish: decklog notes setup")
    return _show(call, {"dry_run": dry_run, **vars(found)}, "\n".join(lines))


def _show(call: Invocation, data: dict[str, Any], text: str) -> int:
    """Show what was done, with the first reasons for what was left out; programs get all of them."""
    left_out: list[str] = data["left_out"]
    return show(data, as_json=call.json, text=text, warnings=left_out if call.json else left_out[:_MOST_SHOWN])


def _export_traces(
    call: Invocation, repo: "GitRepository", log: "Decklog", revisions: str, out: str | None, *, is_shown: bool
) -> int:
    export = NoteExport(repo, log)
    records = [format_trace(record) for record in export.records(revisions)]
    if out is None and is_shown and not call.json:
        sys.stdout.write("".join(records))
        return 0
    with nullcontext() if out is None else open(out, "w", encoding="utf-8") as file:
        if file is not None:
            file.writelines(records)
    text = f"{'Wrote' if out else 'Would write'} {counted(len(records), 'record')}{f' to {out}' if out else ''}."
    return show({"records": len(records), "file": out, **vars(export.summary)}, as_json=call.json, text=text)


@notes.command("import")
@click.argument("file", required=False)
@click.option("--format", "form", type=click.Choice(["git-ai", "agent-trace", "entire"]), default="git-ai", help="default git-ai")
@_dry_run
@click.pass_obj
def import_notes_command(call: Invocation, file: str | None, form: str, dry_run: bool) -> int:
    """Import origins from refs/notes/ai, from a FILE of Agent Trace records, or sessions from Entire's branch.

    Notes of stashes, in refs/notes/ai-stash, are imported too.
    What this log recorded counts more than a note. A file whose lines can't be matched exactly stays unknown.
    """
    if (form == "agent-trace") is not (file is not None):
        raise WrongUsage("a FILE is for --format agent-trace, which needs one", hint="decklog notes import --help")
    found = _import(call, form, file, dry_run)
    if form == "entire":
        checkpoints, sessions = counted(found["checkpoints"], "checkpoint"), counted(len(found["sessions"]), "session")
        text = f"{checkpoints} with {sessions}; {counted(found['new_entries'], 'new entry', 'new entries')}."
    else:
        files, lines = counted(found["files"], "file"), counted(sum(found["lines"].values()), "line")
        text = f"{'Would import' if dry_run else 'Imported'} {files} with {lines}; {found['already']} already known."
    return _show(call, {"dry_run": dry_run, **found}, text)


def _import(call: Invocation, form: str, file: str | None, dry_run: bool) -> dict[str, Any]:
    with open_log_and_repository(call, writing=True, create=not dry_run) as (log, repo):
        if form == "entire":
            return vars(import_entire(repo, log, call.spool(), dry_run=dry_run))
        if file is None:
            return vars(import_notes(repo, log, dry_run=dry_run))
        with open(file, encoding="utf-8") as source:
            records = list(parse_traces(source.read()))
        return vars(import_traces(repo, log, records, dry_run=dry_run))


for_the_owner(import_notes_command)


@notes.command()
@click.argument("remote", default="origin")
@click.option("--apply", is_flag=True, help="add the refspec for fetching to the settings of this clone")
@click.pass_obj
def setup(call: Invocation, remote: str, apply: bool) -> int:
    """List what a push of refs/notes/ai would publish, and show the commands that share it."""
    with git_failures():
        repo = repository_at()
        found = what_is_published(repo)
        name = f"remote.{remote}.fetch"
        is_set = _REFSPEC in repo.text("config", "--get-all", name, accepted=(0, 1)).splitlines()
        if apply and not is_set:
            repo.call("config", "--add", name, _REFSPEC)
    commands = [f"git push {remote} refs/notes/ai", f"git config --add {name} {_REFSPEC}"]
    is_set = is_set or apply
    lines = [*_published_lines(found), f"Publish: {commands[0]}"]
    lines.append("Fetch notes with every git fetch: " + ("is set" if is_set else f"{commands[1]}  (or --apply)"))
    return _show(call, {**vars(found), "is_set": is_set, "commands": commands}, "\n".join(lines))


def _published_lines(found: "ExportSummary") -> list[str]:
    """Return what a push would publish, in lines."""
    lines = [f"A push publishes notes on {counted(found.commits, 'commit')}: line ranges, and"]
    for title, values in (("sessions", found.sessions), ("models", found.models), ("people", found.people)):
        shown = ", ".join(sorted(values)[:_MOST_SHOWN]) + (" …" if len(values) > _MOST_SHOWN else "")
        lines.append(f"  {title} ({len(values)}): {shown}" if values else f"  no {title}")
    return [*lines, f"  {counted(found.prompts, 'prompt')}" if found.prompts else "  no prompts"]


@click.command()
@click.option("--merged", metavar="BASE..HEAD", required=True, help="the commits of the branch that was merged")
@click.option("--commit", "result", metavar="REV", default="HEAD", help="the commit that the forge made; default HEAD")
@click.option("--dry-run", is_flag=True, help="show what would happen, and change nothing")
@click.pass_obj
def attribute(call: Invocation, merged: str, result: str, dry_run: bool) -> int:
    """Write the note of a squash merge from the notes of the merged commits; a step for CI.

    It needs no log: without one, the notes of the merged commits are all it knows. Fetch refs/notes/ai before, push it after.
    """
    with call.open() if call.place().exists else call.open_temporary() as log, git_failures():
        found = attribute_merged(repository_at(), log, merged, result, dry_run=dry_run)
    lines = ", ".join(f"{kind} {count}" for kind, count in sorted(found.lines.items()))
    text = f"{'Would write' if dry_run else 'Wrote'} {counted(found.written, 'note')}; lines: {lines or 'none'}."
    return show({"dry_run": dry_run, **vars(found)}, as_json=call.json, text=text, warnings=found.left_out)
