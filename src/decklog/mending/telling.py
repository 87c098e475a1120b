"""Tells whoever gave feedback that its fix can be had, where they said it; and what became of that."""

from typing import TYPE_CHECKING, Any

from decklog.stores.desk.inbox import MessageChannel, MessageSeverity, MessageState

if TYPE_CHECKING:
    from decklog.mending.ground import Ground

_LONGEST = 200


def published(ground: "Ground", address: str) -> str:
    """Ask for the merge of a fix, by the channel and the address of its feedback; give the id of the message.

    It waits among the questions to people until the fix is verified or given up.
    """
    feedback, mend = ground.feedback, ground.mend
    said = " ".join(feedback.body.split())[:_LONGEST]
    body = f"{feedback.from_handle}: the fix for {feedback.id} can be merged, {address}. You said: {said}"
    known: dict[str, Any] = {"run_id": mend.run_id, "context_url": feedback.context_url}
    channel = MessageChannel(feedback.channel) if feedback.channel in list(MessageChannel) else MessageChannel.CLI
    message = ground.log.inbox.post(
        "mend", body, severity=MessageSeverity.QUESTION, channel=channel, key=f"mend-published:{mend.id}:{mend.head}", **known
    )
    return message.id


def ended(ground: "Ground", answer: str) -> None:
    """Answer the question that a published fix is; one that a person has answered, and a mend without any, stay as they are."""
    message_id = ground.mend.published.get("message")
    if message_id is None:
        return
    if ground.log.inbox.get(str(message_id)).state in (MessageState.PENDING, MessageState.SEEN):
        ground.log.inbox.answer(str(message_id), answer, by="mend")
