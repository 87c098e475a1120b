"""Effects under kill -9: a process is killed at a random moment of its step and another takes over, hundreds of times.

Two effects are real: a line appended to a file, and a branch pushed to a bare repository, which gets a new name each time the
push is made. `python -m benchmarks.effects --kills 300` prints where the kills fell and what came of them. A step must never
happen twice, and never be lost silently: it is resumed, or a person decides.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from decklog import Conflict, Decklog
from decklog.core.errors import StillPending
from decklog.guard import EffectCheck, Sandbox, Toolbox, Unrestricted
from decklog.guard.sandbox.sandbox import SandboxKind
from decklog.guard.shell.launch import end_process_tree
from decklog.guard.shell.process_tree import find_marked_processes
from decklog.guard.toolbox.once import effect_key
from decklog.stores.effects.effects import Effect

DONE, PENDING, UNKNOWN, BROKEN = 0, 7, 5, 1
RUN = "run_kills"
PUSH = "git push --quiet origin HEAD:refs/heads/step-$1-$(date +%s%N)-$$\n"


@dataclass
class Tally:
    """What came of the kills."""

    kills: int = 0
    steps: int = 0
    twice: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    fell: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)


class Ground:
    """A log, a repository with a bare one behind it, and the steps that are made there."""

    def __init__(self, folder: Path, *, kind: SandboxKind) -> None:
        self.folder = folder
        self.root = folder / "work"
        self.bare = folder / "bare.git"
        self.sandbox = Sandbox(kind=kind, writable=(str(self.bare),))
        _git(folder, "init", "--quiet", "--bare", str(self.bare))
        _git(folder, "init", "--quiet", str(self.root))
        (self.root / "push.sh").write_text(PUSH)
        _git(self.root, "add", "push.sh")
        _git(self.root, "-c", "user.name=kills", "-c", "user.email=kills@localhost", "commit", "--quiet", "-m", "start")
        _git(self.root, "remote", "add", "origin", str(self.bare))
        with self.log() as log:
            log.runs.start("be killed", run_id=RUN)

    def log(self) -> Decklog:
        return Decklog.open(self.folder / "decklog.db")

    def command(self, step: str) -> str:
        effect, _, number = step.partition("-")
        return f"echo {step} >> appended.txt" if effect == "append" else f"bash push.sh {number}"

    def count(self, step: str) -> int:
        """Count how often a step has happened in the world."""
        effect, _, number = step.partition("-")
        if effect == "append":
            file = self.root / "appended.txt"
            return file.read_text().splitlines().count(step) if file.exists() else 0
        return len(_git(self.bare, "for-each-ref", f"refs/heads/step-{number}-*").splitlines())

    def effect(self, step: str) -> Effect | None:
        with self.log() as log:
            return log.effects.known(RUN, effect_key(step, "run", {"command": self.command(step)}))

    # One attempt, in its own process

    def begin(self, step: str, *, with_check: bool) -> int:
        """Fork a process that makes a step; give its number."""
        pid = os.fork()
        if pid == 0:
            os._exit(self._make(step, with_check))
        return pid

    def _make(self, step: str, with_check: bool) -> int:
        def check(_: Effect) -> EffectCheck:
            return EffectCheck(self.count(step) > 0)

        try:
            with (
                self.log() as log,
                Toolbox(log, RUN, root=self.root, trust=Unrestricted(), sandbox=self.sandbox, state=self.folder / "state") as box,
            ):
                box.call("run", {"command": self.command(step)}, step=step, check=check if with_check else None)
        except StillPending:
            return PENDING
        except Conflict:
            return UNKNOWN
        except BaseException:  # noqa: BLE001 - any failure must reach the driver as a failure
            traceback.print_exc()
            return BROKEN
        return DONE

    def where(self, step: str) -> str:
        """Say where in a step its process was killed."""
        effect = self.effect(step)
        if effect is None:
            return "before the intent"
        if effect.is_settled:
            return "after it was settled"
        folder = Path(str(effect.facts["folder"]))
        if (folder / "ended.json").exists():
            return "between act and settling"
        return "in the act" if (folder / "started.json").exists() else "between intent and act"


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


class Driver:
    """Kills, takes over, and counts."""

    def __init__(self, ground: Ground, seed: int) -> None:
        self.ground = ground
        self.dice = random.Random(seed)
        self.tally = Tally()

    def run(self, kills: int) -> Tally:
        """Make steps until this many processes were killed in the middle of one."""
        usual = {effect: self._usual(effect) for effect in ("append", "push")}
        while self.tally.kills < kills:
            effect = self.dice.choice(("append", "push"))
            step = f"{effect}-{self.tally.steps}"
            self.tally.steps += 1
            with_check = self.dice.random() < 0.7
            while self._killed(step, usual[effect], with_check) and self.dice.random() < 0.3:
                pass
            self._finish(step, with_check)
            self._judge(step)
        return self.tally

    def _usual(self, effect: str) -> float:
        """Measure how long an undisturbed step takes."""
        times = []
        for number in range(3):
            started = time.monotonic()
            step = f"{effect}-calm{number}"
            os.waitpid(self.ground.begin(step, with_check=False), 0)
            times.append(time.monotonic() - started)
            self._judge(step)
        return sorted(times)[1]

    def _killed(self, step: str, usual: float, with_check: bool) -> bool:
        """Begin a step and kill its process at a random moment; say whether it was still at it."""
        pid = self.ground.begin(step, with_check=with_check)
        time.sleep(self.dice.uniform(0.0, 1.05 * usual))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            return False
        self.tally.kills += 1
        if self.dice.random() < 0.4:
            # As a power cut does it: the supervisor and the command go too.
            self._kill_everything(step)
        self.tally.fell[self.ground.where(step)] += 1
        return True

    def _kill_everything(self, step: str) -> None:
        effect = self.ground.effect(step)
        if effect is not None and effect.facts:
            end_process_tree(str(effect.facts["mark"]))

    def _finish(self, step: str, with_check: bool) -> None:
        """Take the step over until it is done, answering for a person where one is needed."""
        while True:
            _, status = os.waitpid(self.ground.begin(step, with_check=with_check), 0)
            code = os.waitstatus_to_exitcode(status)
            if code == DONE:
                return
            if code == PENDING:
                self.tally.answered["waited for it"] += 1
                time.sleep(0.02)
            elif code == UNKNOWN:
                self._answer(step)
            else:
                raise RuntimeError(f"{step} ended with {code}")

    def _answer(self, step: str) -> None:
        effect = self.ground.effect(step)
        assert effect is not None
        happened = "yes" if self.ground.count(step) else "no"
        self.tally.answered[f"a person said {happened}"] += 1
        with self.ground.log() as log:
            log.effects.reconcile(effect.id, happened, by="the driver")  # type: ignore[arg-type]

    def _judge(self, step: str) -> None:
        effect = self.ground.effect(step)
        assert effect is not None
        assert not find_marked_processes(str(effect.facts.get("mark"))) or effect.is_settled
        count = self.ground.count(step)
        if count > 1:
            self.tally.twice.append(step)
        if count == 0 or effect.state != "done":
            self.tally.lost.append(step)
        if effect.reconciled_by in ("check", "run"):
            who = "the check" if effect.reconciled_by == "check" else "the supervisor's record"
            self.tally.answered[f"found done by {who}"] += 1
        elif effect.attempts > 1:
            self.tally.answered["taken up again"] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sandbox", choices=[kind.value for kind in SandboxKind], default="auto")
    given = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tally = Driver(Ground(Path(folder), kind=SandboxKind(given.sandbox)), given.seed).run(given.kills)
    print(f"{tally.kills} kills over {tally.steps} steps in {time.monotonic() - started:.0f} s")
    for title, counts in (("where they fell", tally.fell), ("what came of it", tally.answered)):
        print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
    print(f"happened twice: {len(tally.twice)}, lost: {len(tally.lost)}")
    return 1 if tally.twice or tally.lost else 0


if __name__ == "__main__":
    sys.exit(main())
