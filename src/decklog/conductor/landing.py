"""Land a run on a branch of the user as exactly one checked commit, or publish it as a branch with a pull request.

Pull requests are opened by `gh` for GitHub or `glab` for GitLab.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from decklog.conductor.context import RunContext
from decklog.conductor.git.changes import list_changes
from decklog.conductor.git.refs import Branches, Remote
from decklog.conductor.git.repository import ref_part
from decklog.conductor.stages import LAND, all_tasks
from decklog.conductor.status import run_status
from decklog.core.display import counted, shorten
from decklog.core.errors import Conflict, DecklogError, Denied, TimedOut, Unavailable
from decklog.guard.calls.tool import EffectCheck
from decklog.stores.runs.run import ENDED

_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class LandingPlan:
    """The move of a branch from `old` to `new`. `worktree` is the folder where it is checked out, if any."""

    branch: str
    old: str
    new: str
    tree: str
    files: int
    is_merge: bool
    worktree: Path | None

    @property
    def is_done(self) -> bool:
        return self.old == self.new


def prepare(context: RunContext, branch: str | None) -> LandingPlan:
    """Plan the landing on a branch, by default the checked-out one. Raise Conflict if it is not possible."""
    repository = context.repository
    refuse_unstarted(context)
    branches = Branches(repository)
    name = branch or branches.current()
    old, target = branches.commit(name), context.target_commit()
    worktree = branches.worktree(name)
    if worktree is not None:
        branches.refuse_dirty(worktree, name)
    new = old if repository.is_ancestor(target, old) else target
    is_merge = new == target and not repository.is_ancestor(old, target)
    if is_merge:
        new = _merged(context, name, old, target)
    files = len(list_changes(repository, old, new))
    return LandingPlan(
        branch=name, old=old, new=new, tree=repository.tree(new), files=files, is_merge=is_merge, worktree=worktree
    )


def refuse_unstarted(context: RunContext) -> None:
    """Raise Conflict for a run that ended before it had a target, for example because its first commit fails."""
    run = context.log.runs.get(context.run_id)
    if run.status in ENDED and context.repository.ref(context.target) is None:
        raise Conflict(
            f"run {run.id} did not start, so it has nothing to land: {run.summary or run.status.value}",
            hint="Fix its first commit, or allow its failing tests by --from-red TEST; then start the run again.",
            run_id=run.id,
        )


def _merged(context: RunContext, branch: str, old: str, target: str) -> str:
    """Create the merge of the target with a branch that has moved since the run started."""
    repository = context.repository
    merged = repository.merge(old, target)
    if merged.conflicts:
        raise Conflict(
            f"{branch} has moved and conflicts with the run: {', '.join(merged.conflicts[:_SHOWN])}",
            hint=f"Merge it yourself: git merge {context.target}",
            paths=list(merged.conflicts),
        )
    message = f"Merge {context.log.runs.get(context.run_id).goal.splitlines()[0][:60]}\n\nDecklog-Run: {context.run_id}\n"
    return repository.commit(merged.tree, [old, target], message, context.person, repository.time_of(target))


def examine(context: RunContext, landing: LandingPlan) -> None:
    """Raise Conflict if the landing commit does not pass its checks. Recorded verdicts are reused."""
    findings = context.examiner().base_findings(landing.new)
    if findings:
        raise Conflict(
            f"the commit to land on {landing.branch} fails: {', '.join(str(one['check']) for one in findings)}",
            hint="Merge it yourself, or start a run from the current branch.",
            findings=findings,
        )


def approve(
    context: RunContext, question: str, about: dict[str, object], *, by: str, proof: AbstractContextManager[object], source: str
) -> str:
    """Record and use a person's approval of exactly one act; return its id. A registered owner must sign it."""
    log = context.log
    approval = log.approvals.ask(context.run_id, question, by="conductor", about=about, source=source)
    digest = str(approval.subject_digest)
    try:
        with proof:
            log.approvals.decide(approval.id, "granted", by=by, subject_digest=digest, rationale="decklog run land")
    except DecklogError:
        # A later landing asks again, so nobody should answer this question.
        log.approvals.withdraw(approval.id, reason="it was not landed")
        raise
    if log.approvals.use(context.run_id, digest) is None:
        raise Denied(
            f"{question.partition('?')[0].lower()} needs the owner's signature",
            hint="Give the key: decklog run land RUN --key FILE, or run it in a terminal to be asked for the password.",
        )
    return approval.id


def land(context: RunContext, landing: LandingPlan, *, by: str, proof: AbstractContextManager[object]) -> None:
    """Move the branch, and record the person's command as an approval of exactly this move."""
    about: dict[str, object] = {"branch": landing.branch, "from": landing.old, "to": landing.new, "tree": landing.tree}
    question = f"Land on {landing.branch}? {counted(landing.files, 'file')}."
    approval = approve(context, question, about, by=by, proof=proof, source="conductor.land")
    branches = Branches(context.repository)

    def move() -> bool:
        branches.move(landing.branch, landing.new, landing.old, landing.worktree)
        return True

    def look(_effect: object) -> EffectCheck:
        return EffectCheck(context.repository.is_ancestor(landing.new, branches.commit(landing.branch)), True)

    step = f"land:{landing.branch}:{landing.new}:{landing.old}"
    context.effects.perform(step, move, look, task_id=None, facts={**about, "approval": approval})


# Pull requests


_LONGEST_TITLE = 72
_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    """A pull request from a branch into `base`."""

    branch: str
    base: str
    title: str
    body: str


@dataclass(frozen=True)
class Forge:
    """A forge's command-line program. `create` opens a request; `find` lists a branch's open requests as JSON.

    Both are filled in with the fields of a request. Without `{body}` the body is on standard input. `address` is a JSON key.
    """

    program: str
    create: tuple[str, ...]
    find: tuple[str, ...]
    address: str

    def open(self, folder: Path, request: PullRequest, *, is_draft: bool = False) -> str:
        """Open a request, unless the branch has one; return its address."""
        already = self.opened(folder, request.branch)
        if already.happened:
            return str(already.result)
        words = [word.format(**vars(request)) for word in self.create] + (["--draft"] if is_draft else [])
        output = self._call(folder, words, given="" if "{body}" in self.create else request.body)
        # The address is in the last line; glab writes other lines before it.
        addresses = [word for word in output.split() if word.startswith(("https://", "http://"))]
        return addresses[-1] if addresses else output.strip().splitlines()[-1]

    def opened(self, folder: Path, branch: str) -> EffectCheck:
        """Look for an open request of a branch."""
        output = self._call(folder, [word.format(branch=branch) for word in self.find])
        found = json.loads(output) if output.strip() else []
        return EffectCheck(bool(found), str(found[0][self.address]) if found else None)

    def _call(self, folder: Path, words: Sequence[str], given: str = "") -> str:
        name = f"{self.program} {' '.join(words[:2])}"
        env = {**os.environ, "GH_PROMPT_DISABLED": "1", "NO_PROMPT": "1", "NO_COLOR": "1"}
        command = [self.program, *words]
        try:
            done = subprocess.run(
                command, cwd=folder, env=env, input=given, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as problem:
            raise TimedOut(f"{name} did not end in {_SECONDS:g} seconds") from problem
        if done.returncode:
            raise Unavailable(f"{name} failed: {done.stderr.strip()[:300]}", hint=f"Try it: {self.program} auth status")
        return done.stdout


GITHUB = Forge(
    "gh",
    ("pr", "create", "--base", "{base}", "--head", "{branch}", "--title", "{title}", "--body-file", "-"),
    ("pr", "list", "--head", "{branch}", "--state", "open", "--json", "url"),
    "url",
)
GITLAB = Forge(
    "glab",
    (
        *("mr", "create", "--source-branch", "{branch}", "--target-branch", "{base}"),
        *("--title", "{title}", "--description", "{body}", "--yes"),
    ),
    ("mr", "list", "--source-branch", "{branch}", "--output", "json"),
    "web_url",
)


def forge_at(context: RunContext, remote: str) -> Forge:
    """Return the program for a remote by its address, or else the first that is installed."""
    url = context.repository.on_refs("config", "--get", f"remote.{remote}.url", accepted=(0, 1)).text.lower()
    wanted = [GITLAB] if "gitlab" in url else [GITHUB] if "github" in url else [GITHUB, GITLAB]
    found = next((forge for forge in wanted if shutil.which(forge.program)), None)
    if found is None:
        names = " or ".join(forge.program for forge in wanted)
        raise Unavailable(f"a pull request needs {names}, which is not installed", hint=f"Install {names}, and log in.")
    return found


@dataclass(frozen=True, kw_only=True)
class Published(PullRequest):
    """The pull request of a run, with its commit and remote, and its address once it is open."""

    remote: str
    commit: str
    files: int
    url: str | None = None


def prepare_request(
    context: RunContext, *, remote: str = "origin", branch: str | None = None, base: str | None = None
) -> Published:
    """Prepare the pull request of a run's target into a branch, by default the checked-out one."""
    refuse_unstarted(context)
    Remote(context.repository, remote).check()
    into = base or Branches(context.repository).current()
    commit, old = context.target_commit(), Branches(context.repository).commit(into)
    if context.repository.is_ancestor(commit, old):
        raise Conflict(f"{into} already has all changes of the run", hint="There is nothing to request.", branch=into)
    title = context.log.runs.get(context.run_id).goal.splitlines()[0]
    return Published(
        remote=remote,
        branch=branch or f"decklog/{ref_part(context.run_id)}",
        base=into,
        commit=commit,
        title=shorten(title, _LONGEST_TITLE),
        body=_request_body(context, commit),
        files=len(list_changes(context.repository, old, commit)),
    )


def publish(
    context: RunContext,
    wanted: Published,
    *,
    by: str,
    proof: AbstractContextManager[object],
    held: Callable[[Published], str | None],
) -> str:
    """Push the branch and open the pull request; return its address.

    `held` returns why the review gate blocks it, or None.
    """
    forge = forge_at(context, wanted.remote)
    if (reason := held(wanted)) is not None:
        raise Denied(f"the gate blocks this: {reason}", hint="See: decklog reviews find")
    about: dict[str, object] = {"remote": wanted.remote, "branch": wanted.branch, "commit": wanted.commit, "base": wanted.base}
    question = f"Publish {wanted.branch} at {wanted.remote}? {counted(wanted.files, 'file')}."
    approval = approve(context, question, about, by=by, proof=proof, source="conductor.publish")
    remote, ref = Remote(context.repository, wanted.remote), f"refs/heads/{wanted.branch}"
    facts: dict[str, object] = {**about, "approval": approval}

    def push() -> None:
        # The branch at the remote may be at any earlier commit of the target.
        earlier = context.log.effects.find(context.run_id, tool="conductor.push", limit=200)
        remote.push_branch(wanted.branch, wanted.commit, known=[str(effect.facts["commit"]) for effect in earlier])

    def is_pushed(_effect: object) -> EffectCheck:
        return EffectCheck(remote.refs(ref).get(ref) == wanted.commit)

    context.effects.perform(f"push:{wanted.remote}:{wanted.branch}:{wanted.commit}", push, is_pushed, task_id=None, facts=facts)
    folder = context.repository.folder
    return str(
        context.effects.perform(
            f"request:{wanted.remote}:{wanted.branch}:{wanted.commit}",
            lambda: forge.open(folder, wanted),
            lambda _: forge.opened(folder, wanted.branch),
            task_id=None,
            facts=facts,
        )
    )


# The text of the request


def _request_body(context: RunContext, commit: str) -> str:
    log, run_id, tree = context.log, context.run_id, context.repository.tree(commit)
    landed = [task for task in all_tasks(log, run_id) if task.role == LAND and task.state == "done"]
    commits = [str(task.result["commit"])[:12] if isinstance(task.result, dict) else "no change" for task in landed]
    items = [f"- {task.title.removeprefix('Land: ')} ({commit})" for task, commit in zip(landed, commits, strict=True)]
    outcomes = {one.name: one.outcome.value for one in reversed(list(log.verdicts.find(run_id, tree=tree, limit=200)))}
    checks = [f"- {check.name}: {outcomes.get(check.name, 'not run')}" for check in context.configuration.checks]
    found = reversed(list(log.reviews.find(run_id, limit=200)))
    reviews = [f"- {one.verdict.value} of tree {one.tree[:12]} (review {one.id})" for one in found]
    no_review = "No review is on record." if context.configuration.is_reviewed else "None is set up."
    spent = run_status(log, run_id).spent()
    parts = [log.runs.get(run_id).goal, "## Work items", "\n".join(items) or "None.", "## Checks", "\n".join(checks)]
    parts += ["## Review", "\n".join(reviews) or no_review, "## Cost", f"{spent[0].upper()}{spent[1:]}."]
    return "\n\n".join([*parts, f"Decklog-Run: {run_id}"]) + "\n"
