"""The conductor under kill -9: it is killed at random moments of a run, and started again, until the run is over.

`python -m benchmarks.conductor --kills 200` works plans of 8 items with 4 scripted agents through small repositories until so
many kills have fallen; with `--supervisors`, at two kills in five all supervisors of the run are killed too. Afterwards every
commit of the target is written out and checked again.

`--script` does the same to a script of `git worktree` and `xargs -P`, which cleans up and goes on after each kill.

`--abandon 4` kills the conductors of 4 runs and starts none again: ten seconds after `orphan_seconds`, which is a minute,
nothing of them may be alive. `--idle 600` lets a run wait 600 seconds for a quota. `--stall 10` shows how long after 10
seconds of silence, and after twice as many with signs of life alone, an agent is ended.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

from benchmarks.consenting import consent, start_plan
from benchmarks.killing import came_to_its_end, forked, git
from decklog import Decklog
from decklog.conductor import commands
from decklog.conductor.agents.description import describe
from decklog.conductor.agents.session import AgentSession, Terms
from decklog.conductor.commands import Command, Running
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.core.processes import Identity
from decklog.guard.sandbox.sandbox import Sandbox

ITEMS, AGENTS = 8, 4
TURN_MICRODOLLARS = 10_000
AGENT = """
import json, pathlib, re, sys, time
number = re.search("item number ([0-9]+)", sys.stdin.read())[1]
for _ in range(3):
    print(json.dumps({"type": "turn", "cost": 0.01}), flush=True)
    time.sleep(0.05)
pathlib.Path(f"part{number}.py").write_text(f"VALUE = {number}\\n")
"""
# Writes a file, leaves two processes behind that have a session of their own and hear no signal, and goes on for ever.
HIDING = """
import os, pathlib, signal, time
pathlib.Path("written.txt").write_text("mine")
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(3600)
time.sleep(3600)
"""
CHECK = """
import glob, re
for name in glob.glob("part*.py"):
    assert re.fullmatch("VALUE = [0-9]+", open(name).read().strip())
"""
SETTINGS = """
[run]
agents = {agents}
sandbox = "none"
orphan_seconds = {orphan_seconds}
[agents.scripted]
command = {agent}
stream = "jsonl"
events = [{{ when = {{ "/type" = "turn" }}, as = "usage", take = {{ cost_usd = "/cost" }} }}]
[[checks]]
name = "parts"
command = {check}
"""


class Ground:
    """A repository with a plan, a log, and the processes that work it."""

    def __init__(self, folder: Path, agent: str = AGENT, orphan_seconds: int = 30) -> None:
        self.folder = folder
        self.repository = folder / "repository"
        self.target = str(folder / "decklog.db")
        self.state = folder / "state"
        self.repository.mkdir(parents=True)
        python = [sys.executable, "-I", "-S", "-c"]
        called = {"agent": json.dumps([*python, agent]), "check": json.dumps([*python, CHECK])}
        settings = SETTINGS.format(agents=AGENTS, orphan_seconds=orphan_seconds, **called)
        (self.repository / "decklog.toml").write_text(settings)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "First"]):
            self.git(*words)
        consent(self.repository)
        items = [{"name": f"p{number}", "objective": f"This is item number {number}."} for number in range(ITEMS)]
        self.plan = json.dumps({"goal": "Write all parts", "items": items}).encode()
        # The plan is on record before the first kill: what is measured is the work.
        with Decklog.open(self.target) as log:
            self._context(log)

    def git(self, *words: str) -> str:
        return git(self.repository, *words)

    def start(self) -> int:
        """Work on the plan in its own process; return its id."""
        return forked(self._conduct)

    def _conduct(self) -> None:
        with Decklog.open(self.target) as log:
            Conductor(self._context(log)).run()

    def work(self, seconds: float | None) -> bool:
        """Work on the plan in its own process, killed after a while; return whether it finished."""
        return came_to_its_end(self.start(), seconds)

    def _context(self, log: Decklog) -> RunContext:
        return start_plan(log, self.plan, self.repository, self.state)

    def kill_supervisors(self) -> None:
        for note in self.state.glob("**/running.json"):
            Identity.from_text(json.loads(note.read_text())["supervisor"]).send(signal.SIGKILL)

    def alive(self) -> list[str]:
        """List what runs anywhere in the places."""
        found = []
        for link in Path("/proc").glob("[0-9]*/cwd"):
            try:
                where = os.readlink(link)
                if where.startswith(str(self.folder)):
                    found.append((link.parent / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found

    def findings(self) -> Counter[str]:
        """Count what must not be: lost, doubled, red, open, wrongly charged."""
        found: Counter[str] = Counter()
        with Decklog.open(self.target) as log:
            (run,) = [one for one in log.runs.find() if one.status == "active"]
            target = f"refs/decklog/{run.id}/target"
            titles = Counter(self.git("log", "--format=%s", target).splitlines()[:-1])
            found["items lost"] = sum(titles[f"p{number}"] == 0 for number in range(ITEMS))
            found["items landed twice"] = sum(count > 1 for count in titles.values())
            found["red commits"] = sum(self._is_red(commit) for commit in self.git("rev-list", target).split())
            left = log.effects.open(run.id)
            found["effects left open"] = len(left)
            for effect in left:
                print(f"  left open: {effect.as_dict()}", flush=True)
            found["logs not whole"] = int(not log.journal.verify(run.id).ok)
            found["wrong files"] = int(self.git("ls-tree", "-r", "--name-only", target).split() != self._files())
            found["runs charged wrongly"] = int(not self._is_charged_right(log, run.id))
        return found

    def _files(self) -> list[str]:
        return sorted(["decklog.toml", *(f"part{number}.py" for number in range(ITEMS))])

    def _is_red(self, commit: str) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(["git", "archive", commit], cwd=self.repository, capture_output=True, check=True).stdout
            subprocess.run(["tar", "-x"], input=archive, cwd=folder, check=True)
            return subprocess.run([sys.executable, "-I", "-S", "-c", CHECK], cwd=folder, check=False).returncode != 0

    def _is_charged_right(self, log: Decklog, run_id: str) -> bool:
        """Say whether a run is charged to the cent: three turns for each agent, fewer only for one that was cut off."""
        agents = log.effects.find(run_id, tool="conductor.spawn", limit=200)
        ended = [effect.facts.get("outcome") for effect in log.effects.find(run_id, tool="conductor.keep", limit=200)]
        whole = sum(outcome["reason"] == "exited" for outcome in ended if isinstance(outcome, dict))
        total = sum(charge.cost_microdollars or 0 for charge in log.ledger.find(run_id, limit=200))
        return whole * 3 * TURN_MICRODOLLARS <= total <= len(agents) * 3 * TURN_MICRODOLLARS


def abandon(runs: int) -> None:
    """Kill the conductors of some runs, start none again, and return what is left when their time is over."""
    with tempfile.TemporaryDirectory(prefix="decklog-kills-") as folder:
        grounds = [Ground(Path(folder) / str(number), HIDING, orphan_seconds=60) for number in range(runs)]
        children = [ground.start() for ground in grounds]
        while any(len(list(ground.state.glob("**/tree/written.txt"))) < AGENTS for ground in grounds):
            time.sleep(0.2)
        before = sum(len(ground.alive()) for ground in grounds)
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        time.sleep(60 + 10)
        left = [line for ground in grounds for line in ground.alive()]
        files = sum(len(list(ground.state.glob("**/tree/written.txt"))) for ground in grounds)
        print(f"{runs} runs killed with {AGENTS} agents each, {before} processes; 70 s later {len(left)} are alive: {left}")
        print(f"  {files} of {runs * AGENTS} files that agents had written are in their places")


# The same items by hand: a worktree for each, the agent, a commit, and one merge after the other.
SCRIPT = """
set -e
# What has landed before is left alone.
git cat-file -e HEAD:part$1.py 2>/dev/null && exit
git worktree add -q --detach ../trees/$1 first
cd ../trees/$1
echo "item number $1" | "$PYTHON" -I -S -c "$AGENT" >/dev/null
git add -A && git commit -q -m "p$1"
tip=$(git rev-parse HEAD)
cd ../../repository
exec 9>../merging && flock 9
git merge -q --no-edit -m "p$1" "$tip" >/dev/null
git worktree remove --force ../trees/$1
"""


class ScriptedGround(Ground):
    """A repository whose items a script works on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for words in (["tag", "first"], ["config", "user.name", "kills"], ["config", "user.email", "kills@localhost"]):
            self.git(*words)

    def work(self, seconds: float | None) -> bool:
        # Its author knows that it may be killed.
        shutil.rmtree(self.folder / "trees", ignore_errors=True)
        self.git("worktree", "prune")
        names = "\n".join(str(number) for number in range(ITEMS))
        variables = {**os.environ, "AGENT": AGENT, "PYTHON": sys.executable}
        words = ["xargs", "-P", str(AGENTS), "-I{}", "bash", "-c", SCRIPT, "-", "{}"]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, cwd=self.repository, env=variables, stdout=quiet, stderr=quiet, start_new_session=True
        ) as script:
            try:
                script.communicate(names.encode(), timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(script.pid, signal.SIGKILL)
                return False
        return True

    def findings(self) -> Counter[str]:
        files = self.git("ls-tree", "-r", "--name-only", "HEAD").split()
        titles = Counter(self.git("log", "--first-parent", "--format=%s").splitlines()[:-1])
        return Counter(
            {
                "items lost": sum(name not in files for name in self._files()),
                "items landed twice": sum(count > 1 for count in titles.values()),
                "worktrees left": len(list((self.folder / "trees").glob("*"))),
                "locks left": len(list((self.repository / ".git").glob("*.lock"))),
            }
        )


def idle(seconds: float) -> None:
    """Let a run wait for a quota, and say what that costs."""
    with tempfile.TemporaryDirectory(prefix="decklog-kills-") as folder:
        ground = Ground(Path(folder))
        with Decklog.open(ground.target) as log:
            later = log.clock.now() + timedelta(seconds=seconds + 600)
            log.gates.close("account scripted", "quota", until=later, retry_seconds=60.0)
        child = ground.start()
        time.sleep(3.0)
        used = processor_seconds(child)
        time.sleep(seconds)
        share = 100 * (processor_seconds(child) - used) / seconds
        children = Path(f"/proc/{child}/task/{child}/children").read_text().split()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with Decklog.open(ground.target) as log:
            started = len(log.effects.find(tool="conductor.spawn"))
        print(f"idle for {seconds:.0f} s: {share:.2f} % of a core, {len(children)} processes, {started} agents started")


# What an agent does that never gets on: nothing, or it only shows that it lives.
STUCK = {"silent": "sleep 600", "without progress": 'while :; do echo \'{"type": "beat"}\'; sleep 0.5; done'}


def stall(seconds: float) -> None:
    """Say how much later than it must go on an agent is ended that is silent, and one that only shows that it lives."""
    for kind, program in STUCK.items():
        with tempfile.TemporaryDirectory(prefix="decklog-kills-") as name:
            folder = Path(name)
            (folder / "tree").mkdir()
            command = Command(
                argv=["sh", "-c", program],
                mark=f"stall:{kind}",
                root=folder / "tree",
                folder=folder / "agent",
                sandbox=Sandbox(kind="none"),  # type: ignore[arg-type]
            )
            settings = {"command": ["it"], "stream": "jsonl", "stall_minutes": seconds / 60}
            agent = describe("it", {**settings, "events": [{"when": {"/type": "tool"}, "as": "tool"}]})
            with Decklog.open(folder / "decklog.db") as log:
                log.runs.start("Stall", run_id="run_1")
                log.tasks.add("run_1", "It", task_id="it")
                begun = time.monotonic()
                commands.start(command)
                running = Running.find(command.mark, command.folder)
                assert running is not None
                outcome = AgentSession(log, agent, Terms(run_id="run_1", task_id="it"), running).watch(lambda: None)
            allowed = seconds if kind == "silent" else 2 * seconds
            print(f"{kind}: {outcome.ended_for}, gone {time.monotonic() - begun - allowed:.2f} s after {allowed:.0f} s")


def processor_seconds(pid: int) -> float:
    """Give the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--supervisors", action="store_true")
    parser.add_argument("--script", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--abandon", type=int, metavar="RUNS")
    parser.add_argument("--idle", type=float, metavar="SECONDS")
    parser.add_argument("--stall", type=float, metavar="SECONDS")
    given = parser.parse_args()
    asked = {abandon: given.abandon, idle: given.idle, stall: given.stall}
    if any(asked.values()):
        for measure, wanted in asked.items():
            if wanted:
                measure(wanted)
    else:
        kind = ScriptedGround if given.script else Ground
        kill(given.kills, random.Random(given.seed), with_supervisors=given.supervisors, kind=kind)


def kill(wanted: int, chance: random.Random, *, with_supervisors: bool, kind: type[Ground]) -> None:
    """Work plans until all kills have fallen; return the outcomes."""
    kills, runs, total = 0, 0, Counter[str]()
    begun = time.monotonic()
    while kills < wanted:
        with tempfile.TemporaryDirectory(prefix="decklog-kills-") as folder:
            ground = kind(Path(folder))
            while kills < wanted and not ground.work(chance.uniform(0.1, 1.5)):
                kills += 1
                if with_supervisors and chance.random() < 0.4:
                    ground.kill_supervisors()
            ground.work(None)
            total.update(ground.findings())
            runs += 1
    print(f"{kills} kills in {runs} runs of {ITEMS} items, {time.monotonic() - begun:.0f} s")
    for name, count in total.items():
        print(f"  {name}: {count}")


if __name__ == "__main__":
    main()
