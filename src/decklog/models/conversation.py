"""Classify messages of people to agents, by exact commands or by a model, and carry out the commands."""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from decklog.agents.sessions import planned_runs
from decklog.core.display import counted, dollars, one_line
from decklog.core.errors import Conflict, DecklogError, Denied, Invalid, NotFound
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.models.asking import ModelSetup
from decklog.stores.approvals.inbox import Message, MessageState
from decklog.stores.runs.run import RunStatus

# Lowest confidence at which a model's guess is used.
SURE_ENOUGH = 70
HIGHEST_TIER = 5
# How long an approval for a session is valid.
SESSION_SECONDS = 8 * 3600
_SKILL_SUFFIX = ".md"
SITE = "intent"
_NO_RUN_STREAM = "@desk"
_LONGEST_TITLE = 80
SignatureContext = Callable[[], AbstractContextManager[None]]


class Intent(StrEnum):
    """The intent of a message. `free_form` messages are left to the agents."""

    ENABLE_SELF_EDIT_SESSION = "enable_self_edit_session"
    ENABLE_SELF_EDIT_PERMANENT = "enable_self_edit_permanent"
    DISABLE_SELF_EDIT = "disable_self_edit"
    PROMOTE_TIER = "promote_tier"
    DEMOTE_TIER = "demote_tier"
    GRANT_PER_CALL_SELF_EDIT = "grant_per_call_selfedit"
    WHAT_TIER = "what_tier"
    SPEND_QUERY = "spend_query"
    PAUSE = "pause"
    RESUME = "resume"
    AUTHORISE_SENSITIVE = "authorise_sensitive"
    FEEDBACK = "feedback"
    SKILL_INVOKE = "skill_invoke"
    FREE_FORM = "free_form"

    @property
    def is_for_the_owner(self) -> bool:
        """Whether only the owner may request it, with a signature."""
        return self in _OWNER_INTENTS

    @property
    def changes_nothing(self) -> bool:
        """Whether it only reads, so that anybody may request it."""
        return self in (Intent.WHAT_TIER, Intent.SPEND_QUERY, Intent.FREE_FORM)


_OWNER_INTENTS = (
    Intent.ENABLE_SELF_EDIT_SESSION,
    Intent.ENABLE_SELF_EDIT_PERMANENT,
    Intent.PROMOTE_TIER,
    Intent.GRANT_PER_CALL_SELF_EDIT,
    Intent.AUTHORISE_SENSITIVE,
)


@dataclass(frozen=True, kw_only=True)
class UnderstoodIntent:
    """The intent of a message, and `by` what it was understood: `command`, a model's name, or `nobody`.

    A guess below the required confidence is kept in `args`.
    """

    intent: Intent
    args: Mapping[str, Any] = field(default_factory=dict)
    confidence: int = 0
    by: str = "nobody"
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "intent": self.intent.value, "args": dict(self.args)}


_REASON = r"(?:: *(?P<reason>.+))"
_TASK = r"(?: task)?(?: (?P<task>[\w.:-]+))?"
_APPROVAL = r"(?P<approval>[\w.:-]+)"
_TO_TIER = r"(?: to(?: tier)? (?P<to_tier>\d))?"
# The whole message must be the command: "pause before you touch the parser" is free form.
COMMANDS: Mapping[Intent, tuple[str, str]] = {
    Intent.WHAT_TIER: (r"(?:what|which) tier(?: are you(?: at| on)?)?", "what tier"),
    Intent.SPEND_QUERY: (r"(?:what (?:was|did you) )?spen[dt](?: today)?", "spend"),
    Intent.PAUSE: (rf"pause{_TASK}{_REASON}?", "pause [TASK][: WHY]"),
    Intent.RESUME: (rf"resume{_TASK}", "resume [TASK]"),
    Intent.FEEDBACK: (r"feedback: *(?P<reason>.+)", "feedback: WHAT WENT WRONG"),
    Intent.SKILL_INVOKE: (r"(?:use )?skill (?P<skill>[\w.-]+)", "skill NAME"),
    Intent.DEMOTE_TIER: (rf"demote{_TO_TIER}{_REASON}?", "demote [to N][: WHY]"),
    Intent.DISABLE_SELF_EDIT: (rf"disable self-edit{_REASON}?", "disable self-edit[: WHY]"),
    Intent.PROMOTE_TIER: (rf"promote{_TO_TIER}{_REASON}", "promote [to N]: WHY"),
    Intent.ENABLE_SELF_EDIT_PERMANENT: (rf"enable self-edit{_REASON}", "enable self-edit: WHY"),
    Intent.ENABLE_SELF_EDIT_SESSION: (
        rf"enable self-edit for this session {_APPROVAL}{_REASON}",
        "enable self-edit for this session APPROVAL: WHY",
    ),
    Intent.GRANT_PER_CALL_SELF_EDIT: (rf"grant self-edit {_APPROVAL}{_REASON}", "grant self-edit APPROVAL: WHY"),
    Intent.AUTHORISE_SENSITIVE: (rf"authori[sz]e {_APPROVAL}{_REASON}", "authorise APPROVAL: WHY"),
}
_PATTERNS = {intent: re.compile(pattern, re.IGNORECASE | re.DOTALL) for intent, (pattern, _) in COMMANDS.items()}


def parse_command(body: str) -> UnderstoodIntent | None:
    """Parse a message that is exactly a command; None for all others."""
    words = one_line(body).rstrip("?!.") if "\n" not in body.strip() else body.strip()
    for intent, pattern in _PATTERNS.items():
        if (found := pattern.fullmatch(words)) is not None:
            return UnderstoodIntent(intent=intent, args=_parse_arguments(found.groupdict()), confidence=100, by="command")
    return None


def _parse_arguments(groups: Mapping[str, str | None]) -> dict[str, Any]:
    named = {name: value.strip() for name, value in groups.items() if value is not None}
    return {**named, "to_tier": int(named["to_tier"])} if "to_tier" in named else dict(named)


FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "intent": {"type": "string", "enum": [intent.value for intent in Intent]},
        "args": {
            "type": "object",
            "properties": {
                "task": {"type": "string"},
                "approval": {"type": "string"},
                "skill": {"type": "string"},
                "to_tier": {"type": "integer", "minimum": 0, "maximum": HIGHEST_TIER},
                "reason": {"type": "string"},
            },
            "required": [],
            "additionalProperties": False,
        },
        "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
    },
    "required": ["intent", "args", "confidence"],
    "additionalProperties": False,
}


def parse_guess(data: Mapping[str, Any], model: str) -> UnderstoodIntent:
    """Parse a model's guess. One below the required confidence counts as free form."""
    if data["confidence"] < SURE_ENOUGH:
        why = f"{model} was {data['confidence']} of 100 sure that it is {data['intent']}, and {SURE_ENOUGH} are needed"
        return UnderstoodIntent(intent=Intent.FREE_FORM, args={"guess": dict(data)}, by=model, why=why)
    args = {name: value for name, value in data["args"].items() if value != ""}
    return UnderstoodIntent(intent=Intent(data["intent"]), args=args, confidence=data["confidence"], by=model)


class IntentHandler:
    """Carries out the intent of one message. `skills` are the contents of the files that it may invoke, by path."""

    def __init__(self, log: Decklog, message: Message, skills: Mapping[str, str]) -> None:
        self._log = log
        self._message = message
        self._skills = skills

    def act(self, understood: UnderstoodIntent) -> str | None:
        """Carry out an intent and return the answer; None for a free-form message. Raise Denied if it is not allowed."""
        intent = understood.intent
        if intent is Intent.FREE_FORM:
            return None
        if not intent.changes_nothing and not self._message.is_authorised:
            raise Denied(
                f"{self._message.from_handle} may not request {intent}",
                hint="Only the registered owner and reviewers may: decklog trust show",
                intent=intent.value,
            )
        if intent.is_for_the_owner:
            self._require_owner(intent)
        return self._HANDLERS[intent](self, dict(understood.args))

    def _require_owner(self, intent: Intent) -> None:
        """Raise Denied if no owner is registered, since then no signature can be checked."""
        shown = self._log.trust.show()
        if not shown["is_bound"] or "problem" in shown:
            raise Denied(
                f"only the owner may request {intent}, and no owner is registered",
                hint="Register one: decklog trust bind HANDLE CHANNEL",
                intent=intent.value,
            )

    # Read-only intents

    def _what_tier(self, _: dict[str, Any]) -> str:
        shown = self._log.trust.show()
        owner = f"owner {shown['owner']}" if shown["is_bound"] else "no owner is bound"
        dev_mode = ", dev mode is on" if shown.get("is_dev_mode") else ""
        return f"Tier {shown['tier']}, {shown['tier_name']}; {owner}{dev_mode}."

    def _spend(self, _: dict[str, Any]) -> str:
        summary = self._log.overview.now(limit=1)
        unknown = f", and {counted(summary.unpriced_today, 'call')} whose price nobody knows" if summary.unpriced_today else ""
        budgets = "".join(f" {budget.whose}: {budget.said}." for budget in summary.budgets)
        return f"Spent today: {dollars(summary.spent_today)}{unknown}.{budgets}"

    # Intents that change the work

    def _pause(self, args: dict[str, Any]) -> str:
        task_id = self._task(args, "running")
        task = self._log.tasks.pause(task_id, reason=args.get("reason") or f"message {self._message.id}")
        return f"Task {task.id} is paused{' already' if task.already else ''}. To go on: resume {task.id}"

    def _resume(self, args: dict[str, Any]) -> str:
        task = self._log.tasks.resume(self._task(args, "paused"))
        return f"Task {task.id} is {task.state}{' already' if task.already else ''}."

    def _task(self, args: dict[str, Any], state: str) -> str:
        """Return the task that is named, the task of the message, or the only task in a state."""
        named = args.get("task") or self._message.task_id
        if named:
            return str(named)
        run_id = self._message.run_id
        found = self._log.tasks.find(run_id, state=state, limit=3)  # type: ignore[arg-type]
        if len(found) != 1:
            count = f"{len(found)} tasks are" if found else "no task is"
            raise Invalid(f"{count} {state}; name one", hint=COMMANDS[Intent.PAUSE][1], field="task")
        return found[0].id

    def _feedback(self, _: dict[str, Any]) -> str:
        feedback = self._log.inbox.escalate(self._message.id, by="decklog")
        return f"Feedback {feedback.id}: {feedback.state}. Its outcome: decklog feedback show {feedback.id}"

    def _skill(self, args: dict[str, Any]) -> str:
        name = str(args.get("skill") or "").removesuffix(_SKILL_SUFFIX)
        path = next((path for path in self._skills if path.rpartition("/")[2].removesuffix(_SKILL_SUFFIX) == name), None)
        if path is None:
            known = ", ".join(self._skills) or "none"
            raise NotFound(f"there is no skill {name!r}", hint=f"[prompt] in decklog.toml names {known}.", name=name)
        run_id = self._message.run_id or self._only_run()
        entry = self._log.journal.append(
            run_id,
            self._skills[path],
            subtype="skill.invoked",
            task_id=self._message.task_id,
            payload={"skill": path, "message": self._message.id},
            key=self._message.id,
        )
        return f"Skill {path} is in run {run_id} for its agents to read, entry {entry.id}."

    def _only_run(self) -> str:
        active = planned_runs(self._log, RunStatus.ACTIVE, 2)
        if len(active) != 1:
            raise Invalid("name the run that this is for", hint="Add --run RUN", field="run_id")
        return active[0].id

    # Trust

    def _demote(self, args: dict[str, Any]) -> str:
        reason = args.get("reason") or "no reason given"
        contract = self._log.trust.demote(to_tier=args.get("to_tier"), reason=reason, by=self._message.from_handle)
        return f"The tier is {contract.tier} now."

    def _stop_self_edit(self, args: dict[str, Any]) -> str:
        self._log.trust.stop_dev_mode(reason=args.get("reason") or "no reason given", by=self._message.from_handle)
        return "Dev mode is off."

    def _promote(self, args: dict[str, Any]) -> str:
        return f"The tier is {self._apply_signed('promote', self._reason(args), to_tier=args.get('to_tier')).tier} now."

    def _start_self_edit(self, args: dict[str, Any]) -> str:
        self._apply_signed("dev-mode", self._reason(args), is_on=True)
        return "Dev mode is on until it is switched off: disable self-edit"

    def _apply_signed(self, change: str, reason: str, **terms: Any) -> Any:
        """Propose a change of trust and apply it, with the message's signature if there is one."""
        proposal = self._log.trust.propose(change, reason, by=self._message.from_handle, **terms)  # type: ignore[arg-type]
        return self._log.trust.apply(proposal.statement)

    def _grant_once(self, args: dict[str, Any]) -> str:
        return self._grant(args, uses=1)

    def _grant_for_session(self, args: dict[str, Any]) -> str:
        return self._grant(args, valid_seconds=SESSION_SECONDS)

    def _grant(self, args: dict[str, Any], **how_long: Any) -> str:
        approval_id = args.get("approval")
        if not approval_id:
            raise Invalid("name the approval to grant", hint="List them: decklog approvals find --state open", field="id")
        rationale = self._reason(args)
        owner = self._log.trust.show()["owner"]
        granted = self._log.approvals.decide(str(approval_id), "granted", by=owner, rationale=rationale, **how_long)
        return f"Approval {granted.id} is granted: {granted.question}"

    def _reason(self, args: dict[str, Any]) -> str:
        reason = str(args.get("reason") or "").strip()
        if not reason:
            raise Conflict("a reason is required, as the owner signs it", hint="For example: promote: WHY")
        return reason

    _HANDLERS: Mapping[Intent, Callable[["IntentHandler", dict[str, Any]], str]] = {
        Intent.WHAT_TIER: _what_tier,
        Intent.SPEND_QUERY: _spend,
        Intent.PAUSE: _pause,
        Intent.RESUME: _resume,
        Intent.FEEDBACK: _feedback,
        Intent.SKILL_INVOKE: _skill,
        Intent.DEMOTE_TIER: _demote,
        Intent.DISABLE_SELF_EDIT: _stop_self_edit,
        Intent.PROMOTE_TIER: _promote,
        Intent.ENABLE_SELF_EDIT_PERMANENT: _start_self_edit,
        Intent.ENABLE_SELF_EDIT_SESSION: _grant_for_session,
        Intent.GRANT_PER_CALL_SELF_EDIT: _grant_once,
        Intent.AUTHORISE_SENSITIVE: _grant_once,
    }


@dataclass(frozen=True)
class MessageOutcome:
    """The outcome of a message: its state and intent, and the error if it was refused."""

    message: Message
    understood: UnderstoodIntent
    refusal: DecklogError | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"message": self.message.as_dict(), **self.understood.as_dict()}


class Conversation:
    """Classifies messages and acts on them. A model may help; exact commands need none."""

    def __init__(self, log: Decklog, models: ModelSetup) -> None:
        self._log = log
        self._models = models

    def handle(self, message: Message, *, signing: SignatureContext = nullcontext, with_model: bool = True) -> MessageOutcome:
        """Classify a message and carry out its intent; an answered one is returned unchanged.

        `signing` asks for the owner's signature and is called only for the owner's intents. A refused message stays in the
        inbox, and the reason is recorded.
        """
        if message.state is not MessageState.PENDING:
            return MessageOutcome(message, UnderstoodIntent(intent=Intent.FREE_FORM, why=f"it is {message.state} already"))
        understood = parse_command(message.body) or self._ask_model(message, with_model=with_model)
        self._record(message, understood)
        try:
            return MessageOutcome(self._carry_out(message, understood, signing), understood)
        except DecklogError as problem:
            if problem.retryable:
                raise
            self._record(message, understood, problem)
            return MessageOutcome(self._log.inbox.get(message.id), understood, problem)

    def _carry_out(self, message: Message, understood: UnderstoodIntent, signing: SignatureContext) -> Message:
        handler = IntentHandler(self._log, message, self._skills())
        signature = signing() if understood.intent.is_for_the_owner and message.is_authorised else nullcontext()
        # One transaction, so that a crash can't carry out a command twice.
        with signature, self._log.transaction():
            answer = handler.act(understood)
            if answer is not None and understood.intent is not Intent.FEEDBACK:
                self._log.inbox.answer(message.id, answer, by="decklog")
        return self._log.inbox.get(message.id)

    def _skills(self) -> dict[str, str]:
        composer = self._models.composer
        found = ((path, composer.read(path)) for path in composer.settings.skills)
        return {path: content.decode(errors="replace") for path, content in found if content is not None}

    # Understanding by a model

    def _ask_model(self, message: Message, *, with_model: bool) -> UnderstoodIntent:
        if not with_model or not self._models.has(SITE):
            return UnderstoodIntent(intent=Intent.FREE_FORM, why="it is not an exact command, and no model was asked")
        title = " ".join(message.body.split())[:_LONGEST_TITLE]
        run_id = message.run_id or self._log.runs.start(f"Understand: {title}", key=f"message:{message.id}").id
        data = [("message", message.body)]
        # Temperature 0: the same message must mean the same each time.
        answer = self._models.ask(self._log, SITE, FORM, data, run_id=run_id, task_id=message.task_id, temperature=0)
        if message.run_id is None:
            self._log.runs.finish(run_id, status="completed", summary=answer.why or "understood")
        if answer.data is None:
            return UnderstoodIntent(intent=Intent.FREE_FORM, by=answer.model or "nobody", why=answer.why)
        return parse_guess(answer.data, answer.model or "a model")

    def _record(self, message: Message, understood: UnderstoodIntent, problem: DecklogError | None = None) -> None:
        """Record the intent of a message before acting on it, or why it was refused."""
        refusal = {} if problem is None else {"refusal": problem.as_dict()}
        body = f"{message.id}: {understood.intent} by {understood.by}" if problem is None else f"{message.id}: {problem.message}"
        self._log.journal.append(
            message.run_id or _NO_RUN_STREAM,
            body,
            kind=EntryKind.EVENT,
            subtype="message.understood" if problem is None else "message.refused",
            task_id=message.task_id,
            payload={"message": message.id, **understood.as_dict(), **refusal},
        )
