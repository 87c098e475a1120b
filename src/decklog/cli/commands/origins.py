"""Who wrote a line, and why."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import click

from decklog.agents.intake import run_intake
from decklog.agents.origins.commit_story import explain_commit
from decklog.agents.origins.line_story import explain_line
from decklog.agents.origins.rewinding import RewindPlan, catch_up, snapshots_of
from decklog.agents.origins.rewinding import rewind as rewind_worktree
from decklog.agents.origins.statistics import StatisticsKey, collect_statistics
from decklog.cli import terminal
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.exits import print_json
from decklog.cli.groups import SuggestingGroup, for_the_owner
from decklog.cli.screens.origins import commit_screen, line_screen, statistics_screen
from decklog.cli.show import show
from decklog.core.display import counted
from decklog.core.errors import Invalid, NotFound
from decklog.log import Decklog
from decklog.provenance.blame import BlamedLine, blame_file
from decklog.provenance.git import GitFailed, GitRepository
from decklog.provenance.settings import git_failures, repository_at


@contextmanager
def open_log_and_repository(
    call: Invocation, *, writing: bool = False, create: bool = False
) -> Iterator[tuple[Decklog, GitRepository]]:
    """Open the log, import the waiting events of hooks, and find the repository of this folder."""
    with call.open(writing=writing, create=create) as log, git_failures():
        repo = repository_at()
        catch_up(log, call.spool())
        yield log, repo


def path_in(repo: GitRepository, name: str) -> str:
    """Return a path relative to the repository; raise NotFound for one outside of it."""
    found = repo.relative(os.path.abspath(name))
    if found is None:
        raise NotFound(f"{name} is not in the repository {repo.top}", path=name)
    return found


@click.command()
@click.argument("place", metavar="FILE:LINE")
@click.argument("rev", required=False)
@click.pass_obj
def why(call: Invocation, place: str, rev: str | None) -> int:
    """Show where a line comes from: prompt, tool call, task, checks, approval, cost and earlier version.

    Without REV the line is that of the file as it is now. With REV, a later change of the line is shown too.
    """
    name, _, number = place.rpartition(":")
    if not name or not (number.isascii() and number.isdecimal()):
        raise WrongUsage(f"{place!r} is not FILE:LINE", hint="Such as: decklog why src/app.py:12")
    with open_log_and_repository(call) as (log, repo):
        found = explain_line(repo, log, path_in(repo, name), int(number), rev)
        return show(found, as_json=call.json, text=line_screen(found, terminal.width()))


@click.group(cls=SuggestingGroup)
def commit() -> None:
    """Show a commit by origin: files, shares of agents and people, sessions, tasks and cost."""


@commit.command("show")
@click.argument("rev", default="HEAD")
@click.pass_obj
def show_commit(call: Invocation, rev: str) -> int:
    """Show the files of a commit, who wrote its lines, and the sessions behind them; HEAD unless named."""
    with open_log_and_repository(call) as (log, repo):
        found = explain_commit(repo, log, rev)
        return show(found, as_json=call.json, text=commit_screen(found, terminal.width()))


_KEYS = ("agent", "model", "task", "person", "path")


@click.command()
@click.argument("revisions", metavar="[A..B]", default="HEAD")
@click.option("--by", type=click.Choice(_KEYS), default="agent", help="what a row is about; default agent")
@click.option("--markdown", is_flag=True, help="print a Markdown table, such as for a pull request")
@click.pass_obj
def stats(call: Invocation, revisions: str, by: str, markdown: bool) -> int:
    """Count lines written and kept by agents and people, and the cost of each kept line.

    Without a range, all commits up to HEAD are counted. A row per person is about the author of commits.
    The cost of a session is shared among rows by its lines. Lifetime is the median time from the commit that wrote a line
    to the one that removed it.
    """
    with open_log_and_repository(call) as (log, repo):
        found = collect_statistics(repo, log, revisions, StatisticsKey(by))
    text = found.as_markdown().rstrip("\n") if markdown else statistics_screen(found, terminal.width())
    return show(found, as_json=call.json, text=text)


_SHOWN_OF_SESSION = 8
_WIDEST_NAME = 40


@click.command()
@click.argument("file", metavar="FILE")
@click.argument("rev", metavar="REV", required=False)
@click.option("-L", "--lines", metavar="A,B", help="only these lines")
@click.option("--porcelain", is_flag=True, help="git's porcelain format, with the origin in lines that begin with decklog-")
@click.option("-w", "ignore_blanks", is_flag=True, help="ignore changes of blanks, as git blame -w does")
@click.option("-M", "moved", is_flag=True, help="find lines that were moved within the file")
@click.option("-C", "copied", is_flag=True, help="find lines that were moved or copied from other files of the commit")
@click.pass_obj
def blame(
    call: Invocation,
    file: str,
    rev: str | None,
    lines: str | None,
    porcelain: bool,
    ignore_blanks: bool,
    moved: bool,
    copied: bool,
) -> int:
    """Show who wrote each line of a file: agent, session and task where they are known, otherwise git's author.

    Without REV the lines of the worktree are shown.
    """
    if rev is not None and rev.startswith("-"):
        raise WrongUsage(f"{rev} is not a revision")
    repo, path = repository_file(file)
    options = [word for word, is_set in (("-w", ignore_blanks), ("-M", moved), ("-C", copied)) if is_set]
    with call.open(writing=False) as log:
        if not log.db.read_only:
            run_intake(log, call.spool())
        try:
            found = blame_file(repo, log, path, rev, _line_range(lines), options)
        except GitFailed as problem:
            raise Invalid(str(problem).removeprefix("git blame: fatal: ")) from None
        tasks = _tasks_of_edits(log, found)
    if call.json:
        print_json({"ok": True, "data": [_line_data(line, tasks) for line in found], "next": None, "warnings": []})
    elif porcelain:
        sys.stdout.write("".join(_porcelain(line, tasks) for line in found))
    else:
        sys.stdout.write(_blame_table(found, tasks))
    return 0


def repository_file(file: str) -> tuple[GitRepository, str]:
    """Return the repository of a file, and the file's path in it."""
    repo = GitRepository.find(os.path.dirname(os.path.abspath(file)))
    if repo is None:
        raise NotFound(f"{file} is not in a git repository", hint="Name a tracked file.", path=file)
    path = repo.relative(os.path.abspath(file))
    if path is None:
        raise NotFound(f"{file} is not a file of the repository {repo.top}", hint="Name a tracked file.", path=file)
    return repo, path


def _line_range(lines: str | None) -> tuple[int, int] | None:
    if lines is None:
        return None
    found = re.fullmatch(r"([1-9]\d*)(?:,([1-9]\d*))?", lines)
    if found is None:
        raise WrongUsage(f"-L takes line numbers such as 10,20 (got {lines!r})")
    return int(found[1]), int(found[2] or found[1])


def _tasks_of_edits(log: Decklog, found: list[BlamedLine]) -> dict[str, str]:
    """Return the tasks of the edits that wrote lines, by the edits' ids."""
    edits = dict.fromkeys(edit for line in found for edit in line.origin.edits)
    tasks = ((edit, log.edits.get(edit).task_id) for edit in edits)
    return {edit: task for edit, task in tasks if task is not None}


def _task_of_line(line: BlamedLine, tasks: dict[str, str]) -> str | None:
    return next((tasks[edit] for edit in line.origin.edits if edit in tasks), None)


def _line_data(line: BlamedLine, tasks: dict[str, str]) -> dict[str, Any]:
    return {
        "commit": line.commit,
        "path": line.path,
        "line": line.line,
        "final_line": line.final_line,
        "text": line.text,
        "origin": line.origin.as_dict(),
        "task": _task_of_line(line, tasks),
        "author": line.facts.get("author"),
        "author_time": int(line.facts.get("author-time", 0)),
        "summary": line.facts.get("summary"),
    }


def _porcelain(line: BlamedLine, tasks: dict[str, str]) -> str:
    rows = [f"{line.commit} {line.line} {line.final_line}"]
    rows += [f"{name} {value}".rstrip() for name, value in line.facts.items()]
    rows += [f"decklog-kind {line.origin.kind}"]
    rows += [f"decklog-session {session}" for session in line.origin.sessions]
    rows += [f"decklog-edit {edit}" for edit in line.origin.edits]
    if line.origin.person is not None:
        rows.append(f"decklog-person {line.origin.person}")
    if (task := _task_of_line(line, tasks)) is not None:
        rows.append(f"decklog-task {task}")
    return "\n".join([*rows, f"\t{line.text}\n"])


def _origin_name(line: BlamedLine, tasks: dict[str, str]) -> str:
    """Return a short name of a line's origin."""
    origin = line.origin
    if origin.kind in ("agent", "mixed"):
        sessions = (session.partition(":") for session in origin.sessions)
        shown = " + ".join(f"{program} {session[:_SHOWN_OF_SESSION]}" for program, _, session in sessions)
        task = _task_of_line(line, tasks)
        return (f"{shown} {task}" if task else shown)[:_WIDEST_NAME]
    return (origin.person or line.facts.get("author") or "?")[:_WIDEST_NAME]


def _blame_table(found: list[BlamedLine], tasks: dict[str, str]) -> str:
    names = [_origin_name(line, tasks) for line in found]
    width = max(map(len, names), default=0)
    digits = len(str(found[-1].final_line)) if found else 1
    rows = []
    for line, name in zip(found, names, strict=True):
        day = datetime.fromtimestamp(int(line.facts.get("author-time", 0)), UTC).date()
        row = f"{line.commit[:8]} ({name:{width}} {day} {line.final_line:{digits}}) {line.text}"
        rows.append(terminal.escape_for_terminal(row, sys.stdout) + "\n")
    return "".join(rows)


_LISTED = 20
_MOST_FILES = 30


@click.command()
@click.option("--to", "target", metavar="TURN|ENTRY", help="a snapshot, turn or entry; the start of the last turn unless given")
@click.option("--files", metavar="FILE", multiple=True, help="only this file or folder; may be repeated")
@click.option("--dry-run", is_flag=True, help="show what would change, and change nothing")
@click.option("--list", "is_listed", is_flag=True, help="list the snapshots of this worktree")
@click.pass_obj
def rewind(call: Invocation, target: str | None, files: tuple[str, ...], dry_run: bool, is_listed: bool) -> int:
    """Restore the worktree to the state before an agent's turn; the present state is saved first.

    Only files change: HEAD, branches, the index and stashes stay. Ignored and very large files are in no snapshot.
    It is refused during a merge or a rebase.
    """
    if is_listed and (target or files or dry_run):
        raise WrongUsage("--list takes no other option")
    with open_log_and_repository(call, writing=True) as (log, repo):
        if is_listed:
            return _list_snapshots(call, log, repo)
        plan = rewind_worktree(repo, log, target, files=[path_in(repo, name) for name in files], dry_run=dry_run)
    return show({"dry_run": dry_run, **plan.as_dict()}, as_json=call.json, text="\n".join(_rewind_lines(plan, dry_run=dry_run)))


for_the_owner(rewind)


def _list_snapshots(call: Invocation, log: "Decklog", repo: "GitRepository") -> int:
    found = list(islice(snapshots_of(repo, log), _LISTED))
    rows = [(one.id, f"{one.taken_at:%Y-%m-%d %H:%M:%S}", f"{one.moment.value:<5}", one.session, one.turn or "") for one in found]
    none = "No snapshot of this worktree is recorded. Agents that are set up take one at each turn: decklog setup claude"
    return show(found, as_json=call.json, text="\n".join("  ".join(row).rstrip() for row in rows) or none)


def _rewind_lines(plan: "RewindPlan", *, dry_run: bool) -> list[str]:
    """Describe the result, or the preview, of a rewind."""
    target = plan.target
    when = f"{target.moment.value} of a turn of {target.session}, {target.taken_at:%Y-%m-%d %H:%M:%S} UTC"
    if not plan.files:
        return [f"Nothing to restore: the files are as at the {when}."]
    verb = "Would restore" if dry_run else "Restored"
    lines = [f"{verb} {counted(len(plan.files), 'file')} to the {when}:"]
    lines += [f"  {one.status} {one.path}" for one in plan.files[:_MOST_FILES]]
    if len(plan.files) > _MOST_FILES:
        lines.append(f"  and {counted(len(plan.files) - _MOST_FILES, 'more file')}")
    lines += [f"Left as it is: {path} ({reason})" for path, reason in plan.left_out.items()]
    if target.head and plan.head and target.head != plan.head:
        lines.append(f"HEAD stays at {plan.head[:10]}; it was {target.head[:10]} then.")
    if plan.saved is not None:
        lines.append(f"Return: decklog rewind --to {plan.saved}")
    if plan.resume is not None:
        lines.append(f"Go on with the agent: {plan.resume}")
    return lines
