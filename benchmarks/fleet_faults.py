"""Agents at work while the server is killed, a pooler restarts and a standby that lags is promoted.

    python -m benchmarks.fleet_faults --agents 1000 --seconds 300

Each agent is a process that claims a task, appends an entry and finishes the task, over and over. One half connects to the
servers, the other half through PgBouncer in transaction mode. Afterwards each acknowledged write must be in the log, or its agent
must have been notified that it was lost. DECKLOG_TEST_POSTGRES names the programs of another version of PostgreSQL.
"""

import argparse
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from tests.pgbouncer import MISSING, PROGRAM, PgBouncer
from tests.postgres import Server, programs, version_of

from benchmarks.measure import Row, row, write
from decklog import Decklog
from decklog.core.errors import Busy, Conflict, LostWrites, OutcomeUnknown, Unreachable

RUNS = 20
# Tasks that all agents together work on in a second: what two cores can do.
RATE = 50
_START_SECONDS = 0.01
_LATE_SECONDS = 180
_LEASE_SECONDS = 3600
_NOTES = (
    "Each agent is a process: it claims a task, appends an entry with a key, finishes the task and pauses.",
    "The standby is asynchronous and loses its connection a second before the primary is killed for the last time, so that the "
    "failover loses acknowledged writes.",
    "Half of the agents connect directly with both addresses, half through PgBouncer 1.18 in transaction mode.",
    "Killed processes keep what the system has cached, so the servers run with `fsync = off`.",
)

Note = dict[str, Any]


# An agent


class Agent:
    """Works until the end, and writes down what the log acknowledged and what it was notified of."""

    _log: Decklog

    def __init__(self, number: int, out: Any) -> None:
        self._name = f"agent-{number}"
        self._run_id = f"run_{number % RUNS}"
        self._out = out
        self._count = 0

    def opened(self, url: str, end: float) -> Decklog:
        """Open the log, once the server is there."""
        while True:
            try:
                return Decklog.open(url, pool_size=2)
            except (Busy, Unreachable):
                if time.time() > end:
                    raise
                time.sleep(0.5)

    def note(self, what: str, **facts: Any) -> None:
        self._out.write(json.dumps({"what": what, "by": self._name, "at": time.time(), **facts}) + "\n")

    def work(self, log: Decklog, end: float, pause: float) -> None:
        self._log = log
        chance = random.Random(self._name)
        while time.time() < end:
            try:
                self._cycle(end)
            except LostWrites as problem:
                self.note("notified", lost=problem.details["lost"])  # a claim that it may have is gone
            time.sleep(chance.uniform(0.5, 1.5) * pause)

    def _cycle(self, end: float) -> None:
        claim = self._insist(end, lambda: self._log.tasks.claim(self._run_id, worker=self._name, lease_seconds=_LEASE_SECONDS))
        if claim is None:
            return
        self.note("claim", task=claim.id, fence=claim.fence, stream=self._run_id)
        self._count += 1
        key = f"{self._name}-{self._count}"
        entry = self._insist(end, lambda: self._log.journal.append(self._run_id, f"Worked on {claim.id}", key=key))
        if entry is not None:
            self.note("entry", stream=self._run_id, seq=entry.seq, hash=entry.hash)
        unknown = Counter[str]()
        try:
            done = self._insist(end, lambda: self._log.tasks.finish(claim.id, fence=claim.fence), unknown)
        except Conflict as problem:
            # After an unknown outcome it may be done already.
            if not unknown["unknown"]:
                self.note("refused", task=claim.id, fence=claim.fence, why=str(problem))
            return
        if done is not None:
            self.note("finish", task=claim.id, fence=claim.fence, stream=self._run_id)

    def _insist(self, end: float, call: Callable[[], Any], seen: "Counter[str] | None" = None) -> Any:
        """Repeat a call while the server is away; None if it is away until the end."""
        while time.time() < end + _LATE_SECONDS / 2:
            try:
                return call()
            except (Busy, Unreachable, OutcomeUnknown) as problem:
                kind = "unknown" if isinstance(problem, OutcomeUnknown) else "away"
                self.note(kind)
                if seen is not None:
                    seen[kind] += 1
                time.sleep(random.uniform(0.1, 1.0))
        return None


def _agent(url: str, number: int, folder: Path, end: float, pause: float) -> None:
    with (folder / f"{number}.jsonl").open("w", encoding="utf-8") as out:
        agent = Agent(number, out)
        try:
            time.sleep(number * _START_SECONDS)
            with agent.opened(url, end) as log:
                agent.work(log, end, pause)
                log.journal.find(f"run_{number % RUNS}", limit=1)  # the last chance to be notified
        except LostWrites as problem:
            out.write(
                json.dumps({"what": "notified", "by": f"agent-{number}", "at": time.time(), "lost": problem.details["lost"]})
            )
        except Exception as problem:  # noqa: BLE001 - reported to the parent
            out.write(
                json.dumps({"what": "error", "by": f"agent-{number}", "at": time.time(), "why": repr(problem)[:300]}) + "\n"
            )


# The faults


class World:
    """A primary, its standby, and a pooler before them."""

    def __init__(self, stack: ExitStack, agents: int) -> None:
        settings: dict[str, Any] = {
            "max_connections": agents + 100,
            "fsync": "off",
            "wal_keep_size": "1GB",
            "shared_buffers": "256MB",
        }
        self.primary = stack.enter_context(Server(**settings))
        Decklog.open(self.primary.url, migrate=True).close()
        self.standby = stack.enter_context(Server(primary=self.primary, **settings))
        self.pooler = stack.enter_context(PgBouncer(self.primary.url, "transaction"))
        both = quote(f"{self.primary.folder},{self.standby.folder}", safe="")
        self.direct = f"postgresql://postgres@/postgres?host={both}&target_session_attrs=read-write"
        self.pooled = self.pooler.address_of(self.primary.url)

    def kill_server(self) -> None:
        self.primary.kill()
        time.sleep(2)
        self.primary.start()

    def restart_pooler(self) -> None:
        self.pooler.stop()
        time.sleep(1)
        self.pooler.start()

    def fail_over(self) -> None:
        """Promote a standby that lacks the last second."""
        self._wait_for_standby()
        self.standby.cut()
        time.sleep(1)
        self.primary.kill()
        self.standby.promote()
        self.pooler.lead_to(self.standby.url)

    def _wait_for_standby(self) -> None:
        end = time.monotonic() + 60
        with psycopg.connect(self.standby.url, autocommit=True) as connection:
            while connection.execute("select 1 from pg_stat_wal_receiver where status = 'streaming'").fetchone() is None:
                assert time.monotonic() < end, "the standby does not follow"
                time.sleep(0.1)


def run(world: World, agents: int, seconds: float, folder: Path) -> dict[str, float]:
    """Let the agents work through all faults; return when each fault was over."""
    end = time.time() + agents * _START_SECONDS + seconds
    pause = agents / RATE
    processes = []
    for number in range(agents):
        processes.append(child := os.fork())
        if child == 0:
            try:
                _agent(world.direct if number % 2 else world.pooled, number, folder, end, pause)
            finally:
                os._exit(0)
    over = {}
    for share, fault in ((0.2, world.kill_server), (0.4, world.restart_pooler), (0.6, world.fail_over)):
        time.sleep(max(0.0, end - seconds * (1 - share) - time.time()))
        fault()
        over[fault.__name__] = time.time()
        print(f"{fault.__name__} is over", flush=True)
    _wait(processes, end + _LATE_SECONDS)
    return over


def _wait(processes: list[int], end: float) -> None:
    for process in processes:
        while os.waitpid(process, os.WNOHANG)[0] == 0:
            if time.time() > end:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                raise TimeoutError(f"an agent does not come to an end: {process}")
            time.sleep(0.02)


# What is left


class Findings:
    """Compares what agents noted with the log that is left."""

    def __init__(self, log: Decklog, notes: list[Note]) -> None:
        self.notes = notes
        self.count = Counter(note["what"] for note in notes)
        sql = "select stream, seq, hash from entries"
        self._entries = {(stream, seq): hash for stream, seq, hash in log.db.read(lambda: log.db.rows(sql, {})[1])}
        tasks = {note["task"] for note in notes if "task" in note}
        self._attempts = {
            (attempt.task_id, attempt.fence): attempt for task in tasks for attempt in log.tasks.attempts(task) if attempt.worker
        }
        # The moments at which each agent was notified of a stream.
        self._notices = {
            (note["by"], lost["stream"], note["at"]): lost
            for note in notes
            if note["what"] == "notified"
            for lost in note["lost"]
        }
        self.keys_twice = log.db.read(lambda: log.db.one(_KEYS_TWICE, {}))

    def _is_kept(self, note: Note) -> bool:
        if note["what"] == "entry":
            return bool(self._entries.get((note["stream"], note["seq"])) == note["hash"])
        attempt = self._attempts.get((note["task"], note["fence"]))
        return attempt is not None and attempt.worker == note["by"] and (note["what"] == "claim" or attempt.outcome == "done")

    def lost(self) -> Iterator[Note]:
        """Yield what was acknowledged and is not in the log."""
        return (note for note in self.notes if note["what"] in ("claim", "entry", "finish") and not self._is_kept(note))

    def lost_silently(self) -> list[Note]:
        """List lost writes whose agent was not notified."""
        notified: dict[tuple[str, str], float] = {}
        for by, stream, at in self._notices:
            notified[by, stream] = max(at, notified.get((by, stream), 0.0))
        return [note for note in self.lost() if notified.get((note["by"], note["stream"]), 0.0) < note["at"]]

    def false_notices(self) -> list[Note]:
        """List what was reported to an agent as lost though it is in the log."""
        return [lost for lost in self._notices.values() if self._entries.get((lost["stream"], lost["seq"])) == lost["hash"]]

    def longest_silence(self, after: float) -> float:
        """Return how long after the end of a fault nothing was acknowledged."""
        return min((note["at"] - after for note in self.notes if note["what"] == "finish" and note["at"] > after), default=1e9)


_KEYS_TWICE = (
    "select count(*) from (select 1 from entries where key like 'agent-%' group by stream, key having count(*) > 1) as twice"
)


def judged(log: Decklog, notes: list[Note], over: dict[str, float]) -> list[Row]:
    """Check the log, and make the rows of the result."""
    found = Findings(log, notes)
    lost, silent = list(found.lost()), found.lost_silently()
    for note in [*silent, *(note for note in notes if note["what"] in ("refused", "error"))][:10]:
        print(note)
    rows = [
        row("tasks finished", float(found.count["finish"]), "tasks"),
        row("calls with unknown outcome", float(found.count["unknown"]), "calls"),
        row("acknowledged writes that the failover lost", float(len(lost)), "writes"),
        row("agents notified of a loss", float(len({note["by"] for note in notes if note["what"] == "notified"})), "agents"),
        row("writes lost without notice to the agent", float(len(silent)), "writes", target="<= 0"),
        row("entries reported as lost that are in the log", float(len(found.false_notices())), "entries", target="<= 0"),
        row("finishes refused to the agent with the claim", float(found.count["refused"]), "calls", target="<= 0"),
        row("keys that are in the log twice", float((found.keys_twice or (0,))[0]), "keys", target="<= 0"),
        row("agents that ended with another error", float(found.count["error"]), "agents", target="<= 0"),
        row("problems found by verify", float(len(log.journal.verify().problems)), "problems", target="<= 0"),
    ]
    for name, at in over.items():
        rows.append(row(f"first task finished after {name.replace('_', ' ')}", found.longest_silence(at), "s"))
    return rows


def main() -> list[Row]:
    """Run agents through the faults; write benchmarks/results/fleet-faults-VERSION.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=300)
    given = parser.parse_args()
    if PROGRAM is None:
        raise SystemExit(MISSING)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="decklog-faults-")))
        world = World(stack, given.agents)
        with Decklog.open(world.primary.url) as log:
            for number in range(RUNS):
                log.runs.start("A fleet", run_id=f"run_{number}")
                count = round(2 * RATE * (given.seconds + 30) / RUNS)
                log.tasks.add_many(f"run_{number}", [{"title": f"Task {place}"} for place in range(count)])
        over = run(world, given.agents, given.seconds, folder)
        notes = [json.loads(line) for path in folder.iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
        with Decklog.open(world.standby.url) as log:
            rows = judged(log, notes, over)
    version = version_of(programs())
    what = f"{given.agents:,} agents for {given.seconds:,.0f} s on PostgreSQL {version}"
    write(f"fleet-faults-{version}", f"A killed server, a restarted pooler and a failover: {what}", rows, _NOTES)
    return rows


if __name__ == "__main__":
    main()
