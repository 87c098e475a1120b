"""Cost of the conductor: an item from claim to landed compared with a script of worktrees, its lane, streams, restarts, idling.

`python -m benchmarks.conductor_speed` needs a quiet machine and about five minutes, and writes its section of
benchmarks/results/conductor.md; `--items 20` makes it shorter and writes nothing.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.conductor import processor_seconds
from benchmarks.consenting import consent, start_plan
from benchmarks.measure import Row, row, table, write_section
from decklog import Decklog
from decklog.conductor import commands
from decklog.conductor.agents.description import describe
from decklog.conductor.agents.session import AgentSession, Terms
from decklog.conductor.commands import Command, Running
from decklog.conductor.conductor import Conductor, MergeQueue
from decklog.conductor.context import RunContext
from decklog.conductor.recovery import Recovery
from decklog.guard.sandbox.sandbox import Sandbox

FILES = 200
# No agent could be faster: it is what both sides start.
AGENT = ["sh", "-c", 'read -r title; name=$(echo "$title" | tr -dc a-z0-9); echo 1 > "$name.txt"']
CHECK = ["true"]
STAGES = ("work", "check", "land")
PROGRAM = [sys.executable, "-m", "decklog"]
SETTINGS = """
[run]
agents = {agents}
sandbox = "none"
orphan_seconds = 60
[agents.quick]
command = {agent}
minutes = 10
[[checks]]
name = "true"
command = {check}
"""
# The same work by hand: a worktree for each item, the agent, the check, a commit, and one merge after the other.
SCRIPT = """
set -e
name=$1
# Several at a time fail now and then.
git worktree add -q --detach ../trees/$name first || git worktree add -q --detach ../trees/$name first
cd ../trees/$name
echo "# $name" | sh -c "$AGENT"
true
git add -A && git commit -q -m "$name"
tip=$(git rev-parse HEAD)
cd ../../repository
exec 9>../merging && flock 9
git merge -q --no-edit -m "$name" "$tip" >/dev/null
git worktree remove --force ../trees/$name
"""


class Ground:
    """A repository of `files` files, and a log."""

    def __init__(self, folder: Path, *, agents: int, agent: list[str] = AGENT) -> None:
        self.folder, self.repository = folder, folder / "repository"
        self.target = str(folder / "decklog.db")
        self.repository.mkdir(parents=True)
        for number in range(FILES):
            (self.repository / f"file{number}.txt").write_text(f"{number}\n" * 20)
        settings = SETTINGS.format(agents=agents, agent=json.dumps(agent), check=json.dumps(CHECK))
        (self.repository / "decklog.toml").write_text(settings)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "speed")
        self.git("config", "user.email", "speed@localhost")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "First")
        self.git("tag", "first")
        consent(self.repository)

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.repository, capture_output=True, text=True, check=True).stdout.strip()

    def plan(self, items: int, *, in_turn: bool = False) -> bytes:
        """Plan `count` items, each after the one before if they depend on each other."""
        needs = [[f"p{number - 1}"] if in_turn and number else [] for number in range(items)]
        made = [{"name": f"p{number}", "needs": needed} for number, needed in enumerate(needs)]
        return json.dumps({"goal": "Be quick", "items": made}).encode()

    def context(self, log: Decklog, items: int, *, in_turn: bool = False) -> RunContext:
        content = self.plan(items, in_turn=in_turn)
        return start_plan(log, content, self.repository, self.folder / "state")


def conducted(items: int, agents: int, *, in_turn: bool = False) -> tuple[float, float, list[dict[str, float]]]:
    """Work `count` items; return the seconds, the conductor's own CPU time, and where the time of each item went."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as folder:
        ground = Ground(Path(folder), agents=agents)
        with Decklog.open(ground.target) as log:
            context = ground.context(log, items, in_turn=in_turn)
            used, begun = time.process_time(), time.perf_counter()
            Conductor(context).run()
            seconds, processor = time.perf_counter() - begun, time.process_time() - used
            landed = [task for task in log.tasks.find(context.run_id, role="land", limit=200) if task.state == "done"]
            assert len(landed) == min(items, 200), len(landed)
            return seconds, processor, [_stages(log, task.id) for task in landed]


def _stages(log: Decklog, land: str) -> dict[str, float]:
    """Return how long an item took from its first claim to the end of its landing, by stage, and between stages, in ms."""
    spans = []
    for task_id in (f"{land}.w1", f"{land}.c1", land):
        attempt = log.tasks.attempts(task_id)[-1]
        assert attempt.started_at is not None
        assert attempt.ended_at is not None
        spans.append((attempt.started_at, attempt.ended_at))
    found = {name: 1000 * (end - start).total_seconds() for name, (start, end) in zip(STAGES, spans, strict=True)}
    whole = 1000 * (spans[-1][1] - spans[0][0]).total_seconds()
    return {**found, "between": whole - sum(found.values()), "whole": whole}


def landings(count: int) -> float:
    """Give how many items the lane lands in a second whose trees were found green before, so that no check is run."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as folder:
        ground = Ground(Path(folder), agents=1)
        with Decklog.open(ground.target) as log:
            context = ground.context(log, count, in_turn=True)
            first = context.target_commit()
            for number in range(count):
                (ground.repository / f"new{number}.txt").write_text("1\n")
                ground.git("add", "-A")
                tip = context.repository.commit(ground.git("write-tree"), [first], f"{number}\n", context.person, number)
                context.examiner().base_findings(tip)
                _pass(log, context, number, {"base": first, "tip": tip, "at": number, "round": 1, "item": f"p{number}"})
            used = 0.0
            verdicts = len(log.verdicts.find(context.run_id, limit=200))
            for _ in range(count):
                claim = log.tasks.claim(context.run_id, worker="lane", role="land", lease_seconds=60.0)
                assert claim is not None
                begun = time.perf_counter()
                with claim:
                    MergeQueue(context, lambda: None).land(claim)
                used += time.perf_counter() - begun
            assert context.target_commit() != first
            assert len(log.verdicts.find(context.run_id, limit=200)) == verdicts, "a check was run"
            return count / used


def _pass(log: Decklog, context: RunContext, number: int, inputs: dict[str, Any]) -> None:
    """Bring an item to where it is ready to land."""
    work = f"{context.run_id}.p{number}.w1"
    if number:
        log.tasks.undepend(work, f"{context.run_id}.p{number - 1}")
    for task_id in (work, f"{context.run_id}.p{number}.c1"):
        claim = log.tasks.claim(context.run_id, worker="lane", task_id=task_id, lease_seconds=60.0)
        assert claim is not None
        if task_id == work:
            context.stages.finish_work(claim, inputs)
        else:
            context.stages.pass_check(claim, [])


def scripted(items: int, agents: int) -> float:
    """Do the same with `git worktree` and `xargs -P`; give the seconds."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as folder:
        ground = Ground(Path(folder), agents=agents)
        names = "\n".join(f"p{number}" for number in range(items))
        begun = time.perf_counter()
        subprocess.run(
            ["xargs", "-P", str(agents), "-I{}", "bash", "-c", SCRIPT, "-", "{}"],
            input=names,
            text=True,
            cwd=ground.repository,
            env={**os.environ, "AGENT": AGENT[2]},
            stderr=subprocess.DEVNULL,
            check=False,
        )
        seconds = time.perf_counter() - begun
        landed = sum(name.startswith("p") for name in ground.git("ls-tree", "--name-only", "main").split())
        if landed < items:
            print(f"  the script lost {items - landed} of {items} items")
        return seconds


def streamed(events: int) -> float:
    """Give how many events of an agent are taken in, redacted and on record in a second."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as name:
        folder = Path(name)
        (folder / "tree").mkdir()
        line = json.dumps({"type": "tool", "text": "ran pytest -q in tests/ and looked at what it said " * 3})
        command = Command(
            argv=["sh", "-c", f"yes '{line}' | head -n {events}"],
            mark="speed:1",
            root=folder / "tree",
            folder=folder / "agent",
            sandbox=Sandbox(kind="none"),  # type: ignore[arg-type]
        )
        rules: list[dict[str, Any]] = [{"when": {"/type": "tool"}, "as": "tool", "take": {"text": "/text"}}]
        agent = describe("it", {"command": ["it"], "stream": "jsonl", "events": rules})
        with Decklog.open(folder / "decklog.db") as log:
            log.runs.start("Stream", run_id="run_1")
            log.tasks.add("run_1", "It", task_id="it")
            begun = time.perf_counter()
            commands.start(command)
            running = Running.find("speed:1", folder / "agent")
            assert running is not None
            AgentSession(log, agent, Terms(run_id="run_1", task_id="it"), running).watch(lambda: None)
            return events / (time.perf_counter() - begun)


def restarted(agents: int, tasks: int) -> float:
    """Return how long it takes to adopt the living agents of a killed conductor, with tasks open."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as folder:
        ground = Ground(Path(folder), agents=agents, agent=["sleep", "600"])
        with Decklog.open(ground.target) as log:
            context = ground.context(log, tasks // 2)
        child = os.fork()
        if child == 0:
            with Decklog.open(ground.target) as log:
                Conductor(ground.context(log, tasks // 2)).run()
            os._exit(0)
        while len(list(context.folder.glob("*/agent/running.json"))) < agents:
            time.sleep(0.05)
        os.kill(child, 9)
        os.waitpid(child, 0)
        with Decklog.open(ground.target) as log:
            there = ground.context(log, tasks // 2)
            begun = time.perf_counter()
            adopted = Recovery(there).adopt_agents()
            seconds = time.perf_counter() - begun
            assert len(adopted) == agents, len(adopted)
            for claim, fence in adopted:
                commands.end(there.attempt(claim.task.id, fence).mark)
                claim.release("measured")
        return seconds


def resumed() -> float:
    """Give the seconds from a kill to the first thing that the next conductor, started at once as a program, puts on record."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as folder:
        home = Path(folder)
        ground = Ground(home, agents=4, agent=["sleep", "20"])
        (home / "plan.json").write_bytes(ground.plan(8))
        words = [*PROGRAM, "run", "--plan", str(home / "plan.json")]
        environment = {**os.environ, "DECKLOG_DB": ground.target, "XDG_STATE_HOME": str(home / "home")}
        quiet: Any = {"cwd": ground.repository, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with Decklog.open(ground.target) as log:
            with subprocess.Popen(words, **quiet) as first:
                while len(log.effects.find(tool="conductor.spawn", state="done")) < 4:
                    time.sleep(0.05)
                first.kill()
            (run,) = log.runs.find()
            begun, before = time.perf_counter(), log.journal.find(run.id, limit=1)[0].seq
            with subprocess.Popen(words, **quiet) as second:
                while log.journal.find(run.id, limit=1)[0].seq == before:
                    time.sleep(0.005)
                seconds = time.perf_counter() - begun
                second.terminate()
        return seconds


def viewed(items: int, seconds: float) -> tuple[float, float]:
    """Return the ms that a separate program takes to show a run of `count` items, and the share of a core to follow it."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as folder:
        ground = Ground(Path(folder), agents=1)
        with Decklog.open(ground.target) as log:
            run_id = ground.context(log, items).run_id
        environment = {**os.environ, "DECKLOG_DB": ground.target}
        words = [*PROGRAM, "run", "watch", run_id]
        times = []
        for _ in range(5):
            begun = time.perf_counter()
            subprocess.run([*words, "--no-follow"], env=environment, stdout=subprocess.DEVNULL, check=True)
            times.append(1000 * (time.perf_counter() - begun))
        with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL) as view:
            time.sleep(2.0)
            used = processor_seconds(view.pid)
            time.sleep(seconds)
            share = 100 * (processor_seconds(view.pid) - used) / seconds
            view.terminate()
        return statistics.median(times), share


def idle(seconds: float, agents: int) -> tuple[float, float]:
    """Return the share of a core, in percent, and the memory in MiB of a conductor whose agents sleep, in its own process."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as folder:
        ground = Ground(Path(folder), agents=agents, agent=["sleep", "600"])
        with Decklog.open(ground.target) as log:
            context = ground.context(log, agents)
        child = os.fork()
        if child == 0:
            with Decklog.open(ground.target) as log:
                Conductor(ground.context(log, agents)).run()
            os._exit(0)
        while len(list(context.folder.glob("*/agent/running.json"))) < agents:
            time.sleep(0.1)
        time.sleep(3.0)
        used = processor_seconds(child)
        time.sleep(seconds)
        share = 100 * (processor_seconds(child) - used) / seconds
        memory = int(Path(f"/proc/{child}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
        with Decklog.open(ground.target) as log:
            now = log.clock.now()
            held = [
                task for task in log.tasks.find(context.run_id, state="running", limit=200) if (task.leased_until or now) > now
            ]
            assert len(held) == agents, len(held)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for number in range(agents):
            commands.end(context.attempt(f"{context.run_id}.p{number}.w1", 1).mark)
        return share, memory


def main(items: int = 200) -> list[Row]:
    count = min(items, 60)
    _, _, took = conducted(count, 1, in_turn=True)
    whole = sorted(one["whole"] for one in took)
    alone = 1000 * scripted(count, 1) / count
    rows = [row("an item, from its claim to landed, median", statistics.median(whole), "ms", target="<= 250")]
    rows.append(row("the same, 99 of 100", whole[int(0.99 * len(whole))], "ms", target="<= 600"))
    rows.append(row("the same compared with the script, median", statistics.median(whole), "ms", floor=alone, target="<= 4.5"))
    for stage in (*STAGES, "between"):
        rows.append(row(f"of that: {stage}", statistics.median(one[stage] for one in took), "ms"))
    many, processor, _ = conducted(items, 8)
    rows.append(row(f"{items} items, 8 at once", items / many, "items/s", target=">= 8"))
    rows.append(row("the same compared with the script", items / many, "items/s", floor=items / scripted(items, 8)))
    rows.append(row("CPU time of the conductor meanwhile", 100 * processor / many, "% of a core", target="<= 60"))
    rows.append(row("landings without a check", landings(min(items, 100)), "landings/s", target=">= 10"))
    rows.append(row("events of a stream on record", streamed(100 * items), "events/s", target=">= 2000"))
    rows.append(row("16 living agents adopted, 1,000 tasks open", 1000 * restarted(16, 1000), "ms", target="<= 2000"))
    rows.append(row("from a kill to the next act, started at once", 1000 * resumed(), "ms", target="<= 3000"))
    first, share = viewed(100, 10.0)
    rows.append(row("100 items shown by `run watch`, whole program", first, "ms", target="<= 150"))
    rows.append(row("following them", share, "% of a core", target="<= 1"))
    share, memory = idle(20.0, min(items, 100))
    rows.append(row(f"{min(items, 100)} agents that sleep, all leases kept", share, "% of a core", target="<= 3"))
    rows.append(row("and the conductor's memory", memory, "MiB", target="<= 150"))
    return rows


NOTES = (
    "`python -m benchmarks.conductor_speed` (about five minutes) works items of an agent that writes one file and of a check "
    "that is `true` through a repository of 200 files. The first rows are of items that wait for each other, so that nothing "
    "else is going on; their times are those of the log, from the claim of the work to the end of the landing. The script makes "
    "a `git worktree` for each item, starts the same agent and check, commits, merges under a lock and removes the worktree; "
    "several at once by `xargs -P`. It keeps no record and survives no kill. Bernstein's mock adapter "
    "can be had (3.23, for Python 3.12 or newer), and plays the mending of its demonstration project and nothing else: "
    "there is no item of work that both could do."
)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=200)
    given = parser.parse_args()
    measured = main(given.items)
    if given.items == 200:
        write_section("conductor", "Speed", [NOTES, "", *table(measured)])
