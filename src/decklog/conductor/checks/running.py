"""Runs one check on exactly one tree, under a supervisor and a sandbox, and says what came of it."""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from decklog.conductor import commands, kill_points
from decklog.conductor.checks.checkouts import Checkout, Checkouts
from decklog.conductor.checks.report import FAILED, read_junit
from decklog.conductor.commands import Command, Running
from decklog.conductor.git.repository import Person, Repository
from decklog.conductor.settings.check import Check
from decklog.core.errors import DecklogError
from decklog.guard.sandbox.sandbox import Sandbox, SandboxKind
from decklog.guard.shell.output import read_output
from decklog.stores.workflow.verdicts import CheckOutcome

if TYPE_CHECKING:
    from decklog.log import Decklog

SHOWN = 4000
GRACE_SECONDS = 5.0
_KILL = [(9, 5.0)]
# How often a check is run that something outside of it ended.
MOST_RUNS = 3
LONGEST_LINE = 200
OUT_OF_DISK = "out of disk"
_OUT_OF_DISK = re.compile(r"No space left on device|Disk quota exceeded|\bENOSPC\b")


@dataclass(frozen=True)
class CheckOutput:
    """What a check said of a tree: the tests that it ran, if it reports them, and the end of its output.

    `outage` names what ended it from outside: then it says nothing of the tree.
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
        """The reason, with the last line of the output where no tests tell more."""
        last = next((line.strip() for line in reversed(self.output.splitlines()) if line.strip()), "")
        return f"{self.reason}: {last[:LONGEST_LINE]}" if self.reason and last and not self.tests else self.reason

    @property
    def failing(self) -> list[str]:
        return sorted(name for name, outcome in (self.tests or {}).items() if outcome == FAILED)


class CheckCompanion(Protocol):
    """Stands beside a check while it runs: adds to its environment, and reads what is in its folder before that is gone."""

    readable: tuple[str, ...]

    def begin(self, folder: Path, tree: Path, env: Mapping[str, str]) -> Mapping[str, str]: ...
    def ended(self, folder: Path) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Runs checks for one run. `wanted_end` gives a reason as soon as whatever runs is to be ended."""

    repository: Repository
    person: Person
    sandbox: SandboxKind
    log_file: str | None
    folder: Path
    wanted_end: Callable[[], str | None] = field(default=lambda: None)
    checkouts: Checkouts = field(default_factory=Checkouts)

    @classmethod
    def beneath(cls, folder: Path, log: "Decklog", repository: Repository, sandbox: SandboxKind, **given: Any) -> "Runner":
        """Return what runs checks outside of a run, in the name of whoever commits here; the log is kept from them."""
        return cls(
            repository=repository, person=repository.person(), sandbox=sandbox, log_file=log.db.file, folder=folder, **given
        )

    def run(
        self, check: Check, commit: str, mark: str, changed: Sequence[str] = (), *, beside: CheckCompanion | None = None
    ) -> CheckOutput:
        """Run a check on the files of a commit; what it wrote is removed afterwards.

        A check that was killed, lost, or out of disk is run again, a few times at most.
        """
        for _ in range(MOST_RUNS):
            said = self._run_once(check, commit, mark, changed, beside)
            if said.outage is None or self.wanted_end() is not None:
                break
        return said

    def _run_once(
        self, check: Check, commit: str, mark: str, changed: Sequence[str], beside: CheckCompanion | None
    ) -> CheckOutput:
        with self.checkouts.of(self.repository, commit, self.person, self.folder) as checkout:
            kill_points.reached("check:place")
            begun = time.monotonic()
            folder = self.folder / mark.replace("/", "_")
            try:
                said = self._run_in(checkout, folder, check, mark, changed, beside)
            finally:
                self.checkouts.removal.take(folder)
        return replace(said, duration_ms=int((time.monotonic() - begun) * 1000))

    def _run_in(
        self, checkout: Checkout, folder: Path, check: Check, mark: str, changed: Sequence[str], beside: CheckCompanion | None
    ) -> CheckOutput:
        # Within the command's own scratch folder, which its sandbox may write to.
        report = folder / "tmp/report.xml"
        report.parent.mkdir(parents=True, mode=0o700)
        own = {"PYTHONDONTWRITEBYTECODE": "1", **check.env}
        more = {} if beside is None else beside.begin(report.parent, checkout.tree, own)
        also = () if beside is None else beside.readable
        command = Command(
            argv=check.arguments(report=str(report), changed=changed),
            mark=mark,
            root=checkout.tree,
            folder=folder,
            sandbox=Sandbox(
                kind=self.sandbox,
                network=check.network,
                readable=(str(self.repository.objects), *_expanded(check.readable), *also),
            ),
            log_file=self.log_file,
            env={**own, **more},
            pass_env=check.pass_env,
            timeout_seconds=check.minutes * 60,
            grace_seconds=GRACE_SECONDS,
        )
        try:
            commands.start(command)
        except DecklogError as problem:
            return CheckOutput(CheckOutcome.ERROR, 127, f"it can't be started: {problem.message}")
        running = Running.find(mark, folder)
        assert running is not None
        ended = running.until_end(self.wanted_end, _KILL)
        is_own_end = ended["reason"] == "exited" and commands.killed_by(ended) is None
        checkout.is_left_well = is_own_end and not ended.get("leftovers")
        output = read_output(folder).text[-SHOWN:]
        tests = read_junit(report) if check.report == "junit" else None
        if beside is not None:
            beside.ended(report.parent)
        return _judged(check, ended, tests, output)


def _expanded(paths: Sequence[str]) -> list[str]:
    return [os.path.expanduser(path) for path in paths]


def _judged(check: Check, ended: Mapping[str, object], tests: Mapping[str, str] | None, output: str) -> CheckOutput:
    """Make a verdict of how a check ended; what it could not say is an error, and never a pass."""
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
