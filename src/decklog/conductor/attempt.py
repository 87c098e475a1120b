"""Attempts at work and at plans: create a workspace, run an agent in it, save its work, and decide by facts if it is done."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from decklog.conductor import commands, escalation, overlaps
from decklog.conductor.agents.description import (
    LONGEST_ARGUMENT,
    OUTAGES,
    READABLE,
    Description,
    agent_command,
    client_command,
    policy_hook,
)
from decklog.conductor.agents.session import ASKED, AgentSession, SessionMessages, SessionOutcome, Terms, answers_folder
from decklog.conductor.brief import brief, goal_part, strategist_brief, stuck_item_part
from decklog.conductor.commands import Command, Running
from decklog.conductor.context import EndReason, RunContext
from decklog.conductor.git.changes import NO_CHANGE, find_faults
from decklog.conductor.items.item import Rounds
from decklog.conductor.outages import Outages
from decklog.conductor.plan import FILE, as_json, parse_stored, read_proposal
from decklog.conductor.stages import WORK, is_replanning
from decklog.core.display import DOLLAR
from decklog.core.errors import DecklogError, Invalid, NotFound, Unavailable
from decklog.guard.calls.tool import EffectCheck
from decklog.guard.sandbox.sandbox import Sandbox, SandboxKind
from decklog.log import Decklog
from decklog.provenance.git import GitFailed, GitRepository
from decklog.provenance.recording import captured_between, keep_objects, record_captured
from decklog.stores.approvals.inbox import Message
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import Task

# The file of a workspace that lists the messages of people in the brief.
_IN_BRIEF = "messages.json"
# Agents write it like "Status: READY_FOR_QA" or "**STATUS:** BLOCKED".
_STATUS = re.compile(r"\bstatus\b[\s*_`]*[:=][\s*_`]*([A-Z][A-Z_]{2,40})\b", re.IGNORECASE)
# Roles of the workflow: the first agent of the escalation, and those above it.
_WORKERS = ("developer", "senior_software_engineer")


class WorkAttempt:
    """One attempt at a work item. For an adopted agent, `fence` is the fencing token of its workspace."""

    def __init__(
        self,
        context: RunContext,
        claim: Claim,
        end_reason: EndReason,
        *,
        agent: Description | None = None,
        fence: int | None = None,
    ) -> None:
        self._context = context
        self._claim = claim
        self._task = claim.task
        self._attempt = context.attempt(self._task.id, claim.task.fence if fence is None else fence)
        self._workspace = self._attempt.place
        self._folder = self._attempt.agent_folder
        self._brief_file = self._workspace.folder / "brief.md"
        self._end_reason = end_reason
        self._outages = Outages(context)
        self._facts: dict[str, Any] = self._attempt.facts() or {}
        started = str(self._facts.get("agent", context.configuration.workers[0]))
        self._agent = agent or context.configuration.agent_for(self._task, started)

    def work(self) -> None:
        """Run the agent in a workspace, save its work and hand it over."""
        self._make_workspace()
        outcome = self._run_agent()
        facts = {"refs": self._workspace.refs, "outcome": outcome.as_dict()}
        kept = self._attempt.keep_and_publish(self._facts, self._end_reason, **facts)
        self._record_edits(outcome, str(self._facts["start"]), str(kept["changed"]))
        self._hand_over(outcome, kept)
        self._attempt.remove()

    def _record_edits(self, outcome: SessionOutcome, start: str, changed: str) -> None:
        """Record all changes in the workspace as the agent's edits. A failure here does not fail the attempt."""
        context, task, mark = self._context, self._task, self._attempt.mark
        repo = GitRepository.find(str(context.repository.folder))
        if repo is None or changed == start or not context.configuration.captures_edits:
            return
        session = f"{self._agent.name}:{outcome.session or mark}"
        try:
            captured = captured_between(repo, start, changed)
            record_captured(
                context.log, captured, kind="shell", session=session, run_id=context.run_id, task_id=task.id, call_id=mark
            )
            keep_objects(session, [captured])
        except GitFailed as problem:
            text = f"edits could not be captured: {problem}"
            context.log.journal.append(context.run_id, text, kind="event", subtype="capture", task_id=task.id, key=mark)

    def hand_over_unreported(self, unreported: "UnreportedAttempt") -> None:
        """Hand over saved work whose conductor died before handing it over."""
        self._context.refs.fetch_missing([unreported.kept[name] for name in ("tip", "changed", "folder")])
        self._hand_over(unreported.outcome, dict(unreported.kept))
        if self._facts["host"] == self._context.host.id and self._workspace.folder.exists():
            self._attempt.remove()

    def _make_workspace(self) -> None:
        target, inputs = self._context.target_commit(), self._task.inputs
        base, start = str(inputs.get("base") or target), str(inputs.get("start") or target)
        self._context.refs.fetch_missing([base, start, inputs.get("earlier")])
        self._facts = self._attempt.make(base, start, self._agent.name)

    # The agent

    def _run_agent(self) -> SessionOutcome:
        self._attempt.perform("spawn", self._spawn, lambda _: self._look_for_agent())
        running = Running.find(self._attempt.mark, self._folder)
        if running is None:
            raise Unavailable(f"the agent of {self._task.id} was started but can't be found", hint=f"Look into {self._folder}.")
        terms = Terms(
            run_id=self._context.run_id,
            task_id=self._task.id,
            worker=self._task.worker,
            folder=str(self._workspace.tree),
            budget_microdollars=self._context.configuration.item_microdollars,
            reservation_id=self._task.reservation_id,
        )
        session = AgentSession(
            self._context.log, self._agent, terms, running, lambda: self._outages.report_answer(self._agent), self._messages()
        )
        try:
            return session.watch(self._end_reason)
        except BaseException:
            # No process would watch the agent any more. Save its work for the next owner of the task.
            session.end()
            self._attempt.keep(self._facts)
            raise

    def _messages(self) -> SessionMessages:
        """Return the messages of people to the running agent. Mark those in its brief as delivered."""
        rounds, agent = Rounds(self._context), self._agent
        for message_id in json.loads((self._workspace.folder / _IN_BRIEF).read_text(encoding="utf-8")):
            rounds.mark_delivered(message_id, agent.name)
        return SessionMessages(
            answers_folder(self._folder),
            lambda: rounds.find_pending(self._task),
            lambda message_id: rounds.mark_delivered(message_id, agent.name),
            has_live_client=agent.takes_messages and self._task.role == WORK,
        )

    def _look_for_agent(self) -> EffectCheck:
        if Running.find(self._attempt.mark, self._folder) is not None:
            return EffectCheck(True)
        commands.end(self._attempt.mark)
        return EffectCheck(False)

    def _spawn(self) -> None:
        for folder in (self._folder, answers_folder(self._folder)):
            folder.mkdir(mode=0o700, exist_ok=True)
        text = self._build_brief()
        self._brief_file.write_text(text, encoding="utf-8")
        # For a conductor that adopts the agent.
        (self._workspace.folder / _IN_BRIEF).write_text(json.dumps([one.id for one in self._open_messages]), encoding="utf-8")
        if self._agent.prompt == "argument" and len(text.encode()) > LONGEST_ARGUMENT:
            raise Invalid(
                f"the brief of {self._task.id} is too long for an argument", hint='Use prompt = "file".', field="prompt"
            )
        commands.start(self._build_command(text))

    @cached_property
    def _open_messages(self) -> list[Message]:
        """The unanswered messages of people to the work item, which go into the brief."""
        return Rounds(self._context).find_unanswered(self._task)

    def _build_brief(self) -> str:
        context, item = self._context, str(self._task.inputs["item"])
        found = overlaps.find(context.log, context.run_id)
        # The policy allows scratch files in both; a sandbox can write only to the second.
        temporary = "/tmp" if self._sandbox_kind is SandboxKind.NONE else '"$TMPDIR"'
        return brief(
            self._task,
            goal=context.log.runs.get(context.run_id).goal,
            checks=context.configuration.checks,
            report=f"{temporary}/report.xml",
            commits=self._agent.commits == "agent",
            meets=overlaps.describe_open(found, item, context.stages.item_names(is_open=True)) if found else [],
            wishes=[message.body for message in self._open_messages],
        )

    @property
    def _sandbox_kind(self) -> SandboxKind:
        """The kind of sandbox to use: one that the settings allow and that works on this machine."""
        return Sandbox(kind=self._context.configuration.sandbox).resolve_kind().kind

    def _build_command(self, text: str) -> Command:
        agent, kind = self._agent, self._sandbox_kind
        money = self._context.configuration.item_microdollars
        values = {
            "prompt": text,
            "prompt_file": self._brief_file,
            "model": agent.model,
            "turns": agent.turns,
            "budget_usd": None if money is None else f"{money / DOLLAR:.6f}",
            "place": self._workspace.tree,
            "policy_hook": policy_hook(agent),
        }
        is_sandboxed = kind is not SandboxKind.NONE
        argv, readable = agent.arguments(values, is_sandboxed=is_sandboxed), READABLE
        if agent.takes_messages:
            answers = answers_folder(self._folder)
            readable = (*READABLE, str(answers))
            argv = client_command(agent, argv, self._brief_file, answers, is_sandboxed=is_sandboxed)
        return agent_command(
            agent,
            argv,
            kind=kind,
            readable=(str(self._context.repository.objects), str(self._brief_file), *readable),
            mark=self._attempt.mark,
            root=self._workspace.tree,
            folder=self._folder,
            log_file=self._context.log_file,
            # Bytecode next to modules would count as work.
            env={"PYTHONDONTWRITEBYTECODE": "1", **agent.env},
            input=self._brief_file if agent.prompt == "stdin" else None,
            timeout_seconds=agent.minutes * 60,
            grace_seconds=self._context.configuration.orphan_seconds,
        )

    # The hand-over

    def _hand_over(self, outcome: SessionOutcome, kept: dict[str, Any]) -> None:
        if outcome.ended_for == escalation.LOST_RACE:
            self._context.stages.drop_race_loser(self._claim)
            return
        if outcome.is_outage:
            self._wait_for_outage(outcome)
            return
        if outcome.ended_for == ASKED:
            self._wait_for_person(outcome, kept)
            return
        if outcome.exit_code == 0:
            self._outages.report_answer(self._agent)
        blocker, summary = _why_ended(outcome)
        if blocker is not None:
            self._context.stages.end_attempt(self._claim, blocker, summary)
        else:
            self._judge(outcome, kept)

    def _judge(self, outcome: SessionOutcome, kept: dict[str, Any]) -> None:
        """Pass on the work of an agent that ended normally, or record why it is not done."""
        blocker, summary = self._why_not_done(kept)
        if blocker == NO_CHANGE and Rounds(self._context).answer(self._task, outcome.text, self._agent.name):
            # The agent only answered a question, which needs no change.
            blocker = None
        request = self._record_request(outcome, blocker)
        if blocker is not None:
            at_once = request is not None and request.is_for_stronger
            self._context.stages.end_attempt(self._claim, blocker, summary, at_once=at_once)
            return
        result = {**self._facts, "tip": self._final_commit(kept), "cost": outcome.microdollars}
        self._context.stages.finish_work(self._claim, result)

    def _record_request(self, outcome: SessionOutcome, blocker: str | None) -> "StatusRequest | None":
        """Record the request of the agent's last status word. It does not decide whether the work is done."""
        log, task = self._context.log, self._task
        request = find_status_request(log, outcome.text, escalation.level_of(task.inputs))
        if request is not None:
            facts = blocker or "done"
            log.journal.append(
                self._context.run_id,
                f"{self._agent.name} ends with {request.status}, requesting {request.next_agent}; the facts show {facts}",
                kind="event",
                subtype="conductor.wish",
                agent=self._agent.name,
                task_id=task.id,
                payload={**asdict(request), "facts": facts},
                key=self._attempt.mark,
            )
        return request

    def _wait_for_person(self, outcome: SessionOutcome, kept: dict[str, Any]) -> None:
        """Suspend the task until a person has answered. The next attempt starts from this one's work."""
        log = self._context.log
        with log.transaction():
            self._claim.park(f"waits for approval {outcome.approval}: permission for {self._agent.name}")
            if kept["changed"] != self._facts["start"]:
                inputs = {**self._task.inputs, "earlier": kept["changed"]}
                log.tasks.edit(self._task.id, reason="unfinished work was saved", inputs=inputs)

    def _wait_for_outage(self, outcome: SessionOutcome) -> None:
        """Release the task, using no attempt, until an agent for it can be started."""
        if outcome.killed is not None and outcome.reason == "exited" and outcome.error_class is None:
            self._context.stages.interrupt(self._claim, f"{self._agent.name} was {outcome.killed}")
            return
        later = None
        if outcome.error_class in OUTAGES:
            self._outages.report_outage(self._agent, outcome, datetime.fromtimestamp(int(self._facts["at"]), UTC))
            later = self._outages.next_opening(self._context.configuration.agents_for(self._task))
        why = outcome.error_class or outcome.ended_for or outcome.reason
        # An agent that the conductor ended did not report a reason.
        words = _end_of_output(outcome) if outcome.error_class is not None or outcome.stderr else ""
        self._claim.release(f"{why} of {self._agent.name}: no attempt is used{f': {words}' if words else ''}", not_before=later)

    def _final_commit(self, kept: dict[str, Any]) -> str:
        """Return the commit to check: the agent's own, or the conductor's commit of its files."""
        return str(kept["tip"] if kept["is_clean"] else kept["changed"])

    def _why_not_done(self, kept: dict[str, Any]) -> tuple[str | None, str]:
        """Return why an attempt is not done, as a code and a sentence; the code is None if it is done."""
        if kept["tip"] is None:
            return "no-branch", "the branch that was checked out is gone or incomplete"
        if not kept["is_clean"] and self._agent.commits == "agent":
            return "uncommitted", f"the agent left uncommitted work; it is kept in {self._workspace.refs}/changed"
        repository, facts = self._context.repository, self._facts
        found = find_faults(repository, facts["base"], facts["start"], self._final_commit(kept), self._task.allowed_paths)
        if found:
            paths = ", ".join(found[0].paths[:10])
            return found[0].signature, f"{found[0].text}{': ' if paths else ''}{paths}"
        return None, ""


def _why_ended(outcome: SessionOutcome) -> tuple[str | None, str]:
    """Return why an agent did not end normally, as a code and a sentence; the code is None if it did."""
    if outcome.ended_for is not None or outcome.reason == "timed_out":
        word = outcome.ended_for or "time"
        return word, f"the agent was ended: {word}"
    if outcome.error_class is not None:
        return outcome.error_class, f"the agent ended in {outcome.error_class}: {_end_of_output(outcome)}"
    if outcome.exit_code != 0:
        return "exit", f"the agent ended with exit code {outcome.exit_code}: {_end_of_output(outcome)}"
    return None, ""


def _end_of_output(outcome: SessionOutcome) -> str:
    return "\n".join(part for part in (outcome.text[-300:], outcome.stderr) if part)


# The status word of an agent


@dataclass(frozen=True)
class StatusRequest:
    """The next agent that a status word requests by the workflow, and the reason."""

    status: str
    next_agent: str | None
    action: str
    reason: str

    @property
    def is_for_stronger(self) -> bool:
        """Whether it requests the next level of the escalation."""
        return self.next_agent == _WORKERS[1] and self.action == "spawn"


def find_status_request(log: Decklog, text: str, level: int) -> StatusRequest | None:
    """Look up the last status word of an agent's text in the workflow; None if the workflow does not know it."""
    words = [word for word in _STATUS.findall(text) if word.isupper()]
    if not words:
        return None
    try:
        routed = log.workflow.route(_WORKERS[min(level, 1)], words[-1])
    except NotFound:
        return None
    return StatusRequest(words[-1], routed["next_agent"], str(routed["action"]), str(routed["reason"]))


# Attempts of dead conductors


@dataclass(frozen=True)
class UnreportedAttempt:
    """An attempt whose conductor died after saving its work and before handing it over."""

    fence: int
    outcome: SessionOutcome
    kept: Mapping[str, Any]


def find_unreported(context: RunContext, task: Task) -> UnreportedAttempt | None:
    """Find the last attempt at a task if its work was saved but not handed over; None after an outage."""
    if task.attempts < 2:
        return None
    effects = context.log.effects.find(context.run_id, tool="conductor.keep", task_id=task.id, limit=1)
    if not effects or effects[0].state != "done" or "outcome" not in effects[0].facts:
        return None
    # Lists leave out long results.
    keep = context.log.effects.get(effects[0].id)
    fence = int(keep.step.rpartition(":")[2])
    if keep.step != f"keep:{task.id}:{fence}":
        return None  # a fork's copy of another run's step
    later = [one for one in context.log.tasks.attempts(task.id) if fence <= one.fence < task.fence]
    if not later or any(one.outcome not in ("expired", "released") for one in later):
        return None
    facts, kept = keep.facts["outcome"], keep.result
    assert isinstance(facts, dict)
    assert isinstance(kept, dict)
    outcome = SessionOutcome.from_dict(facts)
    return None if outcome.is_outage else UnreportedAttempt(fence, outcome, kept)


# Planning


class PlanningAttempt(WorkAttempt):
    """One attempt at a plan. Changes of other files are saved but not used."""

    @property
    def _open_messages(self) -> list[Message]:
        """Planning gets no messages: people write to work items."""
        return []

    def _build_brief(self) -> str:
        context, task = self._context, self._task
        listed = context.repository.on_objects("ls-tree", "-r", "-z", "--name-only", str(self._facts["start"])).out
        files = [name.decode(errors="replace") for name in listed.split(b"\0") if name]
        checks = [f"{check.name} ({' '.join(check.command)})" for check in context.configuration.gates]
        refused = context.stages.was_denied(task) or (task.reason if task.failures else None)
        goal = context.log.runs.get(context.run_id).goal
        what = stuck_item_part(task, goal) if is_replanning(task) else goal_part(task.objective)
        return strategist_brief(what, files, checks, refused=refused)

    def _judge(self, outcome: SessionOutcome, kept: dict[str, Any]) -> None:
        content = self._context.repository.read(str(kept["folder"]), FILE)
        try:
            goal = self._task.title if is_replanning(self._task) else self._task.objective
            proposed = read_proposal(content, outcome.text, goal, self._context.stages.item_names())
            self._context.configuration.check_plan(proposed)
        except DecklogError as problem:
            words = " ".join(part for part in (problem.message + ".", problem.hint) if part)
            self._context.stages.end_attempt(self._claim, "bad-plan", words)
            return
        self._context.stages.propose_plan(self._claim, as_json(proposed))


def apply_granted_plan(context: RunContext, claim: Claim) -> bool:
    """Apply a plan that a person approved; return whether there was one."""
    kept = claim.task.inputs.get("plan")
    if kept is None or not context.stages.was_granted(claim.task):
        return False
    context.stages.apply_plan(claim, parse_stored(kept))
    return True
