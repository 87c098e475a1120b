"""Hands a fix on, once: as a branch here, as a pull request by `gh` where the settings ask for one, or as a patch file."""

import shutil
from typing import TYPE_CHECKING, Any

from decklog.conductor import kill_points
from decklog.conductor.git.refs import Remote
from decklog.conductor.git.repository import ref_part
from decklog.conductor.results.pull_request import GITHUB, Request
from decklog.core.errors import Conflict, NotFound
from decklog.fixes import telling
from decklog.guard.calls.tool import EffectCheck
from decklog.review.publishing import publish_block_reason
from decklog.stores.approvals.feedback import FeedbackState
from decklog.stores.workflow.mends import MendState

if TYPE_CHECKING:
    from decklog.fixes.ground import FixContext
    from decklog.stores.workflow.mends import Mend


def publish(ground: "FixContext") -> "Mend":
    """Publish exactly what the gate let through; what it holds by now is not published, whoever asks."""
    log, mend = ground.log, ground.mend
    held = publish_block_reason(log, ground.change)
    if held is not None:
        raise Conflict(f"the gate holds this fix: {held}", hint="See: decklog reviews find")
    way = ground.rules.publish
    published: dict[str, Any] = {"way": way, "commit": mend.head}
    if way == "patch":
        published["patch"] = ground.acts.perform(f"patch:{mend.head}", lambda: _patch(ground), _is_file, task_id=None)
    else:
        published["branch"] = _branch(ground)
    if way == "pr":
        published |= _pull_request(ground, str(published["branch"]))
    address = str(published.get("url") or published.get("patch") or f"branch {published['branch']}")
    kill_points.reached("publish:done")
    with log.transaction():
        if ground.feedback.state is FeedbackState.IN_FIX:
            log.feedback.open_pr(mend.feedback_id, address, regression_test_path=_test_path(mend), by="mend")
        published["message"] = telling.published(ground, address)
        return log.mends.move(mend, MendState.PUBLISHED, published=published)


def _test_path(mend: "Mend") -> str:
    return ", ".join(str(name) for name in mend.tests)


# A branch


def branch_of(ground: "FixContext") -> str:
    """Name the branch of a fix; an id is spelled so that git takes it."""
    return f"mend/{ref_part(ground.mend.feedback_id)}"


def _branch(ground: "FixContext") -> str:
    """Make the branch, or move it from an earlier fix of the same mend; one of somebody else's is left alone."""
    name, head = branch_of(ground), str(ground.mend.head)
    repository = ground.repository
    ref = f"refs/heads/{name}"

    def make() -> str:
        now = repository.ref(ref)
        ours = set(repository.refs(f"{ground.refs}/head").values())
        if now not in (None, head) and now not in ours:
            raise Conflict(f"there is a branch {name} already, and it is not of this mend", hint=f"git branch -m {name} other")
        old = now or "0" * len(head)
        if now != head and repository.on_refs("update-ref", ref, head, old, accepted=(0, 1, 128)).code:
            raise Conflict(f"branch {name} could not be moved", hint="Look whether it is checked out: git worktree list")
        return name

    made: str = ground.acts.perform(
        f"branch:{name}:{head}", make, lambda _: EffectCheck(repository.ref(ref) == head, name), task_id=None
    )
    return made


# A patch file


def _patch(ground: "FixContext") -> str:
    """Write the fix as a file that `git am` takes."""
    text = ground.repository.on_objects("format-patch", "-1", "--stdout", str(ground.mend.head)).out
    folder = ground.repository.state / "patches"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{ref_part(ground.mend.feedback_id)}-{str(ground.mend.head)[:12]}.patch"
    new = path.with_suffix(".new")
    new.write_bytes(text)
    new.rename(path)
    return str(path)


def _is_file(effect: Any) -> EffectCheck:
    # Writing it again gives the same file.
    del effect
    return EffectCheck(False)


# A pull request


def _pull_request(ground: "FixContext", branch: str) -> dict[str, Any]:
    """Push the branch and open a pull request; where that is not possible, say so, and leave the branch."""
    remote, head = Remote(ground.repository, ground.rules.remote), str(ground.mend.head)
    try:
        remote.check()
    except NotFound as problem:
        return {"note": f"no pull request: {problem.message}"}
    if shutil.which(GITHUB.program) is None:
        return {"note": "no pull request: gh is not installed"}
    ref = f"refs/heads/{branch}"

    def push() -> None:
        remote.offer(branch, head, known=list(ground.repository.refs(f"{ground.refs}/head").values()))

    ground.acts.perform(f"push:{branch}:{head}", push, lambda _: EffectCheck(remote.refs(ref).get(ref) == head), task_id=None)
    title, _, body = ground.change.message.partition("\n")
    base = ground.settings.rules.base or "main"
    request = Request(branch=branch, base=base, title=title, body=body.strip(), is_draft=True)
    folder = ground.repository.folder
    opened = ground.acts.perform(
        f"pr:{branch}:{head}",
        lambda: GITHUB.open(folder, request),
        lambda _: GITHUB.opened(folder, branch),
        task_id=None,
    )
    return {"url": str(opened)}
