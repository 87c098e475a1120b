"""Examine a change between two commits, by the settings and with the tests of the first one."""

import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decklog.conductor.checks.lost_tests import RemovedTests, TestFile, hidden, moved, python_files, test_files
from decklog.conductor.checks.running import MOST_RUNS, OUT_OF_DISK, CheckOutput, Runner, census
from decklog.conductor.git.changes import list_added_lines, list_changes
from decklog.conductor.git.repository import fixed_settings, version
from decklog.conductor.settings import Check, Configuration
from decklog.core.errors import Conflict, Unavailable
from decklog.guard.files.gitignore import IgnoreFile
from decklog.log import Decklog
from decklog.provenance.git_output import RawChange
from decklog.records.values import to_json
from decklog.stores.workflow.verdicts import CheckOutcome, CheckVerdict

# Constructs by which code could behave differently under test.
_KNOWS_ITS_TESTS = re.compile(
    r"os\._exit|PYTEST_CURRENT_TEST|\b_pytest\b|^\s*(import|from)\s+(pytest|unittest|mock)\b|junitxml|report\.xml|sys\.argv"
    r"|sys\.modules|sys\.settrace|\batexit\b|faulthandler|__builtins__|import\s+builtins|setattr\(builtins"
)
MOST_SHOWN = 20


class Interrupted(Unavailable):
    """A check was killed each time it ran, which uses no attempt."""


@dataclass(frozen=True)
class Examination:
    """The outcome of an examination: `green`, `red` with findings, or `held` until a person approves exactly `about`."""

    outcome: str
    findings: list[dict[str, Any]] = field(default_factory=list)
    about: bytes | None = None

    @property
    def is_green(self) -> bool:
        return self.outcome == "green"


class Examiner:
    """Examines changes for one task under one fencing token."""

    def __init__(
        self, log: Decklog, run_id: str, configuration: Configuration, runner: Runner, *, task_id: str | None, fence: int = 0
    ) -> None:
        self._log = log
        self._run_id = run_id
        self._configuration = configuration
        self._runner = runner
        self._repository = runner.repository
        self._task_id = task_id
        self._fence = fence
        self._number = 0
        self._tests = IgnoreFile(configuration.tests)
        self._protected = IgnoreFile(configuration.protected, ignore_case=True)
        self._environment = environment_digest(runner)

    # Verdicts of single checks

    def verdict(self, check: Check, commit: str, changed: Sequence[str] = ()) -> tuple[CheckVerdict, CheckOutput]:
        """Return the verdict of a check on a commit's tree: the recorded one, or a new one."""
        tree = self._repository.tree(commit)
        definition = check.digest
        if "{changed}" in check.command:
            definition = hashlib.sha256(to_json([check.digest, *changed]).encode()).hexdigest()
        known = self._log.verdicts.known(self._run_id, tree, definition=definition, environment=self._environment)
        # Only errors are retried.
        if known is not None and known.outcome is not CheckOutcome.ERROR:
            return known, self._recalled(known)
        output = self._run(check, commit, changed)
        self._raise_outage(check, commit, output)
        if output.outcome is CheckOutcome.FAIL and output.tests is not None:
            again = self._run(check, commit, changed)
            if again.outcome is CheckOutcome.PASS:
                output = CheckOutput(
                    CheckOutcome.FLAKY, output.exit_code, "red, then green on the same tree", output.tests, output.output
                )
        return self._recorded(check, tree, definition, output), output

    def _raise_outage(self, check: Check, commit: str, output: CheckOutput) -> None:
        """Raise Unavailable if a check was killed from outside each time it ran."""
        if output.outage is None or self._runner.end_reason() is not None:
            return
        message = f"check {check.name} has no result for commit {commit[:12]}: it was {output.outage} {MOST_RUNS} times"
        if output.outage != OUT_OF_DISK:
            raise Interrupted(message, hint="Find out what kills it, such as a lack of memory; then start again.")
        if _free_bytes(self._runner.folder) < self._configuration.free_megabytes * 1024 * 1024:
            raise Unavailable(message, hint="Free some disk space.")
        # With enough free space, the output of a test only resembled this error.

    def _run(self, check: Check, commit: str, changed: Sequence[str]) -> CheckOutput:
        self._number += 1
        mark = f"{self._run_id}:{self._task_id or 'base'}:{self._fence}:{check.name}:{self._number}"
        return self._runner.run(check, commit, mark, changed)

    def _recorded(self, check: Check, tree: str, definition: str, output: CheckOutput) -> CheckVerdict:
        with self._log.transaction():
            artifact = self._log.artifacts.add(
                self._run_id,
                "check-report",
                f"checks/{tree}/{check.name}-{definition[:12]}.json",
                content=to_json({"tests": output.tests, "output": output.output, "reason": output.reason}),
                task_id=self._task_id,
            )
            return self._log.verdicts.record(
                self._run_id,
                check.name,
                output.outcome,
                tree=tree,
                definition=definition,
                environment=self._environment,
                task_id=self._task_id,
                exit_code=output.exit_code,
                findings=[*output.failing[:MOST_SHOWN]] or ([output.reason] if output.reason else []),
                artifact_id=artifact.id,
                duration_ms=output.duration_ms,
            )

    def _recalled(self, verdict: CheckVerdict) -> CheckOutput:
        content = self._log.artifacts.content_bytes(verdict.artifact_id) if verdict.artifact_id else b"{}"
        kept = json.loads(content)
        return CheckOutput(verdict.outcome, verdict.exit_code, kept.get("reason", ""), kept.get("tests"), kept.get("output", ""))

    def base_findings(self, base: str) -> list[dict[str, Any]]:
        """Return a finding for each required check that a commit does not pass."""
        verdicts = [(check, *self.verdict(check, base)) for check in self._configuration.gates]
        return [
            _finding(check.name, "inherited", output) for check, verdict, output in verdicts if not self._is_good(verdict, output)
        ]

    def red_tests(self, commit: str) -> set[str]:
        """Return the failing tests of a commit."""
        return {test for check in self._configuration.gates for test in self.verdict(check, commit)[1].failing}

    def _is_good(self, verdict: CheckVerdict, output: CheckOutput) -> bool:
        """Return whether a check passed, or only fails in tests that a person has allowed to fail."""
        is_known = bool(output.failing) and self._configuration.known_red.issuperset(output.failing)
        return verdict.is_pass or (verdict.outcome is CheckOutcome.FAIL and is_known)

    # Whole changes

    def examine(self, base: str, tip: str) -> Examination:
        """Examine the change from one commit to another."""
        changed = list_changes(self._repository, base, tip)
        paths = [one.path for one in changed if one.status != "D"]
        questions = self._questions(base, tip, changed)
        old_tests = [one for one in changed if one.status != "A" and self._tests.covers(one.path)]
        removed = RemovedTests(self._repository, base, tip, self._tests)
        red = [finding for check in self._configuration.gates for finding in self._graded(check, base, tip, paths, removed)]
        red = red or self._hidden(base, tip)
        if not red and old_tests:
            questions += self._by_old_tests(base, tip, old_tests, paths, removed)
        if red:
            return Examination("red", red)
        return self._held(base, tip, questions) if questions else Examination("green")

    def _graded(self, check: Check, base: str, tip: str, changed: Sequence[str], removed: RemovedTests) -> list[dict[str, Any]]:
        verdict, output = self.verdict(check, tip, changed)
        if not self._is_good(verdict, output):
            return [_finding(check.name, verdict.outcome.value, output)]
        if check.report != "junit" or output.tests is None:
            return []
        before, was = self.verdict(check, base)
        if not self._is_good(before, was) or was.tests is None:
            return [_finding(check.name, "inherited", was)]
        lost = census(was.tests, output.tests)
        if lost:
            still_run = moved(lost, was.tests, output.tests, *self._test_files(base, tip))
            lost = removed.left([name for name in lost if name not in still_run])
        return (
            [{"check": check.name, "kind": "census", "text": "tests of the base were not run", "tests": lost[:MOST_SHOWN]}]
            if lost
            else []
        )

    def _test_files(self, base: str, tip: str) -> tuple[list[TestFile], list[TestFile]]:
        """Read the changed test files in Python, before and after."""
        old, new = python_files(self._repository, base, tip, self._tests.covers)
        return test_files(old), test_files(new)

    def _hidden(self, base: str, tip: str) -> list[dict[str, Any]]:
        """Find tests that a change hides by later tests of the same name, which a report can't show."""
        old, new = (hidden(files) for files in self._test_files(base, tip))
        found = [name for name in new if name not in old]
        text = "tests are not run, since later tests have the same names"
        return [{"check": "tests", "kind": "census", "text": text, "tests": found[:MOST_SHOWN]}] if found else []

    def _by_old_tests(
        self, base: str, tip: str, old: Sequence[RawChange], paths: Sequence[str], removed: RemovedTests
    ) -> list[dict[str, Any]]:
        """Check the new code with the old versions of changed test files. A person decides about failures.

        Tests whose code was removed with them are skipped.
        """
        otherwise = removed.without([one.path for one in old])
        commit = self.with_files_of(base, tip, [one.path for one in old if otherwise.get(one.path, b"") is not None])
        for path, content in otherwise.items():
            commit = commit if content is None else self.with_content(commit, path, content)
        gates = self._configuration.gates
        findings = [finding for check in gates for finding in self._graded(check, base, commit, paths, removed)]
        return [{**finding, "kind": "old-tests", "changed": [one.path for one in old]} for finding in findings]

    def with_files_of(self, base: str, tip: str, paths: Sequence[str]) -> str:
        """Create a commit of a tip's tree with some files of the base."""
        listed = self._repository.on_objects("ls-tree", "-r", "-z", "--full-tree", base, "--", *paths).out
        return self._repository.commit_with(tip, listed, "With the tests of the base\n", self._runner.person)

    def with_content(self, tip: str, path: str, content: bytes) -> str:
        """Create a commit of a tip's tree with other content of one file."""
        listed = self._repository.on_objects("ls-tree", "-z", "--full-tree", tip, "--", path).out
        mode = listed.partition(b" ")[0]
        blob = self._repository.on_objects("hash-object", "-w", "--stdin", given=content).text
        entry = b"%s blob %s\t%s\0" % (mode, blob.encode(), os.fsencode(path))
        return self._repository.commit_with(tip, entry, "With a file otherwise\n", self._runner.person)

    def _questions(self, base: str, tip: str, changed: Sequence[RawChange]) -> list[dict[str, Any]]:
        """List the findings that only a person may accept."""
        found: list[dict[str, Any]] = []
        protected = [one.path for one in changed if self._protected.covers(one.path)]
        if protected:
            found.append({"kind": "protected", "text": "the change has protected paths", "paths": protected})
        lines = list_added_lines(self._repository, base, tip)
        code = [(path, line) for path, line in lines if not self._tests.covers(path)]
        knowing = [f"{path}: {line.strip()}" for path, line in code if _KNOWS_ITS_TESTS.search(line)]
        if knowing:
            found.append({"kind": "knows-its-tests", "text": "code that may detect tests", "lines": knowing[:MOST_SHOWN]})
        return found

    def _held(self, base: str, tip: str, questions: list[dict[str, Any]]) -> Examination:
        """Return green if a person approved exactly this change with exactly these findings."""
        about = {"base": self._repository.tree(base), "tree": self._repository.tree(tip), "findings": questions}
        content = to_json(about).encode()
        is_granted = self._log.approvals.granted_for(self._run_id, hashlib.sha256(content).hexdigest()) is not None
        return Examination("green" if is_granted else "held", questions, content)


def environment_digest(runner: Runner) -> str:
    """Return a digest of all that a verdict depends on besides the tree and the check."""
    facts: Mapping[str, object] = {"git": version(), "settings": fixed_settings(), "sandbox": runner.sandbox.value}
    return hashlib.sha256(to_json(facts).encode()).hexdigest()


def _free_bytes(folder: Path) -> int:
    """Return the free space on the disk of a folder, which need not exist."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _finding(name: str, kind: str, output: CheckOutput) -> dict[str, Any]:
    return {"check": name, "kind": kind, "text": output.described, "tests": output.failing[:MOST_SHOWN], "output": output.output}


def refuse_red_base(findings: Sequence[Mapping[str, Any]], commit: str) -> None:
    """Raise Conflict for a first commit that does not pass its own checks."""
    if findings:
        names = ", ".join(f"{one['check']} ({one['text'] or one['kind']})" for one in findings)
        tests = [test for one in findings for test in one.get("tests") or ()]
        allowing = f", or allow it to stay red: {' '.join(f'--from-red {shlex.quote(test)}' for test in tests)}" if tests else ""
        raise Conflict(
            f"commit {commit[:12]} does not pass its own checks: {names}",
            hint=f"Fix it first, since new failures could not be recognised{allowing}.",
            findings=[dict(one) for one in findings],
        )
