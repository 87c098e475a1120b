"""Does what a message wants, by the verbs that everybody has: none is made for conversations, and none is proven by one."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from decklog.agents.sessions import planned_runs
from decklog.core.errors import Conflict, Denied, Invalid, NotFound
from decklog.core.figures import counted, dollars
from decklog.models.conversation.intents import COMMANDS, Intent, Understood
from decklog.stores.runs.run import RunStatus

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.stores.approvals.inbox import Message

# How long a yes for a session is good for.
SESSION_SECONDS = 8 * 3600
_SKILL_SUFFIX = ".md"


class Handler:
    """Does what one message wants; gives the answer to its sender. `skills` are the files that may be invoked, by path."""

    def __init__(self, log: "Decklog", message: "Message", skills: Mapping[str, str]) -> None:
        self._log = log
        self._message = message
        self._skills = skills

    def act(self, understood: Understood) -> str | None:
        """Do it, or say why not; a message that is for the agents to read has no answer yet."""
        intent = understood.intent
        if intent is Intent.FREE_FORM:
            return None
        if not intent.only_tells and not self._message.is_authorised:
            raise Denied(
                f"{self._message.from_handle} does not direct the work, so {intent} is not done",
                hint="The bound manager and the reviewers do: decklog trust show",
                intent=intent.value,
            )
        if intent.is_for_the_manager:
            self._must_be_bound(intent)
        return self._HANDLERS[intent](self, dict(understood.args))

    def _must_be_bound(self, intent: Intent) -> None:
        """Refuse a manager's order where nobody could prove to be the manager: a name in a message proves nothing."""
        shown = self._log.trust.show()
        if not shown["is_bound"] or "problem" in shown:
            raise Denied(
                f"{intent} is for the manager, and no manager is bound who could prove to be it",
                hint="Bind one: decklog trust bind HANDLE CHANNEL",
                intent=intent.value,
            )

    # What only tells

    def _what_tier(self, _: dict[str, Any]) -> str:
        shown = self._log.trust.show()
        manager = f"manager {shown['manager']}" if shown["is_bound"] else "no manager is bound"
        dev_mode = ", dev mode is on" if shown.get("is_dev_mode") else ""
        return f"Tier {shown['tier']}, {shown['tier_name']}; {manager}{dev_mode}."

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
        """Find the task that is meant: as it says, the one that the message is about, or the only one there is."""
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
        return f"Feedback {feedback.id}: {feedback.state}. What becomes of it: decklog feedback show {feedback.id}"

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
        """Propose a change of trust and have it signed by the proof that was given with the message, if one was."""
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
        manager = self._log.trust.show()["manager"]
        granted = self._log.approvals.decide(
            str(approval_id),
            "granted",
            by=manager,
            rationale=rationale,
            **how_long,
        )
        return f"Approval {granted.id} is granted: {granted.question}"

    def _reason(self, args: dict[str, Any]) -> str:
        reason = str(args.get("reason") or "").strip()
        if not reason:
            raise Conflict("say why: the reason is part of what the manager signs", hint="Such as: promote: WHY")
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
