"""Outages (quota, login, overload, full disk), which use no attempt, and the circuit breaker of each account.

The log stores a circuit breaker as a gate. No agent of the account starts while its gate is closed.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime

from decklog.conductor import commands
from decklog.conductor.agents.description import Description
from decklog.conductor.agents.session import SessionOutcome
from decklog.conductor.context import RunContext
from decklog.stores.workflow.gates import Gate

# Seconds before the next try if the service names no time. The wait doubles with each failure in a row.
RETRY_SECONDS = {"quota": 60.0, "overload": 20.0, "login": 30.0}
# Seconds after which another try may start if the last one has no answer.
HOLD_SECONDS = 60.0
PROBE_SECONDS = 30.0


class Outages:
    """Decides which agents of a run can be started now, by gates in the log that all runs share."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._gates = context.log.gates

    def closed_gates(self) -> dict[str, Gate]:
        """Return the gates that are closed now, by their names."""
        found = self._gates.find(state="closed", limit=200)
        return {gate.name: gate for gate in found}

    # Choice of an agent

    def are_all_closed(self, agents: Sequence[Description]) -> bool:
        """Return whether none of these agents may be started now."""
        closed, now = self.closed_gates(), self._context.log.clock.now()
        gates = [(closed.get(gate_name(agent)), agent) for agent in agents]
        return bool(closed) and all(
            gate is not None and (gate.is_shut(now) or _waits_for_probe(gate, agent)) for gate, agent in gates
        )

    def choose(self, agents: Sequence[Description]) -> Description | None:
        """Return the first of these agents that may be started now; None if there is none."""
        closed = self.closed_gates()
        for agent in agents:
            gate = closed.get(gate_name(agent))
            if gate is None:
                return agent
            if not _waits_for_probe(gate, agent) and self._gates.enter(gate.name, hold_seconds=HOLD_SECONDS) is not None:
                return agent
        return None

    def next_opening(self, agents: Sequence[Description]) -> datetime | None:
        """Return when the first of these agents may be tried again; None when a person decides."""
        closed = self.closed_gates()
        gates = [closed.get(gate_name(agent)) for agent in agents]
        times = [self._context.log.clock.now() if gate is None else gate.opens_at for gate in gates]
        return min((time for time in times if time is not None), default=None)

    def needs_person(self, agents: Sequence[Description], closed: Mapping[str, Gate]) -> bool:
        """Return whether the gates of all these agents are closed and only a person can open them."""
        gates = [closed.get(gate_name(agent)) for agent in agents]
        return all(gate is not None and gate.opens_at is None for gate in gates)

    # Reports of agents

    def report_outage(self, agent: Description, outcome: SessionOutcome, began_at: datetime) -> datetime | None:
        """Close the gate of an agent after an outage, and inform a person once. Return when it may be tried again."""
        kind, name = str(outcome.error_class), gate_name(agent)
        # If the probe reports a login although it was refused, only a person can open the gate.
        is_for_person = kind == "login" and (not agent.probe or is_logged_in(agent))
        retry = None if is_for_person else RETRY_SECONDS[kind]
        # A lost login has no end time, even if the agent names one.
        until = None if kind == "login" else outcome.until
        with self._context.log.transaction():
            gate = self._gates.close(name, kind, until=until, retry_seconds=retry, began_at=began_at)
            if gate.closed_at is not None and kind in ("quota", "login"):
                self._inform(agent, gate, outcome.stderr)
        return gate.opens_at

    def _inform(self, agent: Description, gate: Gate, stderr: str) -> None:
        ways = f"Log in again; then: decklog gates open {gate.name!r}" if gate.opens_at is None else "It continues without you."
        problem = {"login": "is no longer logged in", "quota": "has used up its quota"}[gate.reason]
        output = f"\n{stderr}" if stderr else ""
        self._context.log.inbox.post(
            "conductor",
            f"Agent {agent.name} {problem} ({gate.name}). No attempt is used. {ways}{output}",
            severity="question" if gate.reason == "login" else "info",
            run_id=self._context.run_id,
            key=f"gate:{gate.name}:{gate.reason}:{gate.closed_at}",
        )

    def report_answer(self, agent: Description) -> None:
        """Open the gate of an agent whose service has answered."""
        name = gate_name(agent)
        if name in self.closed_gates():
            self._gates.open(name, reason=f"{agent.name} was answered")

    # Tries without an agent

    def allow_retry(self, agents: Sequence[Description]) -> None:
        """Allow one try of the gates that only a person can open, since a person has just started the run."""
        closed = self.closed_gates()
        for name in {gate_name(agent) for agent in agents} & closed.keys():
            if closed[name].opens_at is None:
                self._gates.retry(name)

    def probe(self, agents: Sequence[Description]) -> None:
        """Open the gates of agents whose probe reports a login again."""
        with_probe = [agent for agent in agents if agent.probe]
        closed = self.closed_gates() if with_probe else {}
        for agent in with_probe:
            gate = closed.get(gate_name(agent))
            if gate is None or not _waits_for_probe(gate, agent) or self._gates.enter(gate.name) is None:
                continue
            if is_logged_in(agent):
                self._gates.open(gate.name, reason="logged in again")
            else:
                self._gates.close(gate.name, gate.reason, retry_seconds=RETRY_SECONDS["login"])

    def is_disk_full(self) -> bool:
        """Return whether the disk has less free space than a run needs."""
        needed = self._context.configuration.free_megabytes
        return shutil.disk_usage(self._context.repository.state).free < needed * 1024 * 1024


def gate_name(agent: Description) -> str:
    """Return the name of an agent's gate. Agents of one account share it."""
    return f"account {agent.account or agent.name}"


def _waits_for_probe(gate: Gate, agent: Description) -> bool:
    return gate.reason == "login" and bool(agent.probe)


def is_logged_in(agent: Description) -> bool:
    """Return whether an environment variable holds the agent's login, or its probe reports one."""
    environment = commands.build_environment((*agent.pass_env, *agent.home_variables), agent.env)
    if any(environment.get(name) for name in agent.login_env):
        return True
    try:
        done = subprocess.run(
            list(agent.probe), env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
