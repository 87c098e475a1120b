"""From a message that is in the inbox to what was understood, done and answered, each step on record."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decklog.core.errors import DecklogError
from decklog.journal.entry import EntryKind
from decklog.models.asking import Voices
from decklog.models.conversation.handling import Handler
from decklog.models.conversation.intents import FORM, Intent, Understood, command_in, from_answer
from decklog.stores.approvals.inbox import MessageState

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.stores.approvals.inbox import Message

SITE = "intent"
_DESK = "@desk"
_LONGEST_TITLE = 80
Proving = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class MessageOutcome:
    """What became of a message: how it stands, what it was taken to mean, and why that was not done, if it was not."""

    message: "Message"
    understood: Understood
    refusal: DecklogError | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"message": self.message.as_dict(), **self.understood.as_dict()}


class Conversation:
    """Understands messages and does what they want. `voices` may have a model for it; exact commands need none."""

    def __init__(self, log: "Decklog", voices: Voices) -> None:
        self._log = log
        self._voices = voices

    def hear(self, message: "Message", *, proving: Proving = nullcontext, with_model: bool = True) -> MessageOutcome:
        """Understand a message and do what it wants; one that was answered already is told as it is.

        `proving` asks for the manager's proof, and is called only where a manager's order is to be carried out. What is refused
        stays in the inbox for people and agents to see, with the reason on record.
        """
        if message.state is not MessageState.PENDING:
            return MessageOutcome(message, Understood(intent=Intent.FREE_FORM, why=f"it is {message.state} already"))
        understood = command_in(message.body) or self._guessed(message, with_model=with_model)
        self._record(message, understood)
        try:
            return MessageOutcome(self._done(message, understood, proving), understood)
        except DecklogError as problem:
            if problem.retryable:
                raise
            self._record(message, understood, problem)
            return MessageOutcome(self._log.inbox.get(message.id), understood, problem)

    def _done(self, message: "Message", understood: Understood, proving: Proving) -> "Message":
        handler = Handler(self._log, message, self._skills())
        proof = proving() if understood.intent.is_for_the_manager and message.is_authorised else nullcontext()
        # What is done and what is answered are one fact: heard again after a crash, an order is not carried out twice.
        with proof, self._log.transaction():
            answer = handler.act(understood)
            if answer is not None and understood.intent is not Intent.FEEDBACK:
                self._log.inbox.answer(message.id, answer, by="decklog")
        return self._log.inbox.get(message.id)

    def _skills(self) -> dict[str, str]:
        found = ((path, self._voices.read(path)) for path in self._voices.prompt.skills)
        return {path: content.decode(errors="replace") for path, content in found if content is not None}

    # Understanding by a model

    def _guessed(self, message: "Message", *, with_model: bool) -> Understood:
        if not with_model or not self._voices.has(SITE):
            return Understood(intent=Intent.FREE_FORM, why="it is no exact command, and no model was asked")
        run_id = message.run_id or self._own_run(message)
        data = [("message", message.body)]
        # The same message must mean the same each time.
        answer = self._voices.ask(self._log, SITE, FORM, data, run_id=run_id, task_id=message.task_id, temperature=0)
        if message.run_id is None:
            self._log.runs.finish(run_id, status="completed", summary=answer.why or "understood")
        if answer.data is None:
            return Understood(intent=Intent.FREE_FORM, by=answer.model or "nobody", why=answer.why)
        return from_answer(answer.data, answer.model or "a model")

    def _own_run(self, message: "Message") -> str:
        title = " ".join(message.body.split())[:_LONGEST_TITLE]
        return self._log.runs.start(f"Understand: {title}", key=f"message:{message.id}").id

    def _record(self, message: "Message", understood: Understood, problem: DecklogError | None = None) -> None:
        """Keep what a message was taken to mean before anything is done, and why it was not done."""
        refusal = {} if problem is None else {"refusal": problem.as_dict()}
        body = f"{message.id}: {understood.intent} by {understood.by}" if problem is None else f"{message.id}: {problem.message}"
        self._log.journal.append(
            message.run_id or _DESK,
            body,
            kind=EntryKind.EVENT,
            subtype="message.understood" if problem is None else "message.refused",
            task_id=message.task_id,
            payload={"message": message.id, **understood.as_dict(), **refusal},
        )
