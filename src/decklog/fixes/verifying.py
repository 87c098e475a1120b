"""Verifies a fix where it counts: its test is run again on the commit that it was merged as."""

from typing import TYPE_CHECKING

from decklog.conductor.checks.running import PASSED
from decklog.core.errors import NotFound
from decklog.fixes import telling
from decklog.review.change import Change
from decklog.stores.approvals.feedback import FeedbackState
from decklog.stores.workflow.mends import MendState, MendWait

if TYPE_CHECKING:
    from decklog.fixes.ground import FixContext
    from decklog.stores.workflow.mends import Mend

_MOST_COMMITS = 500


def verify(ground: "FixContext", merged: str | None = None) -> "Mend":
    """Look whether a fix is merged, and run its test there. Red is told, and needs a person; nothing is verified then."""
    log, mend = ground.log, ground.mend
    commit = _named(ground, merged) if merged else merged_as(ground)
    if commit is None:
        if mend.waits_for is MendWait.MERGE:
            return mend
        where = ground.settings.rules.base or "main"
        return log.mends.move(mend, waits_for=MendWait.MERGE, reason=f"{str(mend.head)[:12]} is not in {where} yet")
    failing = _failing(ground, commit)
    if failing:
        reason = f"on the merged commit {commit[:12]} {failing}"
        with log.transaction():
            log.feedback.add_note(mend.feedback_id, reason, by="mend")
            return log.mends.move(mend, waits_for=MendWait.PERSON, reason=reason, merged=commit)
    with log.transaction():
        if ground.feedback.state is FeedbackState.FIX_PR_OPEN:
            log.feedback.verify(mend.feedback_id, by="mend", note=f"green on {commit}")
        telling.ended(ground, f"merged, and its test passes on {commit[:12]}")
        return log.mends.move(mend, MendState.VERIFIED, merged=commit)


def merged_as(ground: "FixContext") -> str | None:
    """Find the commit of the published branch that has the fix: by its history, or by a commit that changes the same."""
    repository, head = ground.repository, str(ground.mend.head)
    named = ground.settings.rules.base or "main"
    for name in (f"refs/remotes/{ground.rules.remote}/{named}", f"refs/heads/{named}"):
        tip = repository.resolve(name, cwd=ground.cwd)
        if tip is None or tip == ground.base:
            continue
        if repository.is_ancestor(head, tip):
            return tip
        if _is_taken_over(ground, tip):
            return tip
    return None


def _is_taken_over(ground: "FixContext", tip: str) -> bool:
    """Return whether a commit since the base changes exactly what the fix does, as a squashed or rebased one would."""
    repository = ground.repository
    if not repository.is_ancestor(ground.base, tip):
        return False
    words = ("--no-merges", f"--max-count={_MOST_COMMITS}", f"{ground.base}..{tip}")
    commits = repository.on_objects("rev-list", *words).text.split()
    return any(Change(repository, f"{one}^", one).patch == ground.change.patch for one in commits)


def _named(ground: "FixContext", name: str) -> str:
    found = ground.repository.resolve(name, cwd=ground.cwd)
    if found is None:
        raise NotFound(f"there is no commit {name!r}", hint="Name a branch, a tag or a commit; see: git log", name=name)
    return found


def _failing(ground: "FixContext", commit: str) -> str:
    """Run the check on a commit; say what of the tests that prove the fix does not pass there."""
    check = next(one for one in ground.settings.functional_checks if one.report == "junit")
    said = ground.runner().run(check, commit, f"{ground.mend.run_id}:merged:{commit[:12]}")
    bad = [str(name) for name in ground.mend.tests if (said.tests or {}).get(str(name)) != PASSED]
    return f"these do not pass: {', '.join(bad)} ({said.reason or said.outcome})" if bad else ""
