"""Actions on questions: answer a message that asks something."""

from collections.abc import Mapping

from decklog.core.errors import Conflict
from decklog.web.actions.forms import ActionForm, FormField, WebAction, actor_of
from decklog.web.site import SiteRequest, command

ANSWER = "answer-question"


def _answering(asked: SiteRequest, message_id: str) -> ActionForm:
    message = asked.log.inbox.get(message_id)
    if message.state.value not in ("pending", "seen"):
        raise Conflict(f"message {message_id} is {message.state.value}", hint="Reload the inbox.")
    return ActionForm(
        title="Answer the question",
        button="Send answer",
        subject=message.body,
        link="/inbox",
        explanation=f"{message.from_handle} reads the answer at the next break in the work.",
        command=command("inbox", "answer", message_id, "TEXT", "--by", actor_of(asked)),
        fields=(FormField("text", "Answer"),),
        is_signed=False,
        state=message.state.value,
    )


def _answer(asked: SiteRequest, message_id: str, given: Mapping[str, str]) -> str:
    asked.log.inbox.answer(message_id, given["text"], by=actor_of(asked))
    return "/inbox"


ACTIONS = {ANSWER: WebAction(_answering, _answer)}
