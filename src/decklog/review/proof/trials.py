"""A trial: one run of a check on a commit, with its report and what the probe saw; finished trials are stored."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from decklog.conductor.checks.examination import environment_digest
from decklog.conductor.checks.running import LARGEST, CheckOutput, Runner
from decklog.conductor.settings import Check
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.review.proof.lines import Lines
from decklog.stores.workflow.verdicts import CheckOutcome

_PROBE = Path(__file__).with_name("probe")
_LONGEST = 4000


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
    # The check can write there, too: a line of another form does not count.
    try:
        row = json.loads(line)
        return [ProbeResult(**{**row, "read": tuple(row["read"])})]
    except (ValueError, TypeError, KeyError):
        return []


def read_failures(path: Path) -> dict[str, Failure]:
    """Return how tests failed in a JUnit report."""
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            return {}
        root = ElementTree.fromstring(path.read_bytes())
    except (OSError, ElementTree.ParseError, ValueError):
        return {}
    found: dict[str, Failure] = {}
    for case in root.iter("testcase"):
        for child in case:
            if child.tag in ("failure", "error"):
                words = (child.get("type") or "", child.get("message") or "", child.text or "")
                name = f"{case.get('classname', '')}::{case.get('name', '')}"
                found[name] = Failure(child.tag, "\n".join(part for part in words if part)[:_LONGEST])
    return found


class StoredTrials:
    """Stores the trials of a check on one tree, so a run that was killed repeats only the missing ones."""

    def __init__(self, log: Decklog, run_id: str, runner: Runner, check: Check, tree: str, watched: Watched) -> None:
        self._log = log
        self._run_id = run_id
        facts = [check.digest, tree, asdict(watched), environment_digest(runner)]
        self._name = f"proofs/trials/{tree}-{hashlib.sha256(to_json(facts).encode()).hexdigest()[:16]}"

    def get(self, number: int) -> Trial | None:
        """Return a stored trial; None if there is none."""
        found = self._log.artifacts.find(self._run_id, path=self._path(number), limit=1)
        return _stored(json.loads(self._log.artifacts.content_bytes(found[0].id))) if found else None

    def add(self, number: int, trial: Trial) -> None:
        """Store a trial, unless it ended in an error: the next one may not."""
        if trial.said.outcome is not CheckOutcome.ERROR:
            content = to_json(asdict(replace(trial, said=replace(trial.said, output=trial.said.output[-1000:]))))
            self._log.artifacts.add(self._run_id, "proof-trial", self._path(number), content=content)

    def _path(self, number: int) -> str:
        return f"{self._name}-{number}.json"


def _stored(row: Any) -> Trial:
    said = CheckOutput(**{**row["said"], "outcome": CheckOutcome(row["said"]["outcome"])})
    failures = {name: Failure(**one) for name, one in row["failures"].items()}
    return Trial(said, failures, tuple(ProbeResult(**{**one, "read": tuple(one["read"])}) for one in row["seen"]))
