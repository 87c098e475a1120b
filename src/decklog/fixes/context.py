"""The context of one fix: its log, repository, settings and models, and its questions to people."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any

from decklog.conductor.checks.running import Runner
from decklog.conductor.context import SideEffects
from decklog.conductor.git.repository import REF_PREFIX, Repository, ref_part, starting_commit
from decklog.conductor.git.workspaces import remove_folder
from decklog.conductor.settings import NAME, load, require_consent
from decklog.conductor.tables import build
from decklog.core.errors import Invalid
from decklog.log import Decklog
from decklog.models.asking import BuildProvider, ModelSetup
from decklog.review import settings as review_settings
from decklog.review.change import Change, between
from decklog.review.settings import ReviewSettings
from decklog.stores.approvals.approval import Approval, ApprovalState, question_key
from decklog.stores.approvals.feedback import Feedback
from decklog.stores.approvals.inbox import MessageChannel, MessageSeverity, MessageState
from decklog.stores.workflow.mends import Mend

WAYS = ("branch", "pr", "patch")
# The template of the message about a large plan.
PLAN = "mend.plan"
_LONGEST_WORDS = 200


@dataclass(frozen=True, kw_only=True)
class MendSettings:
    """The `[mend]` settings. A fix leaves the machine only if `publish` is `pr`.

    `rounds` limits the attempts of an agent. Plans with more changed lines than `large` need an approval.
    """

    publish: str = "branch"
    remote: str = "origin"
    rounds: int = 2
    large: int = 200


def read_rules(content: bytes | None) -> MendSettings:
    """Parse the settings of a commit. Raise Invalid for an unknown name."""
    settings = build(MendSettings, "[mend]", load(content or b"").get("mend", {}))
    if settings.publish not in WAYS:
        raise Invalid(f"publish is {settings.publish!r}", hint=f"Use one of {', '.join(WAYS)}.", field="publish")
    for name in ("rounds", "large"):
        if getattr(settings, name) < 1:
            raise Invalid(f"{name} is {getattr(settings, name)!r}; it is a whole number from 1 on", field=name)
    return settings


def newest_base(repository: Repository) -> str:
    """Return the commit that a fix starts from: that of the published base branch, or of HEAD."""
    head = starting_commit(repository, "HEAD")
    named = review_settings.read(repository.read(head, NAME)).rules.base
    return (repository.resolve(named) if named else None) or head


@dataclass(frozen=True, kw_only=True)
class FixContext:
    """The context of one fix. `make` builds the model provider; None uses the settings."""

    log: Decklog
    repository: Repository
    mend: Mend
    make: BuildProvider | None = None
    say: Callable[[str], object] = field(default=lambda _: None)

    @property
    def feedback(self) -> Feedback:
        return self.log.feedback.get(self.mend.feedback_id)

    @property
    def base(self) -> str:
        assert self.mend.base is not None, "every mend has a base from its beginning"
        return self.mend.base

    @property
    def folder(self) -> Path:
        """The folder for files of trials and model calls, which may be removed after a kill."""
        return self.repository.state / "mends" / ref_part(self.mend.id)

    @property
    def refs(self) -> str:
        return f"{REF_PREFIX}/mends/{ref_part(self.mend.id)}"

    @cached_property
    def rules(self) -> MendSettings:
        return read_rules(self._settings)

    @cached_property
    def settings(self) -> ReviewSettings:
        return review_settings.read(self._settings)

    @cached_property
    def _settings(self) -> bytes | None:
        require_consent(self.repository, self.base)
        return self.repository.read(self.base, NAME)

    @property
    def effects(self) -> SideEffects:
        return SideEffects(self.log, self.mend.run_id)

    @property
    def change(self) -> Change:
        """The change from the base to the commit of the fix."""
        return between(self.repository, f"{self.base}..{self.mend.head}")

    def runner(self) -> Runner:
        """Return a runner of checks."""
        return Runner.beneath(self.folder / "trials", self.log, self.repository, self.settings.sandbox)

    @property
    def models(self) -> ModelSetup:
        """The models and prompts of the base."""
        return self.settings.setup(self.log, self.repository, self.base, self.folder / "calls", build=self.make)

    def clear(self) -> None:
        """Remove the files of trials and model calls."""
        if self.folder.exists():
            remove_folder(self.folder)


def ask_about_plan(context: FixContext, document: dict[str, Any]) -> Approval:
    """Ask for an approval of exactly this plan, and post a message about it. One answer answers both."""
    log, mend = context.log, context.mend
    question = f"Mend {mend.feedback_id} by a large change ({document['large']})?"
    given: dict[str, Any] = {"about": document, "subject": "mend", "source": "mend.plan", "key": f"plan:{mend.id}"}
    given |= {"payload": {"rule": "large-change", "reason": str(document["large"])}}
    asked = log.approvals.ask(mend.run_id, question, by="mend", **given)
    words = _fill_plan_message(context, document, asked.id)
    log.inbox.post("mend", words, severity=MessageSeverity.QUESTION, run_id=mend.run_id, key=question_key(asked.id))
    return asked


def withdraw_plan_question(context: FixContext, reason: str) -> None:
    """Withdraw an open question about the plan."""
    approval = context.mend.plan.get("approval")
    if approval is not None and context.log.approvals.get(str(approval)).state is ApprovalState.OPEN:
        context.log.approvals.withdraw(str(approval), reason=reason)


def _fill_plan_message(context: FixContext, document: dict[str, Any], approval: str) -> str:
    """Fill in the message about a plan in one pass, so that placeholders in values are not replaced."""
    files = [f"- {one['path']}: about {one['lines']} lines" for one in document["files"]]
    files += [f"- {path}: named by triage, but missing" for path in document["missing"]]
    alternatives = [f"- {one}" for one in document["alternatives"]]
    lists = {"files": "\n".join(files) or "not known yet", "alternatives": "\n".join(alternatives)}
    template = Template(context.models.composer.instructions(PLAN))
    return template.safe_substitute({**document, **lists, "approval": approval}).strip()


def ask_for_merge(context: FixContext, address: str) -> str:
    """Ask the author of the feedback to merge the fix. Return the id of the message.

    The message stays open until the fix is verified or dropped.
    """
    feedback, mend = context.feedback, context.mend
    quote = " ".join(feedback.body.split())[:_LONGEST_WORDS]
    body = f"{feedback.from_handle}: merge the fix for {feedback.id}, {address}, and have it verified. You said: {quote}"
    known: dict[str, Any] = {"run_id": mend.run_id, "context_url": feedback.context_url}
    channel = MessageChannel(feedback.channel) if feedback.channel in list(MessageChannel) else MessageChannel.CLI
    message = context.log.inbox.post(
        "mend", body, severity=MessageSeverity.QUESTION, channel=channel, key=f"mend-published:{mend.id}:{mend.head}", **known
    )
    return message.id


def answer_merge_question(context: FixContext, answer: str) -> None:
    """Answer the open question about a published fix, if there is one."""
    message_id = context.mend.published.get("message")
    if message_id is None:
        return
    if context.log.inbox.get(str(message_id)).state in (MessageState.PENDING, MessageState.SEEN):
        context.log.inbox.answer(str(message_id), answer, by="mend")
