"""Which agent wrote a line."""

import os
import re
import sys
from datetime import UTC, datetime
from typing import Any

import click

from decklog.agents.intake import take_in
from decklog.cli import terminal
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.exits import print_json
from decklog.core.errors import Invalid, NotFound
from decklog.log import Decklog
from decklog.provenance.blame import BlamedLine, blame_file
from decklog.provenance.git import GitFailed, GitRepository

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
            take_in(log, call.spool())
        try:
            found = blame_file(repo, log, path, rev, _range(lines), options)
        except GitFailed as problem:
            raise Invalid(str(problem).removeprefix("git blame: fatal: ")) from None
        tasks = _tasks(log, found)
    if call.json:
        print_json({"ok": True, "data": [_as_data(line, tasks) for line in found], "next": None, "warnings": []})
    elif porcelain:
        sys.stdout.write("".join(_porcelain(line, tasks) for line in found))
    else:
        sys.stdout.write(_table(found, tasks))
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


def _range(lines: str | None) -> tuple[int, int] | None:
    if lines is None:
        return None
    found = re.fullmatch(r"([1-9]\d*)(?:,([1-9]\d*))?", lines)
    if found is None:
        raise WrongUsage(f"-L takes line numbers such as 10,20 (got {lines!r})")
    return int(found[1]), int(found[2] or found[1])


def _tasks(log: Decklog, found: list[BlamedLine]) -> dict[str, str]:
    """Return the tasks of the edits that wrote lines, by the edits' ids."""
    edits = dict.fromkeys(edit for line in found for edit in line.origin.edits)
    tasks = ((edit, log.edits.get(edit).task_id) for edit in edits)
    return {edit: task for edit, task in tasks if task is not None}


def _task(line: BlamedLine, tasks: dict[str, str]) -> str | None:
    return next((tasks[edit] for edit in line.origin.edits if edit in tasks), None)


def _as_data(line: BlamedLine, tasks: dict[str, str]) -> dict[str, Any]:
    return {
        "commit": line.commit,
        "path": line.path,
        "line": line.line,
        "final_line": line.final_line,
        "text": line.text,
        "origin": line.origin.as_dict(),
        "task": _task(line, tasks),
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
    if (task := _task(line, tasks)) is not None:
        rows.append(f"decklog-task {task}")
    return "\n".join([*rows, f"\t{line.text}\n"])


def _name(line: BlamedLine, tasks: dict[str, str]) -> str:
    """Return who wrote a line, in a few words."""
    origin = line.origin
    if origin.kind in ("agent", "mixed"):
        sessions = (session.partition(":") for session in origin.sessions)
        shown = " + ".join(f"{program} {session[:_SHOWN_OF_SESSION]}" for program, _, session in sessions)
        task = _task(line, tasks)
        return (f"{shown} {task}" if task else shown)[:_WIDEST_NAME]
    return (origin.person or line.facts.get("author") or "?")[:_WIDEST_NAME]


def _table(found: list[BlamedLine], tasks: dict[str, str]) -> str:
    names = [_name(line, tasks) for line in found]
    width = max(map(len, names), default=0)
    digits = len(str(found[-1].final_line)) if found else 1
    rows = []
    for line, name in zip(found, names, strict=True):
        day = datetime.fromtimestamp(int(line.facts.get("author-time", 0)), UTC).date()
        row = f"{line.commit[:8]} ({name:{width}} {day} {line.final_line:{digits}}) {line.text}"
        rows.append(terminal.visible(row, sys.stdout) + "\n")
    return "".join(rows)
