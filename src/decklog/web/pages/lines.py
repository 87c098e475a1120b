"""The pages Lines: the origin of each line in the repository of the dashboard."""

import os
from typing import Any
from urllib.parse import urlencode

from decklog.agents.origins.commit_story import KINDS, count_kinds, explain_commit
from decklog.agents.origins.line_story import explain_line, facts_of, origin_text
from decklog.core.errors import Invalid, NotFound
from decklog.log import Decklog
from decklog.provenance.attribution import UNCOMMITTED
from decklog.provenance.blame import BlamedLine, blame_file
from decklog.provenance.commit_origins import CommitOrigins
from decklog.provenance.git import GitFailed, GitRepository
from decklog.provenance.history import read_changes
from decklog.provenance.settings import git_failures
from decklog.web.site import PageView, SiteRequest, command

_COMMITS = 30
# Lines per page of a file, and of a file in a commit.
LINES = 500
_MOST_FILES = 50


def read(request: SiteRequest) -> PageView:
    """List the newest commits, each with the share of every origin."""
    with git_failures():
        repo = _repository()
        commits = list(read_changes(repo, f"--max-count={_COMMITS}", "HEAD")) if repo.resolve("HEAD^{commit}") else []
        origins = CommitOrigins(repo, request.log)
        for commit in commits:
            origins.add_commit(commit)
        found = []
        for commit in commits:
            ranges = [one for file in commit.files for one in origins.find_session_origins(commit, file)]
            shares = shares_of(count_kinds(ranges))
            facts = {"commit": commit.commit, "subject": commit.subject, "author": commit.author, "at": commit.at.isoformat()}
            found.append({**facts, "shares": shares, "paths": [file.path for file in commit.files]})
    data = {"commits": found}
    return PageView("lines/commits.html", "Lines", command("stats"), data, {**data, "kinds": KINDS}, place="more")


def _repository() -> GitRepository:
    """Return the repository that the dashboard was started in. Pages do not show its path."""
    found = GitRepository.find(os.getcwd())
    if found is None:
        raise NotFound("the dashboard was not started in a git repository", hint="Start it in one: decklog serve")
    return found


def shares_of(lines: dict[str, int]) -> list[dict[str, Any]]:
    """Return the lines of each kind of origin that has any, with their share in percent."""
    whole = sum(lines.values())
    return [{"kind": kind, "lines": lines[kind], "percent": lines[kind] * 100 // whole} for kind in KINDS if lines.get(kind)]


def commit(request: SiteRequest) -> PageView:
    """Show a commit: the share of each origin, its files and sessions."""
    revision = request.word("rev") or "HEAD"
    with git_failures():
        repo = _repository()
        story = explain_commit(repo, request.log, _revision(revision))
        files = [
            {
                "path": file.change.path,
                "removed": file.change.removed,
                "shares": shares_of(file.lines),
                "ranges": [
                    {
                        "start": one.start,
                        "end": one.end,
                        "kind": one.origin.kind,
                        "who": origin_text(one.origin),
                        "run": _run_of(request.log, one.origin.edits),
                    }
                    for one in file.ranges
                ],
            }
            for file in story.files[:_MOST_FILES]
        ]
    shown = {"story": story, "files": files, "shares": shares_of(story.lines), "left_out": max(0, len(story.files) - _MOST_FILES)}
    title = f"Commit {story.changes.commit[:10]}"
    shell_line = command("commit", "show", story.changes.commit[:10])
    return PageView("lines/commit.html", title, shell_line, story, {**shown, "address": address}, place="more")


def file(request: SiteRequest) -> PageView:
    """Show the lines of a file, each with its origin."""
    path, rev = _path(request), request.word("rev")
    first = request.number("from") or 1
    with git_failures():
        repo = _repository()
        found = _blame(repo, request.log, path, rev and _revision(rev), first)
        lines = [_line_data(request.log, one) for one in found]
    data = {"path": path, "rev": rev, "first": first, "lines": lines}
    more = address("file", path, rev, first + LINES) if len(lines) == LINES else None
    words = ("blame", path, *([rev] if rev else []))
    shown = {**data, "more": more, "address": address}
    return PageView("lines/file.html", path, command(*words), data, shown, place="more")


def why(request: SiteRequest) -> PageView:
    """Show the origin of a line: its commit, session and edits."""
    path, rev, line = _path(request), request.word("rev"), request.number("line") or 1
    with git_failures():
        story = explain_line(_repository(), request.log, path, line, rev and _revision(rev))
    shown = {"story": story, "facts": list(facts_of(story)), "path": path, "line": line, "rev": rev, "address": address}
    shell_line = command("why", f"{path}:{line}", *([rev] if rev else []))
    return PageView("lines/why.html", f"{path}:{line}", shell_line, story, shown, place="more")


def address(place: str, path: str, rev: str | None = None, number: int | None = None) -> str:
    """Return the address of a file from a line on, or of one line."""
    name = "line" if place == "why" else "from"
    query = {"path": path, "rev": rev, name: number}
    return f"/lines/{place}?{urlencode({key: value for key, value in query.items() if value is not None})}"


def _path(request: SiteRequest) -> str:
    path = request.word("path")
    if path is None:
        raise Invalid("name a file of the repository", field="path")
    return path


def _revision(text: str) -> str:
    if text.startswith("-"):
        raise Invalid(f"{text[:40]!r} is not a revision", field="rev")
    return text


def _blame(repo: GitRepository, log: Decklog, path: str, rev: str | None, first: int) -> list[BlamedLine]:
    """Blame a part of a file. Git rejects a range that starts after the last line, and clips one that ends there."""
    # Without a revision use the last commit: a page shows no uncommitted file.
    try:
        return blame_file(repo, log, path, rev or "HEAD", lines=(first, first + LINES - 1))
    except GitFailed:
        pass
    try:
        found = blame_file(repo, log, path, rev or "HEAD")
    except GitFailed:
        raise NotFound(f"the repository has no file {path[:200]} there", hint="Open one from a commit.") from None
    return [line for line in found if first <= line.final_line < first + LINES]


def _line_data(log: Decklog, line: BlamedLine) -> dict[str, Any]:
    return {
        "number": line.final_line,
        "text": line.text,
        "commit": None if line.commit == UNCOMMITTED else line.commit,
        "kind": line.origin.kind,
        "who": origin_text(line.origin),
        "author": line.facts.get("author", ""),
        "run": _run_of(log, line.origin.edits),
    }


def _run_of(log: Decklog, edits: tuple[str, ...]) -> str | None:
    """Return the run of an origin; None if no run is recorded."""
    return next((log.edits.get(edit).run_id for edit in edits), None)
