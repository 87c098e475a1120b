"""Whether commits may be handed to others: where a repository has a gate, only what the gate let through, or a person did."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog.conductor.git.repository import Repository
from decklog.core.errors import Conflict, DecklogError, Invalid, NotFound
from decklog.guard.policy import Publication
from decklog.review.change import AddedLine, Change
from decklog.review.leaving import UNKNOWN, commits_between, is_other_object, sources_of, texts_of
from decklog.review.passes.secrets import secrets
from decklog.review.result import Severity
from decklog.review.reviewing import GOAL, base_of, is_gate_meant, meant, settings_of
from decklog.stores.approvals.approval import ApprovalState
from decklog.stores.workflow.reviews import ReviewVerdict

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.stores.workflow.reviews import Review

_MOST_REVIEWS = 200
_ANSWERED = {
    True: "Publish it.",
    False: "Change what it found and have that reviewed, or have it reviewed anew: decklog review --again",
}


def why_held(log: "Decklog | None", published: Sequence[Publication], *, root: str, state: Path) -> str | None:
    """Say why a command must not hand on what it would; None when it hands nothing on, or the gate lets it.

    Without a log nothing is known of any review: where a gate is asked for, everything is held.
    """
    return next((reason for one in published for reason in _reasons(log, one, root, state)), None)


def _reasons(log: "Decklog | None", publication: Publication, root: str, state: Path) -> Iterator[str]:
    folder = os.path.join(root, os.path.expanduser(publication.cwd))
    if UNKNOWN in folder or not os.path.isdir(folder):
        yield "Where this pushes from can't be told. Push from the repository itself."
        return
    try:
        repository = Repository.find(folder, state)
        for source in sources_of(publication, repository, Path(folder)):
            yield from _why_source(log, repository, source, Path(folder), publication)
    except DecklogError as problem:
        # Outside of a repository git itself refuses; whatever else is in the way leaves the change unproven.
        if problem.code != "not_found":
            yield f"Whether this is reviewed can't be told: {problem.message}."


def _why_source(
    log: "Decklog | None", repository: Repository, source: str, folder: Path, publication: Publication
) -> Iterator[str]:
    name = "HEAD" if UNKNOWN in source else source
    if is_other_object(repository, name, folder) and is_gate_meant(repository, folder):
        yield f"{source} is no commit: nobody can have reviewed it. Publish commits and tags of commits."
        return
    change = _change(repository, name, folder)
    if change is None:
        yield from _why_hidden(repository, name, folder)
        return
    if not settings_of(change).is_asked_for:
        return
    if UNKNOWN in source:
        yield "Which commits this hands on can't be told, and this repository has a gate. Name the branch."
    elif publication.after_a_change:
        yield "What this hands on is made by the same command: nobody can have reviewed it. Make it first, then: decklog review"
    elif log is None:
        yield "This repository has a gate, and no log that could say what it said. Make one: decklog init"
    else:
        commits = commits_between(repository, change.base, change.head)
        reason = why_change_held(log, change) or _why_texts(repository, commits, name)
        if reason is not None:
            yield reason


def _change(repository: Repository, source: str, folder: Path) -> Change | None:
    """Find what a source has beyond the branch that it is published against; nothing is null.

    Where that can't be told, as of settings that are wrong or a branch that has no commit in common with others, nobody can have
    reviewed it either.
    """
    try:
        return meant(repository, source, cwd=folder)
    except Conflict:
        return None
    except (Invalid, NotFound) as problem:
        if not is_gate_meant(repository, folder) or repository.resolve(source, cwd=folder) is None:
            return None  # a source that is not there git itself refuses
        raise Invalid(problem.message, hint=problem.hint) from problem


def _why_hidden(repository: Repository, source: str, folder: Path) -> Iterator[str]:
    """Yield why a source is held whose commits change nothing in sum: each of them leaves all the same."""
    if not is_gate_meant(repository, folder):
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
    elif reason := _why_texts(repository, commits, source):
        yield reason


def _why_texts(repository: Repository, commits: Sequence[str], source: str) -> str | None:
    """Return which message of a commit or a tag holds a secret, None if none does."""
    for name, text in texts_of(repository, commits, source):
        lines = [AddedLine(name, number, line) for number, line in enumerate(text.splitlines(), 1)]
        if lines and any(found.severity is Severity.BLOCKING for found in secrets(name, lines, is_test=False)):
            return f"The message of {name} holds a secret. Write it anew, and replace the secret where it is used."
    return None


def why_change_held(log: "Decklog", change: Change) -> str | None:
    """Return why a change must not be published; None when the gate, or a person who was asked about exactly it, lets it."""
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
    """Find the newest review of a change that saw all of its commits.

    Another head with the same tree and patch may have other commits on the way there. One commit on top of the base has none.
    """
    newest = log.reviews.latest(change.tree, change.patch)
    if newest is None or newest.head == change.head or change.is_one_commit:
        return newest
    found = log.reviews.find(tree=change.tree, patch=change.patch, limit=_MOST_REVIEWS)
    return next((one for one in found if one.head == change.head), None)


# A person's override


def is_overridden(log: "Decklog", review: "Review") -> bool:
    """Say whether a person let exactly this pass, and said why."""
    return log.reviews.is_overridden(review.id)


def ask_person(log: "Decklog", review: "Review", *, by: str) -> str:
    """Ask a person to let a change pass that the gate holds; give the id of the question.

    An answer to feedback is held by all but a pass: the loop that mends publishes nothing else. Where an owner is bound, a
    pass that nobody signed is held too.
    """
    is_pass = review.verdict is ReviewVerdict.PASS
    is_held = review.verdict.holds or (review.feedback_id is not None and not is_pass) or not log.reviews.lets_pass(review.id)
    if not is_held:
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


def open_question(log: "Decklog", review: "Review") -> str | None:
    """Give the question to a person about a review that nobody has answered; none is null."""
    found = log.approvals.find(review.run_id, state=ApprovalState.OPEN, source="review")
    return next((one.id for one in found if one.key == _key(review)), None)


def _key(review: "Review") -> str:
    return f"publish:{review.id}"
