"""The mending loop on forty seeded faults, and under kill -9.

`python -m benchmarks.mending --faults 40` hands in, for each of 40 faults, a fix with a test of every wrong kind, which must
be refused with its class, and then has a scripted agent mend it with a true one, merges that, and has it verified.

`--kills 200` has faults mended by scripted agents and models, kills the loop and starts it again, until 200 kills have
fallen: no state may be lost, no fix published twice, no answer charged twice or not at all. A kill falls into one of the next few
stages of a mend, drawn by chance, at a moment within it: so they are spread over whole lives, the passes of the gate among them,
and not over the steps that take the longest alone.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.consenting import consent
from benchmarks.killing import came_to_its_end, forked, git
from benchmarks.mending_faults import FAULTS, KINDS, Fault, files, package
from decklog import Decklog, Mend
from decklog.fixes.loop import FixInput, FixLoop
from decklog.models.composer import Prompt
from decklog.models.provider import Provider
from decklog.models.providers.making import Scripted

# Writes the files that it gets, and asks for money as agents do.
AGENT = """
import json, pathlib, sys
request = next(line for line in sys.stdin if line.startswith("WRITE "))
print(json.dumps({"type": "turn", "cost": 0.01}), flush=True)
for name, text in json.loads(request[6:]).items():
    pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(name).write_text(text)
"""
SETTINGS = f"""
[run]
sandbox = "none"
orphan_seconds = 30
[agents.scripted]
command = {json.dumps([sys.executable, "-I", "-S", "-c", AGENT])}
commits = "conductor"
stream = "jsonl"
events = [{{ when = {{ "/type" = "turn" }}, as = "usage", take = {{ cost_usd = "/cost" }} }}]
[models.scripted]
provider = "scripted"
script = "none.json"
[calls]
default = "scripted"
[review]
base = "main"
"""
# What a mend comes through, as it is said when each stage is over; passes of the gate among them, in their order.
STAGES = (
    *("triaged", "located", "planned", "fixing", "fixed", "proven"),
    *("1 static", "2 functional", "4 security", "5 prose", "3 architectural", "6 adversarial", "7 feedback-binding"),
    *("cleared", "published", "verified", "closed"),
)
# How long the stage after each takes here at most, in seconds: a kill falls somewhere in it. Others are over at once.
LENGTHS = {"planned": 0.3, "fixing": 6.0, "fixed": 4.0, "proven": 0.3, "1 static": 3.0, "5 prose": 0.3, "cleared": 0.5}
SHORT = 0.08
# Kills hit one of this number of stages that come next.
WINDOW = 4
_PASS = {"verdict": "pass", "findings": []}
ANSWERS: Mapping[str, Any] = {
    "mend.triage": {
        "fix_class": "tool",
        "root_cause": "The wrong expression is returned.",
        "proposed_change": "Return the right one.",
        "test_sketch": "Call it and compare.",
        "success_criterion": "The call gives what it should.",
        "candidate_files": [],
        "confidence": 90,
    },
    "review.3": _PASS,
    "review.6": {"findings": [], "score": 92, "reasoning": "Nothing was found."},
    "review.7": {"checks": [{"name": name, "verdict": "pass", "evidence": "-"} for name in ("cause", "test", "words", "scope")]},
}


def answered(prompt: Prompt) -> str:
    """Answer as a good model would."""
    site = next(part.name for part in prompt.parts if part.name.startswith("instructions")).removeprefix("instructions ")
    return json.dumps(ANSWERS[site])


def model(_: object) -> Provider:
    return Scripted(answered)


class Ground:
    """A repository with faults, and a log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository = folder / "repository"
        self.target = str(folder / "decklog.db")
        (folder / "fallen").touch()
        self.write(package(SETTINGS))
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "First"]):
            self.git(*words)
        consent(self.repository)

    def git(self, *words: str) -> str:
        return git(self.repository, *words)

    def write(self, wanted: Mapping[str, str]) -> None:
        for name, text in wanted.items():
            path = self.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def branch(self, wanted: Mapping[str, str]) -> None:
        """Commit files to a branch of a person's."""
        self.git("checkout", "-q", "-B", "by-hand", "main")
        self.write(wanted)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Mend it")
        self.git("checkout", "-q", "main")

    def mending(self, log: Decklog, say: Callable[[str], object] = lambda _: None) -> FixLoop:
        return FixLoop(log=log, cwd=self.repository, state=self.folder / "state", make=model, say=say)

    def said(self, fault: Fault) -> str:
        """Say what is wrong, with what the scripted agent is to write."""
        return f"{fault.said}\nWRITE {json.dumps(dict(files(fault, 'true', self.folder / 'counter')))}"


# Seeded faults


def seeded(count: int) -> None:
    """Hand in every kind of test for each fault; return which were refused by which class, and which verified."""
    outcomes: Counter[tuple[str, str]] = Counter()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="decklog-mending-") as folder:
        ground = Ground(Path(folder))
        first = ground.git("rev-parse", "main")
        for number, fault in enumerate(FAULTS[:count], 1):
            # Each fix begins with all faults: two in one module would otherwise take each other back.
            ground.git("reset", "-q", "--hard", first)
            with Decklog.open(ground.target, durability="relaxed") as log:
                outcomes.update(_one(ground, log, fault))
            wrong = {pair: one for pair, one in outcomes.items() if pair[1] not in (pair[0], "verified")}
            print(f"{number} of {count} faults, {time.monotonic() - begun:.0f} s, otherwise than expected: {wrong}", flush=True)
    print(f"{count} faults, {sum(outcomes.values())} fixes handed in, {time.monotonic() - begun:.0f} s")
    for (kind, outcome), number in sorted(outcomes.items()):
        print(f"  {kind:17} {outcome:30} {number}")


def _one(ground: Ground, log: Decklog, fault: Fault) -> list[tuple[str, str]]:
    mending = ground.mending(log)
    mend = mending.begin(log.feedback.file("ana", ground.said(fault)).id)
    found = []
    for kind in KINDS[1:]:
        ground.branch(files(fault, kind, ground.folder / f"{fault.name}-{kind}"))
        mend = mending.advance(mend.id, FixInput(branch="by-hand"))
        found.append((kind, str(mend.proof.get("refused") or mend.state)))
    mending.drop(mend.id, "every wrong kind was tried", by="benchmark")
    mend = mending.begin(log.feedback.file("ana", ground.said(fault)).id)
    mend = mending.advance(mend.id, FixInput())
    if mend.published:
        ground.git("merge", "-q", "--no-edit", str(mend.published["branch"]))
        mend = mending.advance(mend.id, FixInput())
    return [*found, ("true", "verified" if mend.state == "closed" else f"{mend.state}: {mend.reason}"[:60])]


# Kills


def kill(wanted: int, chance: random.Random) -> None:
    """Fix faults until all kills have fallen; return the outcomes."""
    kills, repositories, total, fallen = 0, 0, Counter[str](), Counter[str]()
    begun = time.monotonic()
    while kills < wanted:
        with tempfile.TemporaryDirectory(prefix="decklog-mending-") as folder:
            ground = Ground(Path(folder))
            faults = FAULTS[2 * repositories % 39 :][:2]
            with Decklog.open(ground.target) as log:
                for fault in faults:
                    log.feedback.file("ana", ground.said(fault))
            while kills < wanted and not _worked(ground, chance.getrandbits(32)):
                kills += 1
            _worked(ground, None)
            total.update(_findings(ground, len(faults)))
            fallen.update((ground.folder / "fallen").read_text().splitlines())
            repositories += 1
            trouble = {name: count for name, count in total.items() if count and name != "verified"}
            print(f"{kills} kills in {repositories} repositories, trouble so far: {trouble or 'none'}", flush=True)
    print(f"{kills} kills in {repositories} repositories of 2 faults, {time.monotonic() - begun:.0f} s")
    for name, count in total.items():
        print(f"  {name}: {count}")
    print("kills by the last stage that was over:")
    for name in ("filed", *STAGES):
        print(f"  {name}: {fallen[name]}")


def _worked(ground: Ground, seed: int | None) -> bool:
    """Mend everything in its own process, killed where a seed decides; return whether it finished."""

    def mend_all() -> None:
        with Decklog.open(ground.target) as log:
            _mend_all(ground, log, None if seed is None else Fate(random.Random(seed), ground.folder))

    return came_to_its_end(forked(mend_all), None)


class Fate:
    """Kills this process once, at a moment within one of the stages that come next. The output shows which are over.

    The progress of each fix is kept next to the log: what is known after a kill is printed again, and is then no stage that
    is lived through.
    """

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self._chance, self._fallen, self._kept = chance, folder / "fallen", folder / "furthest"
        self._furthest: dict[str, int] = json.loads(self._kept.read_text()) if self._kept.exists() else {}
        self._mend, self._target, self._last = "", -1, "filed"

    def begin(self, mend: Mend) -> None:
        """Begin with a fix in its current state."""
        if not self._mend:
            self._target = min(self._furthest.get(mend.id, -1) + self._chance.randint(0, WINDOW), len(STAGES) - 1)
        self._mend, self._last = mend.id, str(mend.state)
        self._reach(STAGES.index(self._last) if self._last in STAGES else -1)

    def say(self, words: str) -> None:
        """Read the output of the loop: `mend_… is fixed`, `2 functional pass`."""
        stage = next((one for one in STAGES if words.endswith(f" is {one}") or words.startswith(f"{one} ")), None)
        if stage is not None:
            self._last = stage
            self._reach(STAGES.index(stage))

    def _reach(self, stage: int) -> None:
        if stage > self._furthest.get(self._mend, -1):
            self._furthest[self._mend] = stage
            self._kept.write_text(json.dumps(self._furthest))
        if stage >= self._target:
            # Some right at the beginning, where a stage has only been recorded, the others anywhere in the next one.
            seconds = self._chance.choice((0.0, self._chance.uniform(0.0, LENGTHS.get(self._last, SHORT))))
            threading.Timer(seconds, self._die).start() if seconds else self._die()

    def _die(self) -> None:
        with open(self._fallen, "a", encoding="utf-8") as file:
            file.write(f"{self._last}\n")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)


def _mend_all(ground: Ground, log: Decklog, fate: Fate | None) -> None:
    """Go on with all that can go on; what is published is merged, as a person would, and verified."""
    mending = ground.mending(log, (lambda _: None) if fate is None else fate.say)
    while found := [one for one in mending.find_ready() if not one.state.is_end]:
        for mend in found:
            if fate is not None:
                fate.begin(mend)
            ended = mending.advance(mend.id)
            if ended.waits_for == "merge" and mend.waits_for != "merge":
                continue
            if ended.waits_for == "merge":
                _merge(ground, ended)


def _merge(ground: Ground, mend: Mend) -> None:
    """Merge a branch; one that a kill left half merged is begun anew."""
    subprocess.run(["git", "merge", "--abort"], cwd=ground.repository, capture_output=True, check=False)
    (ground.repository / ".git/index.lock").unlink(missing_ok=True)
    ground.git("reset", "-q", "--hard", "main")
    ground.git("merge", "-q", "--no-edit", str(mend.published["branch"]))


def _findings(ground: Ground, faults: int) -> dict[str, int]:
    found = Counter[str]()
    with Decklog.open(ground.target) as log:
        mends = log.mends.find(limit=200)
        found["verified"] = sum(one.state == "closed" for one in mends)
        found["mends lost or begun twice"] = abs(faults - len(mends))
        found["not verified"] = sum(one.state != "closed" for one in mends)
        for one in mends:
            if one.state != "closed":
                print(f"  {one.state}, waits for {one.waits_for}: {one.reason}", flush=True)
            heads = len(log.effects.find(one.run_id, tool="conductor.branch", limit=200))
            found["fixes published twice"] += heads != 1
        found["feedback not closed"] = sum(one.state != "closed" for one in log.feedback.find(limit=200))
        found["lessons not two a fix"] = abs(2 * faults - sum(one.sightings for one in log.memory.find(limit=200)))
        for run in log.runs.find(limit=200):
            found.update(_money(log, run.id))
            found["effects left open"] += len(log.effects.open(run.id))
        found["logs not whole"] = int(not log.journal.verify().ok)
    return dict(found)


def _money(log: Decklog, run_id: str) -> dict[str, int]:
    """Hold the charges of a run against the answers that are on record, and against the agents that were started."""
    answers = {str(entry.key) for entry in log.journal.find(run_id, subtype="model.call", limit=200)}
    charges = list(log.ledger.find(run_id, limit=200))
    keys = [str(charge.key) for charge in charges]
    asked = [key for key in keys if key.startswith("call_")]
    turns = sum(charge.cost_microdollars or 0 for charge in charges if not str(charge.key).startswith("call_")) // 10_000
    agents = len(log.effects.find(run_id, tool="conductor.spawn", limit=200))
    return {
        "answers not charged": len(answers - set(asked)),
        "charges without an answer, or twice": len(set(asked) - answers) + len(keys) - len(set(keys)),
        "agents charged twice": max(0, turns - agents),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, metavar="COUNT")
    parser.add_argument("--kills", type=int, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.faults:
        seeded(given.faults)
    if given.kills or not given.faults:
        kill(given.kills or 200, random.Random(given.seed))


if __name__ == "__main__":
    main()
