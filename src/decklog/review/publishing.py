"""Decides whether commits may be published: where a repository has a gate, only what the gate or a person let through."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog.conductor.git.repository import Repository
from decklog.errors import Conflict, DecklogError, Invalid, NotFound
from decklog.review.change import AddedLine, Change
from decklog.review.pushed import UNKNOWN, commits_between, is_other_object, sources_of, texts_of
from decklog.review.result import Severity
from decklog.review.reviewing import GOAL, base_of, find_change, has_gate, settings_of
from decklog.review.secrets import secrets_in
from decklog.stores.desk.approval import ApprovalState
from decklog.stores.flow.reviews import ReviewVerdict
from decklog.tools.policy import Publication

if TYPE_CHECKING:
    from decklog.app import Decklog
    from decklog.stores.flow.reviews import Review

_MOST_REVIEWS = 200
_ANSWERED = {
    True: "Publish it.",
    False: "Change what it found and have that reviewed, or have it reviewed anew: decklog review --again",
}


def push_block_reason(log: "Decklog | None", published: Sequence[Publication], *, root: str, state: Path) -> str | None:
    """Return why a command must not publish; None when it publishes nothing, or the gate lets it.

    Without a log no review is known: a repository with a gate then publishes nothing.
    """
    return next((reason for one in published for reason in _reasons(log, one, root, state)), None)


def _reasons(log: "Decklog | None", publication: Publication, root: str, state: Path) -> Iterator[str]:
    folder = os.path.join(root, os.path.expanduser(publication.cwd))
    if UNKNOWN in folder or not os.path.isdir(folder):
        yield "The directory of this push is unknown. Push from the repository itself."
        return
    try:
        repository = Repository.find(folder, state)
        for source in sources_of(publication, repository, Path(folder)):
            yield from _source_reasons(log, repository, source, Path(folder), publication)
    except DecklogError as problem:
        # Outside of a repository git refuses the push. Every other error leaves the change unproven.
        if problem.code != "not_found":
            yield f"The review of this can't be looked up: {problem.message}."


def _source_reasons(
    log: "Decklog | None", repository: Repository, source: str, folder: Path, publication: Publication
) -> Iterator[str]:
    name = "HEAD" if UNKNOWN in source else source
    if is_other_object(repository, name, folder) and has_gate(repository, folder):
        yield f"{source} is not a commit, so it can't be reviewed. Publish commits and tags of commits."
        return
    change = _change(repository, name, folder)
    if change is None:
        yield from _hidden_commits(repository, name, folder)
        return
    if not settings_of(change).is_asked_for:
        return
    if UNKNOWN in source:
        yield "The commits of this push are unknown, and this repository has a gate. Name the branch."
    elif publication.after_a_change:
        yield "The same command makes what it publishes, so it can't be reviewed. Make it first, then: decklog review"
    elif log is None:
        yield "This repository has a gate and no log with its reviews. Make one: decklog init"
    else:
        commits = commits_between(repository, change.base, change.head)
        reason = publish_block_reason(log, change) or _secret_in_message(repository, commits, name)
        if reason is not None:
            yield reason


def _change(repository: Repository, source: str, folder: Path) -> Change | None:
    """Return what a source has beyond the branch that it is published against; None if nothing.

    Raise Invalid where that is unknown, as with wrong settings or a branch without a common commit.
    """
    try:
        return find_change(repository, source, cwd=folder)
    except Conflict:
        return None
    except (Invalid, NotFound) as problem:
        if not has_gate(repository, folder) or repository.resolve(source, cwd=folder) is None:
            return None  # git refuses a source that does not exist
        raise Invalid(problem.message, hint=problem.hint) from problem


def _hidden_commits(repository: Repository, source: str, folder: Path) -> Iterator[str]:
    """Yield why a source is blocked whose commits change nothing in sum: each of them is published."""
    if not has_gate(repository, folder):
        return
    head, base = repository.resolve(source, cwd=folder), base_of(repository, folder)
    if head is None or base is None:
        return
    commits = commits_between(repository, base, head)
    changing = [one for one in commits if [repository.tree(one)] != [repository.tree(above) for above in repository.parents(one)]]
    if changing:
        yield (
            f"{len(changing)} commits of {source} change nothing in sum, but what each holds would be published: "
            f"{', '.join(one[:12] for one in changing[:5])}. Drop them: git reset --hard {base[:12]}"
        )
    elif reason := _secret_in_message(repository, commits, source):
        yield reason


def _secret_in_message(repository: Repository, commits: Sequence[str], source: str) -> str | None:
    """Return which message of a commit or a tag has a secret; None if none does."""
    for name, text in texts_of(repository, commits, source):
        lines = [AddedLine(name, number, line) for number, line in enumerate(text.splitlines(), 1)]
        if any(found.severity is Severity.BLOCKING for found in secrets_in(name, lines, is_test=False)):
            return f"The message of {name} has a secret. Rewrite it, and replace the secret where it is used."
    return None


def publish_block_reason(log: "Decklog", change: Change) -> str | None:
    """Return why a change must not be published; None when the gate or a person let exactly it pass."""
    review = _review_of(log, change)
    if review is None or review.settings != settings_of(change).digest:
        return f"Tree {change.tree[:12]} was not reviewed: decklog review {change.base[:12]}..{change.head[:12]}"
    if log.reviews.lets_pass(review.id):
        return None
    if not review.verdict.holds:
        return (
            f"Review {review.id} says {review.verdict} of tree {review.tree[:12]}, and the owner did not sign that. "
            f"The owner can let exactly this pass: decklog review ask {review.id}"
        )
    found = f"{len(review.findings)} findings" if review.findings else "see its reasons"
    return (
        f"Review {review.id} says {review.verdict} of tree {review.tree[:12]} ({found}): decklog reviews show {review.id}. "
        f"A person can let exactly this pass: decklog review ask {review.id}"
    )


def _review_of(log: "Decklog", change: Change) -> "Review | None":
    """Return the newest review of a change that saw all of its commits.

    Another head with the same tree and patch may have other commits on the way there. One commit on top of the base has none.
    """
    newest = log.reviews.latest(change.tree, change.patch)
    if newest is None or newest.head == change.head or change.is_one_commit:
        return newest
    found = log.reviews.find(tree=change.tree, patch=change.patch, limit=_MOST_REVIEWS)
    return next((one for one in found if one.head == change.head), None)


# A person's override


def request_override(log: "Decklog", review: "Review", *, by: str) -> str:
    """Ask a person to let a blocked change pass; return the id of the approval.

    A fix is blocked by every verdict but a pass. Where an owner is registered, an unsigned pass blocks, too.
    """
    is_pass = review.verdict is ReviewVerdict.PASS
    is_blocked = review.verdict.holds or (review.feedback_id is not None and not is_pass) or not log.reviews.lets_pass(review.id)
    if not is_blocked:
        raise Conflict(f"review {review.id} says {review.verdict}, which holds nothing", hint="Publish it.", id=review.id)
    goal = log.runs.get(review.run_id).goal
    what = f"{goal.removeprefix(GOAL)} (tree {review.tree[:12]})" if goal.startswith(GOAL) else f"tree {review.tree[:12]}"
    said = (
        f" although the gate says {review.verdict}?"
        if not is_pass
        else "? The gate says pass, and the owner has not signed that."
    )
    question = f"Publish {what}{said} What it found: decklog reviews show {review.id}. A yes needs a reason (--rationale)."
    cause = {"rule": "review", "reason": f"the gate says {review.verdict} of tree {review.tree[:12]}"}
    given: dict[str, Any] = {"about": review.about, "subject": "publish", "source": "review", "payload": cause}
    asked = log.approvals.ask(review.run_id, question, by=by, key=_key(review), **given)
    if asked.state is not ApprovalState.OPEN:
        raise Conflict(
            f"{asked.decided_by or 'nobody'} was asked about review {review.id}: {asked.state}",
            hint=_ANSWERED[asked.state is ApprovalState.GRANTED],
            id=asked.id,
        )
    return asked.id


def pending_override(log: "Decklog", review: "Review") -> str | None:
    """Return the open approval for a review; None without one."""
    found = log.approvals.find(review.run_id, state=ApprovalState.OPEN, source="review")
    return next((one.id for one in found if one.key == _key(review)), None)


def _key(review: "Review") -> str:
    return f"publish:{review.id}"
