"""Run and store trials: runs of a check on a commit, each with its report and the observations of the probe."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from decklog.conductor.checks.examination import environment_digest
from decklog.conductor.checks.running import LARGEST, CheckOutput, Runner, junit_cases
from decklog.conductor.settings import Check
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.review.proof.lines import Lines
from decklog.stores.workflow.verdicts import CheckOutcome

_PROBE = Path(__file__).with_name("probe")
_LONGEST = 4000
TIMES = 3


@dataclass(frozen=True)
class Failure:
    """How a test failed in a report: a `failure` of its assertion, or an `error` on the way."""

    tag: str
    text: str


@dataclass(frozen=True)
class ProbeResult:
    """What the probe saw of one call of a test."""

    test: str
    file: str
    code: bool = False
    read: tuple[str, ...] = ()
    lines: Lines = field(default_factory=dict)
    outside: Lines = field(default_factory=dict)
    raised: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Trial:
    """The outcome of one run of a check."""

    said: CheckOutput
    failures: Mapping[str, Failure]
    seen: tuple[ProbeResult, ...]


@dataclass(frozen=True)
class Watched:
    """What the probe watches: tests in these files, these lines, and reads of these files."""

    tests: Sequence[str]
    lines: Lines
    files: Sequence[str]


class Probe:
    """Watches a check while it runs."""

    readable: tuple[str, ...] = (str(_PROBE),)

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self.failures: dict[str, Failure] = {}
        self.seen: list[ProbeResult] = []

    def begin(self, folder: Path, tree: Path, env: Mapping[str, str]) -> Mapping[str, str]:
        """Write what to watch; return the variables by which the check's Python finds it."""
        out = folder / "seen"
        out.mkdir(mode=0o700)
        watched = self._watched
        wanted = {"root": str(tree), "out": str(out), "tests": list(watched.tests), "files": list(watched.files)}
        order = folder / "probe.json"
        order.write_text(json.dumps({**wanted, "lines": {path: list(lines) for path, lines in watched.lines.items()}}))
        path = ":".join(part for part in (str(_PROBE), env.get("PYTHONPATH", "")) if part)
        return {"PYTHONPATH": path, "DECKLOG_PROBE": str(order)}

    def ended(self, folder: Path) -> None:
        """Read what was seen before the folder is removed. What can't be read was not seen."""
        self.failures = read_failures(folder / "report.xml")
        for path in sorted((folder / "seen").glob("*.jsonl")):
            if path.is_symlink() or path.stat().st_size > LARGEST:
                continue
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                self.seen += _seen(line)


def run_trial(runner: Runner, check: Check, commit: str, mark: str, watched: Watched, changed: Sequence[str]) -> Trial:
    """Run a check on a commit once, watched by the probe."""
    probe = Probe(watched)
    said = runner.run(check, commit, mark, changed, companion=probe)
    return Trial(said, probe.failures, tuple(probe.seen))


def _seen(line: str) -> list[ProbeResult]:
    # The check can write to this file, too, so ignore lines of another form.
    try:
        row = json.loads(line)
        return [ProbeResult(**{**row, "read": tuple(row["read"])})]
    except (ValueError, TypeError, KeyError):
        return []


def read_failures(path: Path) -> dict[str, Failure]:
    """Return how tests failed in a JUnit report."""
    found: dict[str, Failure] = {}
    for name, case in junit_cases(path):
        for child in case:
            if child.tag in ("failure", "error"):
                words = (child.get("type") or "", child.get("message") or "", child.text or "")
                found[name] = Failure(child.tag, "\n".join(part for part in words if part)[:_LONGEST])
    return found


@dataclass(frozen=True)
class TrialSeries:
    """Trials of a check on one commit. They run when needed and are stored: a run that was killed repeats only missing ones."""

    log: Decklog
    run_id: str
    runner: Runner
    check: Check
    commit: str
    watched: Watched
    changed: Sequence[str]
    where: str
    _found: list[Trial] = field(default_factory=list)

    def run(self, count: int, say: Callable[[str], object]) -> list[Trial]:
        """Return a number of trials, fewer after one that could not run its tests at all."""
        while len(self._found) < count and not any(one.said.outcome is CheckOutcome.ERROR for one in self._found):
            trial = self._trial(len(self._found) + 1)
            self._found.append(trial)
            say(f"{self.where} the fix, run {len(self._found)} of {TIMES}: {trial.said.outcome}")
        return self._found

    def _trial(self, number: int) -> Trial:
        path = f"{self._folder}-{number}.json"
        if stored := self.log.artifacts.find(self.run_id, path=path, limit=1):
            return _stored(json.loads(self.log.artifacts.content_bytes(stored[0].id)))
        mark = f"{self.run_id}:proof:{self.where}:{self.commit[:12]}:{number}"
        trial = run_trial(self.runner, self.check, self.commit, mark, self.watched, self.changed)
        # Don't store a trial that ended in an error: the next one may succeed.
        if trial.said.outcome is not CheckOutcome.ERROR:
            content = to_json(asdict(replace(trial, said=replace(trial.said, output=trial.said.output[-1000:]))))
            self.log.artifacts.add(self.run_id, "proof-trial", path, content=content)
        return trial

    @cached_property
    def _folder(self) -> str:
        tree = self.runner.repository.tree(self.commit)
        facts = [self.check.digest, tree, asdict(self.watched), environment_digest(self.runner)]
        return f"proofs/trials/{tree}-{hashlib.sha256(to_json(facts).encode()).hexdigest()[:16]}"


def _stored(row: Any) -> Trial:
    said = CheckOutput(**{**row["said"], "outcome": CheckOutcome(row["said"]["outcome"])})
    failures = {name: Failure(**one) for name, one in row["failures"].items()}
    return Trial(said, failures, tuple(ProbeResult(**{**one, "read": tuple(one["read"])}) for one in row["seen"]))
