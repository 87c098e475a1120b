"""Weather: quota, login, overload and a full disk are nobody's fault, cost no attempt, and close a gate for all who share it."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from decklog.conductor import commands
from decklog.conductor.agents.description import Description
from decklog.conductor.agents.session import SessionOutcome

if TYPE_CHECKING:
    from decklog.conductor.site import RunContext
    from decklog.stores.workflow.gates import Gate

# How long to wait before the next try where no time is stated; each time in a row twice as long.
RETRY_SECONDS = {"quota": 60.0, "overload": 20.0, "login": 30.0}
# A try may take long; until it has said something, another may try so much later.
HOLD_SECONDS = 60.0
PROBE_SECONDS = 30.0


class Weather:
    """Knows which agents of a run can be started now; what it knows is the log's, so that all runs share it."""

    def __init__(self, site: "RunContext") -> None:
        self._site = site
        self._gates = site.log.gates

    def closed(self) -> "dict[str, Gate]":
        """Return the gates that are closed now, by their names."""
        found = self._gates.find(state="closed", limit=200)
        return {gate.name: gate for gate in found}

    # Who can be started

    def are_all_shut(self, agents: Sequence[Description]) -> bool:
        """Return whether none of these agents may be started now."""
        closed, now = self.closed(), self._site.log.clock.now()
        return bool(closed) and all(self._is_shut(closed.get(gate_name(agent)), agent, now) for agent in agents)

    def chosen(self, agents: Sequence[Description]) -> Description | None:
        """Choose the first of these agents that may be started now; none is null."""
        closed = self.closed()
        for agent in agents:
            gate = closed.get(gate_name(agent))
            if gate is None:
                return agent
            if not _waits_for_probe(gate, agent) and self._gates.enter(gate.name, hold_seconds=HOLD_SECONDS) is not None:
                return agent
        return None

    def opening(self, agents: Sequence[Description]) -> datetime | None:
        """Return when the first of these agents may be tried again; null when that is for a person to say."""
        closed = self.closed()
        gates = [closed.get(gate_name(agent)) for agent in agents]
        times = [self._site.log.clock.now() if gate is None else gate.opens_at for gate in gates]
        return min((time for time in times if time is not None), default=None)

    def is_hopeless(self, agents: Sequence[Description], closed: "Mapping[str, Gate]") -> bool:
        """Return whether only a person can open any of these agents' gates, of those that are closed."""
        gates = [closed.get(gate_name(agent)) for agent in agents]
        return all(gate is not None and gate.opens_at is None for gate in gates)

    def _is_shut(self, gate: "Gate | None", agent: Description, now: datetime) -> bool:
        return gate is not None and (gate.is_shut(now) or _waits_for_probe(gate, agent))

    # What agents met

    def met(self, agent: Description, outcome: SessionOutcome, began_at: datetime) -> datetime | None:
        """Close the gate of what an agent met, tell a person once; give when it may be tried again."""
        kind, name = str(outcome.error_class), gate_name(agent)
        # Without a program that can say whether somebody has logged in again, only a person can.
        retry = None if kind == "login" and not agent.probe else RETRY_SECONDS[kind]
        # A login does not come back by itself, whatever else was said.
        until = None if kind == "login" else outcome.until
        with self._site.log.transaction():
            gate = self._gates.close(name, kind, until=until, retry_seconds=retry, began_at=began_at)
            if gate.closed_at is not None and kind in ("quota", "login"):
                self._tell(agent, gate, outcome.stderr)
        return gate.opens_at

    def _tell(self, agent: Description, gate: "Gate", stderr: str) -> None:
        ways = f"Log in again; then: decklog gates open {gate.name!r}" if gate.opens_at is None else "It goes on by itself."
        what = {"login": "is no longer logged in", "quota": "has met its quota"}[gate.reason]
        words = f"\n{stderr}" if stderr else ""
        self._site.log.inbox.post(
            "conductor",
            f"Agent {agent.name} {what} ({gate.name}). No attempt is used. {ways}{words}",
            severity="question" if gate.reason == "login" else "info",
            run_id=self._site.run_id,
            key=f"gate:{gate.name}:{gate.reason}:{gate.closed_at}",
        )

    def answered(self, agent: Description) -> None:
        """Open the gate of an agent whose service has answered."""
        name = gate_name(agent)
        if name in self.closed():
            self._gates.open(name, reason=f"{agent.name} was answered")

    # What is tried without an agent

    def person_came(self, agents: Sequence[Description]) -> None:
        """Let what only a person can open be tried once: somebody has just started the run by hand."""
        closed = self.closed()
        for name in {gate_name(agent) for agent in agents} & closed.keys():
            if closed[name].opens_at is None:
                self._gates.retry(name)

    def probe(self, agents: Sequence[Description]) -> None:
        """Ask the programs that can say so whether somebody has logged in again."""
        with_probe = [agent for agent in agents if agent.probe]
        closed = self.closed() if with_probe else {}
        for agent in with_probe:
            gate = closed.get(gate_name(agent))
            if gate is None or not _waits_for_probe(gate, agent) or self._gates.enter(gate.name) is None:
                continue
            if _is_logged_in(agent):
                self._gates.open(gate.name, reason="logged in again")
            else:
                self._gates.close(gate.name, gate.reason, retry_seconds=RETRY_SECONDS["login"])

    def is_disk_full(self) -> bool:
        """Return whether there is less room for places than a run needs."""
        needed = self._site.configuration.free_megabytes
        return shutil.disk_usage(self._site.repository.state).free < needed * 1024 * 1024


def gate_name(agent: Description) -> str:
    """Name the gate of an agent: that of its account, which it may share with others."""
    return f"account {agent.account or agent.name}"


def _waits_for_probe(gate: "Gate", agent: Description) -> bool:
    return gate.reason == "login" and bool(agent.probe)


def _is_logged_in(agent: Description) -> bool:
    environment = commands.environment_of((*agent.pass_env, *agent.home_variables), agent.env)
    try:
        done = subprocess.run(
            list(agent.probe), env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
