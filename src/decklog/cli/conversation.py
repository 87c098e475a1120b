"""Messages from people to agents."""

import os
import sys

from decklog.agents.caller import is_agent
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.show import show
from decklog.cli.signing import owner_signature
from decklog.cli.terminal import print_text
from decklog.conductor.git.repository import Repository
from decklog.conductor.settings import require_consent
from decklog.core.errors import DecklogError, Denied
from decklog.log import Decklog
from decklog.models.asking import ModelSetup, read_setup
from decklog.models.conversation import Conversation, MessageOutcome

SEVERITIES = {"ask": "question", "note": "info", "critical": "critical"}
_PENDING = 7


def send_message(
    call: Invocation,
    word: str,
    text: str,
    *,
    from_: str | None = None,
    run_id: str | None = None,
    task_id: str | None = None,
    plain: bool = False,
    key: str | None = None,
) -> int:
    """Record and acknowledge a message, then report its outcome.

    Return 0 if it is done or answered, 7 if an agent still has to read it. Raise the refusal, if any.
    """
    if is_agent():
        raise Denied("an agent can't send a message as a person", hint="Agents ask without --from: decklog ask QUESTION")
    if from_ is not None and not from_.strip():
        raise WrongUsage("--from needs a name", hint="Such as: --from ana")
    with call.open() as log:
        message = log.inbox.post(
            from_ or _user_name(),
            text,
            severity=SEVERITIES[word],  # type: ignore[arg-type]
            run_id=run_id,
            task_id=task_id,
            key=key,
        )
        if not call.json:
            print_text(f"{message.id}: {message.ack}")
            sys.stdout.flush()
        conversation = Conversation(log, load_models(log))
        outcome = conversation.handle(message, signing=lambda: owner_signature(log, call.key), with_model=not plain)
    return _show_outcome(call, outcome)


def _user_name() -> str:
    return os.environ.get("USER") or os.environ.get("LOGNAME") or str(os.getuid())


def _show_outcome(call: Invocation, outcome: MessageOutcome) -> int:
    message, understood = outcome.message, outcome.understood
    if outcome.refusal is not None:
        outcome.refusal.details |= {"message_id": message.id, "intent": understood.intent.value}
        raise outcome.refusal
    text = message.answer or f"Left for the agents to read: {understood.why or understood.intent}."
    if message.escalated_to and not message.answer:
        text = f"It is feedback {message.escalated_to} now: decklog feedback show {message.escalated_to}"
    show(outcome, as_json=call.json, text=text)
    return _PENDING if message.state == "pending" else 0


def load_models(log: Decklog) -> ModelSetup:
    """Return the models that the repository of this folder configures in its newest commit; none outside of one."""
    try:
        repository = Repository.here()
        commit = repository.resolve("HEAD")
    except DecklogError:
        # Outside of a repository, no settings configure a model.
        return ModelSetup()
    if commit is None:
        return ModelSetup()
    models = read_setup(log, lambda path: repository.read(commit, path), repository.state / "calls")
    if models.models.models:
        require_consent(repository, commit)
    return models
