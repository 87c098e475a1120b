"""Publish a fix once, as a branch, a pull request or a patch file, and record the lessons of a verified one."""

import shutil
from typing import Any

from decklog.conductor import kill_points
from decklog.conductor.git.refs import Remote
from decklog.conductor.git.repository import ref_part
from decklog.conductor.landing import GITHUB, PullRequest
from decklog.core.errors import Conflict, NotFound
from decklog.fixes.context import FixContext, ask_for_merge
from decklog.guard.calls.tool import EffectCheck
from decklog.review.publishing import publish_block_reason
from decklog.review.result import STAGES
from decklog.stores.approvals.feedback import FeedbackState, FixClass
from decklog.stores.approvals.self_edits import PASSES
from decklog.stores.workflow.mends import Mend, MendState

_LONGEST = 300


def publish(context: FixContext) -> Mend:
    """Publish exactly the commit that the gate passed. Raise Conflict if the gate blocks it by now."""
    log, mend = context.log, context.mend
    held = publish_block_reason(log, context.change)
    if held is not None:
        raise Conflict(f"the gate blocks this fix: {held}", hint="See: decklog reviews find")
    way = context.rules.publish
    published: dict[str, Any] = {"way": way, "commit": mend.head}
    if way == "patch":
        # Writing it again gives the same file.
        published["patch"] = context.effects.perform(
            f"patch:{mend.head}", lambda: _patch(context), lambda _: EffectCheck(False), task_id=None
        )
    else:
        published["branch"] = _branch(context)
    if way == "pr":
        published |= _pull_request(context, str(published["branch"]))
    address = str(published.get("url") or published.get("patch") or f"branch {published['branch']}")
    kill_points.reached("publish:done")
    with log.transaction():
        if context.feedback.state is FeedbackState.IN_FIX:
            log.feedback.open_pr(mend.feedback_id, address, regression_test_path=_tests(mend), by="mend")
        published["message"] = ask_for_merge(context, address)
        return log.mends.move(mend, MendState.PUBLISHED, published=published)


# A branch


def branch_of(context: FixContext) -> str:
    """Return the name of the branch of a fix."""
    return f"mend/{ref_part(context.mend.feedback_id)}"


def _branch(context: FixContext) -> str:
    """Create the branch, or move it from an earlier fix of the same feedback. Raise Conflict for a foreign branch."""
    name, head = branch_of(context), str(context.mend.head)
    repository = context.repository
    ref = f"refs/heads/{name}"

    def make() -> str:
        now = repository.ref(ref)
        ours = set(repository.refs(f"{context.refs}/head").values())
        if now not in (None, head) and now not in ours:
            raise Conflict(f"branch {name} exists and is not from this mend", hint=f"Rename it: git branch -m {name} other")
        old = now or "0" * len(head)
        if now != head and repository.on_refs("update-ref", ref, head, old, accepted=(0, 1, 128)).code:
            raise Conflict(f"branch {name} could not be moved", hint="Check whether it is checked out: git worktree list")
        return name

    made: str = context.effects.perform(
        f"branch:{name}:{head}", make, lambda _: EffectCheck(repository.ref(ref) == head, name), task_id=None
    )
    return made


# A patch file


def _patch(context: FixContext) -> str:
    """Write the fix as a file for `git am`."""
    text = context.repository.on_objects("format-patch", "-1", "--stdout", str(context.mend.head)).out
    folder = context.repository.state / "patches"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{ref_part(context.mend.feedback_id)}-{str(context.mend.head)[:12]}.patch"
    new = path.with_suffix(".new")
    new.write_bytes(text)
    new.rename(path)
    return str(path)


# A pull request


def _pull_request(context: FixContext, branch: str) -> dict[str, Any]:
    """Push the branch and open a pull request. If that is not possible, return a note with the reason."""
    remote, head = Remote(context.repository, context.rules.remote), str(context.mend.head)
    try:
        remote.check()
    except NotFound as problem:
        return {"note": f"no pull request: {problem.message}"}
    if shutil.which(GITHUB.program) is None:
        return {"note": "no pull request: gh is not installed"}
    ref = f"refs/heads/{branch}"

    def push() -> None:
        remote.push_branch(branch, head, known=list(context.repository.refs(f"{context.refs}/head").values()))

    context.effects.perform(f"push:{branch}:{head}", push, lambda _: EffectCheck(remote.refs(ref).get(ref) == head), task_id=None)
    title, _, body = context.change.message.partition("\n")
    base = context.settings.rules.base or "main"
    request = PullRequest(branch=branch, base=base, title=title, body=body.strip())
    folder = context.repository.folder
    step = f"pr:{branch}:{head}"
    opened = context.effects.perform(
        step,
        lambda: GITHUB.open(folder, request, is_draft=True),
        lambda _: GITHUB.opened(folder, branch),
        task_id=None,
    )
    return {"url": str(opened)}


def learn(context: FixContext) -> Mend:
    """Record the lessons of the fix, close the feedback, resume the run that waited for it, and close the fix."""
    log, mend = context.log, context.mend
    with log.transaction():
        _lessons(context)
        observation = f"{_first(context)} Mended as {mend.fix_class}; shown by {_tests(mend)[:_LONGEST]}."
        log.learnings.note(mend.id, observation, run_id=mend.run_id, key=f"mend:{mend.id}")
        _self_edit(context)
        if context.feedback.state is FeedbackState.VERIFIED:
            log.feedback.close(mend.feedback_id, by="mend", note=f"mend {mend.id}")
        if mend.for_run_id is not None and log.runs.get(mend.for_run_id).status.value == "paused":
            log.runs.update(mend.for_run_id, status="active")
        log.runs.finish(mend.run_id, summary=f"mended as {str(mend.merged)[:12]}")
        return log.mends.move(mend, MendState.CLOSED)


def _lessons(context: FixContext) -> None:
    log, mend = context.log, context.mend
    common: dict[str, Any] = {"fix_class": mend.fix_class, "merged_sha": mend.merged}
    where: dict[str, Any] = {"source_kind": "feedback", "source_id": mend.feedback_id, "run_id": mend.run_id}
    cause = str(mend.triage.get("root_cause") or mend.plan.get("root_cause") or "")
    log.memory.remember(
        "failure_patterns",
        f"{_first(context)} Cause: {cause}"[: 4 * _LONGEST],
        payload={
            **common,
            "error_signature": _first(context),
            "root_cause": cause,
            "feedback_body": context.feedback.body,
            "regression_test_path": _tests(mend)[:_LONGEST],
            "affected_files": [one.path for one in context.change.paths],
            "fix_pr_url": str(context.feedback.fix_pr_url or ""),
        },
        confidence=85,
        key=f"failure:{mend.id}",
        **where,
    )
    log.memory.remember(
        "review_patterns",
        f"A fix of class {mend.fix_class} was let through and merged: {_first(context)}",
        payload={**common, "diff_signature": context.change.patch, "verdict": "approved", "outcome": "merged"},
        confidence=80,
        key=f"review:{mend.id}",
        **where,
    )


def _self_edit(context: FixContext) -> None:
    """Record the change as a self-edit, with the result of each review pass."""
    log, mend = context.log, context.mend
    review = log.reviews.get(str(mend.review_id))
    statuses: dict[str, str] = {str(one["name"]): str(one["status"]) for one in review.passes}  # type: ignore[index]
    log.self_edits.record(
        str(context.feedback.fix_pr_url or mend.published.get("branch") or mend.head),
        FixClass(str(mend.fix_class)),
        [one.path for one in context.change.paths],
        context.base,
        str(mend.merged),
        {name: statuses[passed] for name, passed in zip(PASSES, STAGES, strict=True)},
        review.confidence or 0,
        "merged by a person",
        feedback_id=mend.feedback_id,
    )


def _first(context: FixContext) -> str:
    return " ".join(context.feedback.body.strip().split("\n", 1)[0].split())[:_LONGEST]


def _tests(mend: Mend) -> str:
    return ", ".join(map(str, mend.tests))
