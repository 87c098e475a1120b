"""Asks people about a mend: for a yes to a large plan, and for the merge of a fix; nothing stays asked that is over."""

from string import Template
from typing import TYPE_CHECKING, Any

from decklog.stores.approvals.approval import ApprovalState, question_key
from decklog.stores.approvals.inbox import MessageChannel, MessageSeverity, MessageState

if TYPE_CHECKING:
    from decklog.fixes.ground import FixContext
    from decklog.stores.approvals.approval import Approval

# The message about a large plan: a template among the prompts, which no model answers.
PLAN = "mend.plan"
_LONGEST = 200


def planned(ground: "FixContext", document: dict[str, Any]) -> "Approval":
    """Ask for a yes to exactly this plan, and say in words what is asked; whatever answers the one answers the other."""
    log, mend = ground.log, ground.mend
    question = f"Mend {mend.feedback_id} by a large change ({document['large']})?"
    given: dict[str, Any] = {"about": document, "subject": "mend", "source": "mend.plan", "key": f"plan:{mend.id}"}
    given |= {"payload": {"rule": "large-change", "reason": str(document["large"])}}
    asked = log.approvals.ask(mend.run_id, question, by="mend", **given)
    words = _of_plan(ground, document, asked.id)
    log.inbox.post("mend", words, severity=MessageSeverity.QUESTION, run_id=mend.run_id, key=question_key(asked.id))
    return asked


def plan_is_over(ground: "FixContext", reason: str) -> None:
    """Take back the question about a plan, if there is one that nobody has answered."""
    approval = ground.mend.plan.get("approval")
    if approval is not None and ground.log.approvals.get(str(approval)).state is ApprovalState.OPEN:
        ground.log.approvals.withdraw(str(approval), reason=reason)


def _of_plan(ground: "FixContext", document: dict[str, Any], approval: str) -> str:
    """Fill in the message that asks about a plan, in one pass: a value that looks like a placeholder stays as it is."""
    files = [f"- {one['path']}: about {one['lines']} lines" for one in document["files"]]
    files += [f"- {path}: named by triage, and not there" for path in document["missing"]]
    alternatives = [f"- {one}" for one in document["alternatives"]]
    lists = {"files": "\n".join(files) or "not known yet", "alternatives": "\n".join(alternatives)}
    return Template(ground.composer().instructions(PLAN)).safe_substitute({**document, **lists, "approval": approval}).strip()


def published(ground: "FixContext", address: str) -> str:
    """Ask for the merge of a fix, by the channel and the address of its feedback; give the id of the message.

    It waits among the questions to people until the fix is verified or given up.
    """
    feedback, mend = ground.feedback, ground.mend
    said = " ".join(feedback.body.split())[:_LONGEST]
    body = f"{feedback.from_handle}: merge the fix for {feedback.id}, {address}, and have it verified. You said: {said}"
    known: dict[str, Any] = {"run_id": mend.run_id, "context_url": feedback.context_url}
    channel = MessageChannel(feedback.channel) if feedback.channel in list(MessageChannel) else MessageChannel.CLI
    message = ground.log.inbox.post(
        "mend", body, severity=MessageSeverity.QUESTION, channel=channel, key=f"mend-published:{mend.id}:{mend.head}", **known
    )
    return message.id


def ended(ground: "FixContext", answer: str) -> None:
    """Answer the question that a published fix is; one that a person has answered, and a mend without any, stay as they are."""
    message_id = ground.mend.published.get("message")
    if message_id is None:
        return
    if ground.log.inbox.get(str(message_id)).state in (MessageState.PENDING, MessageState.SEEN):
        ground.log.inbox.answer(str(message_id), answer, by="mend")
