"""Decide whether commits may be published. With a gate, the gate or a person must have approved exactly these."""

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from decklog.conductor.git.changes import DiffLine
from decklog.conductor.git.repository import Repository, run_git
from decklog.core.display import counted
from decklog.core.errors import Conflict, DecklogError, Invalid, NotFound
from decklog.guard.policy import Publication
from decklog.log import Decklog
from decklog.provenance.commit_origins import count_agent_lines
from decklog.provenance.git import GitRepository
from decklog.provenance.settings import git_failures
from decklog.review.change import Change
from decklog.review.deterministic import find_line_secrets
from decklog.review.gate import GOAL, find_base, find_change, has_gate, load_settings
from decklog.review.result import Severity
from decklog.stores.approvals.approval import ApprovalState
from decklog.stores.workflow.reviews import Review, ReviewVerdict

_UNKNOWN = "\0"
_BRANCHES = ("--all", "--branches", "--mirror")
_DELETES = ("--delete", "-d")
# Options of a forge's program that name the branch to merge.
_HEADS = ("-H", "--head", "--source-branch")
_PUSH_SETTINGS = r"^(push\.default|remote\..*\.(push|mirror))$"
_MOST_REVIEWS = 200
_ANSWERED = {True: "Publish it.", False: "Fix the findings and review that, or review it again: decklog review --again"}


def push_block_reason(log: Decklog | None, published: Sequence[Publication], *, root: str, state: Path) -> str | None:
    """Return why a command must not publish; None if it publishes nothing or the gate approves it.

    Without a log no review is known, so a repository with a gate publishes nothing.
    """
    return next((reason for one in published for reason in _reasons(log, one, root, state)), None)


def _reasons(log: Decklog | None, publication: Publication, root: str, state: Path) -> Iterator[str]:
    folder = os.path.join(root, os.path.expanduser(publication.cwd))
    if _UNKNOWN in folder or not os.path.isdir(folder):
        yield "The directory of this push is unknown. Push from the repository itself."
        return
    try:
        repository = Repository.find(folder, state)
        for source in _pushed_sources(publication, repository, Path(folder)):
            yield from _source_reasons(log, repository, source, Path(folder), publication)
    except DecklogError as problem:
        # Outside of a repository git refuses the push. Every other error leaves the change unproven.
        if problem.code != "not_found":
            yield f"The review can't be looked up: {problem.message}."


def _source_reasons(
    log: Decklog | None, repository: Repository, source: str, folder: Path, publication: Publication
) -> Iterator[str]:
    name = "HEAD" if _UNKNOWN in source else source
    if _is_other_object(repository, name, folder) and has_gate(repository):
        yield f"{source} is not a commit, so it can't be reviewed. Publish commits and tags of commits."
        return
    change = _change(repository, name)
    if change is None:
        yield from _hidden_commits(repository, name)
        return
    if not load_settings(change).is_asked_for:
        return
    if _UNKNOWN in source:
        yield "The commits of this push are unknown, and this repository has a gate. Name the branch."
    elif publication.after_a_change:
        yield "This command creates the commits that it publishes. Create and review them first: decklog review"
    elif log is None:
        yield "This repository has a gate but no log with its reviews. Create one: decklog init"
    else:
        commits = _commits_between(repository, change.base, change.head)
        reason = publish_block_reason(log, change) or _secret_in_message(repository, commits, name)
        if reason is not None:
            yield reason


def _change(repository: Repository, source: str) -> Change | None:
    """Return the change of a source compared with its published branch; None if they do not differ.

    Raise Invalid if that is unknown, for example for invalid settings or branches without a common commit.
    """
    try:
        return find_change(repository, source)
    except Conflict:
        return None
    except (Invalid, NotFound) as problem:
        if not has_gate(repository) or repository.resolve(source) is None:
            return None  # git refuses a source that does not exist
        raise Invalid(problem.message, hint=problem.hint) from problem


def _hidden_commits(repository: Repository, source: str) -> Iterator[str]:
    """Yield why a source is blocked whose commits cancel each other out, since each of them is published."""
    if not has_gate(repository):
        return
    head, base = repository.resolve(source), find_base(repository)
    if head is None or base is None:
        return
    commits = _commits_between(repository, base, head)
    changing = [one for one in commits if [repository.tree(one)] != [repository.tree(above) for above in repository.parents(one)]]
    if changing:
        yield (
            f"{len(changing)} commits of {source} cancel each other out, but each of them would be published: "
            f"{', '.join(one[:12] for one in changing[:5])}. Drop them: git reset --hard {base[:12]}"
        )
    elif reason := _secret_in_message(repository, commits, source):
        yield reason


def _secret_in_message(repository: Repository, commits: Sequence[str], source: str) -> str | None:
    """Return a reason if the message of a commit or a tag has a secret; None if none does."""
    for name, text in _published_messages(repository, commits, source):
        lines = [DiffLine(name, "+", number, line) for number, line in enumerate(text.splitlines(), 1)]
        if any(found.severity is Severity.BLOCKING for found in find_line_secrets(name, lines, is_test=False)):
            return f"The message of {name} has a secret. Rewrite it, and replace the secret where it is used."
    return None


def publish_block_reason(log: Decklog, change: Change) -> str | None:
    """Return why a change must not be published; None if the gate or a person approved exactly this change."""
    review = _find_review(log, change)
    if review is None or review.settings != load_settings(change).digest:
        what = f"Tree {change.tree[:12]}{_describe_agent_lines(log, change)}"
        return f"{what} was not reviewed: decklog review {change.base[:12]}..{change.head[:12]}"
    if log.reviews.lets_pass(review.id):
        return None
    if not review.verdict.holds:
        return (
            f"The verdict of review {review.id} on tree {review.tree[:12]} is {review.verdict}, but the owner did not sign it. "
            f"The owner can approve exactly this change: decklog review ask {review.id}"
        )
    found = f"{len(review.findings)} findings" if review.findings else "see its reasons"
    return (
        f"The verdict of review {review.id} on tree {review.tree[:12]} is {review.verdict} ({found}). "
        f"See: decklog reviews show {review.id}. "
        f"A person can approve exactly this change: decklog review ask {review.id}"
    )


def _describe_agent_lines(log: Decklog, change: Change) -> str:
    """Return the number of lines by agents in brackets; empty if there are none."""
    repo = GitRepository.find(str(change.repository.folder))
    if repo is None:
        return ""
    with git_failures():
        count = count_agent_lines(repo, log, f"{change.base}..{change.head}")
    return f" ({counted(count, 'line')} by agents)" if count else ""


def _find_review(log: Decklog, change: Change) -> Review | None:
    """Return the newest review of a change that covers all of its commits.

    Another head with the same tree and patch may have other commits in between, unless the change is one commit.
    """
    newest = log.reviews.latest(change.tree, change.patch)
    if newest is None or newest.head == change.head or change.is_one_commit:
        return newest
    found = log.reviews.find(tree=change.tree, patch=change.patch, limit=_MOST_REVIEWS)
    return next((one for one in found if one.head == change.head), None)


# A person's override


def request_override(log: Decklog, review: Review, *, by: str) -> str:
    """Ask a person to approve a blocked change; return the id of the approval.

    Every verdict except a pass blocks a fix. With a registered owner, an unsigned pass blocks too.
    """
    is_pass = review.verdict is ReviewVerdict.PASS
    is_blocked = review.verdict.holds or (review.feedback_id is not None and not is_pass) or not log.reviews.lets_pass(review.id)
    if not is_blocked:
        raise Conflict(
            f"the verdict of review {review.id} is {review.verdict}, which does not block", hint="Publish it.", id=review.id
        )
    goal = log.runs.get(review.run_id).goal
    what = f"{goal.removeprefix(GOAL)} (tree {review.tree[:12]})" if goal.startswith(GOAL) else f"tree {review.tree[:12]}"
    context = (
        f" although the verdict of the gate is {review.verdict}?"
        if not is_pass
        else "? The verdict of the gate is pass, and the owner has not signed that."
    )
    question = f"Publish {what}{context} The findings: decklog reviews show {review.id}. A yes needs a reason (--rationale)."
    cause = {"rule": "review", "reason": f"the verdict of the gate on tree {review.tree[:12]} is {review.verdict}"}
    given: dict[str, Any] = {"about": review.about, "subject": "publish", "source": "review", "payload": cause}
    asked = log.approvals.ask(review.run_id, question, by=by, key=_key(review), **given)
    if asked.state is not ApprovalState.OPEN:
        raise Conflict(
            f"{asked.decided_by or 'nobody'} was asked about review {review.id}: {asked.state}",
            hint=_ANSWERED[asked.state is ApprovalState.GRANTED],
            id=asked.id,
        )
    return asked.id


def pending_override(log: Decklog, review: Review) -> str | None:
    """Return the open approval for a review; None if there is none."""
    found = log.approvals.find(review.run_id, state=ApprovalState.OPEN, source="review")
    return next((one.id for one in found if one.key == _key(review)), None)


def _key(review: Review) -> str:
    return f"publish:{review.id}"


# What a push publishes


def _pushed_sources(publication: Publication, repository: Repository, folder: Path) -> Sequence[str]:
    """Return the names of all refs and commits that a command publishes."""
    if publication.program != "git":
        named = [value for option, value in publication.options if option in _HEADS]
        return [value.rpartition(":")[2] for value in named] or ["HEAD"]
    if publication.flags.intersection(_DELETES):
        return []
    return list(dict.fromkeys(_git_push_sources(publication, repository, folder)))


def _git_push_sources(publication: Publication, repository: Repository, folder: Path) -> Iterator[str]:
    flags = publication.flags
    if flags.intersection(_BRANCHES):
        yield from repository.refs("refs/heads")
    if flags.intersection(("--tags", "--mirror")):
        yield from repository.refs("refs/tags")
    has_remote = any(option == "--repo" for option, _ in publication.options)
    specs = [ref for ref in publication.operands[0 if has_remote else 1 :] if ref != "tag"]
    if specs:
        for spec in specs:
            yield from _refspec_sources(spec, repository)
    elif not flags.intersection((*_BRANCHES, "--tags")):
        yield from _default_sources(publication, repository, folder)


def _refspec_sources(spec: str, repository: Repository) -> Iterator[str]:
    """Yield the sources of a refspec; `:` means all branches that the remote has too."""
    source, colon, target = spec.lstrip("+").partition(":")
    if colon and not source:
        # An empty source deletes; with an empty target it means all matching branches.
        yield from () if target else repository.refs("refs/heads")
    elif "*" in source:
        pattern = source if source.startswith("refs/") else f"refs/*/{source}"
        yield from (name for name in repository.refs("refs") if fnmatchcase(name, pattern))
    else:
        yield source


def _default_sources(publication: Publication, repository: Repository, folder: Path) -> Iterator[str]:
    """Yield the sources of a push without a refspec: HEAD, and those of the settings."""
    yield "HEAD"
    # Settings of the remote or of the command line may name other refs.
    given = [value.partition("=")[::2] for option, value in publication.options if option == "-c"]
    words = ["config", "-z", "--get-regexp", _PUSH_SETTINGS]
    found = run_git(words, variables={"GIT_CONFIG_NOSYSTEM": "0"}, cwd=folder, accepted=(0, 1)).text
    for name, value in [*given, *(one.partition("\n")[::2] for one in found.split("\0") if one)]:
        key = name.lower()
        if (key == "push.default" and value == "matching") or (key.endswith(".mirror") and value != "false"):
            yield from repository.refs("refs/heads")
            yield from repository.refs("refs/tags") if key.endswith(".mirror") else ()
        elif key.startswith("remote.") and key.endswith(".push"):
            yield from _refspec_sources(value, repository)


def _is_other_object(repository: Repository, source: str, folder: Path) -> bool:
    """Return whether a source is an object other than a commit, such as a tag of a file."""
    words = ["rev-parse", "--verify", "--quiet", "--end-of-options", source]
    is_there = run_git(words, variables={}, cwd=folder, accepted=(0, 1, 128)).code == 0
    return is_there and repository.resolve(source) is None


def _commits_between(repository: Repository, base: str, head: str) -> Sequence[str]:
    """Return the commits that a head has and its base does not, the newest first."""
    return repository.on_objects("rev-list", f"{base}..{head}").text.split()


def _published_messages(repository: Repository, commits: Sequence[str], source: str) -> Iterator[tuple[str, str]]:
    """Yield the messages that are published with a source: those of its commits, and that of a tag."""
    for commit in commits:
        yield f"commit {commit[:12]}", repository.on_objects("log", "-1", "--format=%B", commit).out.decode(errors="replace")
    tag = source.removeprefix("refs/tags/")
    yield (
        f"tag {tag}",
        repository.on_refs("for-each-ref", "--format=%(contents)", f"refs/tags/{tag}").out.decode(errors="replace"),
    )
