"""Messages of people to the agents: their intent, by rules or by a model, and the commands that they ask for."""

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

# A guess of a model below this is ignored.
SURE_ENOUGH = 70
HIGHEST_TIER = 5
# How long an approval for a session is valid.
SESSION_SECONDS = 8 * 3600
_SKILL_SUFFIX = ".md"
SITE = "intent"
_DESK = "@desk"
_LONGEST_TITLE = 80
Proving = Callable[[], AbstractContextManager[None]]


class Intent(StrEnum):
    """The intent of a message. The agents read a `free_form` one themselves."""

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
        """Whether only the owner may order it, with a signature."""
        return self in _OWNERS

    @property
    def changes_nothing(self) -> bool:
        """Whether it changes nothing, so anybody may ask."""
        return self in (Intent.WHAT_TIER, Intent.SPEND_QUERY, Intent.FREE_FORM)


_OWNERS = (
    Intent.ENABLE_SELF_EDIT_SESSION,
    Intent.ENABLE_SELF_EDIT_PERMANENT,
    Intent.PROMOTE_TIER,
    Intent.GRANT_PER_CALL_SELF_EDIT,
    Intent.AUTHORISE_SENSITIVE,
)


@dataclass(frozen=True, kw_only=True)
class Understood:
    """The understood intent of a message, by an exact command, by a model, or by nobody.

    `args` has the guess of a model that was not certain enough.
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
# The whole message must be the command: "pause before you touch the parser" is for the agents to read.
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
_READ = {intent: re.compile(pattern, re.IGNORECASE | re.DOTALL) for intent, (pattern, _) in COMMANDS.items()}


def command_in(body: str) -> Understood | None:
    """Parse a message that is exactly a command; None for all others."""
    words = one_line(body).rstrip("?!.") if "\n" not in body.strip() else body.strip()
    for intent, pattern in _READ.items():
        if (found := pattern.fullmatch(words)) is not None:
            return Understood(intent=intent, args=_given(found.groupdict()), confidence=100, by="command")
    return None


def _given(groups: Mapping[str, str | None]) -> dict[str, Any]:
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


def from_answer(data: Mapping[str, Any], model: str) -> Understood:
    """Parse a model's guess; one below the limit counts as free form."""
    if data["confidence"] < SURE_ENOUGH:
        why = f"{model} was {data['confidence']} of 100 sure that it is {data['intent']}, and {SURE_ENOUGH} are needed"
        return Understood(intent=Intent.FREE_FORM, args={"guess": dict(data)}, by=model, why=why)
    args = {name: value for name, value in data["args"].items() if value != ""}
    return Understood(intent=Intent(data["intent"]), args=args, confidence=data["confidence"], by=model)


class Handler:
    """Acts on one message and returns the answer. `skills` are the files that may be invoked, by path."""

    def __init__(self, log: Decklog, message: Message, skills: Mapping[str, str]) -> None:
        self._log = log
        self._message = message
        self._skills = skills

    def act(self, understood: Understood) -> str | None:
        """Act on an intent, or return why not; a message for the agents has no answer yet."""
        intent = understood.intent
        if intent is Intent.FREE_FORM:
            return None
        if not intent.changes_nothing and not self._message.is_authorised:
            raise Denied(
                f"{self._message.from_handle} does not direct the work, so {intent} is not done",
                hint="The bound owner and the reviewers do: decklog trust show",
                intent=intent.value,
            )
        if intent.is_for_the_owner:
            self._must_be_bound(intent)
        return self._HANDLERS[intent](self, dict(understood.args))

    def _must_be_bound(self, intent: Intent) -> None:
        """Raise Denied for an owner's order without a registered owner: a name in a message proves nothing."""
        shown = self._log.trust.show()
        if not shown["is_bound"] or "problem" in shown:
            raise Denied(
                f"{intent} is for the owner, and no owner is bound who could prove to be it",
                hint="Bind one: decklog trust bind HANDLE CHANNEL",
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

    # What changes the work

    def _pause(self, args: dict[str, Any]) -> str:
        task_id = self._task(args, "running")
        task = self._log.tasks.pause(task_id, reason=args.get("reason") or f"message {self._message.id}")
        return f"Task {task.id} is paused{' already' if task.already else ''}. To go on: resume {task.id}"

    def _resume(self, args: dict[str, Any]) -> str:
        task = self._log.tasks.resume(self._task(args, "paused"))
        return f"Task {task.id} is {task.state}{' already' if task.already else ''}."

    def _task(self, args: dict[str, Any], state: str) -> str:
        """Return the named task, that of the message, or the only one in a state."""
        named = args.get("task") or self._message.task_id
        if named:
            return str(named)
        run_id = self._message.run_id
        found = self._log.tasks.find(run_id, state=state, limit=3)  # type: ignore[arg-type]
        if len(found) != 1:
            count = f"{len(found)} tasks are" if found else "no task is"
            raise Invalid(f"{count} {state}; say which is meant", hint=COMMANDS[Intent.PAUSE][1], field="task")
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
            raise Invalid("which run is this for?", hint="Add --run RUN", field="run_id")
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
        return f"The tier is {self._signed('promote', self._reason(args), to_tier=args.get('to_tier')).tier} now."

    def _start_self_edit(self, args: dict[str, Any]) -> str:
        self._signed("dev-mode", self._reason(args), is_on=True)
        return "Dev mode is on until it is switched off: disable self-edit"

    def _signed(self, change: str, reason: str, **terms: Any) -> Any:
        """Propose a change of trust and sign it with the signature of the message, if there is one."""
        proposal = self._log.trust.propose(change, reason, by=self._message.from_handle, **terms)  # type: ignore[arg-type]
        return self._log.trust.apply(proposal.statement)

    def _grant_once(self, args: dict[str, Any]) -> str:
        return self._granted(args, uses=1)

    def _grant_for_session(self, args: dict[str, Any]) -> str:
        return self._granted(args, valid_seconds=SESSION_SECONDS)

    def _granted(self, args: dict[str, Any], **how_long: Any) -> str:
        approval_id = args.get("approval")
        if not approval_id:
            raise Invalid("which question is this a yes to?", hint="List them: decklog approvals find --state open", field="id")
        rationale = self._reason(args)
        owner = self._log.trust.show()["owner"]
        granted = self._log.approvals.decide(str(approval_id), "granted", by=owner, rationale=rationale, **how_long)
        return f"Approval {granted.id} is granted: {granted.question}"

    def _reason(self, args: dict[str, Any]) -> str:
        reason = str(args.get("reason") or "").strip()
        if not reason:
            raise Conflict("say why: the reason is part of what the owner signs", hint="Such as: promote: WHY")
        return reason

    _HANDLERS: Mapping[Intent, Callable[["Handler", dict[str, Any]], str]] = {
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
    """The outcome of a message: its state, its intent, and a refusal."""

    message: Message
    understood: Understood
    refusal: DecklogError | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"message": self.message.as_dict(), **self.understood.as_dict()}


class Conversation:
    """Classifies messages and acts on them. A model may help; exact commands need none."""

    def __init__(self, log: Decklog, models: ModelSetup) -> None:
        self._log = log
        self._models = models

    def hear(self, message: Message, *, proving: Proving = nullcontext, with_model: bool = True) -> MessageOutcome:
        """Understand a message and act on it; an answered one is returned unchanged.

        `proving` asks for the owner's signature, and is called only for an owner's order. A refused message stays in the inbox,
        with the reason recorded.
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

    def _done(self, message: Message, understood: Understood, proving: Proving) -> Message:
        handler = Handler(self._log, message, self._skills())
        proof = proving() if understood.intent.is_for_the_owner and message.is_authorised else nullcontext()
        # One transaction: after a crash an order is not carried out twice.
        with proof, self._log.transaction():
            answer = handler.act(understood)
            if answer is not None and understood.intent is not Intent.FEEDBACK:
                self._log.inbox.answer(message.id, answer, by="decklog")
        return self._log.inbox.get(message.id)

    def _skills(self) -> dict[str, str]:
        composer = self._models.composer
        found = ((path, composer.read(path)) for path in composer.settings.skills)
        return {path: content.decode(errors="replace") for path, content in found if content is not None}

    # Understanding by a model

    def _guessed(self, message: Message, *, with_model: bool) -> Understood:
        if not with_model or not self._models.has(SITE):
            return Understood(intent=Intent.FREE_FORM, why="it is no exact command, and no model was asked")
        title = " ".join(message.body.split())[:_LONGEST_TITLE]
        run_id = message.run_id or self._log.runs.start(f"Understand: {title}", key=f"message:{message.id}").id
        data = [("message", message.body)]
        # Temperature 0: the same message must mean the same each time.
        answer = self._models.ask(self._log, SITE, FORM, data, run_id=run_id, task_id=message.task_id, temperature=0)
        if message.run_id is None:
            self._log.runs.finish(run_id, status="completed", summary=answer.why or "understood")
        if answer.data is None:
            return Understood(intent=Intent.FREE_FORM, by=answer.model or "nobody", why=answer.why)
        return from_answer(answer.data, answer.model or "a model")

    def _record(self, message: Message, understood: Understood, problem: DecklogError | None = None) -> None:
        """Record the intent of a message before acting on it, or why it was refused."""
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
