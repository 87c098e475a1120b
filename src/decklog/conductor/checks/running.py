"""Run one check on exactly one tree, under a supervisor and a sandbox, and read its report."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol
from xml.etree import ElementTree

from decklog.conductor import commands, kill_points
from decklog.conductor.commands import Command
from decklog.conductor.git import workspaces
from decklog.conductor.git.repository import Person, Repository
from decklog.conductor.git.workspaces import Workspace
from decklog.conductor.settings import Check
from decklog.core.errors import DecklogError
from decklog.guard.sandbox.sandbox import Sandbox, SandboxKind
from decklog.guard.shell.spool import read_output
from decklog.log import Decklog
from decklog.stores.workflow.verdicts import CheckOutcome

SHOWN = 4000
GRACE_SECONDS = 5.0
# How often a check is run if it is killed from outside.
MOST_RUNS = 3
LARGEST = 64 * 1024 * 1024
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
LONGEST_LINE = 200
OUT_OF_DISK = "out of disk"
_OUT_OF_DISK = re.compile(r"No space left on device|Disk quota exceeded|\bENOSPC\b")


@dataclass(frozen=True)
class CheckOutput:
    """The result of a check: the tests that it ran, if it reports them, and the end of its output.

    `outage` is what ended it from outside: then the result is not about the tree.
    """

    outcome: CheckOutcome
    exit_code: int | None = None
    reason: str = ""
    tests: Mapping[str, str] | None = None
    output: str = ""
    duration_ms: int = 0
    outage: str | None = None

    @property
    def described(self) -> str:
        """The reason, with the last line of the output if there are no tests."""
        last = next((line.strip() for line in reversed(self.output.splitlines()) if line.strip()), "")
        return f"{self.reason}: {last[:LONGEST_LINE]}" if self.reason and last and not self.tests else self.reason

    @property
    def failing(self) -> list[str]:
        return sorted(name for name, outcome in (self.tests or {}).items() if outcome == FAILED)


class CheckCompanion(Protocol):
    """Adds to the environment of a check, and reads its folder before it is removed."""

    readable: tuple[str, ...]

    def begin(self, folder: Path, tree: Path, env: Mapping[str, str]) -> Mapping[str, str]: ...
    def ended(self, folder: Path) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Runs checks. `end_reason` returns a reason as soon as a running check must end."""

    repository: Repository
    person: Person
    sandbox: SandboxKind
    log_file: str | None
    folder: Path
    end_reason: Callable[[], str | None] = field(default=lambda: None)

    @classmethod
    def beneath(cls, folder: Path, log: Decklog, repository: Repository, sandbox: SandboxKind, **given: Any) -> "Runner":
        """Return a runner for use without a run, on behalf of the user. Its checks can't read the log."""
        return cls(
            repository=repository, person=repository.person(), sandbox=sandbox, log_file=log.db.file, folder=folder, **given
        )

    def run(
        self, check: Check, commit: str, mark: str, changed: Sequence[str] = (), *, companion: CheckCompanion | None = None
    ) -> CheckOutput:
        """Run a check on the files of a commit. Files that it writes are removed afterwards.

        A check that was killed, lost, or out of disk is run again, a few times at most.
        """
        for _ in range(MOST_RUNS):
            result = self._run_once(check, commit, mark, changed, companion)
            if result.outage is None or self.end_reason() is not None:
                break
        return result

    def _run_once(
        self, check: Check, commit: str, mark: str, changed: Sequence[str], companion: CheckCompanion | None
    ) -> CheckOutput:
        folder = self.folder / mark.replace("/", "_")
        place = Workspace(folder / "files")
        try:
            workspaces.make(self.repository, place, commit, self.person)
            kill_points.reached("check:place")
            begun = time.monotonic()
            output = self._run_in(place.tree, folder / "command", check, mark, changed, companion)
            return replace(output, duration_ms=int((time.monotonic() - begun) * 1000))
        finally:
            workspaces.remove_folder(folder)

    def _run_in(
        self, tree: Path, folder: Path, check: Check, mark: str, changed: Sequence[str], companion: CheckCompanion | None
    ) -> CheckOutput:
        # Within the command's own scratch folder, which its sandbox may write to.
        report = folder / "tmp/report.xml"
        report.parent.mkdir(parents=True, mode=0o700)
        own = {"PYTHONDONTWRITEBYTECODE": "1", **check.env}
        more = {} if companion is None else companion.begin(report.parent, tree, own)
        also = () if companion is None else companion.readable
        command = Command(
            argv=check.arguments(report=str(report), changed=changed),
            mark=mark,
            root=tree,
            folder=folder,
            sandbox=Sandbox(
                kind=self.sandbox,
                network=check.network,
                readable=(str(self.repository.objects), *commands.expanded(check.readable), *also),
            ),
            log_file=self.log_file,
            env={**own, **more},
            pass_env=check.pass_env,
            timeout_seconds=check.minutes * 60,
            grace_seconds=GRACE_SECONDS,
        )
        try:
            ended = commands.run(command, self.end_reason)
        except DecklogError as problem:
            return CheckOutput(CheckOutcome.ERROR, 127, f"it can't be started: {problem.message}")
        output = read_output(folder).text[-SHOWN:]
        tests = read_junit(report) if check.report == "junit" else None
        if companion is not None:
            companion.ended(report.parent)
        return _judge_result(check, ended, tests, output)


def _judge_result(check: Check, ended: Mapping[str, object], tests: Mapping[str, str] | None, output: str) -> CheckOutput:
    """Return the outcome of a check. Without a clear result it is an error, never a pass."""
    code = ended["exit_code"] if isinstance(ended["exit_code"], int) else None
    failing = [name for name, outcome in (tests or {}).items() if outcome == FAILED]
    outage = commands.killed_by(ended) or (OUT_OF_DISK if code != 0 and _OUT_OF_DISK.search(output) else None)
    if ended["reason"] != "exited":
        outcome, reason = CheckOutcome.ERROR, f"it was {ended['reason']}".replace("_", " ")
    elif code is None or code in (126, 127):
        outcome, reason = CheckOutcome.ERROR, f"it ended with {ended.get('signal') or f'exit code {code}'}"
    elif check.report == "junit" and tests is None:
        outcome, reason = CheckOutcome.ERROR, f"it ended with exit code {code} and no report of tests"
    elif check.report == "junit" and (code != 0) != bool(failing):
        outcome, reason = CheckOutcome.ERROR, f"its report has {len(failing)} failing tests and its exit code is {code}"
    elif code != 0:
        outcome, reason = CheckOutcome.FAIL, f"exit code {code}"
    else:
        outcome, reason = CheckOutcome.PASS, ""
    return CheckOutput(outcome, code, reason, tests, output, outage=outage)


# Reports of tests


def read_junit(path: Path) -> dict[str, str] | None:
    """Parse a report in JUnit's format; None if it can't be read or has no tests."""
    tests: dict[str, str] = {}
    for name, case in junit_cases(path):
        kinds = {child.tag for child in case}
        outcome = FAILED if kinds & {"failure", "error"} else SKIPPED if "skipped" in kinds else PASSED
        # Of two tests with the same name the worse outcome counts.
        tests[name] = max(tests.get(name, PASSED), outcome, key=(PASSED, SKIPPED, FAILED).index)
    return tests or None


def junit_cases(path: Path) -> list[tuple[str, ElementTree.Element]]:
    """Return the test cases of a JUnit report with their names; empty if it can't be read."""
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            return []
        root = ElementTree.fromstring(path.read_bytes())
    except (OSError, ElementTree.ParseError, ValueError):
        return []
    return [(f"{case.get('classname', '')}::{case.get('name', '')}", case) for case in root.iter("testcase")]


def census(base: Mapping[str, str], tip: Mapping[str, str]) -> list[str]:
    """List the tests that passed on the base and are missing or skipped on the tip."""
    passed = [name for name, outcome in base.items() if outcome == PASSED]
    return sorted(name for name in passed if tip.get(name, SKIPPED) == SKIPPED)
