"""The stage of work: a place, an agent in it, what it left kept, and facts that say whether it is done."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from decklog.conductor import commands, ladder, overlaps
from decklog.conductor.agents.description import LONGEST_ARGUMENT, WEATHER, Description
from decklog.conductor.agents.messages import SessionMessages
from decklog.conductor.agents.protocol import READABLE, driven, policy_hook
from decklog.conductor.agents.session import ASKED, AgentSession, SessionOutcome, Terms, answers_of
from decklog.conductor.agents.status_words import StatusRequest, wish_of
from decklog.conductor.brief import brief
from decklog.conductor.commands import Command, Running
from decklog.conductor.git import keeping, places
from decklog.conductor.git.changes import faults
from decklog.conductor.git.places import Workspace, place_of
from decklog.conductor.ladder import rung_of
from decklog.conductor.machines.taking_up import Untold
from decklog.conductor.site import RunContext
from decklog.conductor.stages import WORK
from decklog.conductor.weather import Weather
from decklog.core.errors import Invalid, Unavailable
from decklog.guard.calls.tool import EffectCheck
from decklog.guard.sandbox.sandbox import Sandbox, SandboxKind
from decklog.provenance.attempts import captured_between
from decklog.provenance.git import GitFailed, GitRepository
from decklog.provenance.recording import keep_objects, record_captured

if TYPE_CHECKING:
    from decklog.stores.approvals.inbox import Message
    from decklog.stores.tasks.claim import Claim

# The file of a place that lists the messages of people that the brief has.
_IN_BRIEF = "messages.json"


class WorkAttempt:
    """One attempt at a piece. `fence` is that of the claim that made the place, which an adopted agent goes on in."""

    def __init__(
        self,
        site: RunContext,
        claim: "Claim",
        wanted_end: Callable[[], str | None],
        *,
        agent: Description | None = None,
        fence: int | None = None,
    ) -> None:
        self._site = site
        self._claim = claim
        self._task = claim.task
        self._fence = claim.task.fence if fence is None else fence
        self._wanted_end = wanted_end
        self._weather = Weather(site)
        self._agent = agent or self._agent_of_place()
        self._place: Workspace = place_of(site.repository, site.run_id, self._task.id, self._fence)
        self._mark = site.mark(self._task.id, self._fence)
        self._facts: dict[str, Any] = {}

    def _agent_of_place(self) -> Description:
        """Return the agent that was started in the place of an attempt that is gone on with."""
        known = self._site.log.effects.known(self._site.run_id, f"place:{self._task.id}:{self._fence}")
        configuration = self._site.configuration
        name = str(known.facts["agent"]) if known is not None else configuration.workers[0]
        # Its plan may have it use another model.
        known_as = {agent.name: agent for agent in configuration.agents_for(self._task)}
        return known_as.get(name, configuration.agents[name])

    def work(self) -> None:
        """Take the task through its stage."""
        self._make_place()
        outcome = self._run_agent()
        self._hand_over(outcome, self._keep(outcome))
        self._clean()

    def go_on_from(self, left: Untold) -> None:
        """Hand on what an attempt left that was kept by somebody who then died, as if its end had been seen here."""
        known = self._site.log.effects.known(self._site.run_id, f"place:{self._task.id}:{self._fence}")
        assert known is not None, "what is kept was a place"
        self._facts = dict(known.facts)
        self._site.tips.bring([left.kept[name] for name in ("tip", "changed", "folder")])
        self._hand_over(left.outcome, dict(left.kept))
        if self._facts["host"] == self._site.host.id and self._place.folder.exists():
            self._clean()

    def _step(self, name: str, act: Callable[[], Any], look: Callable[[Any], EffectCheck], **facts: object) -> Any:
        step = f"{name}:{self._task.id}:{self._fence}"
        return self._site.acts.perform(step, act, look, task_id=self._task.id, facts=facts)

    # The place

    def _make_place(self) -> None:
        target = self._site.target_commit()
        inputs = self._task.inputs
        base, start = str(inputs.get("base") or target), str(inputs.get("start") or target)
        self._site.tips.bring([base, start, inputs.get("earlier")])
        at = int(self._site.log.clock.now().timestamp())
        self._facts = {"base": base, "start": start, "at": at, "agent": self._agent.name, "host": self._site.host.id}
        known = self._site.log.effects.known(self._site.run_id, f"place:{self._task.id}:{self._fence}")
        if known is not None:
            self._facts = dict(known.facts)

        def make() -> None:
            places.make(self._site.repository, self._place, str(self._facts["start"]), self._site.person)

        self._step("place", make, lambda _: EffectCheck(self._place.is_made), **self._facts)

    # The agent

    def _run_agent(self) -> SessionOutcome:
        folder = self._place.folder / "agent"
        self._step("spawn", self._spawn, lambda _: self._look_for_agent())
        running = Running.find(self._mark, folder)
        if running is None:
            raise Unavailable(f"the agent of {self._task.id} left no trace of itself", hint=f"Look into {folder}.")
        terms = Terms(
            run_id=self._site.run_id,
            task_id=self._task.id,
            worker=self._task.worker,
            folder=str(self._place.tree),
            budget_microdollars=self._site.configuration.piece_microdollars,
            reservation_id=self._task.reservation_id,
        )
        session = AgentSession(
            self._site.log, self._agent, terms, running, lambda: self._weather.answered(self._agent), self._messages()
        )
        try:
            return session.watch(self._wanted_end)
        except BaseException:
            # Nobody would watch it any more. What it did is kept, whoever has the task by now.
            session.end()
            keeping.keep(self._site.repository, self._place, str(self._facts["start"]), self._site.person, int(self._facts["at"]))
            raise

    def _messages(self) -> SessionMessages:
        """What people write to the agent while it works. Those that its brief has are delivered with that."""
        rounds, agent = self._site.rounds, self._agent
        for message_id in json.loads((self._place.folder / _IN_BRIEF).read_text(encoding="utf-8")):
            rounds.delivered(message_id, agent.name)
        return SessionMessages(
            answers_of(self._place.folder / "agent"),
            lambda: rounds.pending(self._task),
            lambda message_id: rounds.delivered(message_id, agent.name),
            is_taken=agent.takes_messages and self._task.role == WORK,
        )

    def _look_for_agent(self) -> EffectCheck:
        folder = self._place.folder / "agent"
        if Running.find(self._mark, folder) is not None:
            return EffectCheck(True)
        commands.end(self._mark)
        return EffectCheck(False)

    def _spawn(self) -> None:
        agent, folder = self._agent, self._place.folder / "agent"
        folder.mkdir(mode=0o700, exist_ok=True)
        answers_of(folder).mkdir(mode=0o700, exist_ok=True)
        text = self._brief()
        told = self._place.folder / "brief.md"
        told.write_text(text, encoding="utf-8")
        # So that whoever adopts the agent knows it too.
        (self._place.folder / _IN_BRIEF).write_text(json.dumps([one.id for one in self._wishes]), encoding="utf-8")
        if agent.prompt == "argument" and len(text.encode()) > LONGEST_ARGUMENT:
            raise Invalid(
                f"the brief of {self._task.id} is too long for an argument", hint='Use prompt = "file".', field="prompt"
            )
        commands.start(self._command(text))

    @cached_property
    def _wishes(self) -> "list[Message]":
        """What people wrote to the item, as its brief has it."""
        return self._site.rounds.unanswered(self._task)

    def _brief(self) -> str:
        site, piece = self._site, str(self._task.inputs["piece"])
        found = overlaps.known(site.log, site.run_id)
        meets = overlaps.met_by(found, piece, site.stages.names(is_open=True)) if found else []
        # The policy knows both as places for scratch files; within a sandbox only the first can be written to.
        temporary = "/tmp" if self._sandbox_kind is SandboxKind.NONE else '"$TMPDIR"'
        return brief(
            self._task,
            goal=site.log.runs.get(site.run_id).goal,
            checks=site.configuration.checks,
            report=f"{temporary}/report.xml",
            commits=self._agent.commits == "agent",
            meets=meets,
            wishes=[message.body for message in self._wishes],
        )

    @property
    def _sandbox_kind(self) -> SandboxKind:
        """The kind of sandbox that works here, of what the settings ask for."""
        return Sandbox(kind=self._site.configuration.sandbox).settled().kind

    def _command(self, text: str) -> Command:
        agent = self._agent
        money = self._site.configuration.piece_microdollars
        told = self._place.folder / "brief.md"
        values = {
            "prompt": text,
            "prompt_file": told,
            "model": agent.model,
            "turns": agent.turns,
            "budget_usd": None if money is None else f"{money / 1_000_000:.6f}",
            "place": self._place.tree,
            "policy_hook": policy_hook(agent),
        }
        ground = (str(self._site.repository.objects), str(told), *agent.reads, *READABLE)
        is_sandboxed = self._sandbox_kind is not SandboxKind.NONE
        argv = agent.arguments(values, is_sandboxed=is_sandboxed)
        if agent.takes_messages:
            answers = answers_of(self._place.folder / "agent")
            argv, ground = driven(agent, argv, told, answers, is_sandboxed=is_sandboxed), (*ground, str(answers))
        return Command(
            argv=argv,
            mark=self._mark,
            root=self._place.tree,
            folder=self._place.folder / "agent",
            sandbox=Sandbox(
                kind=self._sandbox_kind,
                network=agent.network,
                readable=_expanded(ground),
                writable=_expanded(agent.writable),
            ),
            log_file=self._site.log_file,
            # What Python writes beside its modules would be taken for work.
            env={"PYTHONDONTWRITEBYTECODE": "1", **agent.env},
            pass_env=agent.pass_env,
            keeps_home=agent.keeps_home,
            home=agent.home_files,
            input=told if agent.prompt == "stdin" else None,
            timeout_seconds=agent.minutes * 60,
            grace_seconds=self._site.configuration.orphan_seconds,
        )

    # What it left

    def _keep(self, outcome: SessionOutcome) -> dict[str, Any]:
        start, at = str(self._facts["start"]), int(self._facts["at"])

        def keep() -> dict[str, object]:
            kept = keeping.keep(self._site.repository, self._place, start, self._site.person, at)
            # Before the log is told: whoever reads of it there must be able to have it.
            self._site.tips.publish(self._place.refs, self._wanted_end)
            return kept.as_dict()

        # Keeping again gives the same refs: there is nothing to find out.
        facts = {"refs": self._place.refs, "outcome": outcome.as_dict()}
        kept: dict[str, Any] = self._step("keep", keep, lambda _: EffectCheck(False), **facts)
        self._record_edits(outcome, start, str(kept["changed"]))
        return kept

    def _record_edits(self, outcome: SessionOutcome, start: str, changed: str) -> None:
        """Record what the agent changed; the place was its own, so all of it is. A failure here fails no attempt."""
        site, task = self._site, self._task
        repo = GitRepository.find(str(site.repository.folder))
        if repo is None or changed == start or not site.configuration.captures_edits:
            return
        session = f"{self._agent.name}:{outcome.session or self._mark}"
        try:
            captured = captured_between(repo, start, changed)
            record_captured(
                site.log,
                captured,
                kind="shell",
                session=session,
                run_id=site.run_id,
                task_id=task.id,
                call_id=self._mark,
            )
            keep_objects(session, [captured])
        except GitFailed as problem:
            text = f"edits could not be captured: {problem}"
            site.log.journal.append(site.run_id, text, kind="event", subtype="capture", task_id=task.id, key=self._mark)

    def _clean(self) -> None:
        def remove() -> None:
            self._site.removal.take(self._place.folder)

        self._step("clean", remove, lambda _: EffectCheck(not self._place.folder.exists()))

    # What is made of it

    def _hand_over(self, outcome: SessionOutcome, kept: dict[str, Any]) -> None:
        if outcome.ended_for == ladder.OUTRUN:
            self._site.stages.outrun(self._claim)
            return
        if outcome.is_weather:
            self._sit_out(outcome)
            return
        if outcome.ended_for == ASKED:
            self._wait_for_person(outcome, kept)
            return
        if outcome.exit_code == 0:
            self._weather.answered(self._agent)
        blocker, summary = _why_ended(outcome)
        if blocker is not None:
            self._site.stages.unfinished(self._claim, blocker, summary)
        else:
            self._judge(outcome, kept)

    def _judge(self, outcome: SessionOutcome, kept: dict[str, Any]) -> None:
        """Hand on what an agent left that ended by itself, or say why that is not done."""
        blocker, summary = self._why_not_done(kept)
        wish = self._wish(outcome, blocker)
        if blocker is not None:
            at_once = wish is not None and wish.is_for_stronger
            self._site.stages.unfinished(self._claim, blocker, summary, at_once=at_once)
            return
        result = {**self._facts, "tip": self._tip(kept), "cost": outcome.microdollars}
        self._site.stages.worked(self._claim, result)

    def _wish(self, outcome: SessionOutcome, blocker: str | None) -> StatusRequest | None:
        """Put on record what the agent's last word asks for beside what the facts say; only the facts make a piece done."""
        log, task = self._site.log, self._task
        wish = wish_of(log, outcome.text, rung_of(task.inputs))
        if wish is not None:
            facts = blocker or "done"
            log.journal.append(
                self._site.run_id,
                f"{self._agent.name} says {wish.status}, which asks for {wish.next_agent}; the facts say: {facts}",
                kind="event",
                subtype="conductor.wish",
                agent=self._agent.name,
                task_id=task.id,
                payload={**wish.as_dict(), "facts": facts},
                key=self._mark,
            )
        return wish

    def _wait_for_person(self, outcome: SessionOutcome, kept: dict[str, Any]) -> None:
        """Set the task aside until a person has answered; the next attempt is told of what this one had made."""
        log = self._site.log
        with log.transaction():
            self._claim.park(f"waits for approval {outcome.approval}: what {self._agent.name} may do")
            if kept["changed"] != self._facts["start"]:
                inputs = {**self._task.inputs, "earlier": kept["changed"]}
                log.tasks.edit(self._task.id, reason="work was begun", inputs=inputs)

    def _sit_out(self, outcome: SessionOutcome) -> None:
        """Give the task back with no attempt used, until an agent can be started that may work on it."""
        if outcome.killed is not None and outcome.reason == "exited" and outcome.error_class is None:
            self._site.stages.interrupted(self._claim, f"{self._agent.name} was {outcome.killed}")
            return
        later = None
        if outcome.error_class in WEATHER:
            self._weather.met(self._agent, outcome, datetime.fromtimestamp(int(self._facts["at"]), UTC))
            later = self._weather.opening(self._site.configuration.agents_for(self._task))
        why = outcome.error_class or outcome.ended_for or outcome.reason
        # What it was ended for by the conductor is nothing that the agent could explain.
        words = _last_words(outcome) if outcome.error_class is not None or outcome.stderr else ""
        self._claim.release(f"{why} of {self._agent.name}: no attempt is used{f': {words}' if words else ''}", not_before=later)

    def _tip(self, kept: dict[str, Any]) -> str:
        """Return the commit that is judged: the agent's own, or what the conductor made of what it left."""
        return str(kept["tip"] if kept["is_clean"] else kept["changed"])

    def _why_not_done(self, kept: dict[str, Any]) -> tuple[str | None, str]:
        """Return what keeps an attempt from being done, as a word and as a sentence; done is no word."""
        if kept["tip"] is None:
            return "no-branch", "the branch that was checked out is gone, or is not whole"
        if not kept["is_clean"] and self._agent.commits == "agent":
            return "uncommitted", f"work was left uncommitted; it is kept in {self._place.refs}/changed"
        repository, facts = self._site.repository, self._facts
        found = faults(repository, facts["base"], facts["start"], self._tip(kept), self._task.allowed_paths)
        if found:
            paths = ", ".join(found[0].paths[:10])
            return found[0].signature, f"{found[0].text}{': ' if paths else ''}{paths}"
        return None, ""


def _why_ended(outcome: SessionOutcome) -> tuple[str | None, str]:
    """Return why an agent did not come to its own good end, as a word and as a sentence."""
    if outcome.ended_for is not None or outcome.reason == "timed_out":
        word = outcome.ended_for or "time"
        return word, f"the agent was ended: {word}"
    if outcome.error_class is not None:
        return outcome.error_class, f"the agent ended in {outcome.error_class}: {_last_words(outcome)}"
    if outcome.exit_code != 0:
        return "exit", f"the agent ended with exit code {outcome.exit_code}: {_last_words(outcome)}"
    return None, ""


def _last_words(outcome: SessionOutcome) -> str:
    return "\n".join(part for part in (outcome.text[-300:], outcome.stderr) if part)


def _expanded(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(os.path.expanduser(path) for path in paths)
