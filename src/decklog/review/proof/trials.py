"""One trial: a check run on one commit, with its report and with what the probe in its Python saw."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from decklog.conductor.checks.report import LARGEST
from decklog.conductor.checks.running import Runner, Said
from decklog.conductor.settings.check import Check
from decklog.review.proof.lines import Lines

_PROBE = Path(__file__).with_name("probe")
_LONGEST = 4000


@dataclass(frozen=True)
class Failure:
    """How a report says that a test failed: as a `failure` of what it claims, or as an `error` on the way."""

    tag: str
    text: str


@dataclass(frozen=True)
class Seen:
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
    """What one run of a check came to."""

    said: Said
    failures: Mapping[str, Failure]
    seen: tuple[Seen, ...]


@dataclass(frozen=True)
class Watched:
    """What the probe looks for: calls of tests in these files, lines of these, and reads of these."""

    tests: Sequence[str]
    lines: Lines
    files: Sequence[str]


class Probe:
    """Stands beside a check while it runs."""

    readable: tuple[str, ...] = (str(_PROBE),)

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self.failures: dict[str, Failure] = {}
        self.seen: list[Seen] = []

    def begin(self, folder: Path, tree: Path, env: Mapping[str, str]) -> Mapping[str, str]:
        """Write down what to look for; give the variables by which the check's Python finds it."""
        out = folder / "seen"
        out.mkdir(mode=0o700)
        watched = self._watched
        wanted = {"root": str(tree), "out": str(out), "tests": list(watched.tests), "files": list(watched.files)}
        told = folder / "probe.json"
        told.write_text(json.dumps({**wanted, "lines": {path: list(lines) for path, lines in watched.lines.items()}}))
        path = ":".join(part for part in (str(_PROBE), env.get("PYTHONPATH", "")) if part)
        return {"PYTHONPATH": path, "DECKLOG_PROBE": str(told)}

    def ended(self, folder: Path) -> None:
        """Read what was seen before the place is gone. What can't be read was not seen."""
        self.failures = read_failures(folder / "report.xml")
        for path in sorted((folder / "seen").glob("*.jsonl")):
            if path.is_symlink() or path.stat().st_size > LARGEST:
                continue
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                self.seen += _seen(line)


def tried(runner: Runner, check: Check, commit: str, mark: str, watched: Watched, changed: Sequence[str]) -> Trial:
    """Run a check on a commit once, watched."""
    probe = Probe(watched)
    said = runner.run(check, commit, mark, changed, beside=probe)
    return Trial(said, probe.failures, tuple(probe.seen))


def _seen(line: str) -> list[Seen]:
    # A check's own program could have written there: what is not of the form counts for nothing.
    try:
        told = json.loads(line)
        return [Seen(**{**told, "read": tuple(told["read"])})]
    except (ValueError, TypeError, KeyError):
        return []


def read_failures(path: Path) -> dict[str, Failure]:
    """Read how tests failed from a report in JUnit's form."""
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
