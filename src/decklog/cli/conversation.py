"""Messages of people to agents."""

import os
import sys

from decklog.agents.caller import is_agent
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.show import show
from decklog.cli.signing import proving
from decklog.cli.terminal import say
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
    """Record a message, acknowledge it first, and report the outcome.

    Exit 0 done or answered, 7 when it waits for an agent to read it, and otherwise that of the refusal.
    """
    if is_agent():
        raise Denied("an agent does not speak for a person", hint="Agents ask without --from: decklog ask QUESTION")
    if from_ is not None and not from_.strip():
        raise WrongUsage("--from needs a name", hint="Such as: --from ana")
    with call.open() as log:
        message = log.inbox.post(
            from_ or _own_name(),
            text,
            severity=SEVERITIES[word],  # type: ignore[arg-type]
            run_id=run_id,
            task_id=task_id,
            key=key,
        )
        if not call.json:
            say(f"{message.id}: {message.ack}")
            sys.stdout.flush()
        conversation = Conversation(log, voices_here(log))
        outcome = conversation.handle(message, signing=lambda: proving(log, call.key), with_model=not plain)
    return _show_outcome(call, outcome)


def _own_name() -> str:
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


def voices_here(log: Decklog) -> ModelSetup:
    """Return the models that the repository of this folder names in its newest commit; without one there are none."""
    try:
        repository = Repository.here()
        commit = repository.resolve("HEAD")
    except DecklogError:
        # Outside of a repository there are no settings that could name a model.
        return ModelSetup()
    if commit is None:
        return ModelSetup()
    models = read_setup(log, lambda path: repository.read(commit, path), repository.state / "calls")
    if models.models.models:
        require_consent(repository, commit)
    return models
