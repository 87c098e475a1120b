"""Publishes what has landed in a run as a branch, and requests that it be merged. It is a person's act, of exactly one commit."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog.conductor.git.branches import Branches
from decklog.conductor.git.changes import changes
from decklog.conductor.git.remote import Remote
from decklog.conductor.git.repository import ref_part
from decklog.conductor.results import landing
from decklog.conductor.results.forges import Forge, Request, forge_of
from decklog.conductor.site import RunContext
from decklog.conductor.stages import LAND, all_tasks
from decklog.conductor.standing import standing
from decklog.core.errors import Conflict, Denied
from decklog.core.figures import counted
from decklog.guard.calls.tool import EffectCheck

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_LONGEST_TITLE = 72


@dataclass(frozen=True, kw_only=True)
class Published:
    """What is published: which commit as which branch of which remote, and the request."""

    remote: str
    branch: str
    base: str
    commit: str
    title: str
    body: str
    files: int
    url: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def prepare(
    site: RunContext, *, cwd: Path, remote: str = "origin", branch: str | None = None, base: str | None = None
) -> Published:
    """Work out what would be published: the target of the run, against the branch that is checked out unless another is named."""
    landing.refuse_unstarted(site)
    Remote(site.repository, remote).check()
    into = base or Branches(site.repository).current(cwd)
    commit, old = site.target_commit(), Branches(site.repository).commit(into)
    if site.repository.is_ancestor(commit, old):
        raise Conflict(f"{into} has everything already", hint="There is nothing to request.", branch=into)
    title = site.log.runs.get(site.run_id).goal.splitlines()[0]
    return Published(
        remote=remote,
        branch=branch or f"decklog/{ref_part(site.run_id)}",
        base=into,
        commit=commit,
        title=title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…",
        body=_body(site, commit),
        files=len(changes(site.repository, old, commit)),
    )


def forge(site: RunContext, remote: str) -> Forge:
    """Choose the program that opens requests at a remote. Raise Unavailable if it is not installed."""
    return forge_of(site.repository.on_refs("config", "--get", f"remote.{remote}.url", accepted=(0, 1)).text)


def publish(
    site: RunContext,
    wanted: Published,
    *,
    by: str,
    proof: "AbstractContextManager[object]",
    held: Callable[[Published], str | None],
) -> str:
    """Push the branch and open the request; return its address.

    `held` is the judgement of the repository's review gate, as for every push: why this must not be published, or None.
    """
    program = forge(site, wanted.remote)
    if (reason := held(wanted)) is not None:
        raise Denied(f"the gate holds this: {reason}", hint="See: decklog reviews find")
    about: dict[str, object] = {"remote": wanted.remote, "branch": wanted.branch, "commit": wanted.commit, "base": wanted.base}
    question = f"Publish {wanted.branch} at {wanted.remote}? {counted(wanted.files, 'file')}."
    approval = landing.approve(site, question, about, by=by, proof=proof, source="conductor.publish")
    remote, ref = Remote(site.repository, wanted.remote), f"refs/heads/{wanted.branch}"
    facts: dict[str, object] = {**about, "approval": approval}

    def push() -> None:
        remote.offer(wanted.branch, wanted.commit, known=_earlier(site))

    def is_pushed(_effect: object) -> EffectCheck:
        return EffectCheck(remote.refs(ref).get(ref) == wanted.commit)

    site.acts.perform(f"push:{wanted.remote}:{wanted.branch}:{wanted.commit}", push, is_pushed, task_id=None, facts=facts)
    request = Request(branch=wanted.branch, base=wanted.base, title=wanted.title, body=wanted.body)
    folder = site.repository.folder
    return str(
        site.acts.perform(
            f"request:{wanted.remote}:{wanted.branch}:{wanted.commit}",
            lambda: program.open(folder, request),
            lambda _: program.opened(folder, wanted.branch),
            task_id=None,
            facts=facts,
        )
    )


def _earlier(site: RunContext) -> list[str]:
    """List the commits that the target was at: the branch at the remote may be at any of them."""
    found = site.log.effects.find(site.run_id, tool="conductor.push", limit=200)
    return [str(effect.facts["commit"]) for effect in found]


# What the request tells


def _body(site: RunContext, commit: str) -> str:
    stands = standing(site.log, site.run_id)
    goal = site.log.runs.get(site.run_id).goal
    parts = [goal, "## Work items", *_items(site), "## Checks", *_checks(site, commit), "## Review", _review(site)]
    parts += ["## Cost", f"{stands.spent()[0].upper()}{stands.spent()[1:]}.", f"Decklog-Run: {site.run_id}"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _items(site: RunContext) -> list[str]:
    landed = [task for task in all_tasks(site.log, site.run_id) if task.role == LAND and task.state == "done"]
    lines = [f"- {task.title.removeprefix('Land: ')} ({_commit_of(task.result)})" for task in landed]
    return ["\n".join(lines) or "None."]


def _commit_of(result: object) -> str:
    return str(result["commit"])[:12] if isinstance(result, dict) else "no change"


def _checks(site: RunContext, commit: str) -> list[str]:
    """List what each check said of the tree that is published."""
    tree, said = site.repository.tree(commit), {}
    for verdict in reversed(list(site.log.verdicts.find(site.run_id, tree=tree, limit=200))):
        said[verdict.name] = verdict.outcome.value
    return ["\n".join(f"- {check.name}: {said.get(check.name, 'not run')}" for check in site.configuration.checks)]


def _review(site: RunContext) -> str:
    found = list(site.log.reviews.find(site.run_id, limit=200))
    if not found:
        return "None is set up." if not site.configuration.is_reviewed else "No review is on record."
    return "\n".join(f"- {review.verdict.value} of tree {review.tree[:12]} (review {review.id})" for review in reversed(found))
