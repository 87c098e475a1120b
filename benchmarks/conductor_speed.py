"""What the conductor costs: a piece from claim to landed beside a script of worktrees, streams, restarts, and doing nothing.

`python -m benchmarks.conductor_speed` needs a quiet machine and about five minutes; `--pieces 20` makes it shorter.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import Row, row
from decklog import Decklog
from decklog.conductor import commands, starting
from decklog.conductor.agents.description import describe
from decklog.conductor.agents.session import Session, Terms
from decklog.conductor.commands import Command, Running
from decklog.conductor.conductor import LEASE_SECONDS, Conductor
from decklog.conductor.recovery import Recovery
from decklog.conductor.site import Site
from decklog.tools.sandbox.sandbox import Sandbox

FILES = 200
# No agent could be faster: it is what both sides start.
AGENT = ["sh", "-c", 'read -r title; name=$(echo "$title" | tr -dc a-z0-9); echo 1 > "$name.txt"']
CHECK = ["true"]
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
# The same work by hand: a worktree for each piece, the agent, the check, a commit, and one merge after the other.
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
    """A repository of so many files, and a log."""

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

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.repository, capture_output=True, text=True, check=True).stdout.strip()

    def site(self, log: Decklog, pieces: int) -> Site:
        plan = {"goal": "Be quick", "pieces": [{"name": f"p{number}"} for number in range(pieces)]}
        content = json.dumps(plan).encode()
        return starting.start(log, content, is_json=True, cwd=self.repository, state=self.folder / "state", say=lambda _: None)


def conducted(pieces: int, agents: int) -> tuple[float, float, list[float]]:
    """Work so many pieces; give the seconds, the conductor's own processor time, and how long each piece took."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as folder:
        ground = Ground(Path(folder), agents=agents)
        with Decklog.open(ground.target) as log:
            site = ground.site(log, pieces)
            used, begun = time.process_time(), time.perf_counter()
            Conductor(site).run()
            seconds, processor = time.perf_counter() - begun, time.process_time() - used
            landed = [task for task in log.tasks.find(site.run_id, role="land", limit=200) if task.state == "done"]
            assert len(landed) == min(pieces, 200), len(landed)
            return seconds, processor, [_took(log, task.id) for task in landed]


def _took(log: Decklog, land: str) -> float:
    """Give how long a piece took from its first claim to the end of its landing."""
    first = log.tasks.attempts(f"{land}.w1")[0].started_at
    end = log.tasks.attempts(land)[-1].ended_at
    assert first is not None
    assert end is not None
    return (end - first).total_seconds()


def scripted(pieces: int, agents: int) -> float:
    """Do the same with `git worktree` and `xargs -P`; give the seconds."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as folder:
        ground = Ground(Path(folder), agents=agents)
        names = "\n".join(f"p{number}" for number in range(pieces))
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
        if landed < pieces:
            print(f"  the script lost {pieces - landed} of {pieces} pieces")
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
            Session(log, agent, Terms(run_id="run_1", task_id="it"), running).watch(lambda: None)
            return events / (time.perf_counter() - begun)


def restarted(agents: int, tasks: int) -> float:
    """Give how long it takes to adopt so many living agents of a conductor that was killed, with so many tasks open."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as folder:
        ground = Ground(Path(folder), agents=agents, agent=["sleep", "600"])
        with Decklog.open(ground.target) as log:
            site = ground.site(log, tasks // 2)
        child = os.fork()
        if child == 0:
            with Decklog.open(ground.target) as log:
                Conductor(ground.site(log, tasks // 2)).run()
            os._exit(0)
        while len(list(site.folder.glob("*/agent/running.json"))) < agents:
            time.sleep(0.05)
        os.kill(child, 9)
        os.waitpid(child, 0)
        with Decklog.open(ground.target) as log:
            there = ground.site(log, tasks // 2)
            begun = time.perf_counter()
            adopted = Recovery(there, LEASE_SECONDS).take_over()
            seconds = time.perf_counter() - begun
            assert len(adopted) == agents, len(adopted)
            for claim, fence in adopted:
                commands.end(there.mark(claim.task.id, fence))
                claim.release("measured")
        return seconds


def idle(seconds: float, agents: int) -> tuple[float, float]:
    """Give the share of a core, in percent, and the memory in MiB of a conductor whose agents sleep."""
    with tempfile.TemporaryDirectory(prefix="decklog-speed-") as folder:
        ground = Ground(Path(folder), agents=min(agents, 64), agent=["sleep", "600"])
        with Decklog.open(ground.target) as log:
            site = ground.site(log, agents)
            conductor = Conductor(site)
            thread = threading.Thread(target=conductor.run)
            thread.start()
            while len(list(site.folder.glob("*/agent/running.json"))) < min(agents, 64):
                time.sleep(0.1)
            time.sleep(2.0)
            used = time.process_time()
            time.sleep(seconds)
            share = 100 * (time.process_time() - used) / seconds
            conductor.stop_now()
            thread.join()
        return share, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(pieces: int = 200) -> list[Row]:
    one, _, took = conducted(min(pieces, 40), 1)
    alone = scripted(min(pieces, 40), 1)
    count = min(pieces, 40)
    rows = [row("one piece after the other", 1000 * one / count, "ms", floor=1000 * alone / count, target="<= 4.5")]
    rows.append(row("of claim to landed, median", 1000 * statistics.median(took), "ms", target="<= 250"))
    many, processor, _ = conducted(pieces, 8)
    beside = scripted(pieces, 8)
    rows.append(row(f"{pieces} pieces, 8 at once", pieces / many, "pieces/s", floor=pieces / beside, target=""))
    rows.append(row("processor time of the conductor", 100 * processor / many, "% of a core", target="<= 60"))
    rows.append(row("events of a stream on record", streamed(20_000), "events/s", target=">= 2000"))
    rows.append(row("16 living agents adopted, 1,000 tasks open", 1000 * restarted(16, 1000), "ms", target="<= 2000"))
    share, memory = idle(30.0, 64)
    rows.append(row("64 agents that sleep", share, "% of a core", target="<= 3"))
    rows.append(row("and the conductor's memory", memory, "MiB", target="<= 150"))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pieces", type=int, default=200)
    main(parser.parse_args().pieces)
    sys.exit(0)
