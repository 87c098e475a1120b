"""Commits that the review gate, or a person in its place, let pass."""

from collections.abc import Sequence
from itertools import islice

from decklog.log import Decklog
from decklog.provenance.git import GitRepository
from decklog.records.record import every_page
from decklog.stores.workflow.reviews import Review

# The newest ones; each takes a call of git.
_MOST_REVIEWS = 200
# As the gate computes the patch of a change.
_PATCH = ("-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")


def find_unreviewed(repo: GitRepository, log: Decklog, commits: Sequence[str]) -> set[str]:
    """Return the commits that no review covers: they are in no reviewed range, and have no reviewed patch."""
    found, reviews = set(commits), _passed(log)
    ends = [name for review in reviews for name in (review.base, review.head)]
    known = repo.existing(ends) if ends else []
    for base, head in zip(known[::2], known[1::2], strict=True):
        if base is not None and head is not None:
            found.difference_update(repo.text("rev-list", f"{base}..{head}").split())
    patches = {review.patch for review in reviews}
    return found - _with_patches(repo, sorted(found), patches) if found and patches else found


def _passed(log: Decklog) -> list[Review]:
    passed = (review for review in every_page(log.reviews.find) if log.reviews.lets_pass(review.id))
    return list(islice(passed, _MOST_REVIEWS))


def _with_patches(repo: GitRepository, commits: list[str], patches: set[str]) -> set[str]:
    """Return the commits that have one of some patches: a rebased change, or one that was squashed when it was merged."""
    given = "".join(f"{commit}\n" for commit in commits).encode()
    diffs = repo.call("diff-tree", "--stdin", *_PATCH, given=given)
    rows = (row.split() for row in repo.call("patch-id", "--stable", given=diffs).decode().splitlines())
    return {commit for patch, commit in rows if patch in patches}
